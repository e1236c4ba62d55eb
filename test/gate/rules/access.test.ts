/* The name of an access, and how it treats credentials. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';

for (const [access, name, credentials] of [
  [open, 'open', 'ignored'],
  [optional, 'optional', 'optional'],
  [authenticated, 'authenticated', 'required'],
  [needs(scope('a')), scope('a').name, 'required'],
] as const) {
  test(`an access has the name ${name} and its credentials are ${credentials}`, () =>
    assert.deepEqual([access.name, access.credentials], [name, credentials]));
}
