/* The API as its callers see it, without network, certificates or waiting. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createService } from 'gatehouse-http';
import { assertRouteMatrix, createTestIssuer } from 'gatehouse-http/testing';
import { Orders } from './orders.ts';
import { routesOf } from './routes.ts';

const routes = routesOf(new Orders());

const staff = createTestIssuer({ domain: 'staff.test' });
const partner = createTestIssuer({ domain: 'partner.test', audience: 'orders' });
const { domain, audience } = partner.options;
const issuers = { partner: { domain, audience } };

const service = createService(
  { routes },
  {
    ...staff.options,
    issuers,
    fetchKeys: (_, name) => (name === 'idp' ? staff : partner).options.fetchKeys(),
    host: '127.0.0.1',
    port: 0,
  },
);

const url = await service.listen();

after(() => service.stop());

const ADA = { issuer: 'https://staff.test/', subject: 'ada' };

/** Asks as somebody who may read and write. */
async function ask(method: string, path: string, body?: object, sub = 'ada', issuer = staff) {
  const headers = {
    ...issuer.bearer({ sub, scope: 'read:orders write:orders' }),
    'content-type': 'application/json',
  };
  const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) ?? null });
  const text = await response.text();
  const location = response.headers.get('location') ?? '';
  return { status: response.status, location, body: text === '' ? undefined : JSON.parse(text) };
}

test('every route asks for what it says', () => assertRouteMatrix({ routes }));

test('an order is where its Location says, and in the list', async () => {
  const { status, location, body } = await ask('POST', '/api/orders', { item: 'tea' });
  assert.deepEqual([status, body.item, body.quantity, body.owner], [201, 'tea', 1, ADA]);
  assert.deepEqual((await ask('GET', location)).body, body);
  assert.deepEqual((await ask('GET', '/api/orders?status=open&limit=1')).body, { orders: [body] });
});

test('the order of another caller does not exist', async () => {
  const { location } = await ask('POST', '/api/orders', { item: 'tea' });
  for (const method of ['GET', 'DELETE']) {
    for (const [sub, issuer] of [
      ['eve', staff],
      ['ada', partner],
    ] as const) {
      const { status, body } = await ask(method, location, undefined, sub, issuer);
      assert.deepEqual([status, body], [404, { error: 'not_found', message: 'There is no such order' }]);
    }
  }
  assert.deepEqual((await ask('GET', '/api/orders', undefined, 'ada', partner)).body, { orders: [] });
});

test('no client chooses the id or the owner of an order, whatever a schema lets pass', () => {
  const orders = new Orders();
  const chosen = { id: '1', owner: { issuer: '', subject: 'eve' } };
  const order = orders.add(ADA, { item: 'tea', quantity: 1, ...chosen });
  assert.notEqual(order.id, '1');
  assert.deepEqual(orders.change(order, { quantity: 2, ...chosen }), { ...order, quantity: 2 });
  assert.deepEqual(order.owner, ADA);
});

test('does not change an order that has been shipped', async () => {
  const { location } = await ask('POST', '/api/orders', { item: 'tea' });
  assert.equal((await ask('PATCH', location, { quantity: 2 })).body.quantity, 2);
  assert.equal((await ask('PATCH', location, { status: 'shipped' })).status, 200);
  assert.equal((await ask('PATCH', location, { quantity: 3 })).status, 409);
  assert.equal((await ask('DELETE', location)).status, 409);
});

test('an order can be taken back', async () => {
  const { location } = await ask('POST', '/api/orders', { item: 'tea' });
  assert.equal((await ask('DELETE', location)).status, 204);
  assert.equal((await ask('GET', location)).status, 404);
});

test('refuses what does not fit, and says where', async () => {
  const order = await ask('POST', '/api/orders', { item: 'tea', quantity: 0 });
  assert.deepEqual([order.status, order.body.issues[0].path], [422, ['quantity']]);
  const list = await ask('GET', '/api/orders?limit=many');
  assert.deepEqual(
    [list.status, list.body.error, list.body.issues[0].path],
    [400, 'invalid_query', ['limit']],
  );
});
