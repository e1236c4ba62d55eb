/* The signature (docs/how-a-request-is-checked.md, the token, 4). */
import assert from 'node:assert/strict';
import crypto, { createHash, privateEncrypt, sign } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { mock, test } from 'node:test';
import { importSigningKey } from '../../../src/verify/keys/jwk.ts';
import { parseCompact, payloadOf, verifySignature, type SignedPayload } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import {
  CLAIMS,
  foreignKey,
  GOOD,
  HEADER,
  issue,
  issueRaw,
  rs256,
  signingKey,
  verdict,
} from '../token/issuer.ts';

const end = GOOD.lastIndexOf('.');
const input = GOOD.slice(0, end);
const signature = Buffer.from(GOOD.slice(end + 1), 'base64url');

const withSignature = (bytes: Buffer) => `${input}.${bytes.toString('base64url')}`;

const flipped = (bit: number) => {
  const bytes = Buffer.from(signature);
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return bytes;
};

for (const bit of [0, 7, 1023, 1024, 2040, 2047]) {
  test(`refuses a token when bit ${bit} of its signature is flipped [RFC 7515 §5.2(8)]`, async () => {
    assert.equal(await verdict(withSignature(flipped(bit))), 'signature-mismatch');
  });
}

const DIGEST_INFO = Buffer.from('3031300d060960864801650304020105000420', 'hex');
const hashed = createHash('sha256').update(input).digest();
const modulus = BigInt(`0x${Buffer.from(signingKey.publicJwk.n ?? '', 'base64url').toString('hex')}`);
const plusModulus = (BigInt(`0x${signature.toString('hex')}`) + modulus).toString(16);

const signatures: Readonly<Record<string, Buffer>> = {
  empty: Buffer.alloc(0),
  'all zero': Buffer.alloc(256),
  one: Buffer.concat([Buffer.alloc(255), Buffer.from([1])]),
  'too short by its last byte': signature.subarray(0, -1),
  'too long by one byte': Buffer.concat([signature, Buffer.alloc(1)]),
  'too long by a leading zero': Buffer.concat([Buffer.alloc(1), signature]),
  'twice as long': Buffer.concat([signature, signature]),
  'greater than the modulus': Buffer.from(
    plusModulus.padStart(plusModulus.length + (plusModulus.length % 2), '0'),
    'hex',
  ),
  reversed: Buffer.from(signature.toReversed()),
  'that of another token': Buffer.from(issue({ sub: 'other' }).split('.')[2] ?? '', 'base64url'),
  'that of another key': sign('sha256', Buffer.from(input), foreignKey.privateKey),
  'that of the payload alone': rs256(Buffer.from(input.split('.')[1] ?? '')),
  'that of the decoded claims': rs256(Buffer.from(JSON.stringify(CLAIMS))),
  'over the hash of the hash': rs256(hashed),
  'over the bare hash': privateEncrypt(signingKey.privateKey, hashed),
  'over another hash': privateEncrypt(signingKey.privateKey, Buffer.concat([DIGEST_INFO, Buffer.alloc(32)])),
  'over the hash with data behind it': privateEncrypt(
    signingKey.privateKey,
    Buffer.concat([DIGEST_INFO, hashed, Buffer.alloc(4)]),
  ),
  'by RS384': sign('sha384', Buffer.from(input), signingKey.privateKey),
  'the hash itself': hashed,
};

for (const [what, bytes] of Object.entries(signatures)) {
  test(`refuses a token whose signature is ${what} [RFC 7515 §5.2(8)]`, async () => {
    assert.equal(await verdict(withSignature(bytes)), 'signature-mismatch');
  });
}

test('refuses a token whose claims or header were changed after it was signed [RFC 7515 §5.2(8)]', async () => {
  const [header = '', payload = '', last = ''] = GOOD.split('.');
  const encode = (text: string) => Buffer.from(text).toString('base64url');
  assert.equal(
    await verdict(`${header}.${encode(JSON.stringify({ ...CLAIMS, scope: 'admin' }))}.${last}`),
    'signature-mismatch',
  );
  assert.equal(
    await verdict(`${header}.${encode(`${JSON.stringify(CLAIMS)} `)}.${last}`),
    'signature-mismatch',
  );
  assert.equal(
    await verdict(`${encode(`${JSON.stringify(HEADER)} `)}.${payload}.${last}`),
    'signature-mismatch',
  );
  assert.equal(await verdict(`${payload}.${header}.${last}`), 'algorithm-refused');
});

test('accepts a token with unusually spelled JSON, since the signature covers the text', async () => {
  assert.equal(
    await verdict(issueRaw(JSON.stringify(HEADER, null, 2), `${JSON.stringify(CLAIMS, null, '\t')}\r\n`)),
    'accepted',
  );
});

function signed(token = GOOD, jwk: object = signingKey.publicJwk): SignedPayload | undefined {
  const key = importSigningKey({ ...jwk });
  const jws = unlessRefused(parseCompact(token));
  assert.ok(typeof key === 'object');
  return verifySignature(jws, key);
}

test('returns the payload that was signed', () => {
  const proof = signed();
  assert.ok(proof !== undefined);
  assert.deepEqual({ ...payloadOf(proof) }, CLAIMS);
});

test('returns a payload without inherited members, so that absent claims stay absent', () => {
  const proof = signed();
  assert.ok(proof !== undefined);
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(payloadOf(proof)[name], undefined);
  }
});

test('returns no payload when another key signed', () => {
  assert.equal(signed(GOOD, foreignKey.publicJwk), undefined);
});

function verdictIfVerifyThrows(failure: Error) {
  const verify = mock.method(crypto, 'verify', () => {
    throw failure;
  });
  syncBuiltinESMExports();
  try {
    return signed();
  } finally {
    verify.mock.restore();
    syncBuiltinESMExports();
  }
}

test('takes a signature for wrong if its key, as Deno finds out only then, is no point [RFC 8032 §5.1.3]', () => {
  assert.equal(verdictIfVerifyThrows(new Error('Cannot decompress Edwards point')), undefined);
});

for (const failure of [new TypeError('an argument'), Object.assign(new Error('x'), { code: 'ERR_OSSL' })]) {
  test(`rethrows as a bug what says nothing about the key: ${failure}`, () => {
    assert.throws(
      () => verdictIfVerifyThrows(failure),
      (thrown) => thrown === failure,
    );
  });
}
