/* The inputs that a route may have, and what its schema receives of a query. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import { stackOf } from '../../support/call-lines.ts';
import { atOnce } from '../../support/clock.ts';
import { processorMillis } from '../../support/processor-time.ts';
import { schemaOf } from '../../support/schemas.ts';

const AS_IT_IS = schemaOf((value) => ({ value }));

const queryOf = (text: string) => atOnce(query(AS_IT_IS).check(new URLSearchParams(text)));

test('a query is an object without prototype: text for one value, a list for several', () => {
  const values = queryOf('a=1&b=&c&a=2&d=x%20y+z&a=3&e%2E=%zz') as object;
  assert.equal(Object.getPrototypeOf(values), null);
  assert.deepEqual({ ...values }, { a: ['1', '2', '3'], b: '', c: '', d: 'x y z', 'e.': '%zz' });
});

test('a query has a name such as constructor only if the client has sent it', () => {
  const values = queryOf('__proto__=1&constructor=2&__proto__=3') as Record<string, unknown>;
  assert.deepEqual(Object.entries(values), [
    ['__proto__', ['1', '3']],
    ['constructor', '2'],
  ]);
  assert.equal((queryOf('') as Record<string, unknown>).toString, undefined);
});

test('a query with many names takes time proportional to their number', () => {
  const names = Array.from({ length: 50_000 }, (_, index) => index.toString(36));
  let values: unknown;
  const millis = processorMillis(() => {
    values = queryOf([...names, ...names].join('&'));
  });
  // Searching all names for each name would take minutes.
  assert.ok(millis < 5_000, `${millis} ms`);
  assert.equal(Object.keys(Object(values)).length, names.length);
});

test('a query that its schema refuses is refused as query-refused, with the issues', () => {
  const page = query(schemaOf(() => ({ issues: [{ message: 'no', path: ['page'] }] })));
  assert.throws(
    () => page.check(new URLSearchParams()),
    (failure) => {
      assert.ok(failure instanceof Refused && failure.refusal.reason === 'query-refused');
      assert.deepEqual(failure.refusal.issues, [{ path: ['page'], message: 'no' }]);
      return true;
    },
  );
});

test('a body that an asynchronous schema refuses is refused as body-refused', async () => {
  const order = json(schemaOf(async () => ({ issues: [] })));
  await assert.rejects(
    async () => order.check({}),
    (failure) => failure instanceof Refused && failure.refusal.reason === 'body-refused',
  );
});

const NO_SCHEMA = new TypeError(
  'a schema must have "~standard" of version 1 with a function "validate"; options come second',
);

test('json and query throw for something that is not a schema', () => {
  for (const schema of [null, {}, () => {}, 'text']) {
    assert.throws(() => json(schema as never), NO_SCHEMA);
    assert.throws(() => query(schema as never), NO_SCHEMA);
  }
  assert.throws(() => query(undefined as never), NO_SCHEMA);
  assert.equal(query(schemaOf(() => ({ issues: [] }))).input, 'query');
});

test('json(undefined), such as from a misspelled name, does not accept every body but throws [H2]', () => {
  const schemas: Record<string, undefined> = {};
  assert.throws(() => json(schemas.Ordr), NO_SCHEMA);
  assert.deepEqual([json().input, json(AS_IT_IS).input], ['body', 'body']);
});

test('json throws for unknown options, and for a number or a list in place of options [H2]', () => {
  const wrong = /^TypeError: json: (?:\w+: is no option; correct or remove it|must be a plain object)/;
  for (const options of [
    { limit: 10 },
    { limitBytes: 10, type: ['text/x'] },
    new Map(),
    10,
    null,
    [],
  ] as never[]) {
    assert.throws(() => json(AS_IT_IS, options), wrong);
  }
});

test('the error that json throws names the line of the call in its stack', () => {
  const lines = ['const inputs = [', '  json(),', '  json(undefined),', '];'];
  assert.match(stackOf(lines, { json }), /routes\.js:3:/);
});

test('a promise of another class from a schema is awaited', async () => {
  const given = { value: 'unjudged', then: (resolve: (result: object) => void) => resolve({ issues: [] }) };
  const order = json(schemaOf(() => given));
  await assert.rejects(async () => order.check({}), Refused);
});

test('a route that accepts a body has a limit of 1 to 16,777,216 bytes, or that of the settings', () => {
  for (const limitBytes of [1, 102_400, 16_777_216]) {
    assert.equal(json(undefined, { limitBytes }).limitBytes, limitBytes);
  }
  assert.equal(json().limitBytes, undefined);
  const wrong = new TypeError('json: limitBytes: must be a whole number from 1 to 16777216');
  for (const limitBytes of [0, -1, 1.5, NaN, Infinity, 16_777_217, '10']) {
    assert.throws(() => json(undefined, { limitBytes: limitBytes as never }), wrong);
  }
});

const WRONG_TYPES = new TypeError(
  'json: types: must be a list of media types in lower case, without parameters',
);

test('a route that accepts a body names media types in lower case, without parameters', () => {
  assert.deepEqual(json().types, ['application/json']);
  const types = ['application/merge-patch+json', 'application/vnd.a-b.c_d+json'] as const;
  assert.deepEqual(json(undefined, { types }).types, types);
  for (const type of [
    'Application/json',
    'application/json; charset=utf-8',
    'a/b;c',
    'json',
    'a/b/c',
    '*',
    '*/*',
    'image/*',
    'a/ b',
    '',
    5,
  ]) {
    assert.throws(() => json(undefined, { types: [type as string] }), WRONG_TYPES);
    assert.throws(() => json(undefined, { types: ['application/json', type as string] }), WRONG_TYPES);
  }
});

test('json throws if the media types are an empty list, or not a list', () => {
  for (const types of [[], 'application/json', null, {}] as never[]) {
    assert.throws(() => json(undefined, { types }), WRONG_TYPES);
  }
});

test('a change of the media types after json changes nothing [§11]', () => {
  const types: [string] = ['text/x'];
  const body = json(undefined, { types });
  types[0] = 'text/y';
  assert.deepEqual(body.types, ['text/x']);
});
