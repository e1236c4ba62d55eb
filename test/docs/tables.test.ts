/* A regenerated table keeps handwritten cells, and marks those that a person must still write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listOf, listWithKept, rowsOf, tableOf, withKept } from './tables.ts';

const HEAD = ['reason', 'level', 'what to do'];

const WRITTEN = [
  ['`a`', 'info', 'wait'],
  ['`b`', 'info', 'call'],
];

test('reads back the same rows that were written as a table, and none from text without a table', () => {
  assert.deepEqual(rowsOf(`text\n${tableOf(HEAD, WRITTEN)}more`), WRITTEN);
  assert.deepEqual(rowsOf('no table'), []);
});

test('reads back the same rows that were written as a list', () => {
  const items = [
    ['`a`', 'wait: it ends'],
    ['`b`', 'call'],
  ];
  assert.deepEqual(rowsOf(`text\n\n${listOf(items)}`), items);
});

test('an item of a list keeps its handwritten text, and a new item has none', () => {
  assert.equal(
    listWithKept(
      ['`b`', '`c`'],
      [
        ['`a`', 'wait'],
        ['`b`', 'call'],
      ],
    ),
    '- `b`: call\n- `c`: –\n',
  );
});

test('a row keeps its handwritten cells when rows change in order, cells or number', () => {
  const derived = [
    ['`b`', 'warn'],
    ['`c`', 'info'],
  ];
  assert.deepEqual(rowsOf(withKept(HEAD, derived, WRITTEN)), [
    ['`b`', 'warn', 'call'],
    ['`c`', 'info', '–'],
  ]);
});

test('a row is recognised by its cell up to a line break', () => {
  const before = [['`a`<br>old', 'wait']];
  const rows = rowsOf(withKept(['reason', 'what to do'], [['`a`<br>new']], before));
  assert.deepEqual(rows, [['`a`<br>new', 'wait']]);
});

test('a row can be recognised by a cell other than its first', () => {
  assert.deepEqual(rowsOf(withKept(HEAD, [['`x`', 'info']], [['`a`', 'info', 'wait']], 1)), [
    ['`x`', 'info', 'wait'],
  ]);
});
