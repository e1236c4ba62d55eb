/* A body that nobody wants, beside a reply that is awaited: it goes nowhere, and its connection ends. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { get, open, post } from '../../src/gatehouse.ts';
import { openWire } from '../support/client.ts';
import { createTable } from '../support/table.ts';

for (const method of ['GET', 'POST']) {
  test(`keeps nothing of the body of a ${method} that its row does not take while the reply is awaited`, async (t) => {
    const held = deferred();
    const handler = () => held.promise.then(() => ({ done: true }));
    const { responder } = createTable({ rows: [get('/slow', open, handler), post('/slow', open, handler)] });
    const requests: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      requests.push(request);
      responder.prepare(request, response)?.();
    }).listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');

    const wire = await openWire((server.address() as AddressInfo).port);
    const arrived = once(server, 'request');
    wire.send(
      `${method} /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(5_000)}`,
    );
    await arrived;
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    assert.equal(requests[0]?.readableLength, 0);

    held.resolve(undefined);
    const text = await wire.until((all) => all.includes('done'));
    assert.match(String(text), /^Connection: close\r$/m);
    wire.destroy();
  });
}

function deferred() {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
