/* A request as its handler sees it: costly members are computed once. */
import { strict as assert } from 'node:assert';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { exchangeOf } from '../../support/exchange.ts';
import { HANDLER_OPTIONS } from '../../support/route.ts';
import { HandlerRequest } from '../../../src/service/routes/handler-request.ts';

const request = {
  url: '/a?x=1',
  headers: { authorization: 'Bearer a', dpop: 'b', accept: '*/*' },
} as Partial<IncomingMessage> as IncomingMessage;

const FACTS = { method: 'GET', host: undefined, path: '/a', rawHeaders: [] };

const requestWith = (inputs?: { query?: unknown }) =>
  new HandlerRequest(
    exchangeOf(request, {}).exchange,
    { facts: FACTS, demands: [], isServed: true },
    {},
    0,
    undefined,
    HANDLER_OPTIONS,
    inputs,
  );

test('computes the query and the header fields of a request once, on the first read', () => {
  const asked = requestWith();
  assert.equal(String(asked.query), 'x=1');
  assert.equal(asked.query, asked.query);
  assert.deepEqual(asked.headers, { accept: '*/*' });
  assert.equal(asked.headers, asked.headers);
});

test("takes a schema's output as the query, even if it is undefined", () => {
  for (const query of [undefined, { x: 1 }]) assert.equal(requestWith({ query }).query, query);
});
