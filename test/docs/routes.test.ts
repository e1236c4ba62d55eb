/* The table of routes has the members that a client receives, however a handler returns them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { created, fail, noContent, reply } from '../../src/service/routes/handler-reply.ts';
import { authenticated, needs, open } from '../../src/gate/rules/access.ts';
import { scope } from '../../src/gate/rules/guards.ts';
import { del, get, post, type Route } from '../../src/service/routes/route.ts';
import { membersOf } from './routes.ts';

const cases: Readonly<Record<string, readonly [route: Route, members: readonly string[]]>> = {
  'an object': [get('/x', needs(scope('read')), () => ({ id: 1, item: 'tea' })), ['id', 'item']],
  'a promise of an object': [get('/x', authenticated, async () => ({ id: 1 })), ['id']],
  'a reply with JSON': [post('/x', open, () => created('/x/1', { id: 1 })), ['id']],
  'a list': [get('/x', open, () => [1, 2]), []],
  nothing: [del('/x', open, () => noContent()), []],
  bytes: [get('/x', open, () => reply(200, Buffer.from('{}'), { 'Content-Type': 'text/plain' })), []],
  'a failure, since its parameter matches nothing': [get('/x/{id}', open, () => fail(404, 'no', 'No')), []],
  'a failure that it throws': [
    get('/x/{id}', open, () => {
      throw fail(404, 'no', 'No');
    }),
    [],
  ],
};

for (const [what, [route, members]] of Object.entries(cases)) {
  test(`the table of routes lists ${members.length} response properties of a route that gives ${what}`, async () =>
    assert.deepEqual(await membersOf(route), members));
}
