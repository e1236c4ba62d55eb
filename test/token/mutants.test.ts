/* Which key a token was verified with, as the log will tell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../src/base/refusal.ts';
import { keyIdOf } from '../../src/token/verify.ts';
import { atOnce } from '../support/clock.ts';
import { foreignKey, issue, openVerifier, signingKey } from './issuer.ts';

test('tells with which key a token was verified, also when the token is remembered or names none', async () => {
  const verify = await openVerifier(10);
  for (const token of [issue(), issue(), issue({}, { kid: undefined })]) {
    assert.equal(keyIdOf(atOnce(verify(token))), signingKey.kid);
  }
});

test('tells with a refusal which key was found, and none when none was', async () => {
  const verify = await openVerifier(10);
  const refused = (token: string) => {
    try {
      return atOnce(verify(token));
    } catch (failure) {
      return failure instanceof Refused ? [failure.refusal.reason, failure.findings.kid] : failure;
    }
  };
  assert.deepEqual(refused(issue({ exp: 1 })), ['expired', signingKey.kid]);
  assert.deepEqual(refused(issue({}, {}, foreignKey.privateKey)), ['signature-mismatch', signingKey.kid]);
  assert.deepEqual(refused(issue({}, { alg: 'RS512' })), ['algorithm-refused', undefined]);
});
