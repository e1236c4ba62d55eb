/* Puts bodies and queries through the schemas of zod, valibot and ArkType, by a real listener: what a handler
   gets, and what a client is told. `npm run evidence` checks the types first, which shows what the compiler
   infers from the schemas.

   Shows: `json()` and `query()` with real zod, valibot and ArkType schemas.
   Takes: 5 s.
   Needs: packages. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { open } from '../../../src/gate/rules/access.ts';
import { get, post, type Route } from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import type { Response } from '../../support/client.ts';
import { startRoutes } from '../../support/routes.ts';
import { MAKERS } from './makers.ts';

const GOOD = { item: 'a', lines: [{ sku: 's', amount: 2, more: 'dropped or not' }] };
const OUTPUT = { item: 'A', count: 1 };

/** Text that must never be shown, in a member that no message has a reason to repeat. */
const SECRET = 'a-secret-of-the-sender';

const routesOf = ([maker, { order, freeOrder, page, broken }]: [
  string,
  (typeof MAKERS)[keyof typeof MAKERS],
]): Route[] => [
  post(`/${maker}/order`, open, json<unknown>(order), ({ body }) => ({ body })),
  post(`/${maker}/free`, open, json<unknown>(freeOrder ?? order), ({ body }) => ({ body })),
  post(`/${maker}/broken`, open, json<unknown>(broken), ({ body }) => ({ body })),
  get(`/${maker}/page`, open, query<unknown>(page), (request) => ({ query: request.query })),
];

/** Asserts that there is one issue, at this path, with nothing but path and message. */
function assertIssue({ status, body, text }: Response, expected: number, path: readonly unknown[]): void {
  assert.equal(status, expected, text);
  assert.deepEqual(Object.keys(body), ['error', 'message', 'issues']);
  for (const issue of body.issues) assert.deepEqual(Object.keys(issue), ['path', 'message']);
  assert.deepEqual(
    body.issues.map((issue: { path: unknown }) => issue.path),
    [path],
  );
  assert.ok(body.issues[0].message.length > 0);
  assert.ok(!text.includes(SECRET), text);
}

const { dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const service = await startRoutes({ routes: Object.entries(MAKERS).flatMap(routesOf) });

for (const [maker, { freeOrder }] of Object.entries(MAKERS)) {
  const send = (path: string, value: unknown) =>
    service.ask(`/${maker}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(value),
    });

  const { status, body } = await send('/order', GOOD);
  assert.equal(status, 200);
  const { lines, ...others } = body.body;
  assert.deepEqual([others, lines[0].sku, lines[0].amount], [OUTPUT, 's', 2]);

  const secretLine = { sku: SECRET, amount: 'many' };
  assertIssue(await send('/order', { item: 'a', lines: [secretLine] }), 422, ['lines', 0, 'amount']);
  assertIssue(await send('/order', { item: '', secret: SECRET }), 422, ['item']);
  assertIssue(await send('/order', { secret: SECRET }), 422, ['item']);
  assert.equal((await send('/order', null)).status, 422);
  assert.equal((await send('/order', [])).status, 422);

  if (freeOrder !== undefined) {
    assert.deepEqual((await send('/free', { item: 'a' })).body.body, { ...OUTPUT, lines: [] });
    assertIssue(await send('/free', { item: 'taken', secret: SECRET }), 422, ['item']);
  }

  const before = service.logs.length;
  const failed = await send('/broken', SECRET);
  assert.deepEqual([failed.status, failed.body.error], [500, 'server_error']);
  assert.deepEqual(
    service.logs.slice(before).map(({ message, route }) => [message, route]),
    [['request failed', `/${maker}/broken`]],
  );

  const page = await service.ask(`/${maker}/page?after=5`);
  assert.deepEqual(page.body, { query: { after: 5 } });
  assertIssue(await service.ask(`/${maker}/page?after=x&secret=${SECRET}`), 400, ['after']);
  assertIssue(await service.ask(`/${maker}/page?secret=${SECRET}&after=1&after=2`), 400, ['after']);

  const version = dependencies[maker.toLowerCase()];
  console.log(`${maker} ${version}: bodies, queries${freeOrder === undefined ? '' : ', later answers'}`);
}

assert.ok(!JSON.stringify(service.logs).includes(SECRET));
await service.stop();
