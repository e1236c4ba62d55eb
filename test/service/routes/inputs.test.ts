/* The inputs that a route may have, and what its schema receives of a query. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
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

test('a query has names that objects inherit only if the client has sent them', () => {
  const values = queryOf('__proto__=1&constructor=2&__proto__=3') as Record<string, unknown>;
  assert.deepEqual(Object.entries(values), [
    ['__proto__', ['1', '3']],
    ['constructor', '2'],
  ]);
  assert.equal((queryOf('') as Record<string, unknown>).toString, undefined);
});

test('a query with many names takes time in proportion', () => {
  const names = Array.from({ length: 50_000 }, (_, index) => index.toString(36));
  let values: unknown;
  const millis = processorMillis(() => {
    values = queryOf([...names, ...names].join('&'));
  });
  // Searching all names for each name would take minutes.
  assert.ok(millis < 5_000, `${millis} ms`);
  assert.equal(Object.keys(Object(values)).length, names.length);
});

test('a query that its schema refuses is query-refused, with the issues', () => {
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

test('a body that an asynchronous schema refuses is body-refused', async () => {
  const order = json(schemaOf(async () => ({ issues: [] })));
  await assert.rejects(
    async () => order.check({}),
    (failure) => failure instanceof Refused && failure.refusal.reason === 'body-refused',
  );
});

test('a route with something that is not a schema cannot be served', () => {
  for (const schema of [null, {}, () => {}, 'text']) {
    assert.match(json(schema as never).problem ?? '', /~standard/);
    assert.match(query(schema as never).problem ?? '', /~standard/);
  }
  assert.match(query(undefined as never).problem ?? '', /~standard/);
  assert.equal(query(schemaOf(() => ({ issues: [] }))).problem, undefined);
});

test('a route with json(undefined), such as from a misspelled name, does not accept every body but cannot be served [H2]', () => {
  const schemas: Record<string, undefined> = {};
  assert.match(json(schemas.Ordr).problem ?? '', /~standard/);
  assert.deepEqual([json().problem, json(AS_IT_IS).problem], [undefined, undefined]);
});

test('a route that accepts a body refuses unknown options [H2]', () => {
  for (const options of [{ limit: 10 }, { limitBytes: 10, type: ['text/x'] }]) {
    assert.equal(json(AS_IT_IS, options).problem, 'json has no other options than limitBytes and types');
  }
});

test('a promise of another class from a schema is awaited', async () => {
  const given = { value: 'unjudged', then: (resolve: (result: object) => void) => resolve({ issues: [] }) };
  const order = json(schemaOf(() => given));
  await assert.rejects(async () => order.check({}), Refused);
});

test('a route that accepts a body has a limit of 1 to 16,777,216 bytes, or that of the settings', () => {
  for (const limitBytes of [1, 102_400, 16_777_216]) {
    const body = json(undefined, { limitBytes });
    assert.deepEqual([body.limitBytes, body.problem], [limitBytes, undefined]);
  }
  assert.equal(json().limitBytes, undefined);
  for (const limitBytes of [0, -1, 1.5, NaN, Infinity, 16_777_217, '10']) {
    assert.match(json(undefined, { limitBytes: limitBytes as never }).problem ?? '', /16777216/);
  }
});

const TYPES_FAULT = 'types must be a list of media types in lower case, without parameters';

test('a route that accepts a body names media types in lower case, without parameters', () => {
  assert.deepEqual(json().types, ['application/json']);
  const types = ['application/merge-patch+json', 'application/vnd.a-b.c_d+json'] as const;
  assert.deepEqual(json(undefined, { types }).types, types);
  assert.equal(json(undefined, { types }).problem, undefined);
  for (const type of [
    'Application/json',
    'application/json; charset=utf-8',
    'json',
    'a/b/c',
    '*',
    'a/ b',
    '',
    5,
  ]) {
    assert.equal(json(undefined, { types: [type as string] }).problem, TYPES_FAULT);
    assert.equal(json(undefined, { types: ['application/json', type as string] }).problem, TYPES_FAULT);
  }
});

test('a route with an empty list of media types, or no list, cannot be served', () => {
  for (const types of [[], 'application/json', null, {}] as never[]) {
    assert.equal(json(undefined, { types }).problem, TYPES_FAULT);
  }
});
