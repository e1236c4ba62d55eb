/* Requests as docs/how-a-request-is-checked.md describes them, to whole services of both profiles. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { FetchError } from '../../src/verify/keys/jwks.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { openWire } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';
import { pathSlips } from '../support/spellings.ts';
import { askRaw, isWhole, parseResponse } from '../support/wire-response.ts';

let provider: Provider;
let service: TestService;
let both: TestService;
let dpopOnly: TestService;
let keyless: TestService;

before(async () => {
  provider = await startProvider();
  service = await startService({ provider });
  both = await startService({ provider, environment: { PROFILE: 'A' } });
  dpopOnly = await startService({ provider, environment: { PROFILE: 'A', IDP_DPOP_MODE: 'REQUIRED' } });
  keyless = await startService({ provider, fetchKeys: () => Promise.reject(new FetchError('timeout')) });
});

after(async () => {
  for (const running of [service, both, dpopOnly, keyless]) await running.stop();
  await provider.stop();
});

for (const target of [
  '*',
  'http://127.0.0.1/api/public',
  'https://evil.example/api/public',
  'api/public',
  '?x=/api/public',
]) {
  test(`refuses the target ${target}, which does not begin with a slash [RFC 9112 §3.2]`, async () => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const { status, headers, body } = await askRaw(
        service.port,
        `${method} ${target} HTTP/1.1`,
        'Host: a',
        'Connection: close',
      );
      assert.deepEqual([status, body.error], [400, 'invalid_request']);
      assert.equal(headers.get('cache-control'), 'no-store');
    }
  });
}

const NOWHERE = [...pathSlips('/api/private'), '/', '/?', '/api', '/api/public/private', '/api/%u0070ublic'];

for (const target of NOWHERE) {
  test(`finds nothing at ${target}, before it reads credentials or the method [docs/how-a-request-is-checked.md, G2]`, async () => {
    const repeated = ['GET', 'Authorization: a', 'Authorization: b'] as const;
    for (const [method, ...fields] of [
      ['GET'],
      ['POST'],
      ['OPTIONS'],
      ['GET', 'Authorization: Bearer x.y.z'],
      repeated,
    ] as const) {
      const { status, headers, body } = await askRaw(
        service.port,
        `${method} ${target} HTTP/1.1`,
        'Host: a',
        ...fields,
      );
      assert.deepEqual([status, body.error, body.message], [404, 'not_found', REFUSALS.not_found.not_found]);
      assert.equal(headers.get('www-authenticate'), undefined);
    }
  });
}

test('refuses a Content-Length with chunks and closes the connection [RFC 9112 §6.3, G8]', async () => {
  const fields = ['Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked'];
  const { status, headers, body } = await askRaw(service.port, 'POST /api/public HTTP/1.1', ...fields);
  assert.deepEqual([status, body.error, headers.get('connection')], [400, 'invalid_request', 'close']);
});

test('reads no method from a header field, and no token from a body [RFC 9700, G6, G11]', async () => {
  const override = await service.ask('/api/public', {
    method: 'POST',
    headers: { 'X-HTTP-Method-Override': 'GET' },
  });
  assert.equal(override.status, 405);
  const body = `access_token=${provider.issue()}`;
  const form = { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': String(body.length) };
  const inBody = await service.ask('/api/private', { headers: form, body });
  assert.deepEqual([inBody.status, inBody.body.error], [401, 'unauthorized']);
});

for (const [path, status] of [
  ['/api/public', 200],
  ['/api/private', 401],
  ['/nowhere', 404],
] as const) {
  test(`answers ${path} at once when a body is announced, and closes the connection [docs/how-a-request-is-checked.md]`, async () => {
    const wire = await openWire(service.port);
    wire.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n`);
    const response = parseResponse(await wire.until(isWhole));
    assert.deepEqual([response.status, response.headers.get('connection')], [status, 'close']);
    wire.send('abcGET /api/public HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal((await wire.untilClosed()).split('HTTP/1.1 ').length, 2);
  });
}

test('answers pipelined requests in order, each by its own credentials [G10]', async () => {
  const wire = await openWire(service.port);
  const request = (path: string, field: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n`;
  const from = (sub: string) => request('/api/private', `Authorization: Bearer ${provider.issue({ sub })}`);
  wire.send(
    from('one') + request('/api/private', 'X: 1') + from('two') + request('/nowhere', 'Connection: close'),
  );
  const received = await wire.untilClosed();
  assert.deepEqual(received.match(/(?<=HTTP\/1\.1 )\d+|"user":"\w+"/g), [
    '200',
    '"user":"one"',
    '401',
    '200',
    '"user":"two"',
    '404',
  ]);
});

test('ignores header fields that only resemble Authorization, and Connection options that name it [G4]', async () => {
  const token = provider.issue();
  for (const name of ['X-Authorization', 'Authorization_', 'Proxy-Authorization']) {
    assert.equal(
      (await service.ask('/api/private', { headers: { [name]: `Bearer ${token}` } })).status,
      401,
      name,
    );
  }
  const fields = ['Host: a', 'Connection: authorization', `Authorization: Bearer ${token}`];
  const named = await askRaw(service.port, 'GET /api/private HTTP/1.1', ...fields);
  assert.equal(named.status, 200);
});

const guest = '{"message":"Welcome, guest!","personalizedContent":false}';

for (const [value, status, error] of [
  [undefined, 200, undefined],
  ...['', 'Basic dTpw', 'DPoP x.y.z', 'Bearer', 'Bearer '].map(
    (value) => [value, 401, 'unauthorized'] as const,
  ),
  ...[
    'Bearer x',
    'Bearer  x.y.z',
    'Bearer\tx.y.z',
    'Bearer x.y.z, Basic a',
    'Bearer,x',
    'Bearer null',
    'bearer undefined',
  ].map((value) => [value, 401, 'invalid_token'] as const),
] as const) {
  const how = `${status} ${error ?? 'as to a guest'}`;

  test(`answers ${how} on an optional route to Authorization ${JSON.stringify(value)} [RFC 9110 §5.6.2, docs/how-a-request-is-checked.md]`, async () => {
    const fields = value === undefined ? [] : [`Authorization: ${value}`];
    const response = await askRaw(service.port, 'GET /api/feed HTTP/1.1', 'Host: a', ...fields);
    assert.equal(response.status, status);
    assert.equal(
      response.text,
      error === undefined ? guest : JSON.stringify({ error, message: 'Authentication required' }),
    );
    const challenge =
      error === 'invalid_token'
        ? /^Bearer realm="api", error="invalid_token", error_description="[^"]+"$/
        : /^Bearer realm="api"$/;
    if (error !== undefined) assert.match(response.headers.get('www-authenticate') ?? '', challenge);
  });
}

test('refuses two Authorization fields on an optional route, even if one is empty [RFC 6750 §3.1, G5]', async () => {
  for (const fields of [
    ['Bearer a', 'Bearer a'],
    ['', ''],
    ['Basic a', `Bearer ${provider.issue()}`],
  ]) {
    const response = await askRaw(
      service.port,
      'GET /api/feed HTTP/1.1',
      'Host: a',
      ...fields.map((value) => `Authorization: ${value}`),
    );
    assert.deepEqual([response.status, response.body.error], [400, 'invalid_request']);
    const error =
      'error="invalid_request", error_description="the request has more than one Authorization header field"';
    assert.equal(response.headers.get('www-authenticate'), `Bearer realm="api", ${error}`);
  }
});

test('accepts the scheme in any case, and ignores the DPoP field when DPoP is off [RFC 9110 §11.1]', async () => {
  const fields = [`aUTHORIZATION: bEARER ${provider.issue()}`, 'DPoP: x', 'DPoP: y'];
  const response = await askRaw(service.port, 'GET /api/feed HTTP/1.1', 'Host: a', ...fields);
  assert.deepEqual(response.body, { message: 'Welcome back, auth0|user!', personalizedContent: true });
});

const algorithms = /(, | )algs="[^"]+"/;

test('challenges with one field for each scheme when both are accepted [RFC 9449 §7.1]', async () => {
  const { challenges } = await both.ask('/api/private');
  assert.deepEqual(
    challenges.map((challenge) => challenge.replace(algorithms, '')),
    ['Bearer realm="api"', 'DPoP'],
  );
  const expired = provider.issue({ exp: 1 });
  const blamed = await both.ask('/api/private', { headers: { Authorization: `dpop ${expired}`, DPoP: 'x' } });
  assert.deepEqual(
    blamed.challenges.map((challenge) => challenge.replace(algorithms, '')),
    ['Bearer realm="api"', 'DPoP error="invalid_token", error_description="the token has expired"'],
  );
});

test('challenges only with DPoP, without an error, when it is required and Bearer is used [RFC 9449 §7.2]', async () => {
  for (const request of [{}, { token: provider.issue() }]) {
    const { status, body, challenges } = await dpopOnly.ask('/api/private', request);
    assert.deepEqual([status, body.error], [401, 'unauthorized']);
    assert.deepEqual(
      challenges.map((challenge) => challenge.replace(algorithms, '')),
      ['DPoP realm="api"'],
    );
  }
});

for (const path of ['/api/private', '/api/feed']) {
  test(`answers 503 at ${path} to a token while no keys are available, never as if there were no token [docs/refusals.md]`, async () => {
    const { status, body, headers, challenges } = await keyless.ask(path, { token: provider.issue() });
    assert.deepEqual([status, body.error, challenges], [503, 'temporarily_unavailable', []]);
    assert.match(headers['retry-after'] ?? '', /^([1-9]|[12]\d|30)$/);
  });
}

test('needs no keys if no token is read or sent', async () => {
  const asked = ['/api/public', '/api/feed', '/api/private', '/nowhere'].map((path) => keyless.ask(path));
  assert.deepEqual(
    (await Promise.all(asked)).map(({ status }) => status),
    [200, 200, 401, 404],
  );
});

test('waits for the keys when a request comes before them', async (t) => {
  const cold = await startService({ provider, cold: true });
  t.after(() => cold.stop());
  assert.equal((await cold.ask('/api/private', { token: provider.issue() })).status, 200);
});
