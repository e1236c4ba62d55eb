/* Every published vector that is here is judged as its authors do, or differs for a reason that is named. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSuites } from './suites.ts';

/** Published, here, judged the same. */
const FIGURES: Readonly<Record<string, readonly [number, number, number]>> = {
  'Wycheproof JWS': [401, 401, 371],
  'Wycheproof JWK': [26, 26, 21],
  'Wycheproof ES256': [252, 25, 25],
  'Wycheproof ES384': [270, 36, 36],
  'Wycheproof ES512': [308, 30, 30],
  'Wycheproof EdDSA': [151, 63, 63],
  'Wycheproof PS256': [108, 4, 4],
  'RFC 7515': [4, 4, 2],
  'RFC 7520': [3, 3, 2],
  'RFC 8037': [1, 1, 1],
  'RFC 7515 A.2': [1, 1, 1],
  'RFC 7638': [1, 1, 1],
  'RFC 8037 A.3': [1, 1, 1],
  'RFC 9449': [3, 3, 3],
};

const suites = await runSuites();

test('the vectors are exactly the expected ones', () => {
  assert.deepEqual(
    suites.map(({ name }) => name),
    Object.keys(FIGURES),
  );
});

for (const { name, published, tried, same, different } of suites) {
  test(`agrees with the authors of ${name} on every vector except those listed with a reason [RFC 7515 §5.2(8)]`, () => {
    assert.deepEqual([published, tried, same], FIGURES[name]);
    assert.equal(Object.values(different).flat().length, tried - same);
  });
}

test('accepts only one invalid vector, whose key comes from a weak generator', () => {
  const accepted = suites.flatMap(({ different }) =>
    Object.entries(different).flatMap(([reason, names]) => (reason.startsWith('invalid') ? names : [])),
  );
  assert.deepEqual(accepted, ['7 rejectsKeyWithRocaVulnerability']);
});
