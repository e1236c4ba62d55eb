/* A reply as a value, and what can be none: fields that could not be written would be found out when nobody
   can answer any more. */
import assert from 'node:assert/strict';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { test } from 'node:test';
import { jsonReply, pairsOf } from '../../src/reply/reply.ts';

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

test('makes a reply of a status, a body and header fields: JSON, counted in bytes, never stored and never sniffed [RFC 9111 §5.2.2.5, G12]', () => {
  assert.deepEqual(jsonReply(200, { message: 'hällo' }), {
    status: 200,
    fields: jsonOf('20'),
    content: '{"message":"hällo"}',
  });
  assert.deepEqual(jsonReply(405, {}, ['Allow', 'GET']), {
    status: 405,
    fields: [...jsonOf('2'), 'Allow', 'GET'],
    content: '{}',
  });
});

test('takes every name and value that a field can have [RFC 9110 §5.5, §5.6.2]', () => {
  for (const [name, value] of [
    ["!#$%&'*+-.^_`|~09AZaz", 'a'],
    ['A', ''],
    ['A', '\t !"~\x80\xff'],
  ] as const) {
    assert.deepEqual(jsonReply(200, {}, [name, value]).fields.slice(-2), [name, value]);
  }
});

for (const [what, field] of Object.entries({
  'a name with a colon': ['A:', '1'],
  'a name with a space': ['A b', '1'],
  'a name with a line break': ['A\r\nB', '1'],
  'a name beyond ASCII': ['Ä', '1'],
  'an empty name': ['', '1'],
  'a value with a line break': ['A', '1\r\nB: 2'],
  'a value with a line feed': ['A', '1\n'],
  'a value with a null byte': ['A', '\0'],
  'a value with a deleted character': ['A', '\x7f'],
  'a value beyond Latin-1': ['A', '中'],
  'a name without a value': ['A'],
})) {
  test(`makes no reply with ${what} [RFC 9110 §5.5, §5.6.2]`, () => {
    for (const fields of [field, ['B', '2', ...field]]) {
      const message = 'a header field that cannot be sent';
      assert.throws(() => jsonReply(200, {}, fields), { name: 'TypeError', message });
    }
  });
}

test('takes the very characters in names and values that Node can write [RFC 9110 §5.5, §5.6.2]', () => {
  const isDone = (action: () => unknown) => {
    try {
      action();
      return true;
    } catch {
      return false;
    }
  };

  for (let code = 0; code < 0x300; code += 1) {
    const text = String.fromCharCode(code);
    assert.deepEqual(
      [isDone(() => jsonReply(200, {}, [text, ''])), isDone(() => jsonReply(200, {}, ['A', text]))],
      [isDone(() => validateHeaderName(text)), isDone(() => validateHeaderValue('A', text))],
      `the character ${code}`,
    );
  }
});

test('makes no reply of what is no JSON', () => {
  const message = 'a body that is no JSON object or array';
  assert.throws(() => jsonReply(200, { toJSON: () => undefined }), { name: 'TypeError', message });
  assert.throws(() => jsonReply(200, { amount: 1n }), TypeError);
});

test('puts names and values side by side', () => {
  assert.deepEqual(pairsOf(['A', '1', 'B', '2', 'A', '3']), [
    ['A', '1'],
    ['B', '2'],
    ['A', '3'],
  ]);
  assert.deepEqual(pairsOf([]), []);
});
