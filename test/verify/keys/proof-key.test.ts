/* The exact reason for each refused proof key, and which keys are not imported again. The proofs:
   verify/dpop/proof-key.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { factsOf, importProofKey, type VerificationKey } from '../../../src/verify/keys/jwk.ts';
import type { KeyReason } from '../../../src/verify/base/events.ts';
import { Cache } from '../../../src/verify/base/cache.ts';
import { parseCompact, verifySignature } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import {
  makeProof,
  makeProofKey,
  PROOF_ALGORITHMS,
  type Members,
  type ProofAlgorithm,
} from '../../support/proof.ts';
import { integer } from './key-set-fixture.ts';

const KEYS = Object.fromEntries(PROOF_ALGORITHMS.map((alg) => [alg, makeProofKey(alg)]));

const importKey = (alg: ProofAlgorithm, change: Members = {}, known = new Cache<VerificationKey>(10)) =>
  importProofKey({ ...KEYS[alg]?.jwk, ...change } as JsonObject, alg, known);

/** An imported key is not cached: only a verified signature is a reason to. */
class NoMemory extends Cache<VerificationKey> {
  override offer(): never {
    throw new Error('a key is to be remembered');
  }
}

function memoryOf(name: string, key: VerificationKey): Cache<VerificationKey> {
  const memory = new Cache<VerificationKey>(10);
  // A key that is offered once is not cached.
  memory.offer(name, () => key);
  memory.offer(name, () => key);
  return memory;
}

const bytes = (length: number) => Buffer.alloc(length, 1).toString('base64url');

const REFUSED: [alg: ProofAlgorithm, change: Members, reason: KeyReason][] = [
  ['ES256', { d: 'AQ' }, 'private-member'],
  ['RS256', { d: 'AQ' }, 'private-member'],
  ['EdDSA', { d: 'AQ' }, 'private-member'],
  ['ES256', { kty: 'RSA' }, 'key-type'],
  ['ES256', { crv: 'P-384' }, 'key-type'],
  ['EdDSA', { crv: 'Ed448' }, 'key-type'],
  ['RS256', { kty: 'EC' }, 'key-type'],
  ['PS256', { kty: undefined }, 'key-type'],
  ['ES256', { x: bytes(31) }, 'not-importable'],
  ['ES256', { y: bytes(33) }, 'not-importable'],
  ['ES256', { y: undefined }, 'encoding'],
  ['ES256', { crv: undefined }, 'key-type'],
  ['ES384', { x: bytes(32) }, 'not-importable'],
  ['ES512', { y: bytes(65) }, 'not-importable'],
  ['EdDSA', { x: bytes(33) }, 'not-importable'],
  ['ES256', { x: '' }, 'not-importable'],
  ['EdDSA', { x: '!!' }, 'not-importable'],
  ['EdDSA', { x: 7 }, 'encoding'],
  ['RS256', { n: undefined }, 'encoding'],
  ['PS256', { e: 'AAEAAQ' }, 'encoding'],
  ['ES256', { x: bytes(32), y: bytes(32) }, 'not-importable'],
  ['RS256', { n: integer(2047) }, 'size'],
  ['PS256', { n: integer(4097) }, 'size'],
  ['RS256', { e: 'AQ' }, 'exponent'],
  ['PS256', { e: integer(33) }, 'exponent'],
  // 2^32 + 1
  ['RS256', { e: 'AQAAAAE' }, 'exponent'],
];

/** RFC 8032 §5.1: y is 0, 1, p - 1, or one of two others; with 0, 1 and both signs, over p too. */
const SMALL_ORDER = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
];

for (const hex of SMALL_ORDER) {
  test(`refuses the Ed25519 key ${hex.slice(0, 8)}, for which anyone can sign, with either sign [RFC 8725 §3.4, A11]`, () => {
    const bytes = Buffer.from(hex, 'hex');
    for (const sign of [0, 0x80]) {
      const point = Buffer.from([...bytes.subarray(0, 31), (bytes[31] ?? 0) | sign]);
      assert.equal(importKey('EdDSA', { x: point.toString('base64url') }), 'size');
    }
  });
}

test('accepts Ed25519 keys that differ from those of small order in one byte', () => {
  for (const hex of SMALL_ORDER) {
    const near = Buffer.from(`${hex.slice(0, 30)}5a${hex.slice(32)}`, 'hex').toString('base64url');
    assert.notEqual(importKey('EdDSA', { x: near }), 'size');
  }
});

/** The same number, a byte longer, and with the padding of base64. */
const respelled = (text: unknown) => {
  const number = Buffer.from(String(text), 'base64url');
  return [Buffer.concat([Buffer.alloc(1), number]).toString('base64url'), number.toString('base64')];
};

for (const [alg, names] of [
  ['ES256', ['x', 'y']],
  ['ES384', ['x', 'y']],
  ['ES512', ['x', 'y']],
  ['PS256', ['n', 'e']],
] as const) {
  test(`refuses every other spelling of a proof key for ${alg} with the reason encoding [RFC 7518 §2, §6.2.1.2, A11, C1]`, () => {
    for (const name of names) {
      const spelled = KEYS[alg]?.jwk[name];
      const others = respelled(spelled).filter((other) => other !== spelled);
      for (const other of others) assert.equal(importKey(alg, { [name]: other }), 'encoding', other);
    }
  });
}

test('refuses a coordinate without its leading zero [RFC 7518 §6.2.1.2, A11]', () => {
  const isShort = (jwk: Members) => Buffer.from(String(jwk['x']), 'base64url')[0] === 0;
  let jwk: Members = {};
  while (!isShort(jwk)) {
    jwk = makeProofKey('ES256').jwk;
  }
  const x = Buffer.from(String(jwk['x']), 'base64url').subarray(1).toString('base64url');
  assert.equal(importKey('ES256', { ...jwk, x }), 'encoding');
  assert.equal(typeof importKey('ES256', { ...jwk }), 'object');
});

for (const [alg, change, reason] of REFUSED) {
  test(`refuses a proof key for ${alg} with ${JSON.stringify(change).slice(0, 60)} as ${reason}, and caches nothing of it`, () => {
    const known = new NoMemory(10);
    for (let time = 0; time < 2; time += 1) assert.equal(importKey(alg, change, known), reason);
  });
}

for (const alg of PROOF_ALGORITHMS) {
  test(`finds the cached key for ${alg} by algorithm and thumbprint, and caches no key itself [RFC 7638 §3]`, () => {
    const key = importKey(alg, {}, new NoMemory(10));
    assert.ok(typeof key === 'object');
    assert.equal(factsOf(key).thumbprint, KEYS[alg]?.thumbprint);
    const known = memoryOf(alg + factsOf(key).thumbprint, key);
    assert.equal(importKey(alg, { kid: 'x', use: 'sig' }, known), key);
  });
}

for (const alg of PROOF_ALGORITHMS) {
  test(`verifies with a proof key for ${alg} only what its private key signed [RFC 7518 §3]`, () => {
    const key = importKey(alg);
    const proof = makeProof(KEYS[alg]!, { token: 't', uri: 'https://api.test/', nowSeconds: 1 });
    const [jws, other] = [
      proof,
      `${proof.slice(0, proof.indexOf('.'))}.e30${proof.slice(proof.lastIndexOf('.'))}`,
    ].map((text) => unlessRefused(parseCompact(text)));
    assert.ok(typeof key === 'object' && jws !== undefined && other !== undefined);
    assert.notEqual(verifySignature(jws, key), undefined);
    assert.equal(verifySignature(other, key), undefined);
  });
}

test('uses a key cached for one algorithm only for that one, even if another has the same members', () => {
  const members = { ...KEYS.RS256?.jwk };
  const key = importKey('RS256', members);
  assert.ok(typeof key === 'object');
  const known = memoryOf(`RS256${factsOf(key).thumbprint}`, key);
  assert.notEqual(importKey('PS256', members, known), key);
});

test('gives a proof key no kid', () => {
  const key = importKey('ES256', { kid: 'x' });
  assert.ok(typeof key === 'object');
  assert.equal(factsOf(key).kid, undefined);
});
