/* What a test issuer says in its tokens and keys. That a service accepts them: testing.wire.test.ts. */
import { strict as assert } from 'node:assert';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { createTestIssuer } from '../src/testing.ts';

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;

test('issues tokens for the domain and audience of its settings that expire in five minutes', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_999 });
  const { options, token } = createTestIssuer({ domain: 'idp.test', audience: 'https://orders.test' });
  assert.deepEqual([options.domain, options.audience], ['idp.test', 'https://orders.test']);
  assert.deepEqual(claimsOf(token({ scope: 'read' })), {
    iss: 'https://idp.test/',
    aud: 'https://orders.test',
    sub: 'test-user',
    exp: 1_300,
    scope: 'read',
  });
});

test('signs RS256 with a key of 2048 bits', async () => {
  const { keys } = await createTestIssuer().options.fetchKeys();
  const key = createPublicKey({ key: keys[0] ?? {}, format: 'jwk' });
  assert.equal(key.asymmetricKeyDetails?.modulusLength, 2048);
});
