/* What the header may say (docs/how-a-request-is-checked.md, the token, 2): the verifier fixes the algorithm, refuses extensions, and
   reads no keys from it. */
import assert from 'node:assert/strict';
import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { rawJws, type Algorithm } from '../../idp/tokens.ts';
import {
  CLAIMS,
  foreignKey,
  HEADER,
  issue,
  issueHeader,
  keySetOf,
  signingKey,
  verdict,
  withText,
  type Members,
} from './issuer.ts';

const payload = JSON.stringify(CLAIMS);

for (const alg of ['none', 'None', 'nOnE', 'NONE', 'NONE ', '']) {
  test(`refuses a token whose alg is ${JSON.stringify(alg)} with and without a signature [RFC 8725 §3.2, A1]`, async () => {
    const unsigned = rawJws(JSON.stringify({ ...HEADER, alg }), payload, () => Buffer.alloc(0));
    assert.equal(await verdict(unsigned), 'algorithm-refused');
    assert.equal(await verdict(unsigned.slice(0, -1)), 'token-malformed');
    assert.equal(await verdict(issue({}, { alg })), 'algorithm-refused');
  });
}

const algTexts = [
  'null',
  '1',
  'true',
  '["RS256"]',
  '{"toString":"RS256"}',
  '"rs256"',
  '"RS256 "',
  '" RS256"',
  '"RS"',
  '"RS2567"',
  '"RSA"',
  '"RS1"',
];

for (const text of algTexts) {
  test(`refuses a token whose alg is ${text} although RS256 signed it [RFC 8725 §3.1, B6]`, async () => {
    assert.equal(await verdict(issueHeader('alg', text)), 'algorithm-refused');
  });
}

test('refuses a token without alg, before it looks for its key [RFC 7515 §4.1.1]', async () => {
  for (const kid of [signingKey.kid, 'unknown', undefined]) {
    assert.equal(await verdict(issue({}, { alg: undefined, kid })), 'algorithm-refused', kid);
  }
});

const anyAlgorithm = signingKey.publicJwk;
const jwks = [{ ...anyAlgorithm, alg: undefined }];

for (const alg of ['RS384', 'RS512', 'PS256'] as const) {
  test(`refuses a token correctly signed with ${alg} even if the key names no algorithm [RFC 8725 §3.1, A4]`, async () => {
    assert.equal(
      await verdict(issue({}, { alg }, signingKey.privateKey, alg), { jwks }),
      'algorithm-refused',
    );
    assert.equal(await verdict(issue({}, {}, signingKey.privateKey, alg), { jwks }), 'signature-mismatch');
  });
}

const curves: readonly [Algorithm, ReturnType<typeof generateKeyPairSync>][] = [
  ['ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['EdDSA', generateKeyPairSync('ed25519') as never],
];

for (const [alg, { privateKey, publicKey }] of curves) {
  test(`refuses a token correctly signed with ${alg} even if the key set has the key [RFC 8725 §3.1]`, async () => {
    const curveKey = { ...publicKey.export({ format: 'jwk' }), kid: 'curve' };
    const both = [signingKey.publicJwk, curveKey];
    assert.equal(
      await verdict(issue({}, { alg, kid: 'curve' }, privateKey as never, alg), { jwks: both }),
      'algorithm-refused',
    );
    assert.equal(
      await verdict(issue({}, { kid: 'curve' }, privateKey as never, alg), { jwks: both }),
      'key-unknown',
    );
    assert.equal(
      await verdict(issue({}, {}, privateKey as never, alg), { jwks: both }),
      'signature-mismatch',
    );
  });
}

const publicKey = createPublicKey(signingKey.privateKey);
const spki = publicKey.export({ format: 'pem', type: 'spki' }).toString();

const secrets: readonly [string, string | Buffer][] = [
  ['the public key in PEM', spki],
  ['the public key in PEM without its last line feed', spki.trimEnd()],
  ['the public key in PEM after a blank', ` ${spki}`],
  ['the public key in PEM after a byte-order mark', `\ufeff${spki}`],
  ['the public key in PEM after a NUL', `\0${spki}`],
  ['the public key in PKCS #1 PEM', publicKey.export({ format: 'pem', type: 'pkcs1' })],
  ['the public key in DER', publicKey.export({ format: 'der', type: 'spki' })],
  ['the JWK', JSON.stringify(signingKey.publicJwk)],
  ['the JWK with blanks', JSON.stringify(signingKey.publicJwk, null, 2)],
  ['the key set', JSON.stringify(keySetOf())],
  ['the modulus', Buffer.from(signingKey.publicJwk.n ?? '', 'base64url')],
  ['the text of the modulus', signingKey.publicJwk.n ?? ''],
  ['nothing', ''],
  ['the key identifier', signingKey.kid],
];

for (const [what, secret] of secrets) {
  test(`refuses a token with an HMAC whose secret is ${what} [RFC 8725 §2.1, A2, A3]`, async () => {
    for (const bits of [256, 384, 512]) {
      const mac = (input: Buffer) => createHmac(`sha${bits}`, secret).update(input).digest();
      assert.equal(
        await verdict(rawJws(JSON.stringify({ ...HEADER, alg: `HS${bits}` }), payload, mac)),
        'algorithm-refused',
      );
      assert.equal(await verdict(rawJws(JSON.stringify(HEADER), payload, mac)), 'signature-mismatch');
    }
  });
}

for (const text of [
  '["x"]',
  '[]',
  '"x"',
  '["alg"]',
  '["exp"]',
  '["x","x"]',
  '[1]',
  'null',
  'false',
  '{}',
  '0',
  '""',
]) {
  test(`refuses a token whose crit is ${text} [RFC 7515 §4.1.11, B3]`, async () => {
    assert.equal(await verdict(issueHeader('crit', text)), 'critical-header');
  });
}

test('refuses a token whose crit names a member that the header has [RFC 7515 §4.1.11]', async () => {
  assert.equal(await verdict(issue({}, { crit: ['x'], x: true })), 'critical-header');
});

for (const b64 of [false, true, null]) {
  test(`refuses a token whose b64 is ${b64} with and without crit [RFC 7797 §6, B4]`, async () => {
    assert.equal(await verdict(issue({}, { b64 })), 'critical-header');
    assert.equal(await verdict(issue({}, { b64, crit: ['b64'] })), 'critical-header');
  });
}

const goodTypes = [
  undefined,
  'JWT',
  'jwt',
  'Jwt',
  'at+jwt',
  'AT+JWT',
  'application/jwt',
  'application/at+jwt',
  'APPLICATION/AT+JWT',
];

for (const typ of goodTypes) {
  test(`accepts a token whose typ is ${typ ?? 'absent'} [RFC 9068 §2.1, §4, RFC 7515 §4.1.9]`, async () => {
    assert.equal(await verdict(issue({}, { typ })), 'accepted');
  });
}

const badTypes = [
  '"id+jwt"',
  '"dpop+jwt"',
  '"logout+jwt"',
  '"secevent+jwt"',
  '"rt+jwt"',
  '"JOSE"',
  '"application/id+jwt"',
  '""',
  '" JWT"',
  '"JWT "',
  '"JWTs"',
  '"xJWT"',
  '"at+jwt2"',
  '"at jwt"',
  '"xat+jwt"',
  '"text/at+jwt"',
  '"at+jwt;v=1"',
  '"JWT; v=1"',
  '"application/application/at+jwt"',
  '["at+jwt"]',
  '"application/"',
  '"application/application/jwt"',
  '"text/jwt"',
  '"x-application/jwt"',
  'null',
  '7',
  'true',
  '["JWT"]',
  '{}',
];

for (const text of badTypes) {
  test(`refuses a token whose typ is ${text} [RFC 8725 §3.11, B5]`, async () => {
    assert.equal(await verdict(issueHeader('typ', text)), 'type-refused');
  });
}

for (const text of ['7', '0', 'null', 'true', 'false', '["a"]', '{}', JSON.stringify([signingKey.kid])]) {
  test(`refuses a token whose kid is ${text.slice(0, 6)} [RFC 7515 §4.1.4]`, async () => {
    assert.equal(await verdict(issueHeader('kid', text)), 'key-id-malformed');
    assert.equal(
      await verdict(issueHeader('kid', text), { jwks: [{ ...signingKey.publicJwk, kid: undefined }] }),
      'key-id-malformed',
    );
  });
}

const foreign: Readonly<Record<string, Members>> = {
  jwk: { jwk: foreignKey.publicJwk },
  jku: { jku: 'https://other.test/jwks.json' },
  x5u: { x5u: 'https://other.test/key.pem' },
  x5c: {
    x5c: [createPublicKey(foreignKey.privateKey).export({ format: 'der', type: 'spki' }).toString('base64')],
  },
};

for (const [name, member] of Object.entries(foreign)) {
  test(`never uses the key that ${name} carries [RFC 8725 §3.10, B1]`, async () => {
    assert.equal(
      await verdict(issue({}, member, foreignKey.privateKey)),
      'signature-mismatch',
      'kid of the issuer',
    );
    assert.equal(
      await verdict(issue({}, { ...member, kid: undefined }, foreignKey.privateKey)),
      'signature-mismatch',
      'no kid',
    );
    assert.equal(
      await verdict(issue({}, { ...member, kid: foreignKey.kid }, foreignKey.privateKey)),
      'key-unknown',
      'its own kid',
    );
    assert.equal(await verdict(issue({}, member)), 'accepted', 'signed by the issuer');
  });
}

test('ignores header members that it does not know [RFC 7515 §4]', async () => {
  const header = withText(HEADER, 'x5t', 'null').replace(
    '{',
    '{"zip":"DEF","cty":"JWT","enc":1,"__proto__":{"crit":["x"]},',
  );
  assert.equal(await verdict(rawJws(header, payload, () => Buffer.alloc(0))), 'signature-mismatch');
  assert.equal(await verdict(issue({}, { zip: 'DEF', cty: 'JWT', enc: 1, constructor: 'x' })), 'accepted');
});
