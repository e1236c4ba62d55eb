/* The gate in any server: Fetch Requests, a further access once the body is known, and connections that
   outlive a token. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  anyScope,
  authenticated,
  claimCheck,
  createGate,
  createService,
  del,
  get,
  needs,
  open,
  optional,
  patch,
  post,
  put,
  recentLogin,
  scope,
  under,
  type Caller,
} from '../../../src/gatehouse.ts';
import { cors } from '../../../src/cors.ts';
import { claims } from '../../../src/decisions.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { jsonLog } from '../../../src/log.ts';
import { createProof, createProofKey } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { captureLog } from '../../support/captured.ts';

const issuer = makeIssuer();
const access = needs(scope('read:orders'));
const READER = { scope: 'read:orders' };

async function openGate(t: TestContext, settings: object = {}) {
  const gate = createGate({ ...issuer.options, ...settings });
  t.after(gate.close);
  return gate;
}

const requestWith = (...rawHeaders: string[]) => ({
  method: 'GET',
  url: '/orders',
  rawHeaders: ['Host', 'api.test', ...rawHeaders],
});

const bearer = (claims: object) => ['Authorization', issuer.bearer({ ...claims }).authorization];

test('the gate checks a Fetch Request and does not read its body', async (t) => {
  const gate = await openGate(t);
  const headers = issuer.bearer(READER);
  const request = new Request('https://api.test/orders?a=1', { method: 'POST', body: '{}', headers });
  const verdict = await gate.check(request, access);
  assert.ok(!verdict.refusal);
  assert.equal(verdict.caller.subject, 'test-user');
  assert.equal(request.bodyUsed, false);
  const { refusal } = await gate.check(new Request('https://api.test/orders'), access);
  assert.equal(refusal?.status, 401);
  const response = new Response(refusal.body, refusal);
  assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer realm="api"/);
});

for (const path of [
  '/x/../orders',
  '/x/%2E%2e/orders',
  '/./orders',
  '/orders/..?a=1',
  '/x\\..\\orders',
  '/x/%2e%2e\\orders',
]) {
  test(`the gate refuses the path ${path}, whatever the access, when the request object has the URL as it was sent [RFC 3986 §5.2.4]`, async (t) => {
    const gate = await openGate(t);
    for (const each of [access, open]) {
      const headers = Object.entries(issuer.bearer(READER));
      const { refusal } = await gate.check({ method: 'GET', url: `https://api.test${path}`, headers }, each);
      assert.equal(refusal?.status, 400);
    }
  });
}

test('the gate leaves out the fragment of a Request, which is no part of the path [RFC 3986 §3.5]', async (t) => {
  const gate = await openGate(t);
  const request = new Request('https://api.test/orders#x/../y', { headers: issuer.bearer(READER) });
  assert.equal((await gate.check(request, access)).refusal, undefined);
});

test('the gate reads the scheme of a Request in any letter case, and leaves out the fragment of any target', async (t) => {
  const gate = await openGate(t);
  const headers = Object.entries(issuer.bearer(READER));
  const fetched = await gate.check({ method: 'GET', url: 'HTTPS://api.test/orders', headers }, access);
  assert.equal(fetched.refusal, undefined);
  const target = { ...requestWith(...bearer(READER)), url: '/orders#/../x' };
  assert.equal((await gate.check(target, access)).refusal, undefined);
});

test('the gate refuses a request that may have lost header fields, whatever the access', async (t) => {
  const gate = await openGate(t);
  const rawHeaders = Array.from({ length: 1_000 }, (_, index) => [`A${index}`, '']).flat();
  for (const each of [open, optional, authenticated]) {
    const { refusal } = await gate.check({ method: 'GET', url: '/', rawHeaders }, each);
    assert.equal(refusal?.status, 431);
  }
});

test('the gate treats a request with two Origin fields as one from an unlisted origin', async (t) => {
  const origin = 'https://app.test';
  const gate = await openGate(t, { cors: cors({ origins: [origin] }) });

  const fieldsFor = async (...rawHeaders: string[]) =>
    new Headers((await gate.check(requestWith(...rawHeaders), access)).refusal?.headers);

  const listed = await fieldsFor('Origin', origin);
  assert.equal(listed.get('access-control-allow-origin'), origin);
  const repeated = await fieldsFor('Origin', origin, 'Origin', 'https://other.test');
  assert.equal(repeated.has('access-control-allow-origin'), false);
});

test('authorize throws for a value that is not a Caller, even if the access is also invalid', async (t) => {
  const gate = await openGate(t);
  const error = new TypeError('authorize needs a verified Caller');
  assert.throws(() => gate.authorize({} as Caller, {} as never), error);
});

test('the gate compares a proof with the URL of a Request, but with the scheme http and without the query [RFC 9449 §4.3(9)]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);

  const ask = (address: string, url: string) => {
    const dpop = createProof(key, { method: 'GET', url }, token);
    // Only the URL of the Request counts.
    const headers = { authorization: `DPoP ${token}`, dpop, host: 'evil.test' };
    return gate.check({ method: 'GET', url: address, headers: Object.entries(headers) }, access);
  };

  const good = await ask('https://api.test:8443/orders?a=1', 'http://api.test:8443/orders');
  assert.equal(good.refusal, undefined);
  for (const url of ['https://api.test:8443/orders', 'http://evil.test/orders', 'http://api.test/orders']) {
    const { refusal } = await ask('https://api.test:8443/orders?a=1', url);
    assert.match(String(refusal?.body), /"invalid_dpop_proof"/, url);
  }
});

test('a proof for `/` covers the URL of a Request without a path, unless a query follows, in which routers find another [J13] [RFC 9110 §4.2.3]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'REQUIRED', publicUrl: 'https://api.test' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);

  const ask = async (url: string) => {
    const dpop = createProof(key, { method: 'GET', url: 'https://api.test/' }, token);
    const headers = Object.entries({ authorization: `DPoP ${token}`, dpop });
    return (await gate.check({ method: 'GET', url, headers }, access)).refusal?.status;
  };

  assert.equal(await ask('http://api.test'), undefined);
  for (const query of ['?', '?a=1', '?/admin', '?a=/../b']) {
    assert.equal(await ask(`http://api.test${query}`), 400, query);
  }
});

test('the gate refuses repeated fields that Fetch has joined', async (t) => {
  const gate = await openGate(t);
  const { authorization } = issuer.bearer(READER);
  const headers = new Headers([
    ['Authorization', authorization],
    ['Authorization', authorization],
  ]);
  const { refusal } = await gate.check(new Request('http://api.test/', { headers }), access);
  assert.equal(refusal?.status, 401);
});

test('the gate refuses fields that an iterable of pairs repeats, instead of reading the last one [RFC 9110 §5.3]', async (t) => {
  const gate = await openGate(t);
  const { authorization } = issuer.bearer(READER);
  const url = 'http://api.test/';
  for (const first of ['Bearer x', authorization]) {
    const headers = [
      ['Authorization', first],
      ['authorization', authorization],
    ] as const;
    const { refusal } = await gate.check({ method: 'GET', url, headers }, access);
    assert.equal(refusal?.status, 400);
  }
});

test('the gate believes the last of several X-Forwarded-Host fields that an iterable of pairs has, which the nearest proxy added [RFC 9449 §4.3(9)]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED', trustProxy: true });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);

  const ask = async (url: string) => {
    const headers = [
      ['Authorization', `DPoP ${token}`],
      ['DPoP', createProof(key, { method: 'GET', url }, token)],
      ['X-Forwarded-Host', 'evil.test'],
      ['x-forwarded-host', 'api.test'],
    ] as const;
    return (await gate.check({ method: 'GET', url: 'http://inner/orders', headers }, access)).refusal?.status;
  };

  assert.equal(await ask('http://evil.test/orders'), 401);
  assert.equal(await ask('http://api.test/orders'), undefined);
});

test('the gate throws for a Request that no client could have sent', async (t) => {
  const gate = await openGate(t);
  for (const request of [
    { method: 'GET', url: new URL('http://a.test/'), headers: new Headers() },
    { url: 'http://a.test/', headers: new Headers() },
    { method: 'GET', url: 'http://a.test/' },
    { method: 'GET', url: '/orders', rawHeaders: undefined },
    { method: 'GET', url: '/orders', rawHeaders: 'Host' },
    {},
    undefined,
    null,
    '/orders',
  ]) {
    await assert.rejects(gate.check(request as never, access), {
      name: 'TypeError',
      message: 'a request needs rawHeaders; a Fetch Request needs a method, an http(s) URL and headers',
    });
  }
});

for (const url of [
  '/orders',
  'data:text/plain,hi',
  'file:///orders',
  'blob:http://a.test/b',
  'ws://a.test/',
  'http://a:b/',
  'http:///orders',
  'http://',
  '',
  'http://user@api.test/orders',
  'http://a\\api\\status?/orders',
  'http://a#/orders',
  'http://a\t/orders',
  'http://a b/orders',
  'http://api.test/orders\\7',
  'http://api.test/or\nders',
  'http://api.test\\orders',
  'http://api.test/orders?a\\b',
]) {
  test(`the gate refuses the URL ${JSON.stringify(url)} of a Request, which some servers build from what a client sent, with 400 whatever the access [J13]`, async (t) => {
    const gate = await openGate(t);
    const headers = Object.entries(issuer.bearer(READER));
    for (const each of [open, access]) {
      const { refusal } = await gate.check({ method: 'GET', url, headers }, each);
      assert.equal(refusal?.status, 400);
      assert.match(String(refusal.body), /"invalid_request"/);
    }
  });
}

test('a proof for one path does not pass at another, whatever a Host or target does to the URL of a Request [E5, RFC 9449 §4.3(9)]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'REQUIRED', publicUrl: 'https://api.test' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  for (const url of [
    'http://a\\api\\status?/api/admin',
    'http://a/api/status?/../api/admin',
    'http://a/api/status\\',
    'http://a\\/api/status',
    'http://a#/api/status',
  ]) {
    const dpop = createProof(key, { method: 'GET', url: 'https://api.test/api/status' }, token);
    const headers = Object.entries({ authorization: `DPoP ${token}`, dpop });
    const { refusal } = await gate.check({ method: 'GET', url, headers }, access);
    assert.equal(refusal?.status, /[\\#]/.test(url) ? 400 : undefined, url);
  }
});

test('a proof does not cover the URL of a Request with a fragment, which some servers keep in the path [RFC 9112 §3.2]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'REQUIRED', publicUrl: 'https://api.test' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  for (const [url, status] of [
    ['http://a/api/status#7', 401],
    ['http://a/api/status#', 401],
    ['http://a/api/status?a=1#7', undefined],
    ['http://a/api/status', undefined],
  ] as const) {
    const dpop = createProof(key, { method: 'GET', url: 'https://api.test/api/status' }, token);
    const headers = Object.entries({ authorization: `DPoP ${token}`, dpop });
    assert.equal((await gate.check({ method: 'GET', url, headers }, access)).refusal?.status, status, url);
  }
});

test('the gate looks for dot segments in the URL of a Request, whatever else the object has', async (t) => {
  const gate = await openGate(t);
  const request = { method: 'GET', url: 'http://a/x/../y', originalUrl: '/y', headers: [] };
  assert.equal((await gate.check(request as never, open)).refusal?.status, 400);
});

test('the gate refuses two Host fields of a Request, and ignores one [RFC 9112 §3.2]', async (t) => {
  const gate = await openGate(t);
  const { authorization } = issuer.bearer(READER);

  const ask = async (...hosts: readonly string[]) => {
    const headers = [
      ...hosts.map((host) => ['Host', host] as const),
      ['authorization', authorization] as const,
    ];
    return (await gate.check({ method: 'GET', url: 'http://a/orders', headers }, access)).refusal?.status;
  };

  for (const hosts of [['a, b'], ['a', 'b'], ['', 'a'], ['a', ''], [', a']]) {
    assert.equal(await ask(...hosts), 400, hosts.join('|'));
  }
  for (const hosts of [[], ['b'], ['']]) assert.equal(await ask(...hosts), undefined, hosts.join('|'));
});

test('the gate refuses a Request whose URL has no host, whatever the Host field, on an open route too [§18]', async (t) => {
  const gate = await openGate(t);
  for (const each of [open, access]) {
    for (const authority of ['a@b', 'a:x', '', 'a, b']) {
      const request = { method: 'GET', url: `http://${authority}/orders`, headers: [['host', 'a']] };
      assert.equal((await gate.check(request as never, each)).refusal?.status, 400, authority);
    }
  }
});

test('a proof for one path does not pass at another because of a Host that is none, of which some servers make the URL of a Request [E5, RFC 9112 §3.2]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'REQUIRED', publicUrl: 'https://api.test' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  for (const [host, path] of [
    ['a/api/status?', '/api/status'],
    ['a/api/status;', '/api/status;/api/orders'],
    ['a:80/api/status?x=', '/api/status'],
    ['[::1]/api/status?', '/api/status'],
  ] as const) {
    const dpop = createProof(key, { method: 'GET', url: `https://api.test${path}` }, token);
    const headers = new Headers({ host, authorization: `DPoP ${token}`, dpop });
    const request = { method: 'GET', url: `http://${host}/api/orders`, headers };
    for (const each of [open, access]) {
      const { refusal } = await gate.check(request, each);
      assert.equal(refusal?.status, 400, host);
    }
  }
});

test('the gate sees each of two fields that are not joined, in any letter case [RFC 9110 §5.1]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED' });
  const { authorization } = issuer.bearer(READER);
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  const dpop = createProof(key, { method: 'GET', url: 'http://a/orders' }, token);

  const ask = async (headers: Iterable<readonly [string, string]>) =>
    (await gate.check({ method: 'GET', url: 'http://a/orders', headers }, access)).refusal?.status;

  const fields = [
    ['Authorization', authorization],
    ['authorization', authorization],
  ] as const;
  assert.equal(await ask(fields), 400);
  const getsFirst = {
    get: (name: string) => (name === 'authorization' ? authorization : null),
    [Symbol.iterator]: () => fields[Symbol.iterator](),
  };
  assert.equal(await ask(getsFirst), 400);
  const proofs = [
    ['Authorization', `DPoP ${token}`],
    ['DPoP', 'x'],
    ['dpop', dpop],
  ] as const;
  assert.equal(await ask(proofs), 401);
  assert.equal(await ask([proofs[0], proofs[2]]), undefined);
  assert.equal(await ask(new Map([['Authorization', authorization]])), undefined);
});

test('the gate reads fields that an iterator drops, as that of Deno does for an empty first one [J13]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED' });
  const { authorization } = issuer.bearer(READER);

  const dropping = (name: string, value: string, shown: Record<string, string>) => ({
    get: (asked: string) => (asked === name ? value : (shown[asked] ?? null)),
    [Symbol.iterator]: () => Object.entries(shown)[Symbol.iterator](),
  });

  const ask = async (headers: ReturnType<typeof dropping>, each = access) =>
    (await gate.check({ method: 'GET', url: 'http://api.test/orders', headers }, each)).refusal?.status;

  assert.equal(await ask(dropping('authorization', `, ${authorization}`, { authorization })), 401);
  assert.equal(await ask(dropping('authorization', '', {}), optional as typeof access), 401);
  assert.equal(await ask(dropping('dpop', ', x', { authorization })), 400);
  assert.equal(await ask(dropping('x', 'y', { authorization })), undefined);
});

test('the gate throws a TypeError that names rawHeaders for a request with headers, but without raw ones [§18]', async (t) => {
  const gate = await openGate(t);
  const token = issuer.bearer(READER);
  for (const headers of [token, { host: 'api.test', ...token }, { host: 'api.test' }]) {
    for (const each of [open, access]) {
      const request = { method: 'GET', url: '/orders', headers, rawHeaders: [] };
      await assert.rejects(gate.check(request, each), {
        name: 'TypeError',
        message:
          'the rawHeaders of the request are empty, although it has headers; pass the gate a Fetch Request instead',
      });
    }
  }
  const bare = { method: 'GET', url: '/orders', headers: {}, rawHeaders: [], httpVersion: '1.0' };
  assert.equal((await gate.check(bare, access)).refusal?.status, 401);
});

test('the gate checks a request of a socket that has no header field at all', async (t) => {
  const gate = await openGate(t);
  const server = createServer(async (request, response) => {
    assert.deepEqual(request.rawHeaders, []);
    await gate.admit(request, response, access);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.end('GET /orders HTTP/1.0\r\n\r\n');
  const response = (await socket.setEncoding('utf8').toArray()).join('');
  assert.match(response, /^HTTP\/1\.1 401 /);
});

test('the gate throws for what looks like an access, a guard, a route or a rule [J15]', async (t) => {
  const gate = await openGate(t);
  const lookAlikes = [
    gate,
    { ...open },
    { ...access, credentials: 'unheard-of' },
    Object.create(open),
    new Proxy(access, {}),
    { name: 'x', credentials: 'ignored', guards: [], admit: () => undefined },
    Reflect.construct(open.constructor, ['x', 'ignored', () => undefined]),
    () => open,
    [open],
  ];
  const { caller } = await admitted(t, READER);
  for (const each of lookAlikes as never[]) {
    await assert.rejects(gate.check(requestWith(), each), { name: 'TypeError' });
    await assert.rejects(gate.admit(requestWith(), {} as never, each), { name: 'TypeError' });
    assert.throws(() => gate.authorize(caller, each), { name: 'TypeError' });
    assert.throws(() => needs(each), { name: 'TypeError' });
    for (const method of [post, put, patch, del]) {
      assert.throws(() => method('/x', each, () => ({})), { name: 'TypeError' });
    }
    assert.throws(() => get('/x', each, () => ({})), { name: 'TypeError' });
    assert.throws(() => under('/x', each), { name: 'TypeError' });
  }
  const guard = scope('read:orders');
  for (const each of [
    { ...guard },
    Object.create(guard),
    new Proxy(guard, {}),
    { name: 'x', passes: () => true },
    Reflect.construct(guard.constructor, ['x', () => true, guard.refused]),
    access,
  ]) {
    assert.throws(() => needs(each as never), { name: 'TypeError' });
    assert.throws(() => needs(guard, each as never), { name: 'TypeError' });
  }
  const route = get('/x', open, () => ({}));
  const rule = under('/x', access);
  const routeAlikes = [{ ...route }, Object.create(route), new Proxy(route, {}), rule, access];
  for (const each of [...routeAlikes, Reflect.construct(route.constructor, [{ ...route }])] as never[]) {
    assert.throws(() => createService({ routes: [each] }, issuer.options), /is not a route/);
  }
  const ruleAlikes = [{ ...rule }, Object.create(rule), new Proxy(rule, {}), route, access];
  for (const each of [...ruleAlikes, Reflect.construct(rule.constructor, [['x'], open])] as never[]) {
    const routes = { routes: [route], rules: [each] };
    assert.throws(() => createService(routes, issuer.options), /must be a list of rules/);
  }
});

test('an access and its guards cannot be changed', () => {
  for (const value of [open, optional, authenticated, access, access.guards, scope('a')]) {
    assert.ok(Object.isFrozen(value));
  }
});

test('the gate throws for a value that is not an access, with or without credentials', async (t) => {
  const { gate, caller } = await admitted(t, READER);
  const error = new TypeError('the gate needs an access, such as needs(), of the same copy of the package');
  for (const given of [undefined, null, {}, scope('read:orders'), needs, 'authenticated']) {
    await assert.rejects(gate.check(requestWith(), given as never), error);
    await assert.rejects(gate.check(requestWith(...bearer(READER)), given as never), error);
    assert.throws(() => gate.authorize(caller, given as never), error);
  }
});

async function admitted(t: TestContext, claims: object, settings: object = {}) {
  const gate = await openGate(t, settings);
  const verdict = await gate.check(requestWith(...bearer(claims)), authenticated);
  assert.ok(!verdict.refusal);
  return { gate, caller: verdict.caller };
}

test('an admitted caller is authorized for a further access by its guards alone', async (t) => {
  const { gate, caller } = await admitted(t, READER);
  assert.equal(gate.authorize(caller, access).caller, caller);
  assert.equal(gate.authorize(caller, authenticated).caller, caller);
  assert.equal(gate.authorize(caller, optional).caller, caller);
  const { refusal } = gate.authorize(caller, needs(scope('write:orders')));
  const checked = await gate.check(requestWith(...bearer(READER)), needs(scope('write:orders')));
  assert.deepEqual(refusal, checked.refusal);
});

test('a proof is used once, however many accesses its caller is authorized for [RFC 9449 §11.1]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  const dpop = createProof(key, { method: 'GET', url: 'http://api.test/orders' }, token);
  const request = requestWith('Authorization', `DPoP ${token}`, 'DPoP', dpop);
  const verdict = await gate.check(request, authenticated);
  assert.ok(!verdict.refusal);
  for (let time = 0; time < 3; time += 1) assert.ok(!gate.authorize(verdict.caller, access).refusal);
  const schema = { '~standard': { version: 1 as const, validate: () => ({ value: {} }) } };
  const { caller: narrowed } = gate.authorize(verdict.caller, needs(claims(schema)));
  for (const caller of [verdict.caller, narrowed]) {
    const { refusal } = gate.authorize(caller!, needs(scope('write:orders')));
    // The error is on the scheme that was used.
    assert.match(JSON.stringify(refusal?.headers), /DPoP error=\\"insufficient_scope\\"/);
  }
  assert.equal((await gate.check(request, authenticated)).refusal?.status, 401);
});

test('a refusal by authorize has neither cross-origin fields nor a nonce', async (t) => {
  const settings = {
    cors: cors({ origins: ['https://app.test'] }),
    metadata: resourceMetadata({ url: 'https://api.test' }),
  };
  const { gate, caller } = await admitted(t, READER, settings);
  const { refusal } = gate.authorize(caller, needs(scope('read:orders'), scope('write:orders')));
  assert.deepEqual(
    refusal?.headers.map(([name]) => name),
    [
      ...['Content-Type', 'Cache-Control', 'X-Content-Type-Options', 'Content-Length'],
      ...['WWW-Authenticate', 'WWW-Authenticate'],
    ],
  );
  assert.match(JSON.stringify(refusal?.headers), /scope=\\"read:orders write:orders\\"/);
});

/** The log lines of single requests that the action writes. */
async function linesOf(t: TestContext, action: () => unknown): Promise<Record<string, unknown>[]> {
  const { write } = process.stdout;
  let written = '';
  const { mock } = t.mock.method(process.stdout, 'write', (text: unknown, ...rest: unknown[]) => {
    written += String(text);
    return Reflect.apply(write, process.stdout, [text, ...rest]);
  });
  await action();
  await new Promise(setImmediate);
  mock.restore();
  const lines = written.split('\n').filter((line) => /"message":"request( refused)?"/.test(line));
  return lines.map((line) => JSON.parse(line));
}

test('the log names issuer and key of a caller whom authorize refuses', async (t) => {
  const { gate, caller } = await admitted(t, READER, { log: jsonLog({ level: 'debug' }) });
  const [{ kid } = {}] = (await issuer.options.fetchKeys()).keys;
  const lines = await linesOf(t, () => gate.authorize(caller, needs(scope('write:orders'))));
  assert.deepEqual(
    lines.map((line) => [line.message, line.reason, line.issuer, line.kid]),
    [['request refused', 'scope-missing', 'idp', kid]],
  );
});

test('the log names issuer and key of a valid token whose sender constraint is refused [RFC 9449 §7.1]', async (t) => {
  const gate = await openGate(t, { log: jsonLog({ level: 'debug' }), dpopMode: 'ALLOWED' });
  const [{ kid } = {}] = (await issuer.options.fetchKeys()).keys;
  const token = issuer.boundToken(createProofKey(), READER);
  const lines = await linesOf(t, () => gate.check(requestWith('Authorization', `Bearer ${token}`), access));
  assert.deepEqual(
    lines.map((line) => [line.message, line.reason, line.issuer, line.kid]),
    [['request refused', 'bound-token', 'idp', kid]],
  );
});

test('the log names the method of a request that is refused before its target is read', async (t) => {
  const gate = await openGate(t, { log: jsonLog({ level: 'debug' }) });
  const lines = await linesOf(t, async () => {
    await gate.check({ ...requestWith(), method: 'PUT', url: '/x/../y' }, access);
    await gate.check({ method: 'PATCH', url: 'http://a b/', headers: [] }, access);
  });
  assert.deepEqual(
    lines.map(({ method, reason }) => [method, reason]),
    [
      ['PUT', 'target-refused'],
      ['PATCH', 'host-refused'],
    ],
  );
});

test('a request of Node may have any further member, such as one named refused', async (t) => {
  const gate = await openGate(t);
  const { authorization } = issuer.bearer(READER);
  const request = { ...requestWith('Authorization', authorization), refused: true };
  assert.equal((await gate.check(request, access)).refusal, undefined);
});

test('a Request whose URL cannot be one is refused with what its fields ask for: scheme and origin [§6, §9]', async (t) => {
  const gate = await openGate(t, { dpopMode: 'ALLOWED', cors: cors({ origins: ['https://app.example'] }) });
  const headers = new Headers({ authorization: 'DPoP a', origin: 'https://app.example' });
  const { refusal } = await gate.check({ method: 'GET', url: 'http://a b/', headers }, access);
  const fields = new Headers(refusal?.headers as [string, string][]);
  assert.match(fields.get('www-authenticate') ?? '', /DPoP [^,]*error="invalid_request"/);
  assert.equal(fields.get('access-control-allow-origin'), 'https://app.example');
});

test('a gate logs no line for an admitted request, even with accessLog', async (t) => {
  const gate = await openGate(t, { log: jsonLog({ access: true, level: 'debug' }) });
  const request = requestWith('Authorization', issuer.bearer(READER).authorization);
  const lines = await linesOf(t, async () => {
    assert.ok(!(await gate.check(request, access)).refusal);
    assert.equal((await gate.check(requestWith(), access)).refusal?.status, 401);
  });
  assert.deepEqual(
    lines.map(({ message }) => message),
    ['request refused'],
  );
});

test('authorize checks a login by the current time [RFC 9470 §3]', async (t) => {
  const auth_time = Math.floor(Date.now() / 1000) - 50;
  const { gate, caller } = await admitted(t, { auth_time });
  const fresh = needs(recentLogin({ maxAgeSeconds: 60 }));
  assert.equal(gate.authorize(caller, fresh).caller, caller);
  const { now } = Date;
  Date.now = () => now() + 20_000;
  t.after(() => {
    Date.now = now;
  });
  assert.match(String(gate.authorize(caller, fresh).refusal?.body), /insufficient_user_authentication/);
});

test('the gate refuses a login that is too old [RFC 9470 §3]', async (t) => {
  const gate = await openGate(t);
  const fresh = needs(recentLogin({ maxAgeSeconds: 60 }));
  const request = requestWith(...bearer({ auth_time: Math.floor(Date.now() / 1000) - 90 }));
  const { refusal } = await gate.check(request, fresh);
  assert.match(String(refusal?.body), /insufficient_user_authentication/);
});

for (const thrown of [new Error('a bug'), undefined, null, 0]) {
  test(`authorize refuses with 500 if a guard throws ${thrown}, and tells onError that it is about no request`, async (t) => {
    const told: unknown[] = [];
    const onError = (error: unknown, about: unknown) => told.push(error, about);
    const { gate, caller } = await admitted(t, READER, { log: undefined, onError });
    const guard = claimCheck('broken', () => {
      throw thrown;
    });
    assert.equal(gate.authorize(caller, needs(guard)).refusal?.status, 500);
    assert.deepEqual(told, [thrown, { method: null, route: null }]);
  });
}

test('authorize throws for a caller that no check in this process made, and for an access that is open', async (t) => {
  const { gate, caller } = await admitted(t, READER);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const other of [
    undefined,
    null,
    {},
    { ...caller },
    Object.create(caller),
    new Proxy(caller, {}),
    'x',
    proxy,
  ]) {
    assert.throws(() => gate.authorize(other as Caller, access), {
      name: 'TypeError',
      message: 'authorize needs a verified Caller',
    });
  }
  assert.throws(() => gate.authorize(caller, open as never), {
    name: 'TypeError',
    message: 'authorize needs an access that is not open',
  });
});

test('authorize throws for a copied caller, even if the access is also invalid or is open', async (t) => {
  const { gate, caller } = await admitted(t, READER);
  for (const given of [undefined, {}, scope('read:orders'), open]) {
    assert.throws(() => gate.authorize({ ...caller } as Caller, given as never), {
      name: 'TypeError',
      message: 'authorize needs a verified Caller',
    });
  }
});

const read = scope('read:orders');
const write = scope('write:orders');

/** The scopes that the challenge of a refusal names. */
const named = (refusal?: { headers: readonly (readonly string[])[] }) =>
  /scope="([^"]*)"/.exec(
    String(new Headers(refusal?.headers as [string, string][]).get('www-authenticate')),
  )?.[1];

test('the challenge without a token names the scope of the base access, and a refusal by authorize names every scope of its own access [RFC 6750 §3]', async (t) => {
  const { gate, caller } = await admitted(t, READER, {
    metadata: resourceMetadata({ url: 'https://api.test/mcp' }),
  });
  const stranger = await gate.check(new Request('https://api.test/mcp', { method: 'POST' }), needs(read));
  assert.deepEqual([stranger.refusal?.status, named(stranger.refusal)], [401, 'read:orders']);
  const { refusal } = gate.authorize(caller, needs(read, write));
  assert.deepEqual([refusal?.status, named(refusal)], [403, 'read:orders write:orders']);
});

test('a base access that needs any one of several scopes names them all in its challenge, and a token with any one of them passes [RFC 6750 §3]', async (t) => {
  const gate = await openGate(t, { metadata: resourceMetadata({ url: 'https://api.test/mcp' }) });
  const base = needs(anyScope('read:orders', 'write:orders'));
  assert.equal(named((await gate.check(requestWith(), base)).refusal), 'read:orders write:orders');
  for (const granted of ['read:orders', 'write:orders']) {
    const { caller } = await gate.check(requestWith(...bearer({ scope: granted })), base);
    assert.ok(caller);
    assert.equal(gate.authorize(caller, needs(read, write)).refusal?.status, 403);
  }
});

test('authorize refuses with 500 if the only guard of an access throws', async (t) => {
  const { gate, caller } = await admitted(t, READER, { log: undefined });
  const faulty = needs(
    claimCheck('is good', () => {
      throw new Error('a bug');
    }),
  );
  assert.equal(gate.authorize(caller, faulty).refusal?.status, 500);
});

test('a caller has the expiry of the token, for connections that outlive the request', async (t) => {
  const exp = Math.floor(Date.now() / 1000) + 120.5;
  const { caller } = await admitted(t, { exp });
  assert.equal(caller.expiresAtMillis, exp * 1000);
});

test('the gate tells at debug which audience, issuer, URI and number of keys a refused token or proof was compared with', async (t) => {
  const log = jsonLog({ level: 'debug' });
  const gate = await openGate(t, { log, dpopMode: 'ALLOWED', publicUrl: 'https://api.test' });
  const logged = captureLog(t);
  const key = createProofKey();
  const bound = issuer.boundToken(key, READER);
  const dpop = createProof(key, { method: 'GET', url: 'https://other.test/eyJh' }, bound);
  await gate.check(requestWith(...bearer({ aud: 'eyJh' })), access);
  await gate.check(requestWith(...bearer({ iss: 'eyJh' })), access);
  await gate.check(requestWith('Authorization', `DPoP ${bound}`, 'DPoP', dpop), access);
  await gate.check(requestWith('Authorization', `Bearer ${makeIssuer().token()}`), access);
  const lines = await logged();
  const told = lines.filter(({ message }) => message === 'request refused');
  assert.deepEqual(
    told.map(({ expectedAudience, expectedIssuer, expectedHtu, knownKeys }) => [
      ...[expectedAudience, expectedIssuer],
      ...[expectedHtu, knownKeys],
    ]),
    [
      [['https://api.test'], undefined, undefined, undefined],
      [undefined, ['https://issuer.test/'], undefined, undefined],
      [undefined, undefined, 'https://api.test/orders', undefined],
      [undefined, undefined, undefined, 1],
    ],
  );
  assert.doesNotMatch(JSON.stringify(lines), /eyJh/);
});
