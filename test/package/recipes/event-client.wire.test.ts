/* The client of the recipe for events, with a server that sends what it is told to. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { serve, type Served } from '../../support/serve.ts';

interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const load = (name: string) => import(name);

const stream =
  (...chunks: readonly (string | Buffer)[]): Answer =>
  async (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
    for (const chunk of chunks) await new Promise((resolve) => response.write(chunk, resolve));
    response.end();
  };

const status =
  (code: number, fields: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, fields).end();

async function abortAfter(ticks: number, controller: AbortController) {
  for (let tick = 0; tick < ticks; tick += 1) await undefined;
  controller.abort(new Error('enough'));
}

/** The end of every test. */
const OVER = status(204);

describe('the client of an event stream', { timeout: 20_000 }, () => {
  let served: Served;
  let answers: Answer[] = [];
  let requests: IncomingMessage[] = [];
  let tests = 0;
  let path = '';
  let readEvents: (url: string, options: object) => AsyncGenerator<StreamEvent>;

  before(async () => {
    ({ readEvents } = await load('./event-client.mjs'));
    served = await serve(
      createServer((request, response) => {
        // A request that an earlier test gave up may only arrive now.
        if (request.url !== path) return OVER(response, request);

        requests.push(request);
        (answers.shift() ?? OVER)(response, request);
      }),
    );
  });

  after(() => served.stop());

  beforeEach(() => {
    answers = [];
    requests = [];
    tests += 1;
    path = `/events/${tests}`;
  });

  const read = (options = {}) =>
    readEvents(`http://127.0.0.1:${served.port}${path}`, {
      getToken: async () => 'token',
      retryMillis: 1,
      ...options,
    });

  async function all(...given: readonly Answer[]) {
    answers = [...given];
    const events: StreamEvent[] = [];
    for await (const event of read()) events.push(event);
    return events;
  }

  const sent = (name: string) => requests.map(({ headers }) => headers[name]);

  test('understands every line that the standard has [HTML, Server-sent events]', async () => {
    const text =
      '\ufeff: a comment\r\nevent: order\r\ndata: one\rdata:two\ndata\nid: 7\nunknown: x\n\ndata: é\n\nevent: x\n\nid: 8\n\n';
    const bytes = Buffer.from(text);
    // Byte by byte: characters, and ends of lines, come in parts.
    const events = await all(stream(...Array.from(bytes, (byte) => Buffer.of(byte))));
    assert.deepEqual(events, [
      { event: 'order', data: 'one\ntwo\n', id: '7' },
      { event: 'message', data: 'é', id: '7' },
    ]);
    assert.deepEqual(sent('last-event-id'), [undefined, '8']);
    assert.deepEqual(sent('authorization'), ['Bearer token', 'Bearer token']);
  });

  test('leaves out an event without its end, and an id with NUL', async () => {
    assert.deepEqual(await all(stream('id: 1\ndata: whole\n\n', 'id: 2\ndata: part\n')), [
      { event: 'message', data: 'whole', id: '1' },
    ]);
    assert.deepEqual(sent('last-event-id'), [undefined, '1']);
    assert.deepEqual(await all(stream('id: a\0b\ndata: x\n\n')), [{ event: 'message', data: 'x', id: '' }]);
  });

  test('comes back after a stream that is cut off, a 429 and a 500, and ends at a 204', async () => {
    const cut: Answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('id: 1\ndata: x\n\n', () => response.destroy());
    };

    const events = await all(
      cut,
      status(429),
      status(500),
      (response) => response.destroy(),
      stream('data: y\n\n'),
    );
    assert.deepEqual(
      events.map(({ data }) => data),
      ['x', 'y'],
    );
    assert.equal(requests.length, 6);
    assert.deepEqual(sent('last-event-id').slice(1), Array<string>(5).fill('1'));
  });

  test('asks for another token after a 401, and waits when the network fails after it', async () => {
    const asked: boolean[] = [];
    const getToken = ({ isRefused }: { isRefused: boolean }) => asked.push(isRefused);
    answers = [
      status(401),
      (response) => response.destroy(),
      status(401),
      status(200, { 'Content-Type': 'text/event-stream' }),
    ];
    for await (const _ of read({ getToken }));
    assert.deepEqual(asked, [false, true, false, true, false]);
    answers = [status(401), status(401)];
    await assert.rejects(read().next(), { name: 'EventStreamError', status: 401 });
  });

  for (const [name, answer] of Object.entries({
    'a redirect, which could take the token elsewhere': status(302, { Location: '/other' }),
    'a response that is no event stream': status(200, { 'Content-Type': 'text/html' }),
    'a 404': status(404),
    'an event that is too long': stream(`data: ${'x'.repeat(1_048_577)}`, '\n\n'),
    'a line that is too long and has no end': (response: ServerResponse) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('x'.repeat(1_048_577));
    },
    'an event with too many lines': stream(`data: ${'x'.repeat(999)}\n`.repeat(1_100), '\n'),
  })) {
    test(`throws at ${name}, and does not come back`, async () => {
      await assert.rejects(all(answer), { name: 'EventStreamError' });
      assert.equal(requests.length, 1);
    });
  }

  test('throws what getToken throws', async () => {
    const getToken = async () => {
      throw new Error('logged out');
    };

    await assert.rejects(read({ getToken }).next(), { message: 'logged out' });
    assert.equal(requests.length, 0);
  });

  test('stops at once when its signal aborts, while it reads and while it waits', async () => {
    const controller = new AbortController();
    answers = [(response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()];
    const reading = read({ signal: controller.signal }).next();
    while (requests.length === 0) await new Promise(setImmediate);
    controller.abort(new Error('enough'));
    await assert.rejects(reading, { message: 'enough' });

    const later = new AbortController();
    answers = [
      (response) => {
        response.writeHead(503, { 'Retry-After': '600' }).end();
        response.on('close', () => later.abort(new Error('enough')));
      },
    ];
    await assert.rejects(read({ signal: later.signal }).next(), { message: 'enough' });
    await assert.rejects(read({ signal: later.signal }).next(), { message: 'enough' });
  });

  test('stops at once when its signal aborts while it waits for a token, or has one', async () => {
    const controller = new AbortController();

    const getToken = () => {
      queueMicrotask(() => controller.abort(new Error('enough')));
      return new Promise(() => {});
    };

    await assert.rejects(read({ signal: controller.signal, getToken }).next(), { message: 'enough' });

    for (let ticks = 0; ticks < 10; ticks += 1) {
      const later = new AbortController();

      const getLate = async () => {
        void abortAfter(ticks, later);
        return 'token';
      };

      answers = [
        (response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders(),
      ];
      await assert.rejects(read({ signal: later.signal, getToken: getLate }).next(), { message: 'enough' });
    }
  });

  test('gives no event after its signal has aborted', async () => {
    const controller = new AbortController();
    answers = [stream('data: x\n\ndata: y\n\n')];
    const events = read({ signal: controller.signal });
    assert.equal((await events.next()).value.data, 'x');
    controller.abort(new Error('enough'));
    await assert.rejects(events.next(), { message: 'enough' });
  });

  test('does not wait when its signal aborts as it begins to', async (t) => {
    let onRequest = () => {};
    t.mock.method(globalThis, 'fetch', async () => {
      onRequest();
      return new Response(null, { status: 503, headers: { 'Retry-After': '600' } });
    });

    for (let ticks = 0; ticks < 10; ticks += 1) {
      const controller = new AbortController();
      onRequest = () => void abortAfter(ticks, controller);
      await assert.rejects(read({ signal: controller.signal }).next(), { message: 'enough' });
    }
  });

  test('closes its connection when its reader stops', async () => {
    let isClosed = () => {};
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve;
    });
    answers = [
      (response) => {
        response.on('close', isClosed);
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: x\n\n');
      },
    ];
    for await (const _ of read()) break;
    await closed;
  });
});
