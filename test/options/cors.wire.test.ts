import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import type { Response } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';
import { askRaw } from '../support/wire-response.ts';

const APP = 'https://app.example';
const OTHER = 'http://localhost:3000';
const ORIGINS = { CORS_ALLOWED_ORIGINS: `${APP}, ${OTHER}` };

let provider: Provider;
let service: TestService;
let proofs: TestService;
let plain: TestService;
let off: TestService;

before(async () => {
  provider = await startProvider();
  service = await startService({ provider, environment: ORIGINS });
  proofs = await startService({ provider, environment: { ...ORIGINS, IDP_DPOP_MODE: 'ALLOWED' } });
  plain = await startService({
    provider,
    environment: { ...ORIGINS, CORS_ALLOW_CREDENTIALS: 'false', CORS_ALLOWED_METHODS: 'GET' },
  });
  off = await startService({ provider });
});

after(async () => {
  for (const running of [service, proofs, plain, off]) await running.stop();
  await provider.stop();
});

/** The header fields by which a browser decides. */
const isDecisive = (name: string) => name.startsWith('access-control-') || name === 'vary';

const decisive = ({ headers }: Response) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => isDecisive(name)));

const granted = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'WWW-Authenticate',
  vary: 'Origin',
});

for (const [what, path, status, init] of [
  ['200', '/api/public', 200, {}],
  ['401', '/api/private', 401, {}],
  ['403', '/api/admin', 403, { withToken: true }],
  ['404', '/nowhere', 404, {}],
  ['404 for a malformed path', '/api/public/', 404, {}],
  ['405', '/api/public', 405, { method: 'DELETE' }],
  ['HEAD', '/api/public', 200, { method: 'HEAD' }],
  ['400', '/api/private', 400, { twice: true }],
  ['health', '/healthz', 200, {}],
] as const) {
  const {
    method = 'GET',
    withToken = false,
    twice = false,
  }: { method?: string; withToken?: boolean; twice?: boolean } = init;

  const asked = (origin: string | undefined) =>
    service.ask(path, {
      method,
      ...(withToken ? { token: provider.issue() } : {}),
      headers: {
        ...(origin === undefined ? {} : { Origin: origin }),
        ...(twice ? { Authorization: ['Bearer a', 'Bearer b'] } : {}),
      },
    });

  test(`lets a listed origin read the response: ${what} [docs/how-a-request-is-checked.md]`, async () => {
    for (const origin of [APP, OTHER]) {
      const response = await asked(origin);
      assert.equal(response.status, status);
      assert.deepEqual(decisive(response), granted(origin));
    }
  });

  test(`sends no cross-origin field but Vary: Origin when the origin is missing or not listed: ${what} [docs/how-a-request-is-checked.md]`, async () => {
    for (const origin of [undefined, 'https://evil.example']) {
      const response = await asked(origin);
      assert.equal(response.status, status);
      assert.deepEqual(decisive(response), { vary: 'Origin' });
    }
  });
}

test('lets a listed origin read the 503 while no keys are available', async (t) => {
  const cold = await startService({
    provider,
    environment: ORIGINS,
    fetchKeys: () => Promise.reject(new Error('x')),
  });
  t.after(() => cold.stop());
  const response = await cold.ask('/api/private', { token: provider.issue(), headers: { Origin: APP } });
  assert.equal(response.status, 503);
  assert.deepEqual(decisive(response), granted(APP));
});

test('sends Vary: Origin and lets a listed origin read the refusal of an expectation [docs/how-a-request-is-checked.md]', async () => {
  const response = await service.ask('/api/public', { headers: { Origin: APP, Expect: 'the-impossible' } });
  assert.equal(response.status, 417);
  assert.deepEqual(decisive(response), granted(APP));
});

test('sends Vary: Origin in response to malformed HTTP [docs/how-a-request-is-checked.md]', async () => {
  const { status, headers } = await askRaw(
    service.port,
    'GET /api/public HTTP/1.1',
    'Host: a',
    'not a field',
  );
  assert.deepEqual([status, headers.get('vary')], [400, 'Origin']);
});

const STRANGERS = [
  'null',
  '',
  '*',
  'HTTPS://app.example',
  'https://APP.example',
  `${APP}/`,
  `${APP}:443`,
  'http://app.example',
  'https://sub.app.example',
  'https://app.example.evil',
  'https://app.exampl',
  `${APP}, ${OTHER}`,
  `${APP}#`,
  'constructor',
];

for (const origin of STRANGERS) {
  test(`treats the origin "${origin}" as unlisted [docs/how-a-request-is-checked.md]`, async () => {
    assert.deepEqual(decisive(await service.ask('/api/public', { headers: { Origin: origin } })), {
      vary: 'Origin',
    });
    const headers = { Origin: origin, 'Access-Control-Request-Method': 'GET' };
    assert.deepEqual(decisive(await service.ask('/api/public', { method: 'OPTIONS', headers })), {
      vary: 'Origin',
    });
  });
}

test('treats a request with two Origin fields as one from an unlisted origin [docs/how-a-request-is-checked.md]', async () => {
  const headers = { Origin: [APP, APP], 'Access-Control-Request-Method': 'GET' };
  for (const method of ['GET', 'OPTIONS']) {
    const response = await service.ask('/api/public', { method, headers });
    assert.deepEqual(decisive(response), { vary: 'Origin' }, method);
  }
});

const preflight = (running: TestService, path: string, origin = APP) => {
  const intended = {
    'Access-Control-Request-Method': 'GET',
    'Access-Control-Request-Headers': 'authorization',
  };
  return running.ask(path, { method: 'OPTIONS', headers: { Origin: origin, ...intended } });
};

for (const path of [
  '/api/public',
  '/api/private',
  '/api/admin',
  '/nowhere',
  '/api/public/',
  '/',
  '/%zz',
  '/healthz',
]) {
  test(`answers the preflight of ${path} without a token [Fetch §3.3.2]`, async () => {
    const response = await preflight(service, path);
    assert.deepEqual([response.status, response.text], [204, '']);
    const { 'access-control-max-age': maxAge, ...others } = decisive(response);
    assert.match(String(maxAge), /^[1-9]\d*$/);
    assert.deepEqual(others, {
      'access-control-allow-origin': APP,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
      'access-control-allow-headers': 'Authorization, Content-Type',
      vary: 'Origin',
    });
    assert.deepEqual(
      [response.headers['cache-control'], response.headers['x-content-type-options']],
      ['no-store', 'nosniff'],
    );
    for (const name of ['content-type', 'content-length', 'allow']) {
      assert.equal(response.headers[name], undefined);
    }
  });
}

test('answers the preflight even with invalid credentials', async () => {
  const headers = {
    Origin: APP,
    'Access-Control-Request-Method': 'GET',
    Authorization: ['Bearer a', 'Basic b'],
  };
  assert.equal((await service.ask('/api/private', { method: 'OPTIONS', headers })).status, 204);
});

for (const [what, headers] of [
  ['without Origin', { 'Access-Control-Request-Method': 'GET' }],
  ['without Access-Control-Request-Method', { Origin: APP }],
] as const) {
  test(`does not treat OPTIONS ${what} as a preflight [docs/how-a-request-is-checked.md, G11]`, async () => {
    const known = await service.ask('/api/private', { method: 'OPTIONS', headers });
    assert.deepEqual(
      [known.status, known.headers.allow, known.body.error],
      [405, 'GET, HEAD', 'method_not_allowed'],
    );
    assert.equal((await service.ask('/nowhere', { method: 'OPTIONS', headers })).status, 404);
  });
}

test('does not treat a GET or POST with the fields of a preflight as a preflight', async () => {
  const headers = { Origin: APP, 'Access-Control-Request-Method': 'GET' };
  assert.equal((await service.ask('/api/private', { headers })).status, 401);
  assert.equal((await service.ask('/api/private', { method: 'POST', headers })).status, 405);
});

test('allows the DPoP header field and exposes DPoP-Nonce when DPoP is on [docs/how-a-request-is-checked.md]', async () => {
  const response = await proofs.ask('/api/public', { headers: { Origin: APP } });
  assert.equal(response.headers['access-control-expose-headers'], 'WWW-Authenticate, DPoP-Nonce');
  assert.equal(
    (await preflight(proofs, '/api/public')).headers['access-control-allow-headers'],
    'Authorization, Content-Type, DPoP',
  );
});

test('sends the configured credentials and methods', async () => {
  const response = await plain.ask('/api/public', { headers: { Origin: APP } });
  assert.equal(response.headers['access-control-allow-origin'], APP);
  assert.equal(response.headers['access-control-allow-credentials'], undefined);
  const asked = await preflight(plain, '/api/public');
  assert.deepEqual(
    [asked.headers['access-control-allow-methods'], asked.headers['access-control-allow-credentials']],
    ['GET', undefined],
  );
});

test('allows and exposes the configured header fields after its own', async (t) => {
  const environment = {
    ...ORIGINS,
    IDP_DPOP_MODE: 'ALLOWED',
    CORS_ALLOWED_HEADERS: 'If-Match, X-Request-Id',
    CORS_EXPOSED_HEADERS: 'ETag',
  };
  const more = await startService({ provider, environment });
  t.after(() => more.stop());
  const { headers } = await more.ask('/api/public', { headers: { Origin: APP } });
  assert.equal(headers['access-control-expose-headers'], 'WWW-Authenticate, DPoP-Nonce, ETag');
  const asked = await preflight(more, '/api/public');
  assert.equal(
    asked.headers['access-control-allow-headers'],
    'Authorization, Content-Type, DPoP, If-Match, X-Request-Id',
  );
});

test('sends no cross-origin fields when no origin is set [docs/how-a-request-is-checked.md]', async () => {
  assert.deepEqual(decisive(await off.ask('/api/public', { headers: { Origin: APP } })), {});
  const asked = await preflight(off, '/api/public');
  assert.deepEqual([asked.status, decisive(asked)], [405, {}]);
  assert.equal((await preflight(off, '/nowhere')).status, 404);
});

test('grants an origin with exactly one label in place of the *, and answers it by its own name', async (t) => {
  const environment = { CORS_ALLOWED_ORIGINS: 'https://*.preview.example.com, capacitor://localhost' };
  const wild = await startService({ provider, environment });
  t.after(wild.stop);

  const allowed = async (Origin: string, method = 'GET') => {
    const headers = { Origin, 'Access-Control-Request-Method': 'GET' };
    const { headers: fields } = await wild.ask('/api/public', { method, headers });
    return fields['access-control-allow-origin'];
  };

  for (const origin of [
    'https://a.preview.example.com',
    'https://pr-7_x.preview.example.com',
    'https://xn--bcher-kva.preview.example.com',
    'capacitor://localhost',
  ]) {
    assert.deepEqual([await allowed(origin), await allowed(origin, 'OPTIONS')], [origin, origin]);
  }
  for (const origin of [
    'https://preview.example.com',
    'https://.preview.example.com',
    'https://a.b.preview.example.com',
    'https://*.preview.example.com',
    'https://a.preview.example.com.evil.test',
    'https://a.preview.example.com:8443',
    'https://evil.test/.preview.example.com',
    'https://A.preview.example.com',
    'http://a.preview.example.com',
    'https://a@preview.example.com',
    'https://apreview.example.com',
    'capacitor://localhost:1',
    'null',
  ]) {
    assert.equal(await allowed(origin), undefined, origin);
  }
});
