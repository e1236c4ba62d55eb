/* The document that tells clients where to get a token (RFC 9728), on the wire. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createGate } from '../../src/gate.ts';
import type { Reply } from '../../src/gate/replies/reply.ts';
import { needs, open, optional } from '../../src/gate/rules/access.ts';
import { anyScope, claimEquals, scope } from '../../src/gate/rules/guards.ts';
import { recentLogin } from '../../src/gate/rules/recent-login.ts';
import { get, under } from '../../src/service/routes/route.ts';
import type { Early } from '../../src/gate/decide.ts';
import { Refused } from '../../src/verify/base/refusal.ts';
import { resourceMetadata } from '../../src/options/resource-metadata.ts';
import { tenants } from '../../src/options/tenants/tenants.ts';
import { createProofKey } from '../../src/testing.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { Log } from '../../src/verify/base/events.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { settingsWith, tokenWith } from '../support/caller.ts';
import type { Response } from '../support/client.ts';
import { makeIssuer } from '../support/issuer.ts';
import { startRoutes } from '../support/routes.ts';
import { startService, type TestService } from '../support/service.ts';
import type { Environment } from '../support/settings.ts';

const ROOT = '/.well-known/oauth-protected-resource';
const RESOURCE = { RESOURCE_URL: 'https://api.test/v1' };
const APP = 'https://app.test';
const POLICY = { PROFILE: 'A', SCOPE_POLICY: 'true', CORS_ALLOWED_ORIGINS: APP };

let provider: Provider;
let service: TestService;

before(async () => {
  provider = await startProvider();
  service = await startService({ provider, environment: { ...POLICY, ...RESOURCE } });
});

after(async () => {
  await service.stop();
  await provider.stop();
});

/** The early reply at a path, if there is one. */
function replyAt(path: string, early: Early): Reply | undefined {
  const { reply } = early({ method: 'GET', host: 'x', path, rawHeaders: [] }) ?? {};
  assert.ok(!(reply instanceof Refused));
  return reply;
}

/** What the part makes of these settings. */
function metadataWith(environment: Environment, log: Log = () => {}) {
  const settings = settingsWith({ ...RESOURCE, ...environment });
  const { resourceUrl, resourceScopes, resourceName, resourceDocumentation } = settings;
  const metadata = resourceMetadata({
    url: String(resourceUrl),
    scopes: resourceScopes,
    name: resourceName,
    documentation: resourceDocumentation,
  });
  const { createEarly, metadataUrl } = Part.contentOf(metadata);
  return { early: createEarly({ ...settings, log }), metadataUrl };
}

/** The document with these settings, requested like a client. */
function documentWith(environment: Environment): Record<string, unknown> {
  const { early, metadataUrl } = metadataWith(environment);
  return JSON.parse(String(replyAt(new URL(metadataUrl).pathname, early)?.content));
}

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'RS256'];

for (const [what, environment, expected] of [
  ['only a URL', {}, { bearer_methods_supported: ['header'] }],
  [
    'DPoP allowed',
    { IDP_DPOP_MODE: 'ALLOWED' },
    { bearer_methods_supported: ['header'], dpop_signing_alg_values_supported: ALGORITHMS },
  ],
  [
    'DPoP required',
    { IDP_DPOP_MODE: 'REQUIRED' },
    { dpop_signing_alg_values_supported: ALGORITHMS, dpop_bound_access_tokens_required: true },
  ],
  [
    'every setting of the document',
    {
      RESOURCE_SCOPES: 'read, write, read',
      RESOURCE_NAME: 'Bücher',
      RESOURCE_DOCUMENTATION: 'https://docs.test/api?x',
    },
    {
      scopes_supported: ['read', 'write'],
      bearer_methods_supported: ['header'],
      resource_name: 'Bücher',
      resource_documentation: 'https://docs.test/api?x',
    },
  ],
] as const satisfies readonly (readonly [string, Environment, object])[]) {
  test(`the document for ${what} has a member for each configured value, and no other members [RFC 9728 §2, §3.2]`, () => {
    assert.deepEqual(documentWith(environment), {
      resource: 'https://api.test/v1',
      authorization_servers: ['https://idp.example/'],
      ...expected,
    });
  });
}

for (const url of [
  'https://API.test',
  'https://api.test/',
  'https://api.test:443/a%2fb',
  'http://[::1]:1/x',
]) {
  test(`the document names the resource ${url} as configured [RFC 9728 §2]`, () => {
    assert.equal(documentWith({ RESOURCE_URL: url }).resource, url);
  });
}

for (const documentation of [
  'https://docs.test',
  'https://docs.test?u=a@b',
  'https://docs.test#api',
  'https://docs.test/a@b?c#d',
  'HTTPS://docs.test/',
]) {
  test(`accepts ${documentation} as the page for developers [RFC 9728 §2]`, () => {
    assert.ok(resourceMetadata({ url: 'https://api.test', documentation }));
  });
}

for (const documentation of [
  'http://docs.test/',
  'https://me@docs.test/',
  'https://docs.test/a b',
  'https://docs.test/a\\b',
  'https://docs.test\\b',
  'https://docs.test:99999/',
  '//docs.test/',
  'see https://docs.test/',
  'javascript:https://docs.test/',
]) {
  test(`refuses ${documentation} as the page for developers`, () => {
    const message =
      'resourceMetadata: documentation: must be a URL that begins with https://, without white space, "\\", ' +
      'or an "@" before its path';
    const make = () => resourceMetadata({ url: 'https://api.test', documentation });
    assert.throws(make, { name: 'TypeError', message });
  });
}

test('the document names the issuer as tokens do, with or without a slash [RFC 9728 §2]', () => {
  for (const issuer of ['https://idp.test', 'https://idp.test/tenant/', 'https://idp.test/a//']) {
    assert.deepEqual(documentWith({ IDP_ISSUER: issuer }).authorization_servers, [issuer]);
  }
});

test('the document names every issuer, the first one first [RFC 9728 §2]', () => {
  const others = {
    ISSUERS: 'b, a',
    ISSUER_A_DOMAIN: 'a.test',
    ISSUER_A_AUDIENCE: 'x',
    ISSUER_B_DOMAIN: 'b.test',
    ISSUER_B_ISSUER: 'https://b.test/realm',
    ISSUER_B_AUDIENCE: 'x',
  };
  const { authorization_servers: servers } = documentWith({ ...others, IDP_ISSUER: 'https://z.test' });
  assert.deepEqual(servers, ['https://z.test', 'https://b.test/realm', 'https://a.test/']);
});

test('the document names a server once that serves several issuers [RFC 9728 §2]', () => {
  const authorizationServer = 'https://login.test';
  const ofTenants = tenants({ issuer: 'https://login.test/{tenant}/', list: ['a'], authorizationServer });
  const { idp } = settingsWith().issuers;
  const issuers = {
    idp: { ...idp!, tenants: ofTenants },
    partner: { ...idp!, issuer: authorizationServer },
  };
  const metadata = resourceMetadata({ url: RESOURCE.RESOURCE_URL });
  const early = Part.contentOf(metadata).createEarly({ ...settingsWith(), issuers, log: () => {} });
  const { authorization_servers: servers } = JSON.parse(String(replyAt(ROOT, early)?.content));
  assert.deepEqual(servers, [authorizationServer]);
});

test('the document has its length in bytes [RFC 9110 §8.6]', () => {
  const { early } = metadataWith({ RESOURCE_NAME: 'Bücher' });
  const { fields = [], content } = replyAt(ROOT, early) ?? {};
  const length = fields[fields.indexOf('content-length') + 1];
  assert.equal(length, String(Buffer.byteLength(String(content))));
});

for (const [resource, metadata, paths] of [
  ['https://api.test', `https://api.test${ROOT}`, [ROOT, `${ROOT}/`]],
  ['https://API.test:443/', `https://api.test${ROOT}`, [ROOT, `${ROOT}/`]],
  ['http://localhost:1/mcp', `http://localhost:1${ROOT}/mcp`, [`${ROOT}/mcp`, `${ROOT}/mcp/`, ROOT]],
  ['https://api.test/a/../b', `https://api.test${ROOT}/b`, [`${ROOT}/b`, ROOT]],
  ['https://api.test/a%2Fb/c', `https://api.test${ROOT}/a%2Fb/c`, [`${ROOT}/a%2Fb/c`, ROOT]],
] as const) {
  test(`the document of ${resource} is at its well-known path, with and without a slash, and at the root [RFC 9728 §3.1]`, () => {
    const { early, metadataUrl } = metadataWith({ RESOURCE_URL: resource });
    assert.equal(metadataUrl, metadata);
    for (const path of paths) {
      assert.equal(replyAt(path, early)?.status, 200, path);
    }
  });
}

/** The fields for caching and reading. */
const shared = ({ headers }: Response) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) =>
      /^(access-control|cache-control|vary|location|allow$)/.test(name),
    ),
  );

const PUBLIC = { 'cache-control': 'public, max-age=3600', 'access-control-allow-origin': '*' };
/** With a list of origins, every response has `Vary`, even one that is the same for all origins. */
const LISTED = { ...PUBLIC, vary: 'Origin' };
const PLACES = [`${ROOT}/v1`, `${ROOT}/v1/`, ROOT, `${ROOT}/v1?x=/../y`];

describe('in a service with a scope policy and a list of origins', () => {
  for (const path of PLACES) {
    for (const origin of [undefined, APP, 'https://other.test', 'null']) {
      test(`${path} is served to ${origin ?? 'no origin'} without a token, cacheable and readable by every origin [RFC 9728 §3, §7.10]`, async () => {
        const headers = origin === undefined ? {} : { origin };
        const response = await service.ask(path, { headers });
        assert.deepEqual([response.status, shared(response)], [200, LISTED]);
        assert.equal(response.headers['content-type'], 'application/json; charset=utf-8');
        assert.equal(response.headers['x-content-type-options'], 'nosniff');
        assert.equal(response.body.resource, 'https://api.test/v1');
        const head = await service.ask(path, { method: 'HEAD', headers });
        assert.deepEqual([head.status, head.text, shared(head)], [200, '', LISTED]);
        assert.equal(head.headers['content-length'], response.headers['content-length']);
      });
    }

    test(`${path} is served whatever the credentials`, async () => {
      for (const authorization of ['Bearer x', 'Basic x', '']) {
        assert.equal((await service.ask(path, { headers: { authorization } })).status, 200);
      }
    });

    test(`a preflight for ${path} allows every origin every field [Fetch standard §3.3.2]`, async () => {
      for (const origin of [APP, 'https://other.test', 'null']) {
        const headers = { origin, 'access-control-request-method': 'GET' };
        const response = await service.ask(path, { method: 'OPTIONS', headers });
        assert.equal(response.headers['x-content-type-options'], 'nosniff');
        assert.deepEqual(
          [response.status, response.text, shared(response)],
          [
            204,
            '',
            {
              'access-control-allow-headers': '*, Authorization',
              'access-control-allow-methods': 'GET, HEAD',
              'access-control-allow-origin': '*',
              'cache-control': 'no-store',
              vary: 'Origin',
            },
          ],
        );
      }
    });

    for (const [what, method, headers] of [
      ['POST', 'POST', {}],
      ['DELETE', 'DELETE', { origin: APP }],
      ['OPTIONS without Origin', 'OPTIONS', { 'access-control-request-method': 'GET' }],
      ['OPTIONS that is no preflight', 'OPTIONS', { origin: APP }],
    ] as const) {
      test(`${what} on ${path} gets the allowed methods, which every origin can read [RFC 9110 §15.5.6]`, async () => {
        const response = await service.ask(path, { method, headers });
        assert.deepEqual(
          [response.status, response.body.error, shared(response)],
          [
            405,
            'method_not_allowed',
            {
              allow: 'GET, HEAD',
              'access-control-allow-origin': '*',
              'cache-control': 'no-store',
              vary: 'Origin',
            },
          ],
        );
      });
    }
  }

  for (const path of [
    `${ROOT}/`,
    `${ROOT}/v2`,
    `${ROOT}/v1//`,
    `${ROOT}/v1/x`,
    `${ROOT}/%76%31`,
    '/.well-known/OAuth-protected-resource',
    '/.well-known/openid-configuration',
    `//api.test${ROOT}`,
  ]) {
    test(`${path} is not a path of the metadata`, async () => {
      const response = await service.ask(path, { headers: { origin: 'https://other.test' } });
      assert.deepEqual(
        [response.status, shared(response)],
        [404, { 'cache-control': 'no-store', vary: 'Origin' }],
      );
    });
  }

  test('a preflight for any other path is answered according to the list of origins alone', async () => {
    const headers = { origin: 'https://other.test', 'access-control-request-method': 'GET' };
    const response = await service.ask('/api/private', { method: 'OPTIONS', headers });
    assert.deepEqual(shared(response), { 'cache-control': 'no-store', vary: 'Origin' });
  });

  test('a refused method is logged, and a request for the document is not', async () => {
    const before = service.logs.length;
    await service.ask(ROOT);
    assert.equal(service.logs.length, before);
    await service.ask(ROOT, { method: 'PUT' });
    assert.deepEqual(
      service.logs.slice(before).map(({ reason }) => reason),
      ['method_not_allowed'],
    );
  });
});

test('responses at the paths of the metadata have no Vary field without a list of origins [RFC 9728 §7.10]', async (t) => {
  const app = await startRoutes({ routes: [], environment: RESOURCE });
  t.after(() => app.stop());
  assert.deepEqual(shared(await app.ask(PLACES[0] ?? '', { headers: { origin: APP } })), PUBLIC);
  const { headers } = await app.ask(PLACES[0] ?? '', { method: 'PUT' });
  assert.deepEqual([headers['access-control-allow-origin'], headers.vary], ['*', undefined]);
});

test('the paths of the document do not exist without RESOURCE_URL', async (t) => {
  const off = await startService({ provider });
  t.after(() => off.stop());
  for (const path of PLACES) assert.equal((await off.ask(path)).status, 404);
});

test('document and challenge do not depend on Host, forwarded fields and query [G15]', async () => {
  const headers = {
    host: 'evil.test',
    'x-forwarded-host': 'evil.test',
    'x-forwarded-proto': 'http',
    forwarded: 'host=evil.test',
  };
  const usual = await service.ask(ROOT);
  const { text } = await service.ask(`${ROOT}?resource=https://evil.test`, { headers });
  assert.equal(text, usual.text);
  const { challenges } = await service.ask('/api/private?resource_metadata=x', { headers });
  assert.deepEqual(challenges, (await service.ask('/api/private')).challenges);
});

const METADATA = `resource_metadata="https://api.test${ROOT}/v1"`;

/** The parameters of each challenge, without `algs`. */
const parameters = ({ challenges }: Response) =>
  challenges.map((challenge) => challenge.replace(/algs="[^"]*", /, ''));

const ADMIN = '/api/admin';

for (const [what, path, request, expected] of [
  ['a route without scopes', '/api/private', {}, [`Bearer realm="api", ${METADATA}`, `DPoP ${METADATA}`]],
  ['a route with a scope', ADMIN, {}, [`Bearer realm="api", scope="admin", ${METADATA}`, `DPoP ${METADATA}`]],
  [
    'a route with one scope of several',
    '/api/users',
    {},
    [`Bearer realm="api", scope="read:users write:users", ${METADATA}`, `DPoP ${METADATA}`],
  ],
  [
    'a path without a route under a rule',
    '/api/users/x/y',
    { headers: { authorization: 'Basic x' } },
    [`Bearer realm="api", scope="read:users write:users", ${METADATA}`, `DPoP ${METADATA}`],
  ],
  [
    'an empty scheme',
    ADMIN,
    { headers: { authorization: 'DPoP' } },
    [`Bearer realm="api", scope="admin", ${METADATA}`, `DPoP ${METADATA}`],
  ],
  [
    'a bad Bearer token',
    ADMIN,
    { token: 'a.b' },
    [
      `Bearer realm="api", error="invalid_token", error_description="the token does not have three parts in canonical base64url", scope="admin", ${METADATA}`,
      `DPoP ${METADATA}`,
    ],
  ],
  [
    'a bad DPoP token',
    ADMIN,
    { headers: { authorization: 'DPoP a.b' } },
    [
      `Bearer realm="api", ${METADATA}`,
      `DPoP error="invalid_token", error_description="the token does not have three parts in canonical base64url", scope="admin", ${METADATA}`,
    ],
  ],
  [
    'two Authorization fields, as a 400',
    ADMIN,
    { headers: { authorization: ['Bearer a', 'Bearer b'] } },
    [
      `Bearer realm="api", error="invalid_request", error_description="the request has more than one Authorization header field", ${METADATA}`,
      `DPoP ${METADATA}`,
    ],
  ],
] as const) {
  test(`the challenges for ${what} end with the address of the metadata, and name the scopes if another token would help [RFC 9728 §5.1, RFC 6750 §3]`, async () => {
    const response = await service.ask(path, request as object);
    assert.deepEqual(parameters(response), expected);
  });
}

test('the challenges for a refused proof and for a missing nonce name no scope, since another token would not help [§13, RFC 6750 §3]', async (t) => {
  const issuer = makeIssuer();
  const metadata = resourceMetadata({ url: RESOURCE.RESOURCE_URL });
  const gate = createGate({ ...issuer.options, metadata, dpopNonceSecret: 'x'.repeat(32) });
  t.after(gate.close);
  const key = createProofKey();
  const token = issuer.boundToken(key);
  const proof = issuer.proof(key, { method: 'GET', url: 'http://api.test/' }, token);
  for (const [sent, error] of [
    ['a.b.c', 'invalid_dpop_proof'],
    [proof, 'use_dpop_nonce'],
  ] as const) {
    const rawHeaders = ['Host', 'api.test', 'Authorization', `DPoP ${token}`, 'DPoP', sent];
    const { refusal } = await gate.check({ method: 'GET', url: '/', rawHeaders }, needs(scope('w')));
    const challenges = (refusal?.headers ?? []).map(([, value]) => value).join();
    assert.ok(challenges.includes(`DPoP error="${error}"`), challenges);
    assert.ok(!challenges.includes('scope='), challenges);
  }
});

test('the challenge of the scheme that was used names a missing scope and the metadata, each once [RFC 9728 §5.1]', async () => {
  const response = await service.ask(ADMIN, { token: provider.issue({ scope: 'other' }) });
  assert.equal(response.status, 403);
  assert.deepEqual(parameters(response), [
    `Bearer realm="api", error="insufficient_scope", error_description="the token lacks a required scope", scope="admin", ${METADATA}`,
    `DPoP ${METADATA}`,
  ]);
});

test('the response to malformed HTTP names the metadata too [RFC 9728 §5.1]', async (t) => {
  const required = await startService({ provider, environment: { ...RESOURCE, IDP_DPOP_MODE: 'REQUIRED' } });
  t.after(() => required.stop());
  const { challenges } = await required.ask('*');
  assert.match(
    challenges[0] ?? '',
    /^DPoP realm="api", error="invalid_request", .*, resource_metadata="[^"]+"$/,
  );
});

const SERVED = {
  routes: [
    get('/api/both', needs(scope('x', 'y'), anyScope('y', 'z')), () => ({})),
    get('/api/open', open, () => ({})),
    get('/api/first', needs(scope('aa')), () => ({})),
    get('/elsewhere', needs(scope('w')), () => ({})),
    get('/twice', needs(anyScope('v', 'w'), scope('w')), () => ({})),
    get('/same', needs(scope('w', 'w')), () => ({})),
    get('/optional', optional, () => ({})),
  ],
  policy: [under('/api', needs(scope('all', 'x')))],
  environment: RESOURCE,
};

test('a 401 names every scope of the rule and then of the route, each once [RFC 9728 §5.1]', async (t) => {
  const app = await startRoutes(SERVED);
  t.after(() => app.stop());
  for (const [path, scopes] of [
    ['/api/both', 'scope="all x y z", '],
    ['/api/first', 'scope="all x aa", '],
    ['/api/open', 'scope="all x", '],
    ['/api/none', 'scope="all x", '],
    ['/elsewhere', 'scope="w", '],
    ['/twice', 'scope="v w", '],
    ['/same', 'scope="w", '],
    ['/optional', ''],
  ] as const) {
    for (const headers of [{ authorization: 'Basic x' }, { authorization: 'Bearer a.b.c' }]) {
      const { status, challenges } = await app.ask(path, { headers });
      assert.equal(status, 401);
      assert.equal(challenges.length, 1);
      assert.ok(challenges[0]?.endsWith(`, ${scopes}${METADATA}`), challenges[0]);
      assert.equal(challenges[0]?.split('scope=').length, scopes === '' ? 1 : 2);
    }
  }
});

test('a 403 for a scope names every scope of the rule and of the route, so that one new token suffices [RFC 9728 §5.1, RFC 6750 §3]', async (t) => {
  const app = await startRoutes(SERVED);
  t.after(() => app.stop());
  for (const [path, granted, scopes] of [
    ['/api/both', '', 'all x y z'],
    ['/api/both', 'all x', 'all x y z'],
    ['/api/open', 'x', 'all x'],
    ['/api/none', 'all', 'all x'],
    ['/elsewhere', 'all', 'w'],
    ['/twice', 'v', 'v w'],
  ] as const) {
    const { status, challenges } = await app.ask(path, { token: tokenWith({ scope: granted }) });
    assert.equal(status, 403);
    assert.ok(challenges[0]?.endsWith(`, scope="${scopes}", ${METADATA}`), challenges[0]);
    const again = await app.ask(path, { token: tokenWith({ scope: scopes }) });
    assert.notEqual(again.status, 403);
  }
});

test('a detailed body of a 403 lists the scopes of the guard that refused, and its challenge all scopes [docs/refusals.md]', async (t) => {
  const app = await startRoutes({ ...SERVED, environment: { ...RESOURCE, ERROR_DETAIL: 'true' } });
  t.after(() => app.stop());
  const { body, challenges } = await app.ask('/api/both', { token: tokenWith({ scope: 'all x' }) });
  assert.deepEqual(body.required_scopes, ['x', 'y']);
  assert.match(challenges[0] ?? '', /, scope="all x y z", /);
});

test('a 403 for a claim names no scope, which would not help [RFC 6750 §3.1]', async (t) => {
  const route = get('/claim', needs(scope('w'), claimEquals('team', 'a')), () => ({}));
  const app = await startRoutes({ routes: [route], environment: RESOURCE });
  t.after(() => app.stop());
  const { status, challenges } = await app.ask('/claim', { token: tokenWith({ scope: 'w' }) });
  assert.equal(status, 403);
  assert.ok(!challenges.join().includes('scope="'), challenges[0]);
});

test('a 401 for an old login names the scopes beside what it demands [RFC 9470 §3]', async (t) => {
  const route = get('/pay', needs(scope('w'), recentLogin({ maxAgeSeconds: 60, acr: ['gold'] })), () => ({}));
  const app = await startRoutes({ routes: [route], environment: RESOURCE });
  t.after(() => app.stop());
  const { status, challenges } = await app.ask('/pay', { token: tokenWith({ scope: 'w', auth_time: 1 }) });
  assert.equal(status, 401);
  for (const demand of [
    'error="insufficient_user_authentication"',
    'max_age="60"',
    'acr_values="gold"',
    'scope="w"',
  ]) {
    assert.ok(challenges[0]?.includes(demand), challenges[0]);
  }
});

test('without RESOURCE_URL a 403 names the scopes of the guard that refused', async (t) => {
  const app = await startRoutes({ ...SERVED, environment: {} });
  t.after(() => app.stop());
  const { challenges } = await app.ask('/api/both', { token: tokenWith({ scope: 'all x' }) });
  assert.match(challenges[0] ?? '', /, scope="x y"$/);
});

test('does not warn of a resource that is one of several audiences [RFC 8707 §2.2]', () => {
  const events: string[] = [];
  metadataWith({ IDP_AUDIENCE: `x,${RESOURCE.RESOURCE_URL}` }, (event) => events.push(event));
  assert.deepEqual(events, []);
});

test('warns of a resource that differs from each audience, if only by a slash or by the case of letters [RFC 8707 §2.2]', () => {
  const url = RESOURCE.RESOURCE_URL;
  for (const audience of [`${url}/`, `${url}x`, url.slice(0, -1), url.toUpperCase()]) {
    const events: string[] = [];
    metadataWith({ IDP_AUDIENCE: audience }, (event) => events.push(event));
    assert.deepEqual(events, ['resource is not an audience']);
  }
});

test('does not warn of a resource that one of several issuers has as audience [RFC 8707 §2.2]', () => {
  const partner = { ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: RESOURCE.RESOURCE_URL };
  const events: string[] = [];
  metadataWith({ ISSUERS: 'partner', ...partner }, (event) => events.push(event));
  assert.deepEqual(events, []);
});
