/* The examples that the RFCs print, read from data files and run through the parts that a request goes
   through. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALGORITHM_NAMES } from '../../src/verify/keys/jwk.ts';
import { isJsonObject, type JsonObject } from '../../src/verify/base/encoding.ts';
import {
  factsOf,
  importProofKey,
  importSigningKey,
  type VerificationKey,
} from '../../src/verify/keys/jwk.ts';
import { Cache } from '../../src/verify/base/cache.ts';
import { Refused } from '../../src/verify/base/refusal.ts';
import { ProofVerifier } from '../../src/verify/dpop/proof.ts';
import { parseCompact, payloadOf, verifySignature, type UnverifiedJws } from '../../src/verify/jws/jws.ts';
import { listOf, onlyWith, readVectors, textOf, type Members } from './read.ts';
import { unlessRefused } from '../support/refused.ts';

const object = (value: unknown): JsonObject => (isJsonObject(value) ? value : assert.fail('not an object'));

function parsed(text: unknown): UnverifiedJws {
  return unlessRefused(parseCompact(textOf(text)));
}

function usable(key: VerificationKey | string): VerificationKey {
  assert.ok(typeof key === 'object', `the key is refused: ${String(key)}`);
  return key;
}

/** The payload if this key signed it. */
function signedPayload(jws: UnverifiedJws, key: VerificationKey): Members | undefined {
  const signed = verifySignature(jws, key);
  return signed === undefined ? undefined : { ...payloadOf(signed) };
}

test('verifies the RS256 example, but not with a changed bit [RFC 7515 Appendix A.2]', () => {
  const vector = readVectors('rfc7515-a2.json', ['jwk', 'jws', 'header', 'payload']);
  const key = usable(importSigningKey(object(vector.jwk)));
  const jws = parsed(vector.jws);
  assert.deepEqual({ ...jws.header }, vector.header);
  assert.deepEqual(signedPayload(jws, key), vector.payload);
  const signature = Buffer.from(jws.signature);
  signature[0]! ^= 1;
  assert.equal(signedPayload({ ...jws, signature }, key), undefined);
  assert.equal(
    signedPayload({ ...jws, signingInput: jws.signingInput.replace('eyJpc3', 'eyJpc2') }, key),
    undefined,
  );
});

test('computes the thumbprint of the example key [RFC 7638 §3.1]', () => {
  const vector = readVectors('rfc7638-3-1.json', ['jwk', 'thumbprint']);
  const facts = factsOf(usable(importSigningKey(object(vector.jwk))));
  assert.equal(facts.thumbprint, vector.thumbprint);
  assert.equal(facts.kid, object(vector.jwk).kid);
});

const dpop = readVectors('rfc9449.json', ['jwk', 'thumbprint', 'accessToken', 'proofs']);
const proofs = listOf(dpop.proofs).map((value) => onlyWith(value, ['section', 'proof', 'payload']));

for (const { section, proof, payload } of proofs) {
  test(`verifies the signature of the example proof [RFC 9449 §${section}]`, () => {
    const jws = parsed(proof);
    assert.deepEqual({ ...jws.header }, { typ: 'dpop+jwt', alg: 'ES256', jwk: dpop.jwk });
    const key = usable(importProofKey(object(jws.header.jwk), 'ES256', new Cache(0)));
    assert.deepEqual(signedPayload(jws, key), payload);
    assert.equal(factsOf(key).thumbprint, dpop.thumbprint);
  });
}

/** The thumbprint of the proof's key, or why the proof is refused, for a request that the proof is about. */
function verdict({ proof, payload }: Members, token: string): string {
  const { htm, htu, iat } = object(payload);
  const proofs = new ProofVerifier({
    dpopIatOffsetSeconds: 0,
    dpopIatLeewaySeconds: 0,
    dpopNonceSecret: undefined,
    dpopAlgorithms: ALGORITHM_NAMES,
    publicUrl: textOf(htu),
    trustProxy: false,
  });
  const facts = { method: textOf(htm), host: '', path: '', rawHeaders: [] };

  try {
    return unlessRefused(proofs.verify(textOf(proof), token, facts, Number(iat))).thumbprint;
  } catch (failure) {
    if (failure instanceof Refused) return failure.refusal.reason;
    throw failure;
  }
}

test('accepts the proof of the protected resource request only with its own token [RFC 9449 §7.1]', () => {
  assert.equal(proofs.length, 2);
  const token = textOf(dpop.accessToken);
  assert.equal(verdict(proofs[1]!, token), dpop.thumbprint);
  assert.equal(verdict(proofs[1]!, `${token}x`), 'proof-ath');
});

test('refuses the proof of the token request at a protected resource, since it has no ath [RFC 9449 §4.3(12)]', () => {
  assert.equal(verdict(proofs[0]!, textOf(dpop.accessToken)), 'proof-ath');
});
