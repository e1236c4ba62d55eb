/* Errors and bytes of another realm: test runners load several, with classes of their own for the errors that
   Node throws. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { describeBug } from '../../../src/verify/base/events.ts';
import { isBytes, isError, catching } from '../../../src/verify/base/encoding.ts';
import { readGateOptions } from '../../../src/gate/options.ts';
import { importSigningKey } from '../../../src/verify/keys/jwk.ts';
import { reply } from '../../../src/service/routes/handler-reply.ts';
import { jsonText } from '../../../src/service/routes/handler-result.ts';

const realm = createContext({});

const inRealm = (code: string): any => runInContext(code, realm);

const thrower = (code: string) => inRealm(`() => { throw ${code}; }`) as () => never;

for (const name of ['TypeError', 'SyntaxError', 'URIError', 'RangeError', 'Error']) {
  test(`expects a ${name} by its name, whichever realm it is from`, () => {
    assert.equal(catching(name, thrower(`new ${name}('x')`)), undefined);
    assert.throws(() => catching('EvalError', thrower(`new ${name}('x')`)), { name });
  });
}

test('rethrows what is no error', () => {
  for (const thrown of ['undefined', 'null', '"TypeError"']) {
    let seen = 0;
    try {
      catching('TypeError', thrower(thrown));
    } catch {
      seen += 1;
    }
    assert.equal(seen, 1, thrown);
  }
});

test('describes an error of another realm by its name', () => {
  assert.equal(describeBug(inRealm("new RangeError('secret')")).error, 'RangeError');
  assert.doesNotMatch(JSON.stringify(describeBug(inRealm("new RangeError('secret')"))), /secret/);
});

test('skips a key that OpenSSL refuses, although the class of its error is of another realm', (t) => {
  const off = { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' };
  const other: unknown = inRealm('Error');
  const usual = Reflect.getOwnPropertyDescriptor(globalThis, 'Error')!;
  t.after(() => Object.defineProperty(globalThis, 'Error', usual));
  Object.defineProperty(globalThis, 'Error', { ...usual, value: other });
  assert.equal(importSigningKey(off, ['ES256']), 'not-importable');
});

test('reads options with objects of another realm', () => {
  const given = { domain: 'idp.test', audience: 'a', issuers: inRealm('({})') };
  assert.deepEqual(Object.keys(readGateOptions(given).issuers), ['idp']);
  assert.throws(() => readGateOptions({ ...given, issuers: inRealm('new Map()') }), /issuers/);
});

test('sends bytes of another realm as bytes, and never an error of another realm as JSON', () => {
  const bytes: unknown = inRealm('new Uint8Array([104, 105])');
  assert.ok(isBytes(bytes) && isBytes(Buffer.from('hi')));
  for (const other of [new Uint16Array(1), new DataView(new ArrayBuffer(1)), [1], 'hi', null]) {
    assert.equal(isBytes(other), false);
  }
  assert.equal(String(reply(200, bytes as Uint8Array, { 'Content-Type': 'text/plain' }).reply.content), 'hi');

  const error: unknown = inRealm("Object.assign(new Error('secret'), { code: 'X' })");
  const labelled: unknown = inRealm(
    "Object.assign(new (class extends Error { get [Symbol.toStringTag]() { return 'X'; } })(), { code: 'X' })",
  );
  const inheriting = Object.assign(Object.create(Error.prototype), { code: 'X' });
  assert.ok(!isError({ name: 'Error', message: '', stack: '' }));
  for (const each of [error, labelled, inheriting]) {
    assert.ok(isError(each));
    assert.throws(() => jsonText(each), { name: 'TypeError' });
  }
});
