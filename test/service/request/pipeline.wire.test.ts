import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, test } from 'node:test';
import { refuse, unavailable } from '../../../src/verify/base/refusal.ts';
import { anyScope, claimEquals, MadeGuard, scope } from '../../../src/gate/rules/guards.ts';
import { authenticated, needs, open } from '../../../src/gate/rules/access.ts';
import { get, post, put, under, upstream, type Route } from '../../../src/service/routes/route.ts';
import { fail } from '../../../src/service/routes/handler-reply.ts';
import { json } from '../../../src/service/routes/inputs.ts';
import { createService } from '../../../src/service/create-service.ts';
import { Pipeline, type PipelineOptions } from '../../../src/service/request/pipeline.ts';
import type { Answers } from '../../../src/gate/checks.ts';
import { checkMessage } from '../../../src/service/request/exchange.ts';
import { Responder } from '../../../src/service/request/responder.ts';
import { turnAway, type RequestRecord } from '../../../src/gate/decide.ts';
import { createRouteReaders } from '../../../src/service/create-service.ts';
import { callerWith, clock, tokenWith, verifyToken } from '../../support/caller.ts';
import { TestClock } from '../../support/clock.ts';
import { exchangeOf } from '../../support/exchange.ts';
import { schemaOf } from '../../support/schemas.ts';
import { pathSlips } from '../../support/spellings.ts';
import { createRoutes, startRoutes, type RunningRoutes } from '../../support/routes.ts';

const SECRET = 'a-secret-of-the-inside';

const failure = () => new TypeError(SECRET);

const circular: { self?: object } = {};
circular.self = circular;

const BUGS = [
  get('/throws', open, () => {
    throw failure();
  }),

  get('/rejects', open, () => Promise.reject(failure())),

  get('/throws-text', open, () => {
    throw SECRET;
  }),

  get('/rejects-nothing', open, () => Promise.reject()),

  /* The message contains the stack of another error, as wrapped errors do. */
  get('/throws-a-trace', open, () => {
    throw new TypeError(`x\n    at ${SECRET} (/inside/${SECRET}.ts:1:1)`);
  }),

  get('/circular', open, () => circular),
  get('/circular-later', open, async () => circular),
  get('/number-too-large-later', open, async () => ({ amount: 1n })),
];

let service: RunningRoutes;

before(async () => {
  service = await startRoutes({
    routes: [
      ...BUGS,
      get('/later', authenticated, async ({ caller, nowMillis, parameters }) => ({
        user: caller.subject,
        nowMillis,
        parameters,
      })),
      get('/of/{name}/{other}', open, ({ caller, nowMillis, parameters }) => ({
        caller: caller ?? null,
        nowMillis,
        parameters,
      })),
      get('/not-now', open, () => {
        throw unavailable('too-many-waiting', 9);
      }),
      get('/not-now-later', open, () => Promise.reject(unavailable('too-many-waiting', 9))),
      get('/who/{name}', authenticated, ({ caller, parameters }) => ({
        user: caller.subject,
        ...parameters,
      })),
    ],
  });
});

after(() => service.stop());

for (const { pattern } of BUGS) {
  for (const method of ['GET', 'HEAD']) {
    const what = `answers 500 to ${method} ${pattern} and reveals nothing of the error of the handler [docs/refusals.md]`;
    test(what, { timeout: 60_000 }, async () => {
      const logged = service.logs.length;
      const { status, text, headers, challenges } = await service.ask(pattern, { method });
      assert.deepEqual(
        [status, text],
        [500, method === 'HEAD' ? '' : '{"error":"server_error","message":"Internal Server Error"}'],
      );
      assert.deepEqual(
        [challenges, headers['retry-after'], headers['cache-control']],
        [[], undefined, 'no-store'],
      );
      const lines = service.logs.slice(logged);
      assert.deepEqual(
        lines.map(({ level, message, reason }) => [level, message, reason]),
        [['error', 'request failed', 'bug']],
      );
      assert.doesNotMatch(JSON.stringify(lines), new RegExp(SECRET));
    });
  }
}

test('logs the frames of an error without its message', async () => {
  const logged = service.logs.length;
  await service.ask('/throws');
  await service.ask('/throws-text');
  const [bug, text] = service.logs.slice(logged);
  assert.equal(bug?.error, 'TypeError');
  assert.match(bug?.frames[0], /pipeline\.wire\.test\.[jt]s:\d+:\d+\)?$/);
  assert.deepEqual([text?.error, text?.frames], ['string', undefined]);
});

test('passes an asynchronous handler the time of the request and no parameters, and sends what the handler returns', async () => {
  const { status, body } = await service.ask('/later', { token: tokenWith() });
  assert.deepEqual([status, body], [200, { user: 'auth0|user', nowMillis: clock.now(), parameters: {} }]);
});

test('gives a handler the time when access was granted, not that when its body had been checked', async (t) => {
  const grantedAtMillis = clock.now();
  const slow = schemaOf((value) => {
    clock.advance(5_000);
    return { value };
  });
  const app = await startRoutes({
    routes: [post('/slow', authenticated, json(slow), ({ nowMillis }) => ({ nowMillis }))],
  });
  t.after(() => app.stop());
  const headers = { Authorization: `Bearer ${tokenWith()}`, 'Content-Type': 'application/json' };
  const { body } = await app.ask('/slow', { method: 'POST', headers, body: '{}' });
  assert.deepEqual(body, { nowMillis: grantedAtMillis });
  assert.equal(clock.now(), grantedAtMillis + 5_000);
});

test('gives a handler the decoded parameters, and no caller on an open route', async () => {
  const { body } = await service.ask('/of/a%2Fb/%C3%A9', { token: tokenWith() });
  assert.deepEqual(body, { caller: null, nowMillis: clock.now(), parameters: { name: 'a/b', other: 'é' } });
});

test('passes a guard the caller, and no settings', async (t) => {
  const told: unknown[][] = [];
  const passes = (...given: unknown[]) => told.push(given.map((one) => Object.keys(Object(one)).sort())) > 0;
  const guard = new MadeGuard('read', passes, scope('read').refused, undefined);
  const app = await startRoutes({ routes: [get('/guarded', needs(guard), () => ({}))] });
  t.after(() => app.stop());
  assert.equal((await app.ask('/guarded', { token: tokenWith() })).status, 200);
  assert.deepEqual(told, [[['claims', 'freshNonce']]]);
});

test('gives no caller to the handler of an open route, even if a rule has admitted that caller', async (t) => {
  const app = await startRoutes({
    routes: [get('/a/b', open, ({ caller }) => ({ caller: caller ?? null }))],
    policy: [under('/a', authenticated)],
  });
  t.after(() => app.stop());
  assert.equal((await app.ask('/a/b')).status, 401);

  const { status, body } = await app.ask('/a/b', { token: tokenWith() });
  assert.deepEqual([status, body], [200, { caller: null }]);
});

for (const path of ['/not-now', '/not-now-later']) {
  test(`sends the refusal that the handler of ${path} throws, at once or later`, async () => {
    const logged = service.logs.length;
    const { status, body, headers } = await service.ask(path);
    assert.deepEqual([status, body.error, headers['retry-after']], [503, 'temporarily_unavailable', '9']);
    const { time, ...line } = service.logs[logged] ?? {};
    assert.deepEqual(line, {
      level: 'debug',
      message: 'request refused',
      method: 'GET',
      route: path,
      status: 503,
      reason: 'too-many-waiting',
    });
    assert.equal(time, new Date(clock.now()).toISOString());
  });
}

test('gives every caller a response about itself when requests interleave [G10]', async () => {
  const asked = Array.from({ length: 200 }, async (_, index) => {
    const { body } = await service.ask(`/who/${index}`, { token: tokenWith({ sub: `user-${index}` }) });
    assert.deepEqual(body, { user: `user-${index}`, name: String(index) });
  });
  assert.equal((await Promise.all(asked)).length, 200);
});

test('logs each refusal with its status and reason, and no token [docs/logs-and-metrics.md]', async () => {
  const logged = service.logs.length;
  const token = tokenWith({ exp: 1 });
  await service.ask(`/later?access_token=${token}`, { token });
  await service.ask(`/${token}`, { token });
  const lines = service.logs.slice(logged);
  const told = lines.map(({ message, status, reason }) => [message, status, reason]);
  assert.deepEqual(told, [
    ['request refused', 401, 'expired'],
    ['request refused', 404, 'not_found'],
  ]);
  assert.ok(!JSON.stringify(lines).includes(token.slice(0, 20)));
});

test('refuses routes of which neither is more specific before anything is served, each pair with a path', () => {
  const routes = [
    get('/a/{b}', open, () => ({})),
    get('/{a}/b', open, () => ({})),
    get('/{a}/c', open, () => ({})),
    get('/a/b', open, () => ({})),
  ];
  const settings = { domain: 'idp.test', audience: 'api' };
  assert.throws(() => createService({ routes }, settings), {
    name: 'TypeError',
    message: [
      'GET /a/{b} and /{a}/b: both match /a/b, and neither is more specific; give one of them another path',
      'GET /a/{b} and /{a}/c: both match /a/c, and neither is more specific; give one of them another path',
    ].join('\n'),
  });
});

test('serves the most specific route of the method, with its own access, in any order; 405 names every method of the path once', async (t) => {
  const told = (name: string) => () => ({ name });
  const routes = [
    get('/users/{id}', needs(scope('users')), told('one')),
    put('/users/{id}', needs(scope('write')), told('put')),
    get('/users/me', authenticated, told('me')),
    post('/users/{id}', open, told('post')),
    post('/users/me', open, told('post me')),
  ];
  for (const all of [routes, routes.toReversed()]) {
    const app = await startRoutes({ routes: all });
    t.after(() => app.stop());

    const ask = async (method: string, path: string, scope?: string) => {
      const token = scope === undefined ? undefined : tokenWith({ scope });
      const { status, body } = await app.ask(path, { method, ...(token && { token }) });
      return [status, body.name];
    };

    // No access of the more general route applies.
    for (const path of ['/users/me', '/users/%6De']) {
      assert.deepEqual(await ask('GET', path, 'x'), [200, 'me']);
      assert.deepEqual(await ask('GET', path), [401, undefined]);
      // A more specific route of another method changes nothing.
      assert.deepEqual(await ask('PUT', path, 'x'), [403, undefined]);
      assert.deepEqual(await ask('PUT', path, 'write'), [200, 'put']);
      assert.deepEqual(await ask('POST', path), [200, 'post me']);
      const head = await app.ask(path, { method: 'HEAD', token: tokenWith() });
      assert.deepEqual([head.status, head.headers['content-length']], [200, '13']);
      const refused = await app.ask(path, { method: 'DELETE' });
      const methods = refused.headers.allow?.split(', ').sort();
      assert.deepEqual([refused.status, methods], [405, ['GET', 'HEAD', 'POST', 'PUT']]);
    }
    assert.deepEqual(await ask('GET', '/users/Me', 'x'), [403, undefined]);
    assert.deepEqual(await ask('GET', '/users/me%2F', 'users'), [200, 'one']);
    assert.deepEqual(await ask('POST', '/users/7'), [200, 'post']);
  }
});

test('applies a rule to its paths, whichever route takes them [H2]', async (t) => {
  const routes = [get('/{x}/{y}', open, () => ({})), get('/a/{y}', open, () => ({}))];
  const app = await startRoutes({ routes, policy: [under('/a/b', needs(scope('one')))] });
  t.after(() => app.stop());
  const statuses = ['/a/b', '/a/c', '/b/b'].map(async (path) => (await app.ask(path)).status);
  assert.deepEqual(await Promise.all(statuses), [401, 200, 200]);
});

test('reports every problem of a table of routes at once, each with its route', () => {
  const nothing = () => ({});
  const routes = [
    get('/a', needs(scope('a'), claimEquals('b', 1)), nothing),
    post('/b/', open, json(undefined, { limitBytes: 1 }), upstream),
    post('/healthz', needs(anyScope('c')), json(), nothing),
    get('/a', open, nothing),
    { ...get('/d', open, nothing) } as never,
  ];
  // A hole.
  routes.length += 1;
  const rules = [get('/admin', open, nothing) as never, under('/admin', needs(scope('e')))];
  const settings = { domain: 'idp.test', audience: 'api' };
  assert.throws(() => createService({ routes, rules }, settings), {
    name: 'TypeError',
    message: [
      'POST /b/: a route of runForwardAuth takes upstream and no inputs; no other route takes upstream',
      'POST /b/: is not a path pattern; write /b',
      'POST /healthz: matches /healthz, which the service serves itself; change the pattern',
      'GET /a and /a: both match /a, and neither is more specific; give one of them another path',
      'routes[4]: is not a route; make one with get, post, put, patch or del of the same copy of the package',
      'routes[5]: is not a route; make one with get, post, put, patch or del of the same copy of the package',
      'rules: must be a list of rules that under() makes, of the same copy of the package',
    ].join('\n'),
  });
});

test('serves a route for /, under any query, and nothing else there [docs/how-a-request-is-checked.md]', async (t) => {
  const app = await startRoutes({ routes: [get('/', open, ({ path }) => ({ path }))] });
  t.after(() => app.stop());
  for (const target of ['/', '/?', '/?x=/api']) {
    const { status, body } = await app.ask(target);
    assert.deepEqual([status, body], [200, { path: '/' }], target);
  }
  assert.equal((await app.ask('/', { method: 'POST' })).status, 405);
  for (const target of pathSlips('/')) assert.equal((await app.ask(target)).status, 404, target);
});

test('checks every rule that covers a path, in any order [H2]', async (t) => {
  const policy = [under('/a', needs(scope('one'))), under('/a/b', needs(scope('two')))];
  for (const rules of [policy, policy.toReversed()]) {
    const app = await startRoutes({ routes: [get('/a/b', authenticated, () => ({}))], policy: rules });
    t.after(() => app.stop());
    for (const [scope, expected] of [
      ['one two', 200],
      ['one', 403],
      ['two', 403],
    ] as const) {
      const { status } = await app.ask('/a/b', { token: tokenWith({ scope }) });
      assert.equal(status, expected);
    }
  }
});

test('completes a request whose token is verified asynchronously', async (t) => {
  const waiting = await startRoutes({
    routes: [get('/x', authenticated, ({ caller }) => ({ user: caller.subject }))],
    verify: async (token) => verifyToken(token),
  });
  t.after(() => waiting.stop());
  const { status, body } = await waiting.ask('/x', { token: tokenWith() });
  assert.deepEqual([status, body], [200, { user: 'auth0|user' }]);
  assert.deepEqual(waiting.logs, []);
});

test('responds in the turn in which a request arrives when its token is cached and its handler is synchronous', async () => {
  const { responder } = await createRoutes({ routes: [get('/x', authenticated, () => ({ a: 1 }))] });
  const rawHeaders = ['Host', 'a', 'Authorization', `Bearer ${tokenWith()}`];
  const request = Object.assign(new EventEmitter(), {
    method: 'GET',
    url: '/x',
    headers: { host: 'a' },
    rawHeaders,
    socket: { writable: true },
    httpVersion: '1.1',
  });
  const statuses: number[] = [];
  const response = {
    shouldKeepAlive: true,
    getHeaderNames: () => [],
    writeHead: (status: number) => statuses.push(status),
    cork: () => {},
    write: () => {},
    uncork: () => {},
    end: () => {},
  };
  responder.respond(exchangeOf(request, response).exchange);
  assert.deepEqual(statuses, [200]);
});

test('turns whatever the pipeline throws into a 500 with a log line', async () => {
  const { way, logs } = await createRoutes({ routes: [] });

  const broken = {
    respond() {
      throw new TypeError('secret');
    },
  };

  const responder = new Responder(broken, way.replies, way.observer, clock);
  const statuses: number[] = [];
  const response = {
    shouldKeepAlive: true,
    getHeaderNames: () => [],
    writeHead: (status: number) => statuses.push(status),
    cork: () => {},
    write: () => {},
    uncork: () => {},
    end: () => {},
  };
  responder.respond(exchangeOf(requestOf('GET', '/x'), response).exchange);
  assert.deepEqual(statuses, [500]);
  assert.deepEqual(
    logs.map(({ message, error }) => [message, error]),
    [['request failed', 'TypeError']],
  );
});

test('is idle after a request whose client had gone before it began to be served [§10]', async () => {
  const { way } = await createRoutes({ routes: [] });
  const responder = new Responder({ respond: () => ({}) }, way.replies, way.observer, clock);
  const { exchange } = exchangeOf(requestOf('GET', '/x'), { destroyed: true });
  responder.hold();
  responder.respond(exchange);
  responder.release();
  // What it waits for may take a turn.
  await new Promise(setImmediate);
  const idle: string[] = [];
  responder.whenIdle(() => idle.push('now'));
  assert.deepEqual(idle, ['now']);
});

/** A request without a connection, as the pipeline reads it. */
const requestOf = (method: string, url: string, ...fields: string[]) =>
  Object.assign(new EventEmitter(), {
    method,
    url,
    headers: { host: 'a' },
    rawHeaders: ['Host', 'a', ...fields],
    socket: { writable: true },
    httpVersion: '1.1',
  });

/** The pipeline over these routes without a responder. */
async function pipelineOver(routes: readonly Route[], more: Partial<PipelineOptions & Answers> = {}) {
  const { way } = await createRoutes({ routes });
  const limits = { bodyLimitBytes: 1, handlerTimeoutSeconds: 0, trustProxy: false };
  const options = { ...way, clock, ...limits, ...more };
  return new Pipeline(createRouteReaders({ routes }, [], way.early), options);
}

for (const [what, asked] of [
  ['missing credentials', requestOf('GET', '/x')],
  ['credentials of another scheme', requestOf('GET', '/x', 'Authorization', 'Basic x')],
  ['a token that is not a JWT', requestOf('GET', '/x', 'Authorization', 'Bearer x')],
  ['a forged token', requestOf('GET', '/x', 'Authorization', `Bearer ${tokenWith().slice(0, -6)}AAAAAA`)],
  ['a token that is too old', requestOf('GET', '/x', 'Authorization', `Bearer ${tokenWith({ exp: 1 })}`)],
  ['a token without the scope', requestOf('GET', '/y', 'Authorization', `Bearer ${tokenWith()}`)],
  ['a path without a route', requestOf('GET', '/nowhere')],
  ['a method without a route', requestOf('PUT', '/x')],
  ['a target that is not a path', requestOf('GET', 'x')],
  ['two Host fields', requestOf('GET', '/x', 'Host', 'b')],
] as const) {
  test(`returns the refusal of ${what} without throwing, since V8 walks the stack for every throw`, async () => {
    const routes = [get('/x', authenticated, () => ({})), get('/y', needs(scope('read')), () => ({}))];
    const pipeline = await pipelineOver(routes);
    const record = pipeline.respond(exchangeOf(asked, {}).exchange) as RequestRecord;
    assert.ok(record.refusal !== undefined);
  });
}

test('knows of a request whose client left during a decision whose it is, and no refusal', async () => {
  const routes = [get('/x', authenticated, () => assert.fail('ran'))];
  const known = { route: routes[0], caller: callerWith({}), kid: 'a', issuerName: 'idp' };
  const left = turnAway({ ...known, isGone: true }, unavailable('decision-unavailable'));
  const pipeline = await pipelineOver(routes, { decide: () => left });
  const told = await pipeline.respond(exchangeOf(requestOf('GET', '/x'), {}).exchange);
  assert.deepEqual(told, { ...left, ...known, reason: undefined, refusal: undefined });
});

test('cancels nothing of a result that comes too late unless it is a Response', async () => {
  let give = (_: object) => {};

  const late = new Promise<object>((resolve) => {
    give = resolve;
  });

  const routes = [get('/x', open, () => late)];
  const ownClock = new TestClock();
  const pipeline = await pipelineOver(routes, { clock: ownClock, handlerTimeoutSeconds: 1 });
  const responded = pipeline.respond(exchangeOf(requestOf('GET', '/x'), {}).exchange);
  ownClock.advance(1_000);
  assert.equal((await responded).reason, 'handler-timeout');

  const cancelled: unknown[] = [];
  give({ body: { cancel: () => cancelled.push('body') } });
  await new Promise(setImmediate);
  assert.deepEqual(cancelled, []);
});

for (const [status, promise] of [
  [200, () => Promise.resolve({ a: 1 })],
  [409, () => Promise.reject(fail(409, 'conflict', 'Twice'))],
] as const) {
  test(`takes a promise whose own "then" returns nothing as any other: ${status} [§10]`, async () => {
    const given = promise();

    const then = (...settle: Parameters<typeof given.then>) =>
      void Promise.prototype.then.apply(given, settle);

    const routes = [get('/x', open, () => Object.assign(given, { then }) as never)];
    const ownClock = new TestClock();
    const pipeline = await pipelineOver(routes, { clock: ownClock, handlerTimeoutSeconds: 1 });
    const { reply } = await pipeline.respond(exchangeOf(requestOf('GET', '/x'), {}).exchange);
    assert.equal(reply?.status, status);

    // A timer that is left would end the process.
    ownClock.advance(1_000);
  });
}

test('caches the reply to a refusal for each list of scopes, even with RESOURCE_URL [RFC 9728 §5.1]', async () => {
  const reading = get('/x', needs(scope('read')), () => ({}));
  const writing = get('/y', needs(scope('write')), () => ({}));
  const environment = { RESOURCE_URL: 'https://api.example' };
  const { way } = await createRoutes({ routes: [reading, writing], environment });

  const reply = (route: Route) =>
    way.replies.complete(
      turnAway({ demands: [route.access] }, refuse('no-credentials')),
      requestOf('GET', '/'),
    ).reply;

  assert.equal(reply(reading), reply(reading));
  assert.notEqual(reply(reading), reply(writing));
  assert.match(reply(writing).fields.join(), /scope="write"/);
});

for (const [when, isGoneBefore] of [
  ['before a late response', false],
  ['while the request waited for its turn', true],
] as const) {
  test(`writes nothing when the client has gone ${when}`, async () => {
    const late = Promise.resolve({ a: 1 });
    let runs = 0;

    const handler = () => {
      runs += 1;
      return late;
    };

    const { responder, logs } = await createRoutes({ routes: [get('/x', open, handler)] });
    const request = Object.assign(new EventEmitter(), {
      method: 'GET',
      url: '/x',
      headers: { host: 'a' },
      rawHeaders: ['Host', 'a'],
      httpVersion: '1.1',
      socket: { writable: true },
    });
    const written: unknown[] = [];
    const response = {
      destroyed: isGoneBefore,
      getHeaderNames: () => [],
      writeHead: (status: number) => written.push(status),
      end: (text: string) => written.push(text),
    };
    responder.respond(exchangeOf(request, response).exchange);
    response.destroyed = true;
    await late;
    await new Promise(setImmediate);
    assert.deepEqual([written, logs, runs], [[], [], isGoneBefore ? 0 : 1]);
  });
}

test('runs no handler for a caller whom a guard or the policy refuses, even if the sender check is asynchronous', async (t) => {
  const ran: string[] = [];

  const route = (pattern: string, ...guards: readonly [ReturnType<typeof scope>]) =>
    get(pattern, needs(...guards), () => ({ ran: ran.push(pattern) }));

  const later = await startRoutes({
    routes: [route('/read', scope('read')), route('/admin/read', scope('read'))],
    policy: [under('/admin', needs(scope('admin')))],
    sender:
      (usual) =>
      async (...asked) =>
        usual(...asked),
  });
  t.after(later.stop);

  const outcome = async (path: string, granted: string) => {
    const { status, text } = await later.ask(path, { token: tokenWith({ scope: granted }) });
    return [status, JSON.parse(text).error];
  };

  for (const [path, granted] of [
    ['/read', 'write'],
    ['/admin/read', 'read'],
    ['/admin/nowhere', 'read'],
    ['/admin/read', 'admin'],
  ] as const) {
    assert.deepEqual(await outcome(path, granted), [403, 'insufficient_scope'], `${path} with ${granted}`);
  }
  assert.deepEqual(ran, []);
  assert.deepEqual(await outcome('/admin/read', 'admin read'), [200, undefined]);
  assert.deepEqual(ran, ['/admin/read']);
});

test('refuses a field without a name, which the parser of Node 20.12 lets through [RFC 9112 §5.1]', () => {
  const check = (name: string) => {
    const request = { httpVersion: '1.1', rawHeaders: [name, 'x'], headers: { [name]: 'x' } };
    return checkMessage(exchangeOf(request, {}).exchange.request)?.refusal.reason;
  };

  assert.deepEqual([check('x'), check('')], [undefined, 'malformed-http']);
});
