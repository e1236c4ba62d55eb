/* The signal that tells a handler to stop, and the time limit of a handler. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import { clock } from '../../support/caller.ts';
import { openWire } from '../../support/client.ts';
import { untilClosing } from '../../support/listener.ts';
import { statusesIn } from '../../support/raw-responses.ts';
import { schemaOf } from '../../support/schemas.ts';
import { startRoutes, type RoutesToTest } from '../../support/routes.ts';

interface Held {
  readonly signal: AbortSignal;
  /** Ends the handler. */
  readonly response: () => void;
  readonly fail: (failure: unknown) => void;
  /** Ends the handler with a result that cannot be read. */
  readonly unreadable: () => void;
}

const UNREADABLE: object = {
  get status() {
    throw new Error('a record of a closed database');
  },
};

const turns = async (count = 5) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
};

/** A service whose handlers wait. `held` has an entry for each call. */
async function openRoutes(context: TestContext, environment: RoutesToTest['environment'] = {}) {
  const calls: Held[] = [];

  const hold = (request: { readonly signal: AbortSignal }) =>
    new Promise<object>((resolve, reject) =>
      calls.push({
        get signal() {
          return request.signal;
        },
        response: () => resolve({ held: true }),
        fail: reject,
        unreadable: () => resolve(UNREADABLE),
      }),
    );

  /** Node does not make such promises, libraries for databases do. */
  const holdThenable = (request: { readonly signal: AbortSignal }): PromiseLike<object> => {
    const promise = hold(request);
    return { then: promise.then.bind(promise) };
  };

  const endless = schemaOf(() => new Promise<never>(() => {}));
  const app = await startRoutes({
    routes: [
      get('/hold', open, hold),
      get('/thenable', open, holdThenable),
      post('/hold', open, json(), hold),
      post('/endless', open, json(endless), hold),
      get('/endless', open, query(endless), hold),
      get('/now', open, () => ({})),
    ],
    environment,
  });
  context.after(() => app.stop());

  const held = async (index = 0): Promise<Held> => {
    while (calls[index] === undefined) await new Promise(setImmediate);
    return calls[index];
  };

  return { ...app, calls, held };
}

/** A call whose client leaves with a reset. `leave` resolves once the service has noticed. */
async function openLeaving(
  context: TestContext,
  bytes: string,
  environment: RoutesToTest['environment'] = {},
) {
  const app = await openRoutes(context, environment);
  const { port, held, server } = app;
  const accepted = once(server, 'connection');
  const wire = await openWire(port);
  wire.send(bytes);
  const [socket] = await accepted;
  const call = await held();
  const gone = new Promise((resolve) => socket.once('close', resolve));

  const leave = () => {
    wire.socket.resetAndDestroy();
    return gone;
  };

  return { ...app, wire, call, leave };
}

const GET = 'GET /hold HTTP/1.1\r\nHost: a\r\n\r\n';
const THENABLE = GET.replace('hold', 'thenable');
const POST = 'POST /hold HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1';
const NOW = 'GET /now HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

describe('the signal', { timeout: 30_000 }, () => {
  test('of each in-flight request aborts when the client has gone before its response', async (t) => {
    const { port, held } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(GET.repeat(3));
    const signals = [await held(0), await held(1), await held(2)].map(({ signal }) => signal);
    wire.socket.resetAndDestroy();
    await Promise.all(signals.map((signal) => signal.aborted || once(signal, 'abort')));
  });

  for (const [what, bytes] of [
    ['a GET', GET],
    ['a POST whose body was read', POST],
  ] as const) {
    test(`of ${what} aborts when the client has gone before the response`, async (t) => {
      const { port, held, logs } = await openRoutes(t);
      const wire = await openWire(port);
      wire.send(bytes);
      const { signal, response } = await held();
      assert.equal(signal.aborted, false);
      wire.socket.resetAndDestroy();
      await once(signal, 'abort');
      response();
      await turns();
      assert.deepEqual(logs, []);
    });

    test(`of ${what} has already aborted when it is first read after the client has gone`, async (t) => {
      const { call, leave } = await openLeaving(t, bytes);
      await leave();
      await turns();
      assert.equal(call.signal.aborted, true);
    });

    test(`of ${what} does not abort while the client waits, or once it has its response`, async (t) => {
      const { port, held } = await openRoutes(t);
      const wire = await openWire(port);
      wire.send(bytes);
      const { signal, response } = await held();
      await turns();
      assert.equal(signal.aborted, false);
      response();
      await wire.until((text) => text.endsWith('}'));
      wire.send(NOW);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200]);
      await turns();
      assert.equal(signal.aborted, false);
    });
  }

  test('has not aborted when it is first read once the response is written, though the client has gone since', async (t) => {
    const { wire, call, leave } = await openLeaving(t, GET);
    call.response();
    await wire.until((text) => text.endsWith('}'));
    await leave();
    assert.equal(call.signal.aborted, false);
  });

  test('has a reason that a handler may rethrow after the client has gone without being logged as a bug, unlike any other error', async (t) => {
    const { port, held, logs } = await openRoutes(t);
    const unnamed = Object.defineProperty(new Error(), 'name', {
      get() {
        throw new Error('no name');
      },
    });
    const alike = ['NoAbortError', 'AbortErrors'].map((name) => Object.assign(new Error(), { name }));
    for (const [index, bug] of [undefined, new TypeError('a bug'), unnamed, ...alike].entries()) {
      const wire = await openWire(port);
      wire.send(GET);
      const { signal, fail } = await held(index);
      wire.socket.resetAndDestroy();
      await once(signal, 'abort');
      fail(bug ?? signal.reason);
      await turns();
    }
    assert.deepEqual(
      logs.map(({ reason, error, route }) => [reason, error, route]),
      [
        ['bug', 'TypeError', '/hold'],
        ['bug', 'Error', '/hold'],
        ['bug', 'NoAbortError', '/hold'],
        ['bug', 'AbortErrors', '/hold'],
      ],
    );
  });

  test('aborts calls of axios with a CanceledError, which a handler may pass on after the client has gone', async (t) => {
    const { port, held, logs } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(GET);
    const { signal, fail } = await held();
    wire.socket.resetAndDestroy();
    await once(signal, 'abort');
    fail(Object.assign(new Error('canceled'), { name: 'CanceledError' }));
    await turns();
    assert.deepEqual(logs, []);
  });

  test('has a reason that, rethrown once the client has closed its side, ends the connection without a response, after those before it', async (t) => {
    const { port, held, logs } = await openRoutes(t);
    const wire = await openWire(port);
    wire.socket.allowHalfOpen = true;
    wire.send(GET.repeat(2));
    const first = await held(0);
    const { signal, fail } = await held(1);
    const aborted = once(signal, 'abort');
    wire.socket.end();
    await aborted;
    fail(signal.reason);
    await turns();
    first.response();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    assert.deepEqual(logs, []);
    wire.destroy();
  });

  test('does not excuse an AbortError that a handler throws while the client waits', async (t) => {
    const { port, held, logs } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(GET);
    const { fail } = await held();
    fail(AbortSignal.abort().reason);
    assert.deepEqual(statusesIn(await wire.until((text) => text.endsWith('}'))), [500]);
    assert.deepEqual(
      logs.map(({ error }) => error),
      ['AbortError'],
    );
    wire.destroy();
  });

  test('is the same object, however often it is read', async (t) => {
    const { port, held } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(GET + GET);
    const first = await held(0);
    const second = await held(1);
    assert.equal(first.signal, first.signal);
    assert.notEqual(first.signal, second.signal);
    wire.destroy();
  });

  for (const [what, count] of [
    ['', 1],
    [' of each in-flight request', 3],
  ] as const) {
    test(
      `${what} aborts when the client closes its side, and the response still arrives [RFC 9112 §9.6]`.trim(),
      async (t) => {
        const { port, held } = await openRoutes(t);
        const wire = await openWire(port);
        wire.socket.allowHalfOpen = true;
        wire.send(GET.repeat(count));
        const calls = await Promise.all(Array.from({ length: count }, (_, index) => held(index)));
        const signals = calls.map(({ signal }) => signal);
        assert.ok(signals.every(({ aborted }) => !aborted));
        const given = Promise.all(signals.map((signal) => once(signal, 'abort')));
        wire.socket.end();
        await given;
        for (const { response } of calls) response();
        assert.deepEqual(statusesIn(await wire.untilClosed()), Array(count).fill(200));
        wire.destroy();
      },
    );
  }

  test('has already aborted when it is first read after the client has closed its side', async (t) => {
    const { port, held, server } = await openRoutes(t);
    const accepted = once(server, 'connection');
    const wire = await openWire(port);
    wire.socket.allowHalfOpen = true;
    wire.send(POST);
    const [socket] = await accepted;
    const call = await held();
    wire.socket.end();
    while (!socket.readableEnded) await turns(1);
    assert.equal(call.signal.aborted, true);
    call.response();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    wire.destroy();
  });

  // How long the `close` of a socket takes depends on the phase in which the deadline passes.
  for (const [when, comes] of [
    ['a timer', setTimeout],
    ['an immediate', setImmediate],
  ] as const) {
    test(`aborts at the end of a drain, before stop resolves, if the deadline passes in ${when}`, async (t) => {
      const { port, held, drain, server } = await openRoutes(t);
      const wire = await openWire(port);
      wire.send(GET.repeat(2));
      const signals = [(await held(0)).signal, (await held(1)).signal];
      const drained = drain();
      await untilClosing(server);
      clock.advance(9_999);
      await turns();
      assert.ok(signals.every(({ aborted }) => !aborted));
      comes(() => clock.advance(1));
      // The process ends at this point.
      assert.equal(await drained, 'deadline');
      assert.ok(signals.every(({ aborted }) => aborted));
      assert.equal(await wire.untilClosed(), '');
    });
  }
});

describe('the end of a drain', { timeout: 30_000 }, () => {
  for (const seconds of ['0', '30']) {
    test(`observes requests whose handlers ignore the signal, with a time limit of ${seconds} [§16, §28]`, async (t) => {
      const environment = { ACCESS_LOG: 'true', HANDLER_TIMEOUT_SECONDS: seconds };
      const { port, held, drain, server, logs } = await openRoutes(t, environment);
      const dueIn = (millis: number) => clock.pending.filter((pending) => pending === millis).length;
      const others = dueIn(30_000);
      const wire = await openWire(port);
      wire.send(GET.repeat(2));
      const { response } = await held(1);
      const drained = drain();
      await untilClosing(server);
      const lines = () => logs.filter(({ message }) => message === 'request');
      clock.advance(9_999);
      await turns();
      assert.deepEqual(lines(), []);
      clock.advance(1);
      assert.equal(await drained, 'deadline');
      const told = lines().map(({ route, status, reason }) => [route, status, reason]);
      assert.deepEqual(told, Array(2).fill(['/hold', null, undefined]));
      // Those of the handlers would keep the process alive.
      assert.equal(dueIn(20_000), others);
      response();
      await turns();
      assert.equal(lines().length, 2);
      wire.destroy();
    });
  }

  test('comes for every connection at the deadline of a drain, and each request is observed [§16]', async (t) => {
    const { port, held, drain, server, logs } = await openRoutes(t, {
      ACCESS_LOG: 'true',
      HANDLER_TIMEOUT_SECONDS: '0',
    });
    const wires = await Promise.all([openWire(port), openWire(port), openWire(port)]);
    for (const wire of wires) wire.send(GET);
    await held(2);
    const drained = drain();
    await untilClosing(server);
    clock.advance(10_000);
    assert.equal(await drained, 'deadline');
    const told = logs.filter(({ message }) => message === 'request');
    assert.deepEqual(
      told.map(({ status }) => status),
      [null, null, null],
    );
    for (const wire of wires) wire.destroy();
  });

  test('leaves a handler that fails on the abort of its signal its own end [§27]', async (t) => {
    const { port, held, drain, server, logs } = await openRoutes(t, { ACCESS_LOG: 'true' });
    const wire = await openWire(port);
    wire.send(GET);
    const { signal, fail } = await held(0);
    signal.addEventListener('abort', () => fail(new Error('the rollback failed')));
    const drained = drain();
    await untilClosing(server);
    // In this phase the `close` of a socket comes late.
    setTimeout(() => clock.advance(10_000));
    assert.equal(await drained, 'deadline');
    assert.ok(logs.some(({ message, reason }) => message === 'request failed' && reason === 'bug'));
    wire.destroy();
  });

  test('comes after a handler whose client has reset its connection, which is then observed [§16, §28]', async (t) => {
    const { call, leave, drain, server, logs } = await openLeaving(t, GET, { ACCESS_LOG: 'true' });
    await leave();
    const drained = drain();
    await untilClosing(server);
    assert.equal(await Promise.race([drained, turns(20)]), undefined);
    call.fail(new Error('the rollback failed'));
    assert.equal(await drained, 'drained');
    const told = logs.map(({ message, status, reason }) => [message, status, reason]);
    assert.deepEqual(told.slice(-2), [
      ['request', null, 'bug'],
      ['request failed', null, 'bug'],
    ]);
  });

  test('comes after every handler whose client has reset its connection, not after the first [§10]', async (t) => {
    const { port, held, call, leave, drain, server } = await openLeaving(t, GET);
    const accepted = once(server, 'connection');
    const wire = await openWire(port);
    wire.send(GET);
    const [socket] = await accepted;
    const other = await held(1);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    wire.socket.resetAndDestroy();
    await Promise.all([leave(), gone]);
    const drained = drain();
    await untilClosing(server);
    await turns(20);
    call.response();
    assert.equal(await Promise.race([drained, turns(20)]), undefined);
    other.response();
    assert.equal(await drained, 'drained');
  });

  test('waits no more than ten seconds for a handler whose client has gone [§10]', async (t) => {
    const unlimited = { HANDLER_TIMEOUT_SECONDS: '0' };
    const { leave, drain, server } = await openLeaving(t, GET, unlimited);
    await leave();
    const drained = drain();
    await untilClosing(server);
    clock.advance(9_999);
    assert.equal(await Promise.race([drained, turns(20)]), undefined);
    clock.advance(1);
    assert.equal(await drained, 'deadline');
  });

  test('neither observes nor aborts a request that was observed before [§16]', async (t) => {
    const { port, held, drain, logs } = await openRoutes(t, { ACCESS_LOG: 'true' });
    const wire = await openWire(port);
    wire.send(GET);
    const { response, signal } = await held(0);
    const drained = drain();
    response();
    assert.equal(await drained, 'drained');
    assert.equal(signal.aborted, false);
    assert.equal(logs.filter(({ message }) => message === 'request').length, 1);
  });
});

describe('the time of a handler', { timeout: 30_000 }, () => {
  test('is limited: at the limit the request gets 503 and its signal aborts, but the connection is kept', async (t) => {
    const { port, held, logs } = await openRoutes(t, { HANDLER_TIMEOUT_SECONDS: '2' });
    for (const [index, bytes] of [GET, POST, THENABLE].entries()) {
      const wire = await openWire(port);
      wire.send(bytes);
      const { signal } = await held(index);
      clock.advance(1_999);
      await turns();
      assert.equal(signal.aborted, false);
      clock.advance(1);
      const received = await wire.until((text) => text.endsWith('}'));
      assert.deepEqual(statusesIn(received), [503]);
      assert.match(received, /\r\nRetry-After: 1\r\n/);
      assert.match(received, /"error":"temporarily_unavailable"/);
      assert.equal(signal.aborted, true);
      assert.deepEqual([logs.at(-1)?.level, logs.at(-1)?.reason], ['debug', 'handler-timeout']);
      wire.send(NOW);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [503, 200]);
    }
  });

  test('is limited to 30 seconds by default', async (t) => {
    const { port, held } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(GET);
    await held();
    clock.advance(29_999);
    await turns();
    clock.advance(1);
    assert.deepEqual(statusesIn(await wire.until((text) => text.endsWith('}'))), [503]);
    wire.destroy();
  });

  test('has no limit when HANDLER_TIMEOUT_SECONDS is 0', async (t) => {
    const { port, held } = await openRoutes(t, { HANDLER_TIMEOUT_SECONDS: '0' });
    const wire = await openWire(port);
    wire.send(GET);
    const { response, signal } = await held();
    clock.advance(60_000);
    await turns();
    assert.equal(signal.aborted, false);
    response();
    assert.deepEqual(statusesIn(await wire.until((text) => text.endsWith('}'))), [200]);
    wire.destroy();
  });

  test('leaves no timer when the handler is in time', async (t) => {
    const { port, held } = await openRoutes(t);
    const before = clock.pending.length;
    const wire = await openWire(port);
    wire.send(GET);
    const { response } = await held();
    assert.equal(clock.pending.length, before + 1);
    response();
    await wire.until((text) => text.endsWith('}'));
    assert.equal(clock.pending.length, before);
    wire.destroy();
  });

  test('is over once the request has got 503: what the handler returns or throws later is ignored', async (t) => {
    const { port, held, logs } = await openRoutes(t);
    const unhandled: unknown[] = [];
    const noteUnhandled = (failure: unknown) => void unhandled.push(failure);
    process.on('unhandledRejection', noteUnhandled);
    t.after(() => process.off('unhandledRejection', noteUnhandled));
    const ends: readonly ((call: Held) => void)[] = [
      (call) => call.response(),
      (call) => call.fail(new TypeError('late')),
      (call) => call.unreadable(),
    ];

    for (const [index, end] of ends.entries()) {
      const wire = await openWire(port);
      wire.send(GET);
      const call = await held(index);
      clock.advance(30_000);
      await wire.until((text) => text.endsWith('}'));
      end(call);
      await turns();
      // The signal is aborted even though it is read here for the first time.
      assert.equal(call.signal.aborted, true);
      wire.send(NOW);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [503, 200]);
    }
    assert.deepEqual(
      // The summary of a minute has no reason.
      [unhandled, logs.flatMap(({ reason }) => reason ?? [])],
      [[], ['handler-timeout', 'handler-timeout', 'handler-timeout']],
    );
  });

  for (const [what, bytes] of [
    ['a body', POST],
    ['a query', GET],
  ] as const) {
    test(`includes the time of the schema of ${what}`, async (t) => {
      const { port, calls } = await openRoutes(t);
      const wire = await openWire(port);
      const before = clock.pending.length;
      wire.send(bytes.replace('/hold', '/endless'));
      while (clock.pending.length === before) await new Promise(setImmediate);
      clock.advance(30_000);
      assert.deepEqual(statusesIn(await wire.until((text) => text.endsWith('}'))), [503]);
      assert.deepEqual(calls, []);
      wire.destroy();
    });
  }
});
