/* How a schema is called, and what of its result a client sees (Standard Schema v1). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { checkBySchema, requireSchema, type Schema } from '../../../src/service/routes/schema.ts';
import { atOnce } from '../../support/clock.ts';
import { schemaOf } from '../../support/schemas.ts';

const checkBody = <Output>(schema: Schema<Output>, value: unknown) =>
  checkBySchema(schema, value, 'body-refused');

/** The issues of a thrown refusal of a body. */
function issuesIn(failure: unknown) {
  assert.ok(failure instanceof Refused && failure.refusal.reason === 'body-refused');
  return failure.refusal.issues ?? assert.fail('no issues');
}

/** What a client sees of these issues. */
function shownOf(...issues: readonly unknown[]): readonly { readonly message?: string }[] {
  try {
    checkBody(
      schemaOf(() => ({ value: 'v', issues }) as never),
      'input',
    );
  } catch (failure) {
    return issuesIn(failure);
  }
  return assert.fail('not refused');
}

test('returns the output of a schema, which may differ from its input', () => {
  const seen: unknown[] = [];
  const upper = schemaOf((value) => {
    seen.push(value);
    return { value: String(value).toUpperCase() };
  });
  assert.equal(atOnce(checkBody(upper, 'a')), 'A');
  assert.deepEqual(seen, ['a']);
});

test('accepts undefined as an output', () => {
  assert.equal(
    atOnce(
      checkBody(
        schemaOf(() => ({ value: undefined })),
        1,
      ),
    ),
    undefined,
  );
});

test('refuses what an asynchronous schema refuses, even if then() returns nothing', async () => {
  const later = { then: (resolve: (result: object) => void) => setImmediate(resolve, { issues: [] }) };
  const schema = schemaOf(() => later as never);
  await assert.rejects(
    async () => checkBody(schema, 1),
    (failure) => issuesIn(failure).length === 0,
  );
});

for (const issues of [undefined, null, false, 0]) {
  test(`treats issues of ${String(issues)} as success`, () => {
    const schema = schemaOf(() => ({ value: 'v', issues }) as never);
    assert.equal(atOnce(checkBody(schema, 1)), 'v');
  });
}

test('treats an empty list of issues as a refusal', () => {
  assert.deepEqual(shownOf(), []);
});

test('waits only for a promise', async () => {
  const accepted = checkBody(
    schemaOf(async () => ({ value: 'later' })),
    1,
  );
  assert.ok(accepted instanceof Promise);
  assert.equal(await accepted, 'later');
  const refusing = schemaOf(async () => ({ issues: [{ message: 'no' }] }));
  await assert.rejects(
    async () => checkBody(refusing, 1),
    (failure) => issuesIn(failure).length === 1,
  );
});

test('rethrows what a schema throws, at once or later', async () => {
  const failure = new RangeError('inside');
  const throwing = schemaOf(() => {
    throw failure;
  });
  const rejecting = schemaOf(() => Promise.reject(failure));
  assert.throws(() => checkBody(throwing, 1), failure);
  await assert.rejects(async () => checkBody(rejecting, 1), failure);
});

for (const [what, result] of [
  ['nothing', undefined],
  ['null', null],
  ['an empty object', {}],
  ['a string', 'yes'],
  ['true', true],
] as const) {
  test(`throws for a schema that returns ${what}, so that no value passes unchecked`, () => {
    const schema = schemaOf(() => result as never);
    assert.throws(() => checkBody(schema, 1), TypeError);
  });
}

test('calls validate as a method', () => {
  const standard = {
    version: 1 as const,
    prefix: 'p',
    validate(value: unknown) {
      return { value: this.prefix + String(value) };
    },
  };
  assert.equal(atOnce(checkBody({ '~standard': standard }, 'v')), 'pv');
});

test('shows the path of an issue, by keys, and its message', () => {
  const input = { secret: 'input' };
  const path = ['a', 0, { key: 'b', value: input, input }, { key: 3 }, Symbol('c'), { key: Symbol.iterator }];
  const [issue, ...others] = shownOf({ message: 'why', path, input, value: input, found: 'secret' });
  assert.deepEqual(issue, {
    path: ['a', 0, 'b', 3, 'Symbol(c)', 'Symbol(Symbol.iterator)'],
    message: 'why',
  });
  assert.deepEqual(others, []);
});

test('shows an issue without a path with an empty path', () => {
  const whole = { path: [], message: 'why' };
  assert.deepEqual(shownOf({ message: 'why' }, { message: 'why', path: undefined }), [whole, whole]);
});

test('shows the first 20 issues, and at most 200 characters of a message or key', () => {
  const long = 'x'.repeat(201);
  const shown = shownOf(
    ...Array.from({ length: 21 }, (_, at) => ({ message: long, path: [at, long, { key: long }] })),
  );
  assert.equal(shown.length, 20);
  const cut = long.slice(1);
  assert.deepEqual(shown[19], { path: [19, cut, cut], message: cut });
});

test('cuts no character in half [RFC 8259 §8.2]', () => {
  const faces = '\u{1f600}'.repeat(201);
  const lines = `${'x\n'.repeat(100)}y`;
  const cut = faces.slice(2);
  assert.deepEqual(shownOf({ message: faces, path: [faces] }, { message: lines }), [
    { path: [cut], message: cut },
    { path: [], message: lines.slice(0, -1) },
  ]);
});

test('shows a message that is not a string as a string', () => {
  assert.deepEqual(
    shownOf({ message: 5 }, {}).map(({ message }) => message),
    ['5', 'undefined'],
  );
});

const standard = { version: 1, validate: () => ({ value: 1 }) };

for (const [what, schema] of [
  ['an object with ~standard', { '~standard': standard }],
  ['a function with ~standard', Object.assign(() => {}, { '~standard': standard })],
  ['an object that inherits ~standard', Object.create({ '~standard': standard })],
] as const) {
  test(`accepts ${what} as a schema`, () => {
    assert.doesNotThrow(() => requireSchema(schema));
  });
}

for (const [what, schema] of [
  ['undefined', undefined],
  ['null', null],
  ['a string', '~standard'],
  ['an object without ~standard', { parse: () => {} }],
  ['an object of version 2', { '~standard': { ...standard, version: 2 } }],
  ['an object whose version is a string', { '~standard': { ...standard, version: '1' } }],
  ['an object without a version', { '~standard': { validate: standard.validate } }],
  ['an object without validate', { '~standard': { version: 1 } }],
  ['an object whose validate is not a function', { '~standard': { version: 1, validate: {} } }],
  ['an object whose ~standard is null', { '~standard': null }],
] as const) {
  test(`does not accept ${what} as a schema`, () => {
    const wrong = new TypeError(
      'a schema must have "~standard" of version 1 with a function "validate"; options come second',
    );
    assert.throws(() => requireSchema(schema), wrong);
  });
}
