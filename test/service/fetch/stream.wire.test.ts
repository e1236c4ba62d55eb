/* How the body of a `Response` is sent: backpressure, its end, and who may end it early
   (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { runInNewContext } from 'node:vm';
import { authenticated, open } from '../../../src/gate/rules/access.ts';
import { fail } from '../../../src/service/routes/handler-reply.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { refuse } from '../../../src/verify/base/refusal.ts';
import { clock, tokenWith } from '../../support/caller.ts';
import { openWire, type Wire } from '../../support/client.ts';
import { untilClosing } from '../../support/listener.ts';
import { startRoutes, type RoutesToTest } from '../../support/routes.ts';
import { parseHead } from './fixture.ts';

const MEBIBYTE = 1024 * 1024;

/** A body that the test feeds. */
class Source {
  readonly name: string;
  signal: AbortSignal | undefined;
  pulls = 0;
  cancels = 0;
  context: unknown;
  controller!: ReadableStreamDefaultController<unknown>;
  readonly stream: ReadableStream<any>;

  constructor(name: string, onPull: (source: Source) => void = () => {}) {
    this.name = name;
    this.stream = new ReadableStream<any>({
      start: (controller) => {
        this.controller = controller;
      },
      pull: () => {
        this.pulls += 1;
        onPull(this);
      },
      cancel: () => {
        this.cancels += 1;
        this.context = store.getStore();
      },
    });
  }

  send(text: string): void {
    this.controller.enqueue(Buffer.from(text));
  }

  end(): void {
    this.controller.close();
  }
}

const store = new AsyncLocalStorage<string>();

const turns = async (count = 5) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
};

const EVENTS = { 'Content-Type': 'text/event-stream; charset=utf-8' };

/** Waits until it holds. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

const passSeconds = async (seconds: number) => {
  for (let second = 0; second < seconds; second += 1) {
    clock.advance(1_000);
    await turns(1);
  }
};

/** A service whose handlers stream. `sources` has one for each call. */
async function openStreams(context: TestContext, environment: RoutesToTest['environment'] = {}) {
  const sources: Source[] = [];
  const responses: ServerResponse[] = [];

  function begin(name: string, signal: AbortSignal, onPull?: (source: Source) => void) {
    const source = new Source(name, onPull);
    source.signal = signal;
    sources.push(source);
    return source.stream;
  }

  const withLength = (length: number) => ({ headers: { 'Content-Length': String(length) } });

  const give = (source: Source) => {
    source.send('one');
    source.end();
  };

  /** Like those of @whatwg-node/fetch: cancelling the reader ends no pending read. */
  const pending = { reads: 0, cancels: 0 };

  const withPending = (headers: object = {}) => {
    const forever = new Promise<never>(() => {});

    const read = () => {
      pending.reads += 1;
      return forever;
    };

    const cancel = () => {
      pending.cancels += 1;
    };

    const body = { getReader: () => ({ read, cancel: () => forever }), cancel };
    return { status: 200, headers: new Headers({ ...headers }), body } as unknown as Response;
  };

  const fill = (source: Source) => source.controller.enqueue(new Uint8Array(MEBIBYTE));
  const fillInSmall = (source: Source) => source.controller.enqueue(new Uint8Array(1_024));

  const app = await startRoutes({
    routes: [
      get('/stream', open, ({ signal }) => new Response(begin('stream', signal))),
      post('/stream', open, ({ signal }) => new Response(begin('post', signal))),
      get('/silent', open, (request) =>
        store.run('mine', () => new Response(begin('silent', request.signal))),
      ),
      get('/events', open, ({ signal }) => new Response(begin('events', signal), { headers: EVENTS })),
      get('/four-events', open, ({ signal }) => {
        const headers = { ...EVENTS, ...withLength(4).headers };
        return new Response(begin('four', signal), { headers });
      }),
      get('/mine', authenticated, ({ signal }) => new Response(begin('mine', signal), { headers: EVENTS })),
      get('/typed', authenticated, ({ signal, query }) => {
        const headers = { 'Content-Type': query.get('type') ?? '' };
        return new Response(begin('typed', signal), { headers });
      }),
      get('/file', authenticated, ({ signal }) => new Response(begin('file', signal))),
      get('/four', open, ({ signal }) => new Response(begin('four', signal), withLength(4))),
      get('/full', open, ({ signal }) => new Response(begin('full', signal, fill))),
      get('/small', open, ({ signal }) => new Response(begin('small', signal, fillInSmall))),
      get('/late', open, async ({ signal }) => {
        await once(signal, 'abort');
        return new Response(begin('late', signal));
      }),
      get('/late-events', open, async ({ signal }) => {
        await once(signal, 'abort');
        return new Response(begin('late', signal), { headers: EVENTS });
      }),
      get('/none', open, ({ signal }) => {
        begin('none', signal);
        return new Response(null, { status: 204 });
      }),
      ...[204, 205, 304].map((status) =>
        get(`/${status}`, open, ({ signal }): Response => {
          // A Response of Node has no body with this status; those of other libraries may.
          const like = { status, headers: new Headers(), body: begin('without', signal, give) };
          return like as unknown as Response;
        }),
      ),
      get('/closed', open, ({ signal }) => {
        const body = begin('closed', signal);
        const { controller } = sources.at(-1)!;
        signal.addEventListener('abort', () => controller.close());
        return new Response(body, { headers: EVENTS });
      }),
      get('/now', open, () => ({ now: true })),
      get('/pending', open, () => withPending()),
      get('/pending-events', open, () => withPending(EVENTS)),
      get('/pending-mine', authenticated, () => withPending(EVENTS)),
    ],
    environment: { ACCESS_LOG: 'true', ...environment },
    prepare: (server) => {
      server.prependListener('request', (_, response) => {
        store.enterWith('request');
        responses.push(response);
      });
    },
  });
  context.after(() => app.stop());

  const source = async (index = 0) => {
    await until(() => sources[index] !== undefined);
    return sources[index]!;
  };

  const ask = async (path: string, fields = '', version = '1.1', method = 'GET') => {
    const wire = await openWire(app.port);
    wire.send(`${method} ${path} HTTP/${version}\r\nHost: a\r\n${fields}\r\n`);
    return wire;
  };

  return { ...app, ask, source, sources, responses, pending };
}

const OTHER_LENGTH = 'the body of a Response is shorter or longer than its Content-Length';

const headOf = (wire: Wire) => wire.until((text) => text.includes('\r\n\r\n'));

const NOW = 'GET /now HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** Once the socket takes no more. */
async function untilStill(socket: Socket): Promise<void> {
  let before = -1;
  while (before !== socket.bytesWritten) {
    before = socket.bytesWritten;
    await turns(20);
  }
}

describe('the body of a Response', { timeout: 20_000 }, () => {
  test('is sent chunk by chunk, and the connection serves the next request', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    const { send, end } = bind(await source());
    send('one');
    await wire.until((text) => text.includes('one'));
    send('two');
    await wire.until((text) => text.includes('two'));
    end();
    const text = await wire.until((received) => received.endsWith('\r\n0\r\n\r\n'));
    assert.deepEqual([parseHead(text).content, parseHead(text).isWhole], ['onetwo', true]);
    wire.send(NOW);
    assert.ok((await wire.untilClosed()).endsWith('{"now":true}'));
  });

  test('is read at most one chunk ahead of what the socket accepts', async (t) => {
    const { ask, source, responses } = await openStreams(t);
    const wire = await ask('/full');
    await headOf(wire);
    wire.socket.pause();
    const full = await source();
    await until(() => responses[0]!.writableNeedDrain);
    let before = 0;
    while (before !== full.pulls) {
      before = full.pulls;
      await turns(20);
    }
    // One chunk is in the queue of the stream, one is being written.
    const accepted = responses[0]!.socket!.bytesWritten;
    assert.ok(full.pulls * MEBIBYTE <= accepted + 2 * MEBIBYTE, `${full.pulls} pulls, ${accepted} bytes`);
    wire.socket.resume();
    const { pulls } = full;
    await until(() => full.pulls > pulls + 1);
    // Each chunk of a mebibyte has waited several times.
    assert.ok(responses[0]!.listenerCount('drain') <= 1);
    wire.destroy();
    await until(() => full.cancels === 1);
  });

  for (const path of ['/full', '/small']) {
    test(`behind an earlier response is read at most one chunk ahead: ${path} [§27]`, async (t) => {
      const { ask, source, sources } = await openStreams(t);
      const wire = await ask('/stream');
      const first = await source(0);
      wire.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const second = await source(1);
      await turns(20);
      // One more is in the queue of the stream.
      assert.ok(second.pulls <= 2, String(second.pulls));
      first.end();
      await until(() => second.pulls > 3);
      wire.destroy();
      await until(() => second.cancels === 1);
      assert.equal(sources.length, 2);
    });
  }

  test('lets pipelined requests behind it wait, and loses none', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    wire.send('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n' + NOW);
    const first = await source(0);
    const second = await source(1);
    second.send('second');
    second.end();
    first.send('first');
    await turns(20);
    assert.equal((await headOf(wire)).split('HTTP/1.1').length, 2);
    first.end();
    const responses = (await wire.untilClosed()).split(/(?=HTTP\/1\.1 200)/).map(parseHead);
    assert.deepEqual(
      responses.map(({ content, isWhole }) => [content, isWhole]),
      [
        ['first', true],
        ['second', true],
        ['{"now":true}', true],
      ],
    );
  });

  test('is sent whole before the refusal of a CONNECT behind it [RFC 9112 §9.3.2]', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    wire.send('CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n');
    const { send, end } = bind(await source());
    send('x'.repeat(4 * 65_536));
    end();
    const [whole = '', refusal] = (await wire.untilClosed()).split(/(?=HTTP\/1\.1 400)/);
    assert.equal(parseHead(whole).content.length, 4 * 65_536);
    assert.ok(parseHead(whole).isWhole && refusal !== undefined);
  });

  test('is 500 if it fails before its first chunk, and keeps the connection', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    (await source()).controller.error(new Error('inside'));
    wire.send(NOW);
    const text = await wire.untilClosed();
    assert.match(text, /^HTTP\/1\.1 500 /);
    assert.ok(text.endsWith('{"now":true}') && !text.includes('inside'));
    assert.deepEqual(
      logs.filter(({ message }) => message === 'request failed').map(({ status, route }) => [status, route]),
      [[500, '/stream']],
    );
  });

  test('is written in pieces of 64 KiB, so that a client that reads slowly is not taken for one that has stopped', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    const { send, end } = bind(await source());
    send('one');
    // Node 26 joins what is written in one turn.
    await wire.until((received) => received.includes('one'));
    send('x'.repeat(2 * 65_536 + 1));
    end();
    const text = await wire.until((received) => received.endsWith('\r\n0\r\n\r\n'));
    const sizes = [...text.matchAll(/\r\n([0-9a-f]+)\r\n/g)].map(([, size]) => parseInt(size!, 16));
    assert.deepEqual(sizes, [3, 65_536, 65_536, 1, 0]);
  });

  test('of one chunk has a Content-Length if the chunk has at most 64 KiB', async (t) => {
    for (const [length, expected] of [
      [65_536, ['65536']],
      [65_537, undefined],
    ] as const) {
      const { ask, source } = await openStreams(t);
      const wire = await ask('/stream', 'Connection: close\r\n');
      const { send, end } = bind(await source());
      send('x'.repeat(length));
      end();
      const { fields, content } = parseHead(await wire.untilClosed());
      assert.deepEqual([fields['content-length'], content.length], [expected, length]);
    }
  });

  test('of one chunk has a Content-Length if it ends later in the turn, as a stream of Node does', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream', 'Connection: close\r\n');
    const { send, end } = bind(await source());
    send('one');
    const later = (ticks: number): void => process.nextTick(ticks === 0 ? end : later, ticks - 1);
    later(3);
    const { fields, content } = parseHead(await wire.untilClosed());
    assert.deepEqual([fields['content-length'], content], [['3'], 'one']);
  });

  test('is cancelled if its first chunk is no Uint8Array', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.controller.enqueue('text');
    assert.match(await headOf(wire), /^HTTP\/1\.1 500 /);
    await until(() => given.cancels === 1);
  });

  test('may have chunks of another realm, as those of a test runner are', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream', 'Connection: close\r\n');
    const given = await source();
    given.controller.enqueue(runInNewContext('new Uint8Array([104, 105])'));
    given.end();
    assert.equal(parseHead(await wire.untilClosed()).content, 'hi');
  });

  for (const [what, path, spoil, sentence] of [
    ['fails', '/stream', ({ controller }: Source) => controller.error(new Error('inside')), undefined],
    [
      'has a chunk that is no Uint8Array',
      '/stream',
      ({ controller }: Source) => controller.enqueue('text'),
      'a chunk of the body of a Response is not a Uint8Array',
    ],
    [
      'fails with fail()',
      '/stream',
      ({ controller }: Source) => controller.error(fail(404, 'gone', 'Gone')),
      'the body of a Response failed with fail() or a refusal after its head was sent',
    ],
    [
      'fails with a refusal, as that of its own request does',
      '/stream',
      ({ controller }: Source) => controller.error(refuse('body-too-large')),
      'the body of a Response failed with fail() or a refusal after its head was sent: body-too-large',
    ],
    ['is shorter than its Content-Length', '/four', (source: Source) => source.end(), OTHER_LENGTH],
    ['is longer than its Content-Length', '/four', (source: Source) => source.send('more'), OTHER_LENGTH],
  ] as const) {
    test(`that ${what} after its head is cut off without a proper end, and the log says so [RFC 9112 §8, J11]`, async (t) => {
      const { ask, source, logs, responses } = await openStreams(t);
      const wire = await ask(path);
      const given = await source();
      given.send('one');
      await wire.until((text) => text.includes('one'));
      spoil(given);
      const { status, content, isWhole } = parseHead(await wire.untilClosed());
      assert.deepEqual([status, content, isWhole], [200, 'one', false]);
      await until(() => responses[0]!.destroyed);
      await turns();
      assert.deepEqual(
        logs.map(({ message, status: logged, route, sentence: said }) => [message, logged, route, said]),
        [
          ['request', 200, path, undefined],
          ['request failed', 200, path, sentence],
        ],
      );
      assert.equal(given.signal!.aborted, true);
    });
  }

  test('is cut off before its last byte if more follows than its Content-Length', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/four');
    const given = await source();
    given.send('ab');
    given.send('cd');
    await wire.until((text) => text.includes('ab'));
    await turns();
    given.send('e');
    const { content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([content, isWhole], ['ab', false]);
    await until(() => given.cancels === 1);
  });

  test('of exactly its Content-Length keeps the connection', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/four');
    const given = await source();
    given.send('ab');
    given.send('cd');
    given.end();
    wire.send(NOW);
    assert.match(await wire.untilClosed(), /\r\n\r\nabcdHTTP\/1\.1 200 [^]*\{"now":true\}$/);
  });

  for (const path of ['/silent', '/events']) {
    test(`is cancelled when the client leaves, and its signal aborts: ${path}`, async (t) => {
      const { ask, source, logs } = await openStreams(t);
      const wire = await ask(path);
      const given = await source();
      given.send('one');
      await wire.until((text) => text.includes('one'));
      wire.socket.resetAndDestroy();
      await until(() => given.cancels === 1 && given.signal!.aborted);
      await until(() => logs.length > 0);
      assert.deepEqual(
        logs.map(({ message, status }) => [message, status]),
        [['request', 200]],
      );
    });
  }

  test('is cancelled in the asynchronous context of its request', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/silent');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    store.run('other', () => wire.socket.resetAndDestroy());
    await until(() => given.cancels === 1);
    assert.equal(given.context, 'request');
  });

  for (const [what, path, end] of [
    ['its client leaves before the first chunk', '/pending', 'leave'],
    ['its client leaves', '/pending-events', 'leave'],
    ['its client closes its side', '/pending-events', 'close'],
    ['its token expires', '/pending-mine', 'expire'],
  ] as const) {
    test(`of a polyfill whose read stays pending ends when ${what}, and its body is cancelled [§27]`, async (t) => {
      const { ask, pending, logs } = await openStreams(t);
      const token = tokenWith({ exp: clock.now() / 1000 + 60 });
      const wire = await ask(path, `Authorization: Bearer ${token}\r\n`);
      await until(() => pending.reads === 1);
      if (end === 'leave') wire.socket.resetAndDestroy();
      if (end === 'close') wire.socket.end();
      if (end === 'expire') await passSeconds(60);
      await until(() => logs.some(({ message, route }) => message === 'request' && route === path));
      assert.ok(pending.cancels > 0);
      if (end !== 'leave') await wire.until((text) => text.endsWith('0\r\n\r\n'));
      wire.destroy();
    });
  }

  test('is cancelled before its head if the client leaves, without a log line above debug', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    wire.socket.resetAndDestroy();
    await until(() => given.cancels === 1);
    await until(() => logs.length > 0);
    assert.deepEqual(
      logs.map(({ message, status }) => [message, status]),
      [['request', null]],
    );
  });

  test('that fails with the abort of its signal before its head gets no response, which would look whole to a client that has closed its side', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    const { signal, controller } = await source();
    signal!.addEventListener('abort', () => controller.error(signal!.reason));
    wire.socket.end();
    assert.equal(await wire.untilClosed(), '');
    assert.deepEqual(
      logs.map(({ message, status, reason }) => [message, status, reason]),
      [['request', null, undefined]],
    );
  });

  test('is cancelled if it comes after its client has left, and its request is over', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/late');
    await turns(20);
    wire.socket.resetAndDestroy();
    const late = await source();
    await until(() => late.cancels === 1 && logs.length > 0);
    assert.deepEqual(
      logs.map(({ message, status }) => [message, status]),
      [['request', null]],
    );
  });

  test('that waits behind another is cancelled when the client leaves, and is logged', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    wire.send('GET /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /events HTTP/1.1\r\nHost: a\r\n\r\n');
    const second = await source(1);
    const third = await source(2);
    second.send('one');
    await turns();
    wire.socket.resetAndDestroy();
    await until(() => second.cancels === 1 && third.cancels === 1 && logs.length === 3);
  });

  test('that waits behind another is logged when the client leaves before its first chunk', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    wire.send('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
    const second = await source(1);
    wire.socket.resetAndDestroy();
    await until(() => second.cancels === 1 && logs.length === 2);
  });

  test('reaches a client that has closed only its side, although the signal aborts', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    wire.socket.end();
    await until(() => given.signal!.aborted);
    given.send('two');
    given.end();
    const { content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([content, isWhole, given.cancels], ['onetwo', true, 0]);
  });

  test('that passes on the abort of its signal after the client has left is not logged as a bug [J19]', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    given.signal!.addEventListener('abort', () => given.controller.error(given.signal!.reason));
    wire.socket.end();
    assert.equal(parseHead(await wire.untilClosed()).isWhole, false);
    await until(() => logs.length > 0);
    assert.deepEqual(
      logs.map(({ message }) => message),
      ['request'],
    );
  });

  for (const [what, path, leave] of [
    ['stops reading', '/full', (wire: Wire) => wire.socket.pause()],
    ['closes its side of a silent stream', '/silent', (wire: Wire) => wire.socket.end()],
  ] as const) {
    test(`is cancelled 90 seconds after its client ${what}, its signal aborts, and it is logged`, async (t) => {
      const { ask, source, responses, logs } = await openStreams(t);
      const wire = await ask(path);
      const given = await source();
      if (path === '/silent') given.send('one');
      await headOf(wire);
      leave(wire);
      const socket = responses[0]!.socket!;
      if (path === '/silent') await until(() => !socket.readable);
      else await until(() => responses[0]!.writableNeedDrain);
      await untilStill(socket);
      await passSeconds(90);
      assert.equal(given.cancels, 0);
      await passSeconds(3);
      await until(() => given.cancels === 1 && given.signal!.aborted && logs.length === 1);
    });
  }

  const PIPELINED = `GET /now HTTP/1.1\r\nHost: a\r\nX-Pad: ${'x'.repeat(8_000)}\r\n\r\n`.repeat(9);

  for (const [what, path, begun, sent] of [
    ['closes its side before the first chunk', '/stream', false, ''],
    ['has sent more than 64 KiB of requests behind it, and leaves', '/silent', true, PIPELINED],
    ['has sent a last request behind it, and leaves', '/silent', true, NOW],
    ['has sent more behind the last request than is read, and leaves', '/last', true, 'x'.repeat(1_500_000)],
  ] as const) {
    test(`is cancelled 90 seconds after a client that ${what}, if it is silent`, async (t) => {
      const { ask, source, sources, responses } = await openStreams(t);
      const isLast = path === '/last';
      const wire = await ask(isLast ? '/silent' : path, isLast ? 'Connection: close\r\n' : '');
      const given = await source();
      if (begun) {
        given.send('one');
        await wire.until((text) => text.includes('one'));
      }
      wire.send(sent);
      const socket = responses[0]!.socket!;
      if (sent === '') wire.socket.end();
      await until(() => (sent === '' ? !socket.readable : socket.isPaused()));
      wire.socket.end();
      await passSeconds(90);
      assert.equal(given.cancels, 0);
      await passSeconds(3);
      await until(() => given.cancels === 1 && given.signal!.aborted);
      assert.equal(sources.length, 1);
    });
  }

  test('lets the system ask whether a client that says nothing is still there, from the next sweep on', async (t) => {
    const { ask, source, responses } = await openStreams(t);
    const wire = await ask('/silent');
    (await source()).send('one');
    await wire.until((text) => text.includes('one'));
    const asked = t.mock.method(responses[0]!.socket!, 'setKeepAlive');
    await passSeconds(1);
    assert.deepEqual(asked.mock.calls[0]?.arguments, [true, 30_000]);
  });

  test('has no time limit of its own, even if it is silent for an hour, and none is read meanwhile', async (t) => {
    const { ask, source } = await openStreams(t, { HANDLER_TIMEOUT_SECONDS: '1' });
    const wire = await ask('/stream');
    const given = await source();
    await passSeconds(10);
    given.send('one');
    await wire.until((text) => text.includes('one'));
    clock.advance(3_600_000);
    await passSeconds(3);
    given.send('two');
    given.end();
    assert.equal(parseHead(await wire.until((text) => text.endsWith('0\r\n\r\n'))).content, 'onetwo');
  });

  test('that comes after HANDLER_TIMEOUT_SECONDS is cancelled', async (t) => {
    const { ask, source } = await openStreams(t, { HANDLER_TIMEOUT_SECONDS: '1' });
    const wire = await ask('/late');
    await turns(20);
    clock.advance(1_000);
    assert.match(await headOf(wire), /^HTTP\/1\.1 503 /);
    const late = await source();
    await until(() => late.cancels === 1);
  });

  for (const field of ['', 'TE: chunked\r\n', 'Connection: keep-alive\r\nTE: chunked\r\n']) {
    test(`to HTTP/1.0 ends with the connection, without a transfer coding, even for ${JSON.stringify(field)} [RFC 9112 §6.1]`, async (t) => {
      const { ask, source } = await openStreams(t);
      const wire = await ask('/stream', field, '1.0');
      const given = await source();
      given.send('one');
      await wire.until((text) => text.includes('one'));
      given.end();
      const { fields, content } = parseHead(await wire.untilClosed());
      assert.deepEqual(
        [fields['transfer-encoding'], fields.connection, content],
        [undefined, ['close'], 'one'],
      );
    });
  }

  test('to HTTP/1.0 is the last response of its connection, even if the client would keep it [RFC 9112 §6.3, §9.6]', async (t) => {
    const { ask, source, logs, responses } = await openStreams(t);
    const wire = await ask('/stream', 'Connection: keep-alive\r\n', '1.0');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    const socket = responses[0]!.socket!;
    const { bytesRead } = socket;
    wire.send(NOW);
    await until(() => socket.bytesRead > bytesRead);
    await turns();
    given.end();
    assert.ok((await wire.untilClosed()).endsWith('\r\n\r\none'));
    await turns();
    assert.deepEqual(
      logs.map(({ status }) => status),
      [200],
    );
  });

  test('to HTTP/1.0 keeps requests behind it from running, even before its first chunk [RFC 9112 §9.6]', async (t) => {
    const { ask, source, sources, responses } = await openStreams(t);
    const wire = await ask('/stream', 'Connection: keep-alive\r\n', '1.0');
    const given = await source();
    const socket = responses[0]!.socket!;
    const { bytesRead } = socket;
    wire.send('GET /stream HTTP/1.0\r\nHost: a\r\n\r\n');
    await until(() => socket.bytesRead > bytesRead);
    await turns();
    assert.equal(sources.length, 1);
    given.send('one');
    given.end();
    assert.ok((await wire.untilClosed()).endsWith('\r\n\r\none'));
  });

  test('does not abort the signal if there is none, since the handler may go on [§27]', async (t) => {
    const { ask, sources } = await openStreams(t);
    const wire = await ask('/none', 'Connection: close\r\n');
    assert.match(await wire.untilClosed(), /^HTTP\/1\.1 204 /);
    assert.equal(sources[0]!.signal!.aborted, false);
  });

  for (const status of [204, 205, 304]) {
    test(`with the status ${status} is cancelled and not sent [RFC 9110 §15.3.5, §15.3.6, §15.4.5]`, async (t) => {
      const { ask, source } = await openStreams(t);
      const wire = await ask(`/${status}`, 'Connection: close\r\n');
      const text = await wire.untilClosed();
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\n\r\n$`));
      assert.equal((await source()).cancels, 1);
    });
  }

  for (const path of ['/stream', '/events', '/closed']) {
    test(`that HEAD does not send is cancelled, and its signal aborts, since what feeds it may know of no other end: ${path} [§27]`, async (t) => {
      const { ask, source, logs } = await openStreams(t);
      const wire = await ask(path, 'Connection: close\r\n', '1.1', 'HEAD');
      assert.match(await wire.untilClosed(), /^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
      const { cancels, signal } = await source();
      assert.deepEqual([cancels, signal!.aborted], [path === '/closed' ? 0 : 1, true]);
      assert.deepEqual(
        logs.map(({ message, status }) => [message, status]),
        [['request', 200]],
      );
    });
  }

  test('that HEAD does not send is not logged as sent to a client that has left', async (t) => {
    const { ask, source, responses, logs } = await openStreams(t);
    const wire = await ask('/late', '', '1.1', 'HEAD');
    await until(() => responses.length > 0);
    wire.socket.resetAndDestroy();
    const given = await source();
    await until(() => given.cancels === 1 && logs.length > 0);
    assert.deepEqual(
      logs.map(({ message, status }) => [message, status]),
      [['request', null]],
    );
  });

  test('to HTTP/1.0 that fails ends with a reset, since the end of the connection would look proper [RFC 9112 §6.3]', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream', '', '1.0');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.endsWith('one'));
    const failed = once(wire.socket, 'error');
    given.controller.error(new Error('inside'));
    assert.equal((await failed)[0].code, 'ECONNRESET');
  });

  for (const count of [1, 2]) {
    test(`to HTTP/1.0, the first of ${count}, that the end of a drain cuts off ends with a reset, too [RFC 9112 §6.3]`, async (t) => {
      const { port, source, drain, server } = await openStreams(t);
      const wire = await openWire(port);
      wire.send('GET /stream HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n'.repeat(count));
      const given = await source();
      given.send('one');
      await wire.until((text) => text.endsWith('one'));
      const failed = once(wire.socket, 'error');
      const drained = drain();
      await untilClosing(server);
      clock.advance(10_000);
      assert.equal((await failed)[0].code, 'ECONNRESET');
      assert.equal(await drained, 'deadline');
    });
  }

  test('to HTTP/1.0 that has not begun when a drain cuts it off ends without a reset, which could overtake an earlier response', async (t) => {
    const { ask, source, responses, drain, server } = await openStreams(t);
    const wire = await ask('/late', '', '1.0');
    await until(() => responses.length > 0);
    const reset = t.mock.method(responses[0]!.socket!, 'resetAndDestroy');
    const drained = drain();
    await untilClosing(server);
    clock.advance(10_000);
    assert.equal(await wire.untilClosed(), '');
    assert.equal(await drained, 'deadline');
    assert.equal(reset.mock.callCount(), 0);
    await source();
  });

  test('to HTTP/1.0 whose client does not read ends with a reset, too [RFC 9112 §6.3]', async (t) => {
    const { ask, source, responses } = await openStreams(t);
    const wire = await ask('/full', '', '1.0');
    const given = await source();
    await headOf(wire);
    wire.socket.pause();
    await until(() => responses[0]!.writableNeedDrain);
    const socket = responses[0]!.socket!;
    await untilStill(socket);
    // What a client that has stopped reading makes of a reset depends on its system.
    const reset = t.mock.method(socket, 'resetAndDestroy');
    await passSeconds(93);
    await until(() => given.cancels === 1);
    assert.equal(reset.mock.callCount(), 1);
  });

  test('that fails ends without a reset in HTTP/1.1, since a reset could overtake what was sent', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    const closed = once(wire.socket, 'close');
    given.controller.error(new Error('inside'));
    assert.deepEqual(await closed, [false]);
  });

  for (const [what, head] of [
    ['with Connection: close', 'GET /silent HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
    ['of HTTP/1.0', 'GET /silent HTTP/1.0\r\nHost: a\r\n\r\n'],
    ['with an unread body', 'POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc'],
    [
      'with more of an unread body than Node buffers',
      `POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n${'a'.repeat(200_000)}`,
    ],
  ]) {
    test(`to a request ${what} is cancelled when the client leaves`, async (t) => {
      const { port, source } = await openStreams(t);
      const wire = await openWire(port);
      wire.send(head!);
      const given = await source();
      given.send('one');
      assert.match(await wire.until((text) => text.includes('one')), /\r\nConnection: close\r\n/);
      wire.socket.end();
      await until(() => given.signal!.aborted);
      wire.socket.resetAndDestroy();
      given.send('two');
      await until(() => given.cancels === 1);
    });
  }

  test('is followed by nothing that its connection sends after the last request [RFC 9112 §9.6]', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/stream', 'Connection: close\r\n');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    wire.send(NOW);
    await turns(20);
    given.end();
    const { content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([content, isWhole], ['one', true]);
  });

  test('counts as a request in progress until it ends, in the access log and in the drain', async (t) => {
    const { ask, source, logs, drain, server } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    assert.equal(logs.length, 0);
    const drained = drain();
    await untilClosing(server);
    await passSeconds(3);
    given.send('two');
    clock.advance(2_000);
    given.end();
    const { content, isWhole } = parseHead(await wire.until((text) => text.endsWith('0\r\n\r\n')));
    assert.deepEqual([content, isWhole], ['onetwo', true]);
    assert.ok(logs[0]!.durationMillis >= 5_000);
    await passSeconds(2);
    assert.equal(await drained, 'drained');
  });

  test('is cut off and cancelled at the end of a drain', async (t) => {
    const { ask, source, drain, server } = await openStreams(t);
    const wire = await ask('/stream');
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    const drained = drain();
    await untilClosing(server);
    clock.advance(10_000);
    assert.equal(parseHead(await wire.untilClosed()).isWhole, false);
    assert.equal(await drained, 'deadline');
    assert.deepEqual([given.cancels, given.signal!.aborted], [1, true]);
  });

  test('does not end with the token of its caller, unless it is an event stream', async (t) => {
    const { ask, source } = await openStreams(t);
    const exp = Math.floor(clock.now() / 1000) + 60;
    const wire = await ask('/file', `Authorization: Bearer ${tokenWith({ exp })}\r\n`);
    const given = await source();
    given.send('one');
    await wire.until((text) => text.includes('one'));
    await passSeconds(90);
    given.send('two');
    given.end();
    assert.equal(parseHead(await wire.until((text) => text.endsWith('0\r\n\r\n'))).content, 'onetwo');
  });
});

describe('an event stream', { timeout: 20_000 }, () => {
  test('has its head sent at once, and each chunk as it comes', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/events');
    const given = await source();
    assert.match(await headOf(wire), /^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
    given.send('data: 1\n\n');
    await wire.until((text) => text.includes('data: 1\n\n\r\n'));
  });

  for (const [type, isEvents] of [
    ['text/event-stream', true],
    ['Text/Event-STREAM', true],
    ['text/event-stream;charset=utf-8', true],
    ['text/event-stream ; charset=utf-8', true],
    ['text/event-stream-of-another-kind', false],
    ['text/event-stream x', false],
    ['x-text/event-stream', false],
  ] as const) {
    test(`is recognized by its media type, in any case and with parameters: ${type} [RFC 9110 §8.3.1]`, async (t) => {
      const { ask, source } = await openStreams(t);
      const exp = Math.ceil(clock.now() / 1000) + 7;
      clock.set(exp * 1000 - 7_000);
      const path = `/typed?type=${encodeURIComponent(type)}`;
      const wire = await ask(path, `Authorization: Bearer ${tokenWith({ exp })}\r\n`);
      const given = await source();
      given.send('data: 1\n\n');
      await wire.until((text) => text.includes('data: 1\n\n'));
      assert.equal(clock.pending.includes(7_000), isEvents);
      given.end();
    });
  }

  test('without a caller sets no timer', async (t) => {
    const { ask } = await openStreams(t);
    await headOf(await ask('/events'));
    assert.ok(!clock.pending.some(Number.isNaN));
  });

  test('leaves no timer behind if it ends before the token of its caller expires', async (t) => {
    const { ask, source } = await openStreams(t);
    const exp = Math.ceil(clock.now() / 1000) + 7;
    clock.set(exp * 1000 - 7_000);
    const wire = await ask('/mine', `Authorization: Bearer ${tokenWith({ exp })}\r\n`);
    const given = await source();
    await headOf(wire);
    assert.equal(clock.pending.includes(7_000), true);
    given.end();
    await wire.until((text) => text.endsWith('\r\n0\r\n\r\n'));
    assert.equal(clock.pending.includes(7_000), false);
  });

  test('ends properly when the token of its caller expires, within a second, and its signal aborts [J11]', async (t) => {
    const { ask, source, logs } = await openStreams(t);
    const seconds = Math.ceil(clock.now() / 1000) + 60;
    clock.set(seconds * 1000 - 60_000);
    const wire = await ask('/mine', `Authorization: Bearer ${tokenWith({ exp: seconds })}\r\n`);
    const given = await source();
    given.send('data: 1\n\n');
    await wire.until((text) => text.includes('data: 1'));
    clock.advance(59_999);
    await turns(20);
    assert.equal(given.cancels, 0);
    clock.advance(1);
    const text = await wire.until((received) => received.endsWith('0\r\n\r\n'));
    assert.deepEqual([parseHead(text).content, parseHead(text).isWhole], ['data: 1\n\n', true]);
    assert.deepEqual([given.cancels, given.signal!.aborted], [1, true]);
    assert.deepEqual(
      logs.map(({ message, status }) => [message, status]),
      [['request', 200]],
    );
    wire.send(NOW);
    assert.ok((await wire.untilClosed()).endsWith('{"now":true}'));
  });

  test('ends within ten seconds if the clock is set past the expiry of the token, as after the sleep of a machine, and goes on if it is set back', async (t) => {
    const { ask, source } = await openStreams(t);
    const seconds = Math.ceil(clock.now() / 1000) + 60;
    clock.set(seconds * 1000 - 60_000);
    await ask('/mine', `Authorization: Bearer ${tokenWith({ exp: seconds })}\r\n`);
    const given = await source();
    await turns(20);
    clock.set(clock.now() - 3_600_000);
    clock.advance(120_000);
    await turns(20);
    assert.equal(given.cancels, 0);
    clock.set(seconds * 1000);
    clock.advance(10_000);
    await until(() => given.cancels === 1);
  });

  test('with a token that expires in more than 24 days is not ended by the limit of timers', async (t) => {
    const { ask, source } = await openStreams(t);
    const exp = Math.floor(clock.now() / 1000) + 40 * 86_400;
    await ask('/mine', `Authorization: Bearer ${tokenWith({ exp })}\r\n`);
    const given = await source();
    await turns(20);
    assert.ok(clock.pending.every((millis) => millis < 2 ** 31));
    clock.advance(2 ** 31 - 1);
    await turns(20);
    assert.equal(given.cancels, 0);
    clock.advance(40 * 86_400_000 - 2 ** 31 + 1);
    await until(() => given.cancels === 1);
  });

  test('ends at once with a token that was accepted within the tolerance', async (t) => {
    const { ask, source } = await openStreams(t, { IDP_CLOCK_TOLERANCE_SECONDS: '5' });
    const exp = Math.floor(clock.now() / 1000) - 2;
    const wire = await ask('/mine', `Authorization: Bearer ${tokenWith({ exp })}\r\n`);
    const text = await wire.until((received) => received.endsWith('0\r\n\r\n'));
    assert.deepEqual([parseHead(text).status, parseHead(text).content], [200, '']);
    assert.equal((await source()).cancels, 1);
  });

  test('ends properly when a drain begins', async (t) => {
    const { ask, source, drain, server } = await openStreams(t);
    const wire = await ask('/events');
    const given = await source();
    given.send('data: 1\n\n');
    await wire.until((text) => text.includes('data: 1'));
    given.signal!.addEventListener('abort', () => given.controller.error(given.signal!.reason));
    const drained = drain();
    const text = await wire.until((received) => received.endsWith('0\r\n\r\n'));
    assert.equal(parseHead(text).isWhole, true);
    assert.equal(given.signal!.aborted, true);
    await untilClosing(server);
    await passSeconds(3);
    assert.equal(await drained, 'drained');
  });

  test('that a drain ends before the last byte of its Content-Length is cut off without a proper end [RFC 9112 §8]', async (t) => {
    const { ask, source, logs, drain, server } = await openStreams(t);
    const wire = await ask('/four-events');
    const given = await source();
    given.send('ab');
    await wire.until((text) => text.includes('ab'));
    // Waits until nothing follows.
    given.send('cd');
    await turns();
    const drained = drain();
    const { content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([content, isWhole], ['ab', false]);
    await untilClosing(server);
    await passSeconds(3);
    assert.equal(await drained, 'drained');
    assert.deepEqual(
      logs.filter(({ message }) => message === 'request failed').map(({ sentence }) => sentence),
      [OTHER_LENGTH],
    );
  });

  test('that has ended keeps its signal when a drain begins, even if its client has not read all of it', async (t) => {
    const { ask, source, drain, server, responses } = await openStreams(t);
    const wire = await ask('/events');
    wire.socket.pause();
    const { signal, controller } = await source();
    const socket = responses[0]!.socket!;
    while (socket.writableLength === 0) {
      controller.enqueue(new Uint8Array(8 * 1024));
      await turns(1);
    }
    controller.close();
    await until(() => responses[0]!.writableEnded);
    assert.equal(responses[0]!.writableFinished, false);
    const drained = drain();
    await untilClosing(server);
    assert.equal(signal!.aborted, false);
    wire.socket.resume();
    await wire.until((text) => text.endsWith('\r\n0\r\n\r\n'));
    await passSeconds(3);
    assert.equal(await drained, 'drained');
  });

  test('that begins during a drain ends at once', async (t) => {
    const { source, drain, server, port } = await openStreams(t);
    const wire = await openWire(port);
    wire.send('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
    wire.send('GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
    const first = await source(0);
    const second = await source(1);
    const drained = drain();
    await untilClosing(server);
    first.end();
    const [, text = ''] = (await wire.untilClosed()).split(/(?=HTTP\/1\.1 200)/);
    assert.deepEqual([parseHead(text).isWhole, second.cancels], [true, 1]);
    assert.equal(await drained, 'drained');
  });

  test('ends at once if its client has closed its side before', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/late-events');
    wire.socket.end();
    assert.equal(parseHead(await wire.untilClosed()).isWhole, true);
    assert.equal((await source()).cancels, 1);
  });

  test('ends properly when its client closes its side', async (t) => {
    const { ask, source } = await openStreams(t);
    const wire = await ask('/events');
    const given = await source();
    await headOf(wire);
    wire.socket.end();
    assert.equal(parseHead(await wire.untilClosed()).isWhole, true);
    assert.deepEqual([given.cancels, given.signal!.aborted], [1, true]);
  });
});

function bind(source: Source) {
  return { send: source.send.bind(source), end: source.end.bind(source) };
}
