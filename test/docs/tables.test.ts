/* A table that is made anew keeps what a person wrote into it, and says where a person has to write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowsOf, tableOf, withKept } from './tables.ts';

const HEAD = ['reason', 'level', 'what to do'];

const WRITTEN = [
  ['`a`', 'info', 'wait'],
  ['`b`', 'info', 'call'],
];

test('a table that is read is what was written', () => {
  assert.deepEqual(rowsOf(`text\n${tableOf(HEAD, WRITTEN)}more`), WRITTEN);
  assert.deepEqual(rowsOf('no table'), []);
});

test('a row keeps what was said of it when rows change their order, their cells or their number', () => {
  const derived = [
    ['`b`', 'warn'],
    ['`c`', 'info'],
  ];
  assert.deepEqual(rowsOf(withKept(HEAD, derived, WRITTEN)), [
    ['`b`', 'warn', 'call'],
    ['`c`', 'info', '–'],
  ]);
});

test('a row is known again by another cell than its first', () => {
  assert.deepEqual(rowsOf(withKept(HEAD, [['`x`', 'info']], [['`a`', 'info', 'wait']], 1)), [
    ['`x`', 'info', 'wait'],
  ]);
});
