/* Wycheproof's JSON Web Signature vectors. Every payload in them is bytes such as "foo", so none is a token:
   docs/how-a-request-is-checked.md (the token, 1) refuses them before the signature is looked at. So each vector is judged twice: as text,
   and, where only its payload stands in the way, by its signature alone. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  decodeBase64url,
  isJsonObject,
  parseJsonObject,
  type JsonObject,
} from '../../src/verify/base/encoding.ts';
import { importProofKey, importSigningKey, type VerificationKey } from '../../src/verify/keys/jwk.ts';
import { Cache } from '../../src/verify/base/cache.ts';
import { Refused } from '../../src/verify/base/refusal.ts';
import { parseCompact, verifySignature } from '../../src/verify/jws/jws.ts';
import { bytesOf, listOf, onlyWith, readVectors, textOf } from './read.ts';

interface Vector {
  readonly id: number;
  readonly jws: string;
  readonly isValid: boolean;
}

interface Group {
  readonly jwk: JsonObject;
  readonly vectors: readonly Vector[];
}

const RESULTS: readonly unknown[] = ['valid', 'invalid'];

function readVector(value: unknown): Vector {
  const { tcId, jws, result } = onlyWith(value, ['tcId', 'comment', 'jws', 'result', 'flags']);
  assert.ok(typeof tcId === 'number' && RESULTS.includes(result));
  return { id: tcId, jws: textOf(jws), isValid: result === 'valid' };
}

function readGroup(value: unknown): Group {
  const group = onlyWith(value, ['type', 'source', 'comment', 'private', 'tests'], ['public']);
  assert.equal(group.type, 'JsonWebSignature');
  onlyWith(group.source, ['name', 'version']);
  const jwk = group.public ?? group.private;
  if (!isJsonObject(jwk)) return assert.fail('not a key');

  onlyWith(jwk, ['kty'], ['alg', 'crv', 'e', 'k', 'key_ops', 'kid', 'n', 'use', 'x', 'y']);
  return { jwk, vectors: listOf(group.tests).map(readVector) };
}

const origin = readVectors('wycheproof-json-web-signature.origin.json', ['file', 'sha256']);
const bytes = bytesOf(textOf(origin.file));

const file = onlyWith(JSON.parse(bytes.toString()), [
  'numberOfTests',
  'header',
  'notes',
  'schema',
  'testGroups',
]);

const groups = listOf(file.testGroups).map(readGroup);

/** The algorithm for which a group's key is meant, also where the key does not say. */
function algorithmOf({ kty, alg }: JsonObject): string {
  if (typeof alg === 'string') return alg;

  return kty === 'EC' ? 'ES256' : 'RS256';
}

const groupsFor = (...algorithms: readonly string[]) =>
  groups.filter(({ jwk }) => algorithms.includes(algorithmOf(jwk)));

const countOf = (chosen: readonly Group[]) => chosen.reduce((sum, { vectors }) => sum + vectors.length, 0);

/** What the parts of gatehouse say of a vector, in the order in which a token or a proof meets them. */
function verdict(text: string, key: VerificationKey | string, algorithm: string): string {
  const parsed = parseCompact(text);
  const jws = parsed instanceof Refused ? parsed.refusal.reason : 'good';
  if (jws === 'token-malformed' || jws === 'header-malformed') return jws;
  assert.equal(jws, 'payload-malformed', 'a payload that is a JSON object');
  const [header = '', , signature = ''] = text.split('.');
  const parts = {
    header: parseJsonObject(decodeBase64url(header)!)!,
    payload: {},
    signature: decodeBase64url(signature)!,
  };
  if (parts.header.alg !== algorithm) return `${jws}; another algorithm`;
  if (typeof key === 'string') return `${jws}; key refused: ${key}`;
  const isSigned =
    verifySignature({ ...parts, signingInput: text.slice(0, text.lastIndexOf('.')) }, key) !== undefined;
  return `${jws}; signature ${isSigned ? 'holds' : 'does not match'}`;
}

/** The number of vectors with each verdict, counted separately for valid and invalid vectors. */
function tally(algorithm: 'RS256' | 'ES256' | 'PS256'): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { jwk, vectors } of groupsFor(algorithm)) {
    const key = algorithm === 'RS256' ? importSigningKey(jwk) : importProofKey(jwk, algorithm, new Cache(0));
    for (const { jws, isValid } of vectors) {
      const name = `${isValid ? 'valid' : 'invalid'}: ${verdict(jws, key, algorithm)}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  return counts;
}

test('the vectors are complete: as many as Wycheproof publishes, byte for byte', () => {
  assert.equal(createHash('sha256').update(bytes).digest('hex'), origin.sha256);
  assert.deepEqual([groups.length, countOf(groups), file.numberOfTests], [23, 401, 401]);
  assert.equal(new Set(groups.flatMap(({ vectors }) => vectors.map(({ id }) => id))).size, 401);
  const counts = ['RS256', 'ES256', 'PS256'].map((algorithm) => countOf(groupsFor(algorithm)));
  assert.deepEqual(counts, [235, 41, 50]);
});

test('accepts the signature of every valid RS256 vector and of no other [RFC 7515 §5.2(8)]', () => {
  assert.deepEqual(tally('RS256'), {
    'valid: payload-malformed; signature holds': 8,
    'invalid: payload-malformed; signature does not match': 218,
    'invalid: token-malformed': 5,
    'invalid: header-malformed': 2,
    'invalid: payload-malformed; key refused: use': 1,
    'invalid: payload-malformed; key refused: key-operations': 1,
  });
});

test('accepts the signature of every valid ES256 vector, and of two whose key names another use [RFC 7515 §5.2(8)]', () => {
  assert.deepEqual(tally('ES256'), {
    'valid: payload-malformed; signature holds': 2,
    // Vectors 354 and 356: `use` and `key_ops` play no part in the key of a proof, which its holder describes
    // (docs/dpop.md).
    'invalid: payload-malformed; signature holds': 2,
    'invalid: payload-malformed; signature does not match': 29,
    'invalid: payload-malformed; another algorithm': 1,
    'invalid: token-malformed': 5,
    'invalid: header-malformed': 2,
  });
  const oddlyUsed = groupsFor('ES256').filter(({ jwk }) => jwk.use === 'enc' || jwk.key_ops !== undefined);
  assert.deepEqual(
    oddlyUsed.flatMap(({ vectors }) => vectors.map(({ id }) => id)),
    [354, 356],
  );
});

test('accepts the signature of every valid PS256 vector and of no other [RFC 7515 §5.2(8)]', () => {
  assert.deepEqual(tally('PS256'), {
    'valid: payload-malformed; signature holds': 6,
    'invalid: payload-malformed; signature does not match': 42,
    // RFC 7520 §4.2: the token is signed with PS384, which gatehouse does not take.
    'valid: payload-malformed; another algorithm': 2,
  });
});

test('accepts no signing key of any other algorithm [RFC 7517 §4.4, RFC 8725 §3.1]', () => {
  const counts: Record<string, number> = {};
  for (const { jwk, vectors } of groupsFor('HS256', 'RS384', 'RS512', 'PS384', 'PS512', 'ES521')) {
    const reason = importSigningKey(jwk);
    assert.ok(typeof reason === 'string', 'a key of another algorithm is taken');
    counts[reason] = (counts[reason] ?? 0) + vectors.length;
  }
  assert.deepEqual(counts, { algorithm: 75 });
});
