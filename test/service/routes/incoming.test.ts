/* A request as its handler sees it: costly members are computed once. */
import { strict as assert } from 'node:assert';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { Incoming } from '../../../src/service/routes/incoming.ts';

const request = {
  url: '/a?x=1',
  headers: { authorization: 'Bearer a', dpop: 'b', accept: '*/*' },
} as Partial<IncomingMessage> as IncomingMessage;

const incomingWith = (inputs?: { query?: unknown }) =>
  new Incoming({ request, controller: new AbortController() }, '/a', {}, 0, undefined, inputs);

test('computes the query and the header fields of a request once, on the first read', () => {
  const incoming = incomingWith();
  assert.equal(String(incoming.query), 'x=1');
  assert.equal(incoming.query, incoming.query);
  assert.deepEqual(incoming.headers, { accept: '*/*' });
  assert.equal(incoming.headers, incoming.headers);
});

test("takes a schema's output as the query, even if it is undefined", () => {
  for (const query of [undefined, { x: 1 }]) assert.equal(incomingWith({ query }).query, query);
});
