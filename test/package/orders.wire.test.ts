/* The orders API of docs/your-own-api.md: everything that it needs is a route of one service. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

/** The built package: a program imports it by its name. */
const load = (name: string) => import(name);

describe('the orders API of test/package/orders/orders.mjs', () => {
  let origin = '';
  let issuer: { bearer(claims: object): Record<string, string>; options: object };
  let service: { listen(): Promise<string>; stop(): Promise<string> };

  before(async () => {
    const { createService } = await load('gatehouse-http');
    const { createTestIssuer } = await load('gatehouse-http/testing');
    const { routes } = await load('./orders/orders.mjs');
    issuer = createTestIssuer();
    service = createService({ routes }, { ...issuer.options, log: undefined, port: 0, host: '127.0.0.1' });
    origin = await service.listen();
  });

  after(() => service.stop());

  const fieldsOf = (allowed: string, fields: object = {}) => ({
    ...issuer.bearer({ scope: allowed }),
    ...fields,
  });

  const ask = (method: string, path: string, body?: string | Uint8Array<ArrayBuffer>) => {
    const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream';
    const headers = fieldsOf('read:orders write:orders', body === undefined ? {} : { 'Content-Type': type });
    return fetch(origin + path, { method, headers, ...(body !== undefined && { body }) });
  };

  test('is one file of at most 45 lines', () => {
    const text = readFileSync(new URL('orders/orders.mjs', import.meta.url), 'utf8');
    assert.ok(text.trim().split('\n').length <= 45);
  });

  test('lists, shows, makes, changes and deletes orders as JSON', async () => {
    assert.deepEqual(await (await ask('GET', '/orders?item=te')).json(), [{ id: '1', item: 'tea' }]);
    assert.equal((await ask('GET', '/orders')).status, 400);
    const made = await ask('POST', '/orders', '{"item":"milk"}');
    assert.deepEqual([made.status, made.headers.get('location')], [201, '/orders/2']);
    assert.deepEqual(await (await ask('PATCH', '/orders/2', '{"item":"oats"}')).json(), {
      id: '2',
      item: 'oats',
    });
    assert.equal((await ask('DELETE', '/orders/2')).status, 204);
    for (const method of ['GET', 'DELETE']) assert.equal((await ask(method, '/orders/2')).status, 404);
    assert.equal((await fetch(`${origin}/orders/1`, { headers: fieldsOf('write:orders') })).status, 403);
    assert.equal((await fetch(`${origin}/orders/1`)).status, 401);
  });

  test('exports them as CSV at a path beside that of one order', async () => {
    const response = await ask('GET', '/orders/export');
    assert.deepEqual(
      [response.headers.get('content-type'), await response.text()],
      ['text/csv', 'id,item\n1,tea'],
    );
  });

  test('takes an upload of one megabyte and gives it back, and refuses a larger one', async () => {
    const upload = new Uint8Array(1_048_576).fill(7);
    assert.equal((await ask('GET', '/orders/1/file')).status, 404);
    assert.equal((await ask('POST', '/orders/1/file', upload)).status, 204);
    assert.deepEqual(new Uint8Array(await (await ask('GET', '/orders/1/file')).arrayBuffer()), upload);
    assert.equal((await ask('POST', '/orders/1/file', new Uint8Array(1_048_577))).status, 413);
  });

  test('refuses any JSON that is no order, and an upload to an order that does not exist', async () => {
    for (const body of ['null', '[]', '7', '{}', '{"item":null}']) {
      for (const [method, path] of [
        ['POST', '/orders'],
        ['PATCH', '/orders/1'],
      ] as const) {
        assert.equal((await ask(method, path, body)).status, 422, `${method} ${body}`);
      }
    }
    for (const method of ['POST', 'GET']) {
      const upload = method === 'POST' ? new Uint8Array(1) : undefined;
      assert.equal((await ask(method, '/orders/9/file', upload)).status, 404, method);
    }
  });

  test('tells of changes as events, until a drain ends the stream properly', async () => {
    const response = await ask('GET', '/orders/events');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    await ask('PATCH', '/orders/1', '{"item":"tea"}');
    assert.equal((await reader.read()).value, 'data: 1\n\n');
    assert.equal((await fetch(`${origin}/healthz`)).status, 200);
    const stopped = service.stop();
    assert.equal((await reader.read()).done, true);
    assert.equal(await stopped, 'drained');
  });
});
