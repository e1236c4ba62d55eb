/* The asynchronous context of each request is the one in which it arrived, queued or not
   (docs/routes-reference.md). */
import { strict as assert } from 'node:assert';
import { AsyncLocalStorage } from 'node:async_hooks';
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
import { startRoutes } from '../../support/routes.ts';

/** A service whose server runs each `request` event in a context that holds the path of the request. */
async function openTraced(context: TestContext) {
  const storage = new AsyncLocalStorage<string>();
  const seen: (readonly [path: string, context: string | undefined])[] = [];
  const note = (path: string) => seen.push([path, storage.getStore()]);

  const judged = schemaOf((value) => {
    note(`/schema?id=${(value as { id: string }).id}`);
    return { value };
  });

  const app = await startRoutes({
    routes: [
      get('/sync/{id}', open, ({ path }) => [note(path)]),
      get('/async/{id}', open, async ({ path }) => {
        await null;
        return [note(path)];
      }),
      post('/body/{id}', open, json(), ({ path }) => [note(path)]),
      get('/schema', open, query(judged), () => ({})),
      get(
        '/held',
        open,
        () => new Promise<object>((resolve) => app.server.emit('waiting', () => resolve({}))),
      ),
      get('/gone', open, ({ path, signal }) => {
        app.server.emit('waiting');
        return new Promise<object>((resolve) => {
          signal.addEventListener('abort', () => resolve([note(path)]));
        });
      }),
    ],
    prepare: (server) => {
      const { emit } = server;
      // Like OpenTelemetry's instrumentation of node:http.
      server.emit = (event: string, ...rest: readonly any[]): boolean => {
        const go = () => Reflect.apply(emit, server, [event, ...rest]);
        return event === 'request' ? storage.run(rest[0].url, go) : go();
      };
    },
  });
  context.after(() => app.stop());
  return { ...app, seen, storage };
}

const request = (line: string, body = '') =>
  `${line} HTTP/1.1\r\nHost: a\r\n${body && `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`}\r\n${body}`;

describe('the asynchronous context of a request', { timeout: 30_000 }, () => {
  for (const [what, line, body] of [
    ['a handler', 'GET /sync/', ''],
    ['a handler that waits', 'GET /async/', ''],
    ['a handler behind a body', 'POST /body/', '1'],
  ] as const) {
    test(`is its own in ${what}, however many requests arrive in one turn`, async (t) => {
      const { port, seen } = await openTraced(t);
      const count = 100;
      const wire = await openWire(port);
      const all = Array.from({ length: count }, (_, index) => request(`${line}${index}`, body));
      wire.send(all.join(''));
      await wire.until((text) => statusesIn(text).length === count);
      assert.equal(seen.length, count);
      for (const [path, context] of seen) assert.equal(context, path);
      wire.destroy();
    });
  }

  test('is its own in a schema, even with requests of other connections', async (t) => {
    const { port, seen } = await openTraced(t);
    const wires = await Promise.all(Array.from({ length: 5 }, () => openWire(port)));
    for (const [index, wire] of wires.entries()) wire.send(request(`GET /schema?id=${index}`));
    await Promise.all(wires.map((wire) => wire.until((text) => statusesIn(text).length === 1)));
    assert.equal(seen.length, wires.length);
    for (const [path, context] of seen) assert.equal(context, path);
    for (const wire of wires) wire.destroy();
  });

  test('is its own in a handler that a drain has run once the port is closed', async (t) => {
    const { port, seen, drain } = await openTraced(t);
    const wires = await Promise.all(Array.from({ length: 3 }, () => openWire(port)));
    void drain();
    for (const [index, wire] of wires.entries()) wire.send(request(`GET /sync/${index}`));
    await Promise.all(wires.map((wire) => wire.untilClosed()));
    assert.equal(seen.length, wires.length);
    for (const [path, context] of seen) assert.equal(context, path);
  });

  test('is its own in a listener for the abort of its signal, when the client leaves', async (t) => {
    const { port, seen, server } = await openTraced(t);
    const wire = await openWire(port);
    const waiting = once(server, 'waiting');
    wire.send(request('GET /gone'));
    await waiting;
    wire.socket.end();
    await wire.untilClosed();
    assert.deepEqual(seen, [['/gone', '/gone']]);
  });

  test('is its own in a listener for the abort of its signal, at the end of a drain', async (t) => {
    const { port, seen, server, drain, storage } = await openTraced(t);
    const wire = await openWire(port);
    const waiting = once(server, 'waiting');
    wire.send(request('GET /gone'));
    await waiting;
    const drained = storage.run('the drain', drain);
    await untilClosing(server);
    // In this phase the `close` of a socket comes late.
    setTimeout(() => clock.advance(10_000));
    assert.equal(await drained, 'deadline');
    assert.deepEqual(seen, [['/gone', '/gone']]);
    wire.destroy();
  });

  test('is its own when a response is written that a drain has held back', async (t) => {
    const { port, seen, server, drain, storage } = await openTraced(t);
    const wire = await openWire(port);
    const waiting = once(server, 'waiting');
    const arrived = once(server, 'request');
    wire.send(request('GET /held'));
    const [[finish], [, response]] = await Promise.all([waiting, arrived]);
    const { writeHead } = response;
    response.writeHead = (...head: readonly unknown[]) => {
      seen.push(['/held', storage.getStore()]);
      return Reflect.apply(writeHead, response, head);
    };
    const drained = storage.run('the drain', drain);
    finish();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    assert.deepEqual(seen, [['/held', '/held']]);
    clock.advance(1_000);
    assert.equal(await drained, 'drained');
  });

  test('keeps what an earlier handler of its connection entered, but only before Node 24', async (t) => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const { port, stop } = await startRoutes({
      routes: [
        get('/{id}', open, ({ path }) => {
          seen.push(storage.getStore());
          storage.enterWith(path);
          return {};
        }),
      ],
    });
    t.after(stop);
    for (const [path, count] of [
      ['/1', 2],
      ['/2', 1],
    ] as const) {
      const wire = await openWire(port);
      wire.send(request(`GET ${path}`).repeat(count));
      await wire.until((text) => statusesIn(text).length === count);
      wire.destroy();
    }

    const [major] = process.versions.node.split('.');
    assert.deepEqual(seen, [undefined, Number(major) < 24 ? '/1' : undefined, undefined]);
  });
});
