/* The guard `decision`: when it is asked, what it is told, and what comes of each answer. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, getEventListeners, once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { decision, type DecisionOptions, type DecisionRequest } from '../../src/decisions.ts';
import { authenticated, needs, open, type DecidedAccess } from '../../src/gate/rules/access.ts';
import { claimEquals, scope } from '../../src/gate/rules/guards.ts';
import { recentLogin } from '../../src/gate/rules/recent-login.ts';
import { createGate } from '../../src/gate/create-gate.ts';
import { json, query } from '../../src/service/routes/inputs.ts';
import {
  del,
  get,
  post,
  under,
  upstream,
  type PrefixRule,
  type Route,
} from '../../src/service/routes/route.ts';
import { assertRouteMatrix } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import type { Schema } from '../../src/service/routes/schema.ts';
import { callerWith, clock, tokenWith } from '../support/caller.ts';
import { openWire } from '../support/client.ts';
import { startRoutes, type RoutesToTest } from '../support/routes.ts';
import { asking, bearer, startPolicy } from './forward-auth-fixture.ts';

const DESCRIPTION = 'the request is not allowed: may pay';

/** A decision whose answers the test gives, one after the other. */
function held(what = 'may pay', options?: DecisionOptions) {
  const asked: DecisionRequest[] = [];
  const answers: PromiseWithResolvers<unknown>[] = [];
  const waiting: (() => void)[] = [];

  const decide = (request: DecisionRequest) => {
    const answer = withResolvers<unknown>();
    asked.push(request);
    answers.push(answer);
    waiting.shift()?.();
    return answer.promise as Promise<boolean>;
  };

  /** Resolves once it has been asked so often. */
  const askedTimes = async (times: number) => {
    while (asked.length < times) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    }
  };

  return { guard: decision(what, decide, options), asked, answers, askedTimes };
}

interface PromiseWithResolvers<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

function withResolvers<Value>(): PromiseWithResolvers<Value> {
  let resolve!: (value: Value) => void;
  let reject!: (error: unknown) => void;

  const promise = new Promise<Value>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

/** A service with this route or these, what was counted, and what `onError` was given. */
async function start(t: TestContext, given: Omit<RoutesToTest, 'count' | 'onError'>) {
  const counted: string[] = [];
  const errors: unknown[] = [];
  const app = await startRoutes({
    ...given,
    count: (event, word) => void (event === 'decision' && counted.push(word)),
    onError: (error) => void errors.push(error),
  });
  t.after(() => app.stop());
  const lines = () => app.logs.filter(({ message }) => String(message).startsWith('decision '));
  return { ...app, counted, errors, lines };
}

const startOne = (t: TestContext, access: DecidedAccess<any>, rest: Partial<RoutesToTest> = {}) =>
  start(t, { ...rest, routes: [get('/pay/{account}', access, () => ({ paid: true }))] });

const token = tokenWith({ scope: 'pay' });

describe('the answer of a decision', () => {
  for (const [what, decide] of [
    ['true', () => true],
    ['a promise of true', async () => true],
    // Of a library.
    ['a thenable of true', () => ({ then: (done: (value: boolean) => void) => done(true) })],
  ] as const) {
    test(`${what} lets the request pass`, async (t) => {
      const app = await startOne(t, needs(decision('may pay', decide as () => boolean)));
      assert.equal((await app.ask('/pay/1', { token })).status, 200);
      assert.deepEqual([app.counted, app.lines(), app.errors], [['allowed'], [], []]);
    });
  }

  for (const [what, decide] of [
    ['false', () => false],
    ['a promise of false', async () => false],
  ] as const) {
    test(`${what} is 403, with the sentence in challenge and message and without scope [RFC 6750 §3.1]`, async (t) => {
      const access = needs(scope('pay'), decision('may pay', decide));
      const app = await startOne(t, access);
      const { status, challenges, body } = await app.ask('/pay/1', { token });
      assert.deepEqual(
        [status, challenges[0], body],
        [
          403,
          `Bearer realm="api", error="insufficient_scope", error_description="${DESCRIPTION}"`,
          { error: 'insufficient_scope', message: DESCRIPTION },
        ],
      );
      assert.deepEqual([app.counted, app.lines(), app.errors], [['refused'], [], []]);
      assert.equal(app.logs.find(({ message }) => message === 'request refused')?.reason, 'decision-refused');
    });
  }

  test('false has the body of a claim with ERROR_DETAIL', async (t) => {
    const app = await startOne(t, needs(decision('may pay', () => false)), {
      environment: { ERROR_DETAIL: 'true' },
    });
    const { body } = await app.ask('/pay/1', { token });
    assert.deepEqual(body, { error: 'forbidden', message: `Missing permission: ${DESCRIPTION}` });
  });

  for (const [what, answer, reason] of [
    ['1', () => 1, 'not-a-boolean'],
    ["'true'", () => 'true', 'not-a-boolean'],
    ['nothing', () => undefined, 'not-a-boolean'],
    ['an object', () => ({ allowed: true }), 'not-a-boolean'],
    ['an object around true', () => Object(true), 'not-a-boolean'],
    ['an object around false', () => Object(false), 'not-a-boolean'],
    ['a promise of 1', async () => 1, 'not-a-boolean'],
    ['a promise of nothing', async () => {}, 'not-a-boolean'],
    ['an error', () => fail(new TypeError('SECRET')), 'error'],
    ['undefined, thrown,', () => fail(undefined), 'error'],
    ['a rejection', async () => fail(new RangeError('SECRET')), 'error'],
    ['a thenable that throws', () => ({ then: () => fail(new TypeError('SECRET')) }), 'error'],
  ] as const) {
    test(`${what} is 503, and a loss that the log tells [J10]`, async (t) => {
      const app = await startOne(t, needs(decision('may pay', answer as () => boolean)));
      const { status, headers, body, challenges } = await app.ask('/pay/1', { token });
      assert.deepEqual(
        [status, headers['retry-after'], body.error, challenges],
        [503, '1', 'temporarily_unavailable', []],
      );
      assert.deepEqual(app.counted, ['failed']);
      const [line, ...more] = app.lines();
      assert.deepEqual(
        [line?.message, line?.level, line?.guard, line?.reason, more],
        ['decision lost', 'warn', 'may pay', reason, []],
      );
      assert.equal(app.errors.length, reason === 'error' ? 1 : 0, 'onError');
      assert.doesNotMatch(JSON.stringify(app.logs), /SECRET/);
      const refused = app.logs.find(({ message }) => message === 'request refused');
      assert.equal(refused?.reason, 'decision-unavailable');
    });
  }

  test('what was thrown goes to onError as it is, and its frames to the log', async (t) => {
    const thrown = new TypeError('SECRET');
    const app = await startOne(
      t,
      needs(
        decision('may pay', () => {
          throw thrown;
        }),
      ),
    );
    await app.ask('/pay/1', { token });
    await app.ask('/pay/1', { token });
    assert.deepEqual(app.errors, [thrown, thrown]);
    const [line, ...more] = app.lines();
    assert.deepEqual([line?.error, more], ['TypeError', []]);
    assert.match(line?.frames[0], /decisions\.wire\.test\.[jt]s:\d+:\d+$/);
  });

  test('is not remembered: each request asks, and each place where the decision stands', async (t) => {
    let times = 0;
    const guard = decision('may pay', () => {
      times += 1;
      return true;
    });
    const app = await startOne(t, needs(guard, guard), { policy: [under('/pay', needs(guard))] });
    await app.ask('/pay/1', { token });
    await app.ask('/pay/1', { token });
    assert.equal(times, 6);
  });
});

function fail(error: unknown): never {
  throw error;
}

test('tells of a loss once, and of the first boolean after it once, whatever it is', async (t) => {
  const answers = ['lost', 'lost', false, true, 'lost', true];
  const guard = decision('may pay', async () => answers.shift() as boolean);
  const app = await startOne(t, needs(guard));
  while (answers.length > 0) await app.ask('/pay/1', { token });
  assert.deepEqual(
    app.lines().map(({ message, level, guard: name }) => [message, level, name]),
    [
      ['decision lost', 'warn', 'may pay'],
      ['decision ready', 'info', 'may pay'],
      ['decision lost', 'warn', 'may pay'],
      ['decision ready', 'info', 'may pay'],
    ],
  );
});

describe('what a decision is told', () => {
  test('caller, method, path without query, parameters and a signal; nothing else, and frozen', async (t) => {
    const { guard, asked, answers, askedTimes } = held();
    const app = await startOne(t, needs(guard));
    const response = app.ask('/pay/a%20b?to=c', { token, method: 'HEAD' });
    await askedTimes(1);
    const [request] = asked;
    assert.ok(request !== undefined);
    const { caller, signal, ...others } = request;
    assert.deepEqual(others, { method: 'HEAD', path: '/pay/a%20b', parameters: { account: 'a b' } });
    assert.deepEqual([caller.subject, signal.aborted, Object.isFrozen(request)], ['auth0|user', false, true]);
    answers[0]?.resolve(true);
    assert.equal((await response).status, 200);
    assert.equal(signal.aborted, false);
  });

  test('of a gate: no parameters', async (t) => {
    const issuer = makeIssuer();
    const gate = createGate(issuer.options);
    t.after(() => gate.close());
    const { guard, asked, answers, askedTimes } = held();
    const rawHeaders = ['Host', 'a', 'Authorization', issuer.bearer().authorization];
    const request = { method: 'PUT', url: '/rewritten/elsewhere', originalUrl: '/pay/1?x=1', rawHeaders };
    const verdict = gate.check(request, needs(guard));
    await askedTimes(1);
    answers[0]?.resolve(true);
    assert.equal((await verdict).caller?.subject, 'test-user');
    assert.deepEqual([asked[0]?.method, asked[0]?.path, asked[0]?.parameters], ['PUT', '/pay/1', {}]);
  });

  test('in forward-auth: the method and path that the proxy asks about, and the parameters of the route', async (t) => {
    const asked: DecisionRequest[] = [];
    const guard = decision('may pay', async (request) => {
      asked.push(request);
      return request.parameters.account === '1';
    });
    const routes = [post('/pay/{account}', needs(guard), upstream)];
    const policy = await startPolicy({ routes });
    t.after(() => policy.stop());
    const ask = (uri: string) => policy.ask({ forwarded: asking('POST', uri), fields: bearer() });
    assert.equal((await ask('/pay/1?x')).status, 200);
    assert.equal((await ask('/pay/2')).status, 403);
    assert.deepEqual(
      asked.map(({ method, path, parameters }) => [method, path, parameters]),
      [
        ['POST', '/pay/1', { account: '1' }],
        ['POST', '/pay/2', { account: '2' }],
      ],
    );
  });
});

describe('the order', () => {
  const never = () => assert.fail('it was asked');
  const unasked = decision('never', never);
  const refusing: Schema = { '~standard': { version: 1, validate: () => ({ issues: [{ message: 'no' }] }) } };

  const statuses: readonly (readonly [what: string, path: string, method: string, status: number])[] = [
    ['after a later guard of the route', '/guard', 'GET', 403],
    ['after a guard of a rule', '/ruled/x', 'GET', 403],
    ['for a path without a route under a rule', '/under/nothing', 'GET', 404],
    ['for a method without a route under a rule', '/under/get', 'DELETE', 405],
  ];
  for (const [what, path, method, status] of statuses) {
    test(`${what}, a decision is not asked`, async (t) => {
      const app = await start(t, {
        routes: [
          get('/guard', needs(unasked, claimEquals('org', 'x')), () => ({})),
          get('/ruled/x', needs(unasked), () => ({})),
          get('/under/get', open, () => ({})),
        ],
        policy: [under('/ruled', needs(scope('other'))), under('/under', needs(unasked))],
      });
      assert.equal((await app.ask(path, { token, method })).status, status);
      assert.deepEqual(app.counted, []);
    });
  }

  test('is that in which they are written, rules before the route, one at a time, until one refuses', async (t) => {
    const asked: string[] = [];

    const named = (name: string, answer = true) =>
      decision(name, async () => {
        asked.push(`${name} asked`);
        await null;
        asked.push(`${name} answers`);
        return answer;
      });

    const app = await start(t, {
      routes: [get('/a/b', needs(named('third'), named('fourth', false), named('fifth')), () => ({}))],
      policy: [under('/a', needs(named('first'))), under('/a/b', needs(named('second')))],
    });
    const { body } = await app.ask('/a/b', { token });
    assert.equal(body.message, 'the request is not allowed: fourth');
    const names = ['first', 'second', 'third', 'fourth'];
    assert.deepEqual(
      asked,
      names.flatMap((name) => [`${name} asked`, `${name} answers`]),
    );
  });

  test('is before a recent login, wherever that stands, and a login is still demanded after it', async (t) => {
    for (const [answer, status] of [
      [false, 403],
      [true, 401],
    ] as const) {
      const app = await startOne(
        t,
        needs(
          recentLogin({ maxAgeSeconds: 1 }),
          decision('may pay', async () => answer),
        ),
      );
      const { status: got, challenges } = await app.ask('/pay/1', { token });
      assert.equal(got, status);
      assert.equal(/insufficient_user_authentication/.test(String(challenges)), answer);
    }
  });

  test('is before query and body', async (t) => {
    const app = await start(t, {
      routes: [
        post('/pay', needs(decision('may pay', async () => false)), query(refusing), json(), () => ({})),
      ],
    });
    assert.equal((await app.ask('/pay?x', { token, method: 'POST', body: '{' })).status, 403);
  });

  test('ends with exp, once more, after the last one [RFC 7519 §4.1.4, J21]', async (t) => {
    const asked: string[] = [];
    const slow = decision('first', async () => {
      clock.advance(601_000);
      return true;
    });
    const last = decision('last', () => asked.push('last') > 0);
    const app = await startOne(t, needs(slow, last));
    const { status, challenges, body } = await app.ask('/pay/1', { token: tokenWith() });
    assert.deepEqual([status, body.error, asked], [401, 'invalid_token', ['last']]);
    assert.match(String(challenges), /the token has expired/);
  });

  test('ends with exp, within the clock tolerance', async (t) => {
    const app = await startOne(
      t,
      needs(
        decision('may pay', async () => {
          clock.advance(620_000);
          return true;
        }),
      ),
      { environment: { IDP_CLOCK_TOLERANCE_SECONDS: '60' } },
    );
    assert.equal((await app.ask('/pay/1', { token: tokenWith() })).status, 200);
  });
});

describe('the time limit', () => {
  for (const [options, millis] of [
    [undefined, 2_000],
    [{ timeoutSeconds: 0.25 }, 250],
    [{ timeoutSeconds: 30 }, 30_000],
  ] as const) {
    test(`of ${JSON.stringify(options)} is ${millis} ms; then the signal aborts, and the answer no longer counts [J10]`, async (t) => {
      const { guard, asked, answers, askedTimes } = held('may pay', options);
      const app = await startOne(t, needs(guard));
      const response = app.ask('/pay/1', { token: tokenWith() });
      await askedTimes(1);
      clock.advance(millis - 1);
      assert.equal(asked[0]?.signal.aborted, false);
      clock.advance(1);
      await new Promise(setImmediate);
      assert.equal(asked[0]?.signal.aborted, true);
      assert.equal((await response).status, 503);
      answers[0]?.reject(new Error('too late'));
      await null;
      assert.deepEqual([app.counted, app.errors], [['failed'], []]);
      assert.deepEqual(
        app.lines().map(({ message, reason }) => [message, reason]),
        [['decision lost', 'timeout']],
      );
    });
  }

  test('does not refuse a decision that is on its way when it is over, as when the process was busy or stopped', async (t) => {
    const { guard, asked, answers, askedTimes } = held('may pay');
    const app = await startOne(t, needs(guard));
    const response = app.ask('/pay/1', { token: tokenWith() });
    await askedTimes(1);
    // The timer is late, and what the system has received is read only after it.
    clock.advance(60_000);
    answers[0]?.resolve(true);
    assert.equal((await response).status, 200);
    assert.equal(asked[0]?.signal.aborted, false);
    assert.deepEqual(app.counted, ['allowed']);
  });

  test('is each decision’s own, and leaves no timer behind', async (t) => {
    const { guard, answers, askedTimes } = held('may pay', { timeoutSeconds: 1.777 });
    const app = await startOne(t, needs(guard));
    const response = app.ask('/pay/1', { token: tokenWith() });
    await askedTimes(1);
    assert.ok(clock.pending.includes(1_777));
    answers[0]?.resolve(true);
    assert.equal((await response).status, 200);
    assert.ok(!clock.pending.includes(1_777));
  });
});

describe('a client', () => {
  const asked = () => `GET /pay/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokenWith()}\r\n\r\n`;

  test('that leaves aborts the signal, and causes no line, count or onError [J19]', async (t) => {
    const { guard, asked: requests, answers, askedTimes } = held();
    let ran = 0;
    const app = await start(t, {
      routes: [
        get('/pay/{id}', needs(guard), () => {
          ran += 1;
          return {};
        }),
      ],
    });
    const wire = await openWire(app.port);
    wire.send(asked());
    await askedTimes(1);
    const aborted = once(requests[0]!.signal, 'abort');
    wire.socket.resetAndDestroy();
    await aborted;
    answers[0]?.reject(new Error('nobody is there'));
    await app.drain();
    assert.deepEqual([app.counted, app.errors, app.logs, ran], [[], [], [], 0]);
  });

  test('that leaves ends no loss that the log has told of [J19]', async (t) => {
    const { guard, asked: requests, answers, askedTimes } = held();
    const app = await startOne(t, needs(guard));
    const first = app.ask('/pay/1', { token: tokenWith() });
    await askedTimes(1);
    answers[0]?.resolve('lost');
    await first;
    const wire = await openWire(app.port);
    wire.send(asked());
    await askedTimes(2);
    const aborted = once(requests[1]!.signal, 'abort');
    wire.socket.resetAndDestroy();
    await aborted;
    const last = app.ask('/pay/1', { token: tokenWith() });
    await askedTimes(3);
    answers[2]?.resolve('lost');
    await last;
    assert.deepEqual(
      app.lines().map(({ message }) => message),
      ['decision lost'],
    );
  });

  test('that leaves aborts the signal in the asynchronous context of its request', async (t) => {
    const storage = new AsyncLocalStorage<string>();
    const { guard, asked: requests, askedTimes } = held();

    const prepare = (server: Server) => {
      const { emit } = server;
      // Like OpenTelemetry's instrumentation of node:http.
      server.emit = (event: string, ...rest: readonly any[]): boolean => {
        const go = () => Reflect.apply(emit, server, [event, ...rest]);
        return event === 'request' ? storage.run('request', go) : go();
      };
    };

    const app = await startOne(t, needs(guard), { prepare });
    const wire = await openWire(app.port);
    wire.send(asked());
    await askedTimes(1);
    const context = new Promise((resolve) => {
      requests[0]!.signal.addEventListener('abort', () => resolve(storage.getStore()));
    });
    wire.socket.resetAndDestroy();
    assert.equal(await context, 'request');
  });

  test('that closes only its own side has not left, and gets its response [J19]', async (t) => {
    const { guard, asked: requests, answers, askedTimes } = held();
    const app = await startOne(t, needs(guard));
    const connected: Promise<Socket[]> = once(app.server, 'connection') as Promise<Socket[]>;
    const wire = await openWire(app.port);
    const [socket] = await connected;
    wire.send(asked());
    await askedTimes(1);
    const ended = once(socket!, 'end');
    wire.socket.end();
    await ended;
    answers[0]?.resolve(true);
    assert.match(await wire.untilClosed(), /^HTTP\/1.1 200/);
    assert.equal(requests[0]?.signal.aborted, false);
  });

  test('that pipelines many requests causes no warning of leaked listeners', async (t) => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    t.after(() => process.off('warning', warn));
    const { guard, answers, askedTimes } = held();
    const app = await startOne(t, needs(guard));
    const wire = await openWire(app.port);
    wire.send(asked().repeat(20));
    await askedTimes(20);
    for (const { resolve } of answers) resolve(true);
    await wire.until((text) => text.split('HTTP/1.1 200').length === 21);
    wire.destroy();
    assert.deepEqual(warnings, []);
  });

  test('of a Fetch server that leaves aborts the signal, and the gate logs and reports nothing', async (t) => {
    const lines: string[] = [];
    const errors: unknown[] = [];
    const issuer = makeIssuer();
    const gate = createGate({
      ...issuer.options,
      log: (_, message) => lines.push(message),
      onError: (error) => errors.push(error),
    });
    t.after(() => gate.close());
    const { guard, asked: requests, askedTimes } = held();
    const controller = new AbortController();
    const { signal } = controller;
    const request = new Request('http://a/pay', { headers: issuer.bearer(), signal });
    const verdict = gate.check(request, needs(guard));
    await askedTimes(1);
    lines.length = 0;
    controller.abort();
    assert.equal((await verdict).refusal?.status, 503);
    assert.deepEqual([requests[0]?.signal.aborted, lines, errors], [true, [], []]);
  });

  test('of a Fetch server has a signal that the gate reads only while a decision waits: Deno warns when one is read', async (t) => {
    const issuer = makeIssuer();
    const gate = createGate(issuer.options);
    t.after(() => gate.close());
    const { signal } = new AbortController();
    let reads = 0;
    const request = Object.defineProperty(
      new Request('http://a/pay', { headers: issuer.bearer() }),
      'signal',
      {
        get() {
          reads += 1;
          return signal;
        },
      },
    );

    for (const access of [authenticated, needs(decision('at once', () => true))]) {
      assert.equal((await gate.check(request, access)).refusal, undefined);
    }
    assert.equal(reads, 0);

    const { guard, answers, askedTimes } = held();
    const verdict = gate.check(request, needs(guard));
    await askedTimes(1);
    answers[0]?.resolve(true);
    assert.equal((await verdict).refusal, undefined);
    assert.equal(reads, 1);
    // One signal may serve many requests.
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
  });
});

test('at most 1,000 requests wait for one decision; the next is 503 too-many-waiting, failed, and no loss', async (t) => {
  const { guard, answers, askedTimes } = held();
  const other = decision('other', () => true);
  const app = await start(t, {
    routes: [get('/held', needs(guard), () => ({})), get('/other', needs(other), () => ({}))],
  });
  const caller = { token: tokenWith() };
  const demands = [needs(guard)];
  const facts = { method: 'GET', host: 'a', path: '/held', rawHeaders: [] };
  const waiting = Array.from({ length: 1_000 }, () =>
    app.way.decide({ facts, demands, isServed: true, known: { caller: callerWith({}) } }),
  );
  await askedTimes(1_000);
  const { status, body, headers } = await app.ask('/held', caller);
  assert.deepEqual(
    [status, body.message, headers['retry-after']],
    [503, 'Too many requests are waiting', '1'],
  );
  assert.equal(app.logs.find(({ message }) => message === 'request refused')?.reason, 'too-many-waiting');
  assert.deepEqual([app.counted, app.lines(), app.errors], [['failed'], [], []]);
  assert.equal((await app.ask('/other', caller)).status, 200);

  for (const { resolve } of answers) resolve(true);
  assert.equal((await Promise.all(waiting)).filter(({ reason }) => reason === undefined).length, 1_000);
  const response = app.ask('/held', caller);
  await askedTimes(1_001);
  answers[1_000]?.resolve(true);
  assert.equal((await response).status, 200);
  assert.deepEqual(app.lines(), []);
});

test('an answer after the time limit makes room for no other request [J10]', async (t) => {
  const { guard, answers, askedTimes } = held();
  const app = await start(t, { routes: [get('/held', needs(guard), () => ({}))] });
  const late = app.ask('/held', { token: tokenWith() });
  await askedTimes(1);
  clock.advance(2_000);
  assert.equal((await late).status, 503);
  answers[0]?.resolve(true);

  const facts = { method: 'GET', host: 'a', path: '/held', rawHeaders: [] };
  const asked = { facts, demands: [needs(guard)], isServed: true, known: { caller: callerWith({}) } };
  const waiting = Array.from({ length: 1_000 }, () => app.way.decide(asked));
  await askedTimes(1_001);
  const { status, body } = await app.ask('/held', { token: tokenWith() });
  assert.deepEqual([status, body.message], [503, 'Too many requests are waiting']);
  for (const { resolve } of answers) resolve(true);
  await Promise.all(waiting);
});

test('a request whose connection cannot be watched, or no longer, is a bug, and leaves no timer and takes no place [docs/decisions.md]', async (t) => {
  const app = await start(t, { routes: [] });
  const guard = decision('watched', async () => true, { timeoutSeconds: 1.777 });
  const facts = { method: 'GET', host: 'a', path: '/', rawHeaders: [] };
  const known = { caller: callerWith({}) };

  const ask = async (request: object) => {
    const asked = { facts, demands: [needs(guard)], isServed: true, known, request };
    return (await app.way.decide(asked)).reason;
  };

  const on = () => {
    throw new TypeError('no events here');
  };

  const signal = { addEventListener() {}, removeEventListener: on };
  for (let count = 0; count < 1_000; count += 1) {
    assert.equal(await ask({ socket: { on } }), 'bug');
    assert.equal(await ask({ signal }), 'bug');
  }
  assert.ok(!clock.pending.includes(1_777));
  assert.equal(await ask({}), undefined);
});

test('a decision that rejects after a request whose connection cannot be watched ends no process [§26]', async (t) => {
  const unhandled: unknown[] = [];
  const noteUnhandled = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', noteUnhandled);
  t.after(() => process.off('unhandledRejection', noteUnhandled));

  const { guard, answers, askedTimes } = held();
  const app = await start(t, { routes: [] });
  const facts = { method: 'GET', host: 'a', path: '/', rawHeaders: [] };
  const known = { caller: callerWith({}) };
  const request = {
    get socket() {
      throw new TypeError('no socket here');
    },
  };
  const record = app.way.decide({ facts, demands: [needs(guard)], isServed: true, known, request });
  await askedTimes(1);
  answers[0]?.reject(new Error('too late'));
  assert.equal((await record).reason, 'bug');
  await new Promise(setImmediate);
  assert.deepEqual(unhandled, []);
});

test('a client that has left already, and each whose connection closes, aborts the signal at once [J19]', async (t) => {
  const { guard, asked, askedTimes } = held();
  const app = await start(t, { routes: [] });
  const facts = { method: 'GET', host: 'a', path: '/held', rawHeaders: [] };
  const known = { caller: callerWith({}) };

  const ask = (request: object) =>
    app.way.decide({ facts, demands: [needs(guard)], isServed: true, known, request });

  const socket = new EventEmitter();
  for (const request of [
    { socket },
    { socket },
    { socket: Object.assign(new EventEmitter(), { destroyed: true }) },
    { signal: AbortSignal.abort() },
  ]) {
    void ask(request);
  }
  await askedTimes(4);
  socket.emit('close');
  await new Promise(setImmediate);
  assert.deepEqual(
    asked.map(({ signal }) => signal.aborted),
    [true, true, true, true],
  );
});

describe('the turn', () => {
  const facts = { method: 'GET', host: 'a', path: '/', rawHeaders: [] };

  for (const [what, access] of [
    ['no decision', needs(scope('pay'))],
    ['a decision that does not wait', needs(decision('may pay', () => true))],
  ] as const) {
    test(`is the same for an access with ${what}`, async (t) => {
      const app = await start(t, { routes: [] });
      const asked = {
        facts,
        demands: [access],
        isServed: true,
        known: { caller: callerWith({ scope: 'pay' }) },
      };
      assert.ok(!(app.way.decide(asked) instanceof Promise));
    });
  }

  test('of a drain is not over while a decision is asked', async (t) => {
    const { guard, answers, askedTimes } = held();
    const app = await startOne(t, needs(guard));
    const response = app.ask('/pay/1', { token: tokenWith() });
    await askedTimes(1);
    const drained = app.drain();
    answers[0]?.resolve(true);
    assert.deepEqual([(await response).status, await drained], [200, 'drained']);
  });
});

describe('gate.authorize', () => {
  async function admitted(t: TestContext) {
    const errors: unknown[] = [];
    const issuer = makeIssuer();
    const gate = createGate({ ...issuer.options, onError: (error) => errors.push(error) });
    t.after(() => gate.close());
    const request = new Request('http://a/', { headers: issuer.bearer({ scope: 'pay' }) });
    const { caller } = await gate.check(request, authenticated);
    assert.ok(caller);
    return { gate, caller, errors };
  }

  test('returns a promise for an access with a decision, also if an earlier guard refuses, else the value', async (t) => {
    const { gate, caller } = await admitted(t);
    const guard = decision('may pay', () => true);
    assert.equal(gate.authorize(caller, needs(scope('pay'))).caller, caller);

    const allowed = gate.authorize(caller, needs(guard));
    const refused = gate.authorize(caller, needs(scope('other'), guard));
    const first = gate.authorize(caller, needs(guard, scope('other')));
    // In JavaScript, `await` may be forgotten.
    assert.throws(() => Reflect.get(refused, 'refusal'), { name: 'TypeError', message: /await it$/ });
    assert.ok(allowed instanceof Promise && refused instanceof Promise && first instanceof Promise);
    assert.equal((await allowed).caller, caller);
    assert.equal((await refused).refusal?.status, 403);
  });

  test('asks about no method, path or parameters, and reports what was thrown', async (t) => {
    const { gate, caller, errors } = await admitted(t);
    const asked: DecisionRequest[] = [];
    const thrown = new Error('no policy');
    const guard = decision('may pay', async (request) => {
      asked.push(request);
      throw thrown;
    });
    const { refusal } = await gate.authorize(caller, needs(guard));
    assert.equal(refusal?.status, 503);
    assert.deepEqual(errors, [thrown]);
    assert.deepEqual([asked[0]?.method, asked[0]?.path, asked[0]?.parameters], ['', '', {}]);
    assert.equal(asked[0]?.caller.subject, caller.subject);
  });

  test('throws for what is no caller, also with a decision', async (t) => {
    const { gate } = await admitted(t);
    const access = needs(decision('may pay', () => true));
    assert.throws(() => gate.authorize({} as never, access), TypeError);
  });
});

describe('the authorize of a handler', () => {
  test('asks about method, path and parameters of the request', async (t) => {
    const asked: DecisionRequest[] = [];
    const guard = decision('may pay', async (request) => asked.push(request) > 1);
    const app = await start(t, {
      routes: [
        post('/pay/{account}', authenticated, async ({ authorize }) => {
          const { refusal } = await authorize(needs(guard));
          return refusal ?? { paid: true };
        }),
      ],
    });
    const pay = () => app.ask('/pay/1?x', { token: tokenWith(), method: 'POST' });
    assert.equal((await pay()).status, 403);
    assert.deepEqual((await pay()).body, { paid: true });
    const { method, path, parameters } = asked[0] ?? assert.fail();
    assert.deepEqual([method, path, parameters], ['POST', '/pay/1', { account: '1' }]);
  });

  test('refuses an anonymous caller as a missing token, as a promise, and asks nothing', async (t) => {
    const guard = decision('may pay', () => assert.fail('it was asked'));
    const app = await start(t, {
      routes: [
        get('/open', open, async ({ authorize }) => {
          const authorized = authorize(needs(guard));
          assert.ok(authorized instanceof Promise);
          return (await authorized).refusal ?? {};
        }),
      ],
    });
    // Credentials that the access of the route has ignored are not looked at now.
    const { status, body } = await app.ask('/open', { token: tokenWith() });
    assert.deepEqual([status, body.error], [401, 'unauthorized']);
  });

  test('is no unhandled rejection when the client has left a handler that has not awaited it', async (t) => {
    const { guard, asked, askedTimes } = held();
    const unhandled: unknown[] = [];
    const noteUnhandled = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', noteUnhandled);
    t.after(() => process.off('unhandledRejection', noteUnhandled));

    const app = await start(t, {
      routes: [
        get('/pay', authenticated, ({ authorize }) => {
          void authorize(needs(guard));
          return {};
        }),
      ],
    });
    await app.ask('/pay', { token: tokenWith() });
    await askedTimes(1);
    const { signal } = asked[0] ?? assert.fail();
    if (!signal.aborted) await once(signal, 'abort');
    await new Promise(setImmediate);
    assert.deepEqual([unhandled, app.errors], [[], []]);
  });

  test('rejects as an abort when the client has left, which is no bug', async (t) => {
    const { guard, asked, askedTimes } = held();
    const names: unknown[] = [];
    const app = await start(t, {
      routes: [
        get('/pay', authenticated, async ({ authorize }) => {
          try {
            return (await authorize(needs(guard))).refusal ?? {};
          } catch (error) {
            names.push(Object(error).name);
            throw error;
          }
        }),
      ],
    });
    const wire = await openWire(app.port);
    wire.send(`GET /pay HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokenWith()}\r\n\r\n`);
    await askedTimes(1);
    const aborted = once(asked[0]!.signal, 'abort');
    wire.socket.resetAndDestroy();
    await aborted;
    await app.drain();
    assert.deepEqual([names, app.logs, app.errors, app.counted], [['AbortError'], [], [], []]);
  });
});

test('HANDLER_TIMEOUT_SECONDS begins after decisions', async (t) => {
  const { guard, answers, askedTimes } = held('may pay', { timeoutSeconds: 30 });
  const app = await startOne(t, needs(guard), { environment: { HANDLER_TIMEOUT_SECONDS: '1' } });
  const response = app.ask('/pay/1', { token: tokenWith() });
  await askedTimes(1);
  clock.advance(10_000);
  answers[0]?.resolve(true);
  assert.equal((await response).status, 200);
});

test('the route matrix asks no decision, of routes and rules, and tests the other guards', async () => {
  const asked: string[] = [];
  const guard = decision('may pay', () => asked.push('asked') > 0);
  const other = decision('may pay more', () => asked.push('asked') > 0);
  const routes: Route[] = [
    get('/a/b', needs(guard, other), () => ({})),
    del('/a/c', needs(guard, scope('pay'), other), () => undefined),
    get('/d', open, () => ({})),
  ];
  const rules: PrefixRule[] = [under('/a', needs(guard, scope('a')))];
  await assertRouteMatrix({ routes, rules });
  assert.deepEqual(asked, []);
});

describe('decision() throws where it is written', () => {
  const decide = () => true;
  for (const [what, make] of [
    ['a description that a challenge cannot show', () => decision('a "quote"', decide)],
    ['a description with =', () => decision('a=b', decide)],
    ['a description in another alphabet', () => decision('é', decide)],
    ['no description', () => decision(undefined as never, decide)],
    ['a description that is no text', () => decision(7 as never, decide)],
    ['an empty description', () => decision('', decide)],
    ['a description of 201 characters', () => decision('x'.repeat(201), decide)],
    ['no function', () => decision('may pay', true as never)],
    ['a limit of 0', () => decision('may pay', decide, { timeoutSeconds: 0 })],
    ['a limit over 30', () => decision('may pay', decide, { timeoutSeconds: 30.001 })],
    ['a limit that is not a number', () => decision('may pay', decide, { timeoutSeconds: '1' as never })],
    ['a limit of NaN', () => decision('may pay', decide, { timeoutSeconds: NaN })],
    ['another option', () => decision('may pay', decide, { timeout: 1 } as never)],
    ['options that are null', () => decision('may pay', decide, null as never)],
    ['seconds in place of options', () => decision('may pay', decide, 1 as never)],
    ['a list in place of options', () => decision('may pay', decide, [] as never)],
    ['an instance in place of options', () => decision('may pay', decide, new Map() as never)],
  ] as const) {
    test(`for ${what} [§26]`, () => assert.throws(make, TypeError));
  }

  test('with its name, and what it needs [§26]', () => {
    const name = 'decision may pay';
    const message = `${name}: needs a function that decides`;
    assert.throws(() => decision('may pay', true as never), { message });
    assert.throws(() => decision('may pay', decide, { timeoutSeconds: 0 }), {
      message: `${name}: timeoutSeconds: must be over 0 and up to 30`,
    });
  });

  test('but not for 200 characters, a limit of 30 s, or no limit [§26]', () => {
    assert.equal(decision('x'.repeat(200), decide, { timeoutSeconds: 30 }).name.length, 209);
    assert.doesNotThrow(() => decision('x', decide, { timeoutSeconds: undefined }));
  });
});
