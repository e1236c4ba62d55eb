/* What changes of the token's checks would otherwise go unseen (npm run mutants). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { issue, NOW, openVerifier, signingKey } from './issuer.ts';

test('tells whoever asks which key was found, also when the token is remembered', async () => {
  const verify = await openVerifier(10);
  const noted: unknown[] = [];
  for (let time = 0; time < 2; time += 1) verify(issue(), NOW * 1000, 0, (kid) => noted.push(kid));
  assert.deepEqual(noted, [signingKey.kid, signingKey.kid]);
});
