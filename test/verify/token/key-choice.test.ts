/* Which key verifies a token (docs/how-a-request-is-checked.md, the token, 3): the one that its kid names, or the only one. Unusable keys
   do not count. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { rawJws } from '../../idp/tokens.ts';
import {
  CLAIMS,
  foreignKey,
  GOOD,
  HEADER,
  issue,
  published,
  signingKey,
  verdict,
  type Members,
} from './issuer.ts';

const own = signingKey.publicJwk;
const foreign = foreignKey.publicJwk;
const withoutKid = issue({}, { kid: undefined });

test('accepts a token without kid when the set has one usable key, named or not [docs/how-a-request-is-checked.md]', async () => {
  assert.equal(await verdict(withoutKid), 'accepted');
  assert.equal(await verdict(withoutKid, { jwks: [published({ kid: undefined })] }), 'accepted');
});

test('refuses a token without kid when the set has two usable keys [docs/how-a-request-is-checked.md, A8]', async () => {
  assert.equal(await verdict(withoutKid, { jwks: [own, foreign] }), 'key-unknown');
  assert.equal(await verdict(withoutKid, { jwks: [foreign, own] }), 'key-unknown');
});

test('verifies a token with the key that its kid names among several [RFC 7515 §4.1.4]', async () => {
  for (const jwks of [
    [own, foreign],
    [foreign, own],
  ]) {
    assert.equal(await verdict(GOOD, { jwks }), 'accepted');
    assert.equal(
      await verdict(issue({}, { kid: foreignKey.kid }, foreignKey.privateKey), { jwks }),
      'accepted',
    );
  }
});

test('tries no other key than the one that kid names [RFC 7515 §4.1.4]', async () => {
  assert.equal(
    await verdict(issue({}, { kid: foreignKey.kid }), { jwks: [own, foreign] }),
    'signature-mismatch',
  );
});

test('refuses a token whose kid two usable keys share, whichever signed it [docs/how-a-request-is-checked.md, A8]', async () => {
  const twins = [own, published({ kid: signingKey.kid }, foreign)];
  for (const jwks of [twins, twins.toReversed(), [...twins, published({ kid: 'third' }, foreign)]]) {
    assert.equal(await verdict(GOOD, { jwks }), 'key-unknown');
    assert.equal(await verdict(issue({}, {}, foreignKey.privateKey), { jwks }), 'key-unknown');
  }
});

test('accepts a token whose kid is shared by an unusable key [docs/how-a-request-is-checked.md]', async () => {
  assert.equal(
    await verdict(GOOD, { jwks: [published({ kid: signingKey.kid, use: 'enc' }, foreign), own] }),
    'accepted',
  );
});

const strangeKids = [
  '',
  ' ',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  "' OR 1=1 --",
  '0',
  'undefined',
  '\0\r\n',
  'k'.repeat(65_536),
];

for (const kid of strangeKids) {
  test(`treats the kid ${JSON.stringify(kid).slice(0, 20)} as nothing but a name [RFC 8725 §3.10, A9]`, async () => {
    assert.equal(await verdict(issue({}, { kid })), 'key-unknown');
    assert.equal(
      await verdict(issue({}, { kid }), { jwks: [published({ kid: undefined })] }),
      'key-unknown',
      'beside a nameless key',
    );
    assert.equal(
      await verdict(issue({}, { kid }), { jwks: [published({ kid })] }),
      'accepted',
      'as the name of a key',
    );
  });
}

test('compares kid character for character [RFC 7515 §4.1.4]', async () => {
  for (const kid of [signingKey.kid.toUpperCase(), `${signingKey.kid} `, signingKey.kid.slice(0, -1)]) {
    assert.equal(await verdict(issue({}, { kid })), 'key-unknown', kid);
  }
});

const paddedModulus = Buffer.concat([Buffer.alloc(1), Buffer.from(own.n ?? '', 'base64url')]).toString(
  'base64url',
);

const bytes = (length: number, first = 0xff) =>
  Buffer.alloc(length, 0xff).fill(first, 0, 1).toString('base64url');

const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
const okp = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });

/** Keys that must be skipped. But for the fault in its label, each could verify the issuer's tokens. */
const unusable: Readonly<Record<string, unknown>> = {
  'a key of another type': published({ kty: 'oct' }),
  'an EC key': { ...curve, kid: signingKey.kid },
  'an OKP key': { ...okp, kid: signingKey.kid },
  'a secret': { kty: 'oct', k: 'c2VjcmV0', kid: signingKey.kid },
  'a key without type': published({ kty: undefined }),
  'a key for encryption': published({ use: 'enc' }),
  'a key whose use is not a string': published({ use: ['sig'] }),
  'a key for other operations': published({ key_ops: ['sign', 'encrypt'] }),
  'a key for no operation': published({ key_ops: [] }),
  'a key with its operations as a string': published({ key_ops: 'verify' }),
  'a key for RS512': published({ alg: 'RS512' }),
  'a key with its algorithm in lower case': published({ alg: 'rs256' }),
  'a key with a number as kid': published({ kid: 7 }),
  'a key without modulus': published({ n: undefined }),
  'a key without exponent': published({ e: undefined }),
  'a key with a number as modulus': published({ n: 7 }),
  'a key with an empty modulus': published({ n: '' }),
  'a key with padding in its modulus': published({ n: `${own.n}=` }),
  'a key with a leading zero in its modulus': published({ n: paddedModulus }),
  'a key with an even modulus': published({
    n: Buffer.concat([Buffer.alloc(255, 0xff), Buffer.from([0xfe])]).toString('base64url'),
  }),
  'a key of 2047 bits': published({ n: bytes(256, 0x7f) }),
  'a key of 8193 bits': published({ n: bytes(1025, 0x01) }),
  'a key of 32768 bits': published({ n: bytes(4096) }),
  'a key with the exponent 1': published({ e: 'AQ' }),
  'a key with an even exponent': published({ e: 'Ag' }),
  'a key with the exponent 0': published({ e: 'AA' }),
  'a private key': { ...signingKey.privateKey.export({ format: 'jwk' }), kid: signingKey.kid },
  'a key with a private member': published({ d: 'AQ' }),
  null: null,
  'an array': [own],
  'a string': JSON.stringify(own),
  'an empty object': {},
};

for (const [what, key] of Object.entries(unusable)) {
  test(`skips ${what} and keeps the usable key [docs/how-a-request-is-checked.md, A6]`, async () => {
    const jwks = [key, published({ kid: 'usable' }, foreign)];
    assert.equal(await verdict(issue({}, { kid: 'usable' }, foreignKey.privateKey), { jwks }), 'accepted');
    assert.equal(
      await verdict(issue({}, { kid: undefined }, foreignKey.privateKey), { jwks }),
      'accepted',
      'as the only usable key',
    );
    assert.equal(await verdict(GOOD, { jwks }), 'key-unknown');
  });
}

const usable: Readonly<Record<string, Members>> = {
  'without use': { use: undefined },
  'without algorithm': { alg: undefined },
  'with verify among its operations': { key_ops: ['sign', 'verify'] },
  'whose other members are null': { use: null, key_ops: null, alg: null, d: null, k: null, x5c: null },
  'with unknown members': { x5t: 7, ext: true, x: 'y' },
};

for (const [what, members] of Object.entries(usable)) {
  test(`uses a key ${what} [RFC 7517 §4]`, async () => {
    assert.equal(await verdict(GOOD, { jwks: [published(members)] }), 'accepted');
  });
}

const signedBy = (privateKey: KeyObject, alg: string) =>
  rawJws(JSON.stringify(HEADER), JSON.stringify(CLAIMS), (input) => sign(alg, input, privateKey));

test('refuses a token that an RSA key of 1024 bits signed [RFC 7518 §3.3]', async () => {
  const jwks = [
    published({}, { ...small.publicKey.export({ format: 'jwk' }), kid: signingKey.kid }),
    foreign,
  ];
  assert.equal(await verdict(signedBy(small.privateKey, 'sha256'), { jwks }), 'key-unknown');
});

test('refuses a signature that anyone can make for the exponent 1 [RFC 8017 §3.1]', async () => {
  const digestInfo = (input: Buffer) =>
    Buffer.concat([
      Buffer.from('3031300d060960864801650304020105000420', 'hex'),
      createHash('sha256').update(input).digest(),
    ]);

  const forged = rawJws(JSON.stringify(HEADER), JSON.stringify(CLAIMS), (input) =>
    Buffer.concat([
      Buffer.from([0, 1]),
      Buffer.alloc(256 - 3 - 51, 0xff),
      Buffer.from([0]),
      digestInfo(input),
    ]),
  );
  assert.equal(await verdict(forged, { jwks: [published({ e: 'AQ' }), foreign] }), 'key-unknown');
});

test('verifies only with RS256 even if a key names another algorithm [RFC 8725 §3.1, A5]', async () => {
  for (const digest of ['sha256', 'sha512']) {
    const jwks = [published({ alg: 'RS512' }), foreign];
    assert.equal(await verdict(signedBy(signingKey.privateKey, digest), { jwks }), 'key-unknown');
  }
});
