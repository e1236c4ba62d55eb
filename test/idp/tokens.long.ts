import assert from 'node:assert/strict';
import {
  createHmac,
  createSecretKey,
  generateKeyPairSync,
  verify,
  constants,
  type KeyObject,
} from 'node:crypto';
import { test } from 'node:test';
import { rawJws, signJws, type Algorithm } from './tokens.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

const curve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };

const cases: [Algorithm, string | null, { privateKey: KeyObject; publicKey: KeyObject }, object][] = [
  ['RS256', 'sha256', rsa, {}],
  ['RS384', 'sha384', rsa, {}],
  ['RS512', 'sha512', rsa, {}],
  ['PS256', 'sha256', rsa, pss],
  ['ES256', 'sha256', curve('P-256'), { dsaEncoding: 'ieee-p1363' }],
  ['ES384', 'sha384', curve('P-384'), { dsaEncoding: 'ieee-p1363' }],
  ['ES512', 'sha512', curve('P-521'), { dsaEncoding: 'ieee-p1363' }],
  ['EdDSA', null, generateKeyPairSync('ed25519'), {}],
];

function split(token: string): { input: Buffer; signature: Buffer } {
  const end = token.lastIndexOf('.');
  return {
    input: Buffer.from(token.slice(0, end)),
    signature: Buffer.from(token.slice(end + 1), 'base64url'),
  };
}

for (const [alg, hash, { privateKey, publicKey }, options] of cases) {
  test(`signs a token that its public key verifies when alg is ${alg} [RFC 7518 §3.1]`, () => {
    const { input, signature } = split(signJws({ alg }, { sub: 'a' }, privateKey));
    assert.ok(verify(hash, input, { key: publicKey, ...options }, signature));
  });
}

test('signs with the shared secret when alg is HS256 [RFC 7518 §3.2]', () => {
  const { input, signature } = split(signJws({ alg: 'HS256' }, {}, createSecretKey(Buffer.from('secret'))));
  assert.deepEqual(signature, createHmac('sha256', 'secret').update(input).digest());
});

test('signs by the named algorithm when the header claims another', () => {
  const { input, signature } = split(signJws({ alg: 'HS256' }, {}, rsa.privateKey, 'RS256'));
  assert.ok(verify('sha256', input, rsa.publicKey, signature));
});

test('refuses to guess an algorithm when the header names none that it knows', () => {
  assert.throws(() => signJws({ alg: 'none' }, {}, rsa.privateKey), /no signer for alg "none"/);
});

test('does not change strings and bytes in a raw token', () => {
  const token = rawJws('{"alg":"none" ', Buffer.from([0xff]), () => Buffer.alloc(0));
  assert.equal(token, `${Buffer.from('{"alg":"none" ').toString('base64url')}._w.`);
});
