/* A reply as a value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonReply, NO_CONTENT, pairsOf } from '../../../src/gate/replies/reply.ts';

const jsonOf = (length: string) => [
  'Content-Type',
  'application/json; charset=utf-8',
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
  'Content-Length',
  length,
];

test('makes a JSON reply with its length in bytes, never stored and never sniffed [RFC 9111 §5.2.2.5, G12]', () => {
  assert.deepEqual(jsonReply(200, '{"message":"hällo"}'), {
    status: 200,
    fields: jsonOf('20'),
    content: '{"message":"hällo"}',
  });
  assert.deepEqual(jsonReply(405, '{}', ['Allow', 'GET']), {
    status: 405,
    fields: [...jsonOf('2'), 'Allow', 'GET'],
    content: '{}',
  });
});

test('stores and sniffs no 204 either, and gives it no length [RFC 9110 §15.3.5, RFC 9111 §5.2.2.5, G12]', () => {
  const fields = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff'];
  assert.deepEqual(NO_CONTENT, { status: 204, fields, content: '' });
});

test('pairs the names of header fields with their values', () => {
  assert.deepEqual(pairsOf(['A', '1', 'B', '2', 'A', '3']), [
    ['A', '1'],
    ['B', '2'],
    ['A', '3'],
  ]);
  assert.deepEqual(pairsOf([]), []);
});
