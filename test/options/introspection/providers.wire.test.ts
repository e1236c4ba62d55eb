/* Endpoints that answer in the shape that each provider documents, asked over TLS at the address that discovery
   names, by a gate: whose tokens pass, and what of the others does not (docs/providers.md). */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { authenticated, createGate } from '../../../src/gate.ts';
import { introspection, type IntrospectionOptions } from '../../../src/introspection.ts';
import { type TestIssuer } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { json, startEndpoint, type FakeEndpoint } from './endpoint-fixture.ts';

const API = 'orders-api';

const now = () => Math.floor(Date.now() / 1000);

type Answer = Readonly<Record<string, unknown>>;

interface Shape {
  /** The answer about a good token. */
  readonly good: (issuer: string) => Answer;
  /** Answers about tokens that are none for this API, and why. */
  readonly bad: Readonly<Record<string, readonly [change: Answer, reason: string]>>;
  readonly tokens?: IntrospectionOptions['tokens'];
}

const SHAPES: Readonly<Record<string, Shape>> = {
  Zitadel: {
    good: (iss) => ({
      active: true,
      scope: 'openid profile',
      client_id: '259254020357488867@portal',
      token_type: 'Bearer',
      exp: now() + 300,
      iat: now(),
      nbf: now(),
      sub: '259242039378444290',
      aud: ['259254020357488867@portal', API],
      iss,
      jti: '259254409320529922',
      username: 'ada',
      'urn:zitadel:iam:user:resourceowner:id': '259241944654282754',
    }),
    bad: {
      'a token for another project': [{ aud: ['259254317079330819'] }, 'audience-mismatch'],
      'a token of another instance': [{ iss: 'https://other.zitadel.cloud' }, 'issuer-mismatch'],
    },
  },
  Hydra: {
    good: (iss) => ({
      active: true,
      scope: 'read:orders',
      client_id: '3e7c23a5',
      sub: 'ada',
      exp: now() + 300,
      iat: now(),
      nbf: now(),
      aud: [API],
      iss,
      token_type: 'Bearer',
      token_use: 'access_token',
      ext: { tenant: 'a' },
    }),
    bad: {
      'a refresh token': [{ token_use: 'refresh_token' }, 'token-use-refused'],
      'a token without an audience': [{ aud: [] }, 'audience-mismatch'],
    },
  },
  Keycloak: {
    good: (iss) => ({
      exp: now() + 300,
      iat: now(),
      jti: 'onrtro:3ff1e5e6',
      iss,
      aud: [API, 'account'],
      sub: 'b7e9c6d0',
      typ: 'Bearer',
      azp: 'portal',
      sid: '0d5c0a36',
      realm_access: { roles: ['user'] },
      scope: 'profile email',
      client_id: 'portal',
      username: 'ada',
      token_type: 'Bearer',
      active: true,
    }),
    bad: {
      'a refresh token': [{ typ: 'Refresh' }, 'payload-type-refused'],
      'an ID token': [{ typ: 'ID', nonce: 'n' }, 'payload-type-refused'],
      'a token for another client': [{ aud: 'account' }, 'audience-mismatch'],
    },
  },
  Okta: {
    good: (iss) => ({
      active: true,
      token_type: 'Bearer',
      scope: 'read:orders',
      client_id: 'a9VpZDRCeFh3Nkk2VdYa',
      username: 'ada@example.com',
      exp: now() + 300,
      iat: now(),
      sub: 'ada@example.com',
      aud: API,
      iss,
      jti: 'AT.7P4KlczBYVcWLkxduEuKeZfeiNYkZIC9uGJ28Cc-YaI',
      uid: '00uid4BxXw6I6TV4m0g3',
    }),
    bad: {
      'a refresh token, about which it says neither audience nor issuer': [
        { aud: undefined, iss: undefined },
        'audience-mismatch',
      ],
      'a token of another authorization server': [{ iss: 'https://org.okta.com' }, 'issuer-mismatch'],
    },
  },
};

interface Stand {
  readonly endpoint: FakeEndpoint;
  readonly issuer: TestIssuer;
  /** `accepted`, or the reason. */
  verdict(token: string): Promise<string>;
}

async function openStand(t: TestContext, tokens: IntrospectionOptions['tokens']): Promise<Stand> {
  const endpoint = await startEndpoint(t);
  const issuer = makeIssuer({ domain: endpoint.domain, audience: API });
  let reason = '';
  const gate = createGate({
    ...issuer.options,
    introspect: undefined,
    introspection: introspection({ tokens, clientId: API, clientSecret: 'x', cacheSeconds: 0 }),
    onVerdict: (event) => {
      reason = event.reason ?? 'accepted';
    },
  });
  t.after(gate.close);

  async function verdict(token: string) {
    const rawHeaders = ['Host', 'api.test', 'Authorization', `Bearer ${token}`];
    await gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
    await new Promise(setImmediate);
    return reason;
  }

  return { endpoint, issuer, verdict };
}

for (const [provider, { good, bad }] of Object.entries(SHAPES)) {
  describe(provider, () => {
    test('lets its opaque tokens in while it says that they are active [§22]', async (t) => {
      const { endpoint, verdict } = await openStand(t, ['opaque']);
      endpoint.say = json(good(endpoint.issuer));
      assert.equal(await verdict('opaque-token'), 'accepted');
      const [{ form, headers } = assert.fail('nothing was asked')] = endpoint.questions;
      assert.deepEqual([form.get('token'), form.get('token_type_hint')], ['opaque-token', 'access_token']);
      assert.match(headers.authorization ?? '', /^Basic /);
      endpoint.say = json({ active: false });
      assert.equal(await verdict('opaque-token'), 'token-inactive');
    });

    for (const [what, [change, reason]] of Object.entries(bad)) {
      test(`does not let in ${what} [§22, J4]`, async (t) => {
        const { endpoint, verdict } = await openStand(t, ['opaque']);
        endpoint.say = json({ ...good(endpoint.issuer), ...change });
        assert.equal(await verdict('opaque-token'), reason);
      });
    }

    test('withdraws a JWT [§22]', async (t) => {
      const { endpoint, issuer, verdict } = await openStand(t, ['jwt']);
      endpoint.say = json(good(endpoint.issuer));
      const token = issuer.token();
      assert.equal(await verdict(token), 'accepted');
      endpoint.say = json({ active: false });
      assert.equal(await verdict(token), 'token-inactive');
    });
  });
}

test('a provider that says 401 to this API is 503, and not a token that is inactive [§22, J4]', async (t) => {
  const { endpoint, verdict } = await openStand(t, ['opaque']);
  endpoint.say = json({ error: 'invalid_client' }, 401);
  assert.equal(await verdict('opaque-token'), 'introspection-unavailable');
});
