/* The result of a check is a value that only that check can make. Neither value can be forged, or used in
   place of the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importSigningKey } from '../../../src/verify/keys/jwk.ts';
import { parseCompact, payloadOf, verifySignature } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import { verifiedOf } from '../../../src/verify/token/verify.ts';
import { lookAlikes } from '../base/look-alikes.ts';
import { atOnce } from '../../support/clock.ts';
import { CLAIMS, GOOD, issue, openVerifier, signingKey } from './issuer.ts';

const forged = { ...CLAIMS, sub: 'forged', claims: { ...CLAIMS, sub: 'forged' } };

function signedPayload(token: string): object {
  const jws = unlessRefused(parseCompact(token));
  const key = importSigningKey({ ...signingKey.publicJwk });
  assert.ok(typeof key === 'object');
  return verifySignature(jws, key) ?? assert.fail('the signature does not match');
}

const proofs: readonly [string, object, (proof: never) => unknown][] = [
  ['a signed payload', signedPayload(GOOD), payloadOf],
  ['a verified token', await (await openVerifier(0))(GOOD), (token) => verifiedOf(token).claims],
];

for (const [what, proof, open] of proofs) {
  test(`reads the claims of ${what}`, () =>
    assert.deepEqual({ ...(open(proof as never) as object) }, CLAIMS));
  for (const [likeness, make] of Object.entries(lookAlikes(forged))) {
    test(`reads no claims from ${likeness} in place of ${what}`, () =>
      assert.throws(() => open(make(proof) as never), TypeError));
  }
}

test('does not accept a signed payload as a verified token', () => {
  assert.throws(() => verifiedOf(signedPayload(issue({ ...forged, exp: 0 })) as never).claims, TypeError);
});

test('does not accept a verified token as a signed payload', () => {
  assert.throws(() => payloadOf(proofs[1]?.[1] as never), TypeError);
});

test('freezes claims at every depth, so that no request can change them for the next', async () => {
  const verify = await openVerifier(1);
  const token = issue({ roles: ['viewer'], cnf: { jkt: 'a' }, nested: [{ deep: [1] }] });
  const { roles, cnf, nested } = verifiedOf(atOnce(verify(token))).claims as Record<string, any>;
  const changes: readonly (() => void)[] = [
    () => roles.push('editor'),
    () => {
      cnf.jkt = 'b';
    },
    () => {
      nested[0].deep[0] = 2;
    },
    () => {
      delete nested[0].deep;
    },
    () => {
      (verifiedOf(atOnce(verify(token))).claims as Record<string, unknown>).scope = 'admin';
    },
  ];
  for (const change of changes) assert.throws(change, TypeError);
  const asJson = (value: object) => JSON.parse(JSON.stringify(value));
  assert.deepEqual(
    asJson(verifiedOf(atOnce(verify(token))).claims),
    asJson({ ...CLAIMS, roles, cnf, nested }),
  );
});
