/* What becomes of a failure of node:crypto that is not a refusal of the key: it is a bug, and no answer about the key. */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import type { JsonObject } from '../../src/base/encoding.ts';
import { importSigningKey } from '../../src/keys/jwk.ts';
import { jwk } from './stand.ts';

const FAILURES: [condition: string, failure: unknown][] = [
  ['an error without a code', new RangeError('secret')],
  ['an object with a code that is no error', { code: 'ERR_OSSL' }],
  ['text', 'secret'],
];

for (const [condition, failure] of FAILURES) {
  test(`passes on what node:crypto throws when it is ${condition}`, (context) => {
    context.mock.method(crypto, 'createPublicKey', () => {
      throw failure;
    });
    syncBuiltinESMExports();
    try {
      assert.throws(
        () => importSigningKey(jwk('a') as JsonObject),
        (thrown) => thrown === failure,
      );
    } finally {
      context.mock.restoreAll();
      syncBuiltinESMExports();
    }
    assert.ok(typeof importSigningKey(jwk('a') as JsonObject) === 'object');
  });
}

test('says of a key that it is not importable when node:crypto throws an error with a code', (context) => {
  context.mock.method(crypto, 'createPublicKey', () => {
    throw Object.assign(new Error('secret'), { code: 'ERR_OSSL' });
  });
  syncBuiltinESMExports();
  try {
    assert.equal(importSigningKey(jwk('a') as JsonObject), 'not-importable');
  } finally {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  }
});
