/* The protocol of the store: what is a whole reply, what is the beginning of one, and what is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode, parseReply, type Reply } from '../../../src/options/redis/resp.ts';

const WHOLE: readonly (readonly [text: string, reply: Reply])[] = [
  ['+OK\r\n', '+OK'],
  ['+\r\n', '+'],
  ['-ERR x\r\n', '-ERR x'],
  [':12\r\n', ':12'],
  ['$-1\r\n', null],
  ['$0\r\n\r\n', '$'],
  ['$2\r\n\r\n\r\n', '$\r\n'],
  ['$3\r\n\xc3\xa9x\r\n', '$\xc3\xa9x'],
  ['*-1\r\n', []],
  ['*0\r\n', []],
  ['*3\r\n$-1\r\n$1\r\n7\r\n:1\r\n', [null, '$7', ':1']],
  ['*1\r\n*1\r\n*1\r\n*1\r\n+x\r\n', [[[['+x']]]]],
];

for (const [text, reply] of WHOLE) {
  test(`reads ${JSON.stringify(text)} as a reply, and nothing shorter`, () => {
    for (let length = 0; length < text.length; length += 1) {
      assert.equal(parseReply(text.slice(0, length), 0), 'incomplete', text.slice(0, length));
    }
    assert.deepEqual(parseReply(text, 0), { reply, end: text.length });
    assert.deepEqual(parseReply(`+x\r\n${text}+y\r\n`, 4), { reply, end: 4 + text.length });
  });
}

for (const text of ['$99999\r\n', '*99999\r\n']) {
  test(`reads ${JSON.stringify(text)} as the beginning of a reply`, () =>
    assert.equal(parseReply(text, 0), 'incomplete'));
}

for (const text of [
  '\r\n',
  'OK\r\n',
  ' +OK\r\n',
  '$\r\n',
  '$+1\r\n',
  '$01x\r\n',
  '$-2\r\n',
  '$100000\r\n',
  '$1\r\nab\r\n',
  '$0\r\nab',
  '*\r\n',
  '*-2\r\n',
  '*100000\r\n',
  '*1\r\nOK\r\n',
  '*2\r\n$-1\r\n$1\r\nab\r\n',
  '*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+x\r\n',
  '_\r\n',
  '%1\r\n+a\r\n+b\r\n',
]) {
  test(`reads ${JSON.stringify(text)} as no reply`, () => assert.equal(parseReply(text, 0), 'malformed'));
}

test('writes words with the number of their bytes', () =>
  assert.equal(encode(['SET', 'é', '']), '*3\r\n$3\r\nSET\r\n$2\r\né\r\n$0\r\n\r\n'));
