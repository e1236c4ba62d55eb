/* The recipe for CSV: what a spreadsheet reads, at which pace, and what becomes of a source that fails. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { startRecipe, type Recipe } from './run-recipe.ts';

const MANY = 100_000;

describe('the recipe export', () => {
  let recipe: Recipe;
  let exports = 0;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-export-'));
  const file = join(folder, 'orders.ndjson');

  before(async () => {
    recipe = await startRecipe('export', { ORDERS_FILE: file });
  });

  after(async () => {
    await recipe.stop();
    rmSync(folder, { recursive: true });
  });

  beforeEach(() => rmSync(file, { force: true }));

  const write = (orders: readonly object[], end = '') =>
    writeFileSync(file, orders.map((order) => `${JSON.stringify(order)}\n`).join('') + end);

  const read = (method = 'GET') => recipe.send(method, '/api/orders/export', 'read:orders');

  /** How many orders it has read. */
  const countOf = async () => {
    exports += 1;
    return (await recipe.service.logged('export ended', exports)).count;
  };

  test('writes each order on a line, quotes every text, and makes formulas texts [RFC 4180 §2]', async () => {
    const notes = [
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      '\t=1',
      ' =1',
      '\r=1',
      '\n=1',
      '＝1',
      'a=1',
      'say "hi"\r\nbye',
      null,
      7,
    ];
    write(
      notes.map((note, index) => ({
        id: `${index}`,
        item: 'Öl',
        quantity: -2,
        note,
        secret: 'not a column',
      })),
    );
    const response = await read();
    assert.deepEqual(
      [response.status, response.headers.get('content-type'), response.headers.get('content-disposition')],
      [200, 'text/csv; charset=utf-8; header=present', 'attachment; filename="orders.csv"'],
    );
    const cells = [
      ...[`"'=1+1"`, `"'+1"`, `"'-1"`, `"'@SUM(A1)"`, `"'\t=1"`, `"' =1"`, `"'\r=1"`, `"'\n=1"`, `"'＝1"`],
      ...['"a=1"', '"say ""hi""\r\nbye"', '""', '7'],
    ];
    const lines = cells.map((cell, index) => `"${index}","Öl",-2,${cell}\r\n`);
    assert.equal(await response.text(), `"id","item","quantity","note"\r\n${lines.join('')}`);
    assert.equal(await countOf(), notes.length);
  });

  const orders = () =>
    Array.from({ length: MANY }, (_, id) => ({ id: String(id), item: 'x'.repeat(200), quantity: 1 }));

  test('writes as many orders as there are', async () => {
    write(orders());
    const lines = (await (await read()).text()).split('\r\n');
    assert.deepEqual([lines.length, lines.at(-2)?.split(',')[0]], [MANY + 2, `"${MANY - 1}"`]);
    assert.equal(await countOf(), MANY);
  });

  test('reads no further than its client, and stops when that leaves', async () => {
    write(orders());
    const leaving = new AbortController();
    const headers = recipe.bearer('read:orders');
    const response = await fetch(`${recipe.origin}/api/orders/export`, { headers, signal: leaving.signal });
    await response.body!.getReader().read();
    // More time than reading the whole file takes.
    for (let asked = 0; asked < 300; asked += 1) await recipe.service.ask('/healthz');
    leaving.abort();
    assert.ok((await countOf()) < MANY);
  });

  test('cuts the connection when an order cannot be read, so that no client takes a part for the whole', async () => {
    write(orders().slice(0, 10_000), 'no JSON\n');
    const response = await read();
    assert.equal(response.status, 200);
    await assert.rejects(response.text());
    await recipe.service.logged('request failed');
    await countOf();
  });

  test('gives a 500 for a source that fails before the first line', async () => {
    write([], '{"id":"1"');
    assert.equal((await read()).status, 500);
    assert.equal(await countOf(), 0);
    rmSync(file);
    assert.equal((await read()).status, 500);
    write([{ id: '1' }]);
    assert.equal(await (await read()).text(), '"id","item","quantity","note"\r\n"1","","",""\r\n');
    await countOf();
  });

  test('asks for a token with the scope, and sends HEAD no body', async () => {
    write([{ id: '1' }]);
    assert.equal((await fetch(`${recipe.origin}/api/orders/export`)).status, 401);
    assert.equal((await recipe.send('GET', '/api/orders/export', 'write:orders')).status, 403);
    const response = await read('HEAD');
    assert.deepEqual([response.status, await response.text()], [200, '']);
  });
});
