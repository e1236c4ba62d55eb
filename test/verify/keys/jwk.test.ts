import assert from 'node:assert/strict';
import crypto, { generateKeyPairSync } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { mock, test } from 'node:test';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { importSigningKey, type VerificationKey } from '../../../src/verify/keys/jwk.ts';
import type { KeyReason } from '../../../src/verify/base/events.ts';
import { parseCompact, verifySignature } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import { signJws } from '../../idp/tokens.ts';
import { integer, jwk, kidOf, thumbprintOf } from './key-set-fixture.ts';

const importKey = (change: Record<string, unknown> = {}) => importSigningKey(jwk('a', change) as JsonObject);

function imported(change?: Record<string, unknown>): VerificationKey {
  const key = importKey(change);
  assert.ok(typeof key === 'object', `refused: ${String(key)}`);
  return key;
}

const ACCEPTED: Record<string, Record<string, unknown>> = {
  'has every member that the provider may give': {},
  'has neither use nor alg nor key_ops [RFC 7517 §4.2-4.4]': { use: undefined, alg: undefined },
  'lists verify among its operations [RFC 7517 §4.3]': { key_ops: ['encrypt', 'verify'] },
  'has no kid [RFC 7517 §4.5]': { kid: undefined },
  'has an empty kid': { kid: '' },
  'has members that are not known [RFC 7517 §4]': { x5c: ['MII'], x5t: 'x', ext: true },
  'has a modulus of 2048 bits [RFC 7518 §3.3]': { n: integer(2048) },
  'has a modulus of 2049 bits': { n: integer(2049) },
  'has a modulus of 8192 bits': { n: integer(8192) },
  'has the exponent 3 [RFC 8017 §3.1]': { e: 'Aw' },
  'has an exponent of 32 bits': { e: integer(32) },
};

/** Every member that a provider may leave out. */
const OPTIONAL = [
  ...['kid', 'use', 'key_ops', 'alg', 'x5c', 'x5t', 'x5u', 'crv', 'x', 'y'],
  ...['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'],
];

for (const name of OPTIONAL) {
  test(`imports a key whose ${name} is null as if it were absent [docs/keys.md]`, () => {
    const key = imported({ [name]: null });
    assert.equal(thumbprintOf(key), thumbprintOf(imported()));
    assert.equal(kidOf(key), name === 'kid' ? undefined : 'a');
  });
}

for (const [condition, change] of Object.entries(ACCEPTED)) {
  test(`imports a key that ${condition}`, () => {
    assert.equal(kidOf(imported(change)), 'kid' in change ? change.kid : 'a');
  });
}

/** The same integer with its last byte zero. */
const even = (value: string) =>
  Buffer.concat([Buffer.from(value, 'base64url').subarray(0, -1), Buffer.of(0)]).toString('base64url');

/** The same integer with a leading zero byte. */
const padded = (value: string) =>
  Buffer.concat([Buffer.of(0), Buffer.from(value, 'base64url')]).toString('base64url');

const REFUSED: [condition: string, change: Record<string, unknown>, reason: KeyReason][] = [
  [
    'is of type EC',
    { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }) },
    'key-type',
  ],
  ['is of type OKP', { ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }) }, 'key-type'],
  ['is of type oct', { kty: 'oct' }, 'key-type'],
  ['is of type oct and has its secret', { kty: 'oct', k: 'c2VjcmV0' }, 'private-member'],
  ['is of type rsa in lower case [RFC 7517 §4.1]', { kty: 'rsa' }, 'key-type'],
  ['has no type', { kty: undefined }, 'key-type'],
  ['has its type in an array', { kty: ['RSA'] }, 'key-type'],
  ...['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].map(
    (name): [string, Record<string, unknown>, KeyReason] => [
      `has the private member ${name} [RFC 7518 §6.3.2]`,
      { [name]: 'AQ' },
      'private-member',
    ],
  ),
  ['has a kid that is a number [RFC 7517 §4.5]', { kid: 1 }, 'key-id'],
  ['has a kid that is an array [RFC 7517 §4.5]', { kid: ['a'] }, 'key-id'],
  ['is for encryption [RFC 7517 §4.2]', { use: 'enc' }, 'use'],
  ['has a use that is empty [RFC 7517 §4.2]', { use: '' }, 'use'],
  ['has its use in an array [RFC 7517 §4.2]', { use: ['sig'] }, 'use'],
  ['has operations without verify [RFC 7517 §4.3]', { key_ops: ['sign'] }, 'key-operations'],
  ['has no operations in its list [RFC 7517 §4.3]', { key_ops: [] }, 'key-operations'],
  ['has its operations as a string [RFC 7517 §4.3]', { key_ops: 'verify' }, 'key-operations'],
  ['has operations that are empty [RFC 7517 §4.3]', { key_ops: '' }, 'key-operations'],
  ['has operations that are false [RFC 7517 §4.3]', { key_ops: false }, 'key-operations'],
  ['has a number among its operations [RFC 7517 §4.3]', { key_ops: ['verify', 7] }, 'key-operations'],
  ['is for RS512 [RFC 7517 §4.4]', { alg: 'RS512' }, 'algorithm'],
  ['is for PS256 [RFC 7517 §4.4]', { alg: 'PS256' }, 'algorithm'],
  ['is for HS256 [RFC 7517 §4.4]', { alg: 'HS256' }, 'algorithm'],
  ['has no modulus [RFC 7518 §6.3.1.1]', { n: undefined }, 'encoding'],
  ['has a type that is null [RFC 7517 §4.1]', { kty: null }, 'key-type'],
  ['has a modulus that is null [RFC 7518 §6.3.1.1]', { n: null }, 'encoding'],
  ['has an exponent that is null [RFC 7518 §6.3.1.2]', { e: null }, 'encoding'],
  ['has a private member that is empty [RFC 7518 §6.3.2]', { d: '' }, 'private-member'],
  ['has a private member that is 0 [RFC 7518 §6.3.2]', { d: 0 }, 'private-member'],
  ['has a modulus that is a number [RFC 7518 §6.3.1.1]', { n: 65537 }, 'encoding'],
  ['has a modulus that is empty [RFC 7518 §6.3.1.1]', { n: '' }, 'size'],
  ['has a modulus that is no base64url at all [RFC 7518 §2]', { n: '!!' }, 'encoding'],
  ['has an exponent that is empty [RFC 7518 §6.3.1.2]', { e: '' }, 'exponent'],
  ['has a modulus with a leading zero byte [RFC 7518 §2]', { n: padded(integer(2048)) }, 'encoding'],
  ['has a modulus with padding [RFC 7518 §2]', { n: `${integer(2048)}==` }, 'encoding'],
  [
    'has a modulus in base64 instead of base64url [RFC 7518 §2]',
    { n: integer(2048).replaceAll('_', '/') },
    'encoding',
  ],
  ['has no exponent [RFC 7518 §6.3.1.2]', { e: undefined }, 'encoding'],
  ['has an exponent with a leading zero byte [RFC 7518 §2]', { e: padded('AQAB') }, 'encoding'],
  ['has the exponent 0', { e: 'AA' }, 'encoding'],
  ['has a modulus of 512 bits [RFC 7518 §3.3]', { n: integer(512) }, 'size'],
  ['has a modulus of 1024 bits [RFC 7518 §3.3]', { n: integer(1024) }, 'size'],
  ['has a modulus of 2047 bits [RFC 7518 §3.3]', { n: integer(2047) }, 'size'],
  ['has a modulus of 8193 bits', { n: integer(8193) }, 'size'],
  ['has a modulus of 32768 bits', { n: integer(32768) }, 'size'],
  ['has an even modulus', { n: even(integer(2048)) }, 'size'],
  ['has the exponent 1 [RFC 8017 §3.1]', { e: 'AQ' }, 'exponent'],
  ['has the exponent 2 [RFC 8017 §3.1]', { e: 'Ag' }, 'exponent'],
  ['has the even exponent 65536 [RFC 8017 §3.1]', { e: 'AQAA' }, 'exponent'],
  ['has the exponent 2^32 + 1', { e: 'AQAAAAE' }, 'exponent'],
  ['has an exponent of 33 bits', { e: integer(33) }, 'exponent'],
  ['has an exponent of 3064 bits', { n: integer(8192), e: integer(3064) }, 'exponent'],
];

for (const [condition, change, reason] of REFUSED) {
  test(`refuses a key that ${condition} [A6]`, () => {
    assert.equal(importKey(change), reason);
  });
}

test('computes the thumbprint of the example [RFC 7638 §3.1, §3.2]', () => {
  const example =
    '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst' +
    'n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbO' +
    'pbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw';
  assert.equal(
    thumbprintOf(imported({ n: example, kid: '2011-04-29' })),
    'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs',
  );
});

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const described = { ...pair.publicKey.export({ format: 'jwk' }) };

/** Whether the key verifies the signature of a token that its private key signed with this algorithm. */
function takes(key: VerificationKey, algorithm: 'RS256' | 'RS384' | 'RS512' | 'PS256'): boolean {
  const jws = unlessRefused(parseCompact(signJws({ alg: 'RS256' }, {}, pair.privateKey, algorithm)));
  return verifySignature(jws, key) !== undefined;
}

test('imports the key that the JWK describes', () => {
  assert.equal(takes(imported(described), 'RS256'), true);
  assert.equal(takes(imported(), 'RS256'), false);
});

for (const algorithm of ['RS384', 'RS512', 'PS256'] as const) {
  test(`imports a key without alg for RS256 alone, so that it refuses a signature made with ${algorithm} [RFC 8725 §3.1]`, () => {
    assert.equal(takes(imported({ ...described, alg: undefined }), algorithm), false);
  });
}

for (const algorithms of [['RS256', 'PS256'] as const, ['PS256', 'RS256'] as const]) {
  test(`imports a key without alg for ${algorithms[0]}, the first that fits it of ${algorithms.join(' and ')} [RFC 7517 §4.4]`, () => {
    const key = importSigningKey({ ...described, alg: undefined }, algorithms);
    assert.ok(typeof key === 'object');
    assert.deepEqual(
      algorithms.map((algorithm) => takes(key, algorithm)),
      [true, false],
    );
  });
}

test('refuses a value that only looks like an imported key', () => {
  const lookAlike = Object.create(imported(described)) as VerificationKey;
  assert.throws(() => takes(lookAlike, 'RS256'), TypeError);
});

test('shows no key material when a key is serialised as JSON', () => {
  assert.doesNotMatch(JSON.stringify(imported()), /VVVVVV/);
});

/** Errors that node:crypto could throw, but never does for a JWK, so the tests replace `createPublicKey`. */
function failingWith(failure: unknown, change?: Record<string, unknown>): VerificationKey | KeyReason {
  const createPublicKey = mock.method(crypto, 'createPublicKey', () => {
    throw failure;
  });
  syncBuiltinESMExports();
  try {
    return importKey(change);
  } finally {
    createPublicKey.mock.restore();
    syncBuiltinESMExports();
  }
}

test('returns not-importable when OpenSSL throws an error with a code', () => {
  assert.equal(failingWith(Object.assign(new Error(), { code: 'ERR_OSSL' })), 'not-importable');
});

test('returns not-importable when the runtime, as Deno does, throws an Error without a code', () => {
  assert.equal(failingWith(new Error('crypto error')), 'not-importable');
});

for (const failure of [new RangeError('no memory'), { code: 'no error' }, 'text']) {
  test(`rethrows as a bug what OpenSSL would not throw: ${String(failure)}`, () => {
    assert.throws(
      () => failingWith(failure),
      (thrown) => thrown === failure,
    );
  });
}

for (const [what, change, reason] of [
  ['an exponent of 33 bits', { e: integer(33) }, 'exponent'],
  ['a modulus of 8193 bits', { n: integer(8193) }, 'size'],
] as const) {
  test(`does not let Node read ${what}, since Node 24 throws an error of a long one at the next key that it reads`, () => {
    assert.equal(failingWith(new RangeError('Node has read it'), change), reason);
  });
}

test('leaves no error of OpenSSL for the next key that Node reads', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  for (const change of [{ e: integer(24_000) }, { n: integer(16_392) }, { n: integer(96_000) }]) {
    assert.equal(typeof importKey(change), 'string');
    assert.doesNotThrow(() => crypto.createPrivateKey(pem));
  }
});

test('refuses an exponent of 200,000 bytes without reading it as a number, which would take Node seconds', () => {
  const before = process.cpuUsage();
  assert.equal(importKey({ e: integer(1_600_000) }), 'exponent');
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 1_000_000, `${user + system} microseconds`);
});
