/* The name of an access, how it treats credentials, and that no code can change one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  authenticated,
  checkAccess,
  isAccess,
  needs,
  open,
  optional,
  toBeAwaited,
} from '../../../src/gate/rules/access.ts';
import { MadeGuard, scope } from '../../../src/gate/rules/guards.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import type { Caller } from '../../../src/verify/caller.ts';
import { callerWith, clock } from '../../support/caller.ts';

for (const [access, name, credentials] of [
  [open, 'open', 'ignored'],
  [optional, 'optional', 'optional'],
  [authenticated, 'authenticated', 'required'],
  [needs(scope('a')), scope('a').name, 'required'],
] as const) {
  test(`an access has the name ${name} and its credentials are ${credentials}`, () =>
    assert.deepEqual([access.name, access.credentials], [name, credentials]));
}

for (const access of [open, optional, authenticated, needs(scope('a'))]) {
  test(`no code can change the access ${access.name}, or make one by its constructor`, () => {
    assert.ok(isAccess(access) && Object.isFrozen(access) && Object.isFrozen(access.guards));
    assert.equal(Object.getPrototypeOf(access).constructor, Object);
    assert.equal(isAccess({ ...access }), false);
  });
}

const SURROUNDINGS = { clock, log: () => {}, count: undefined };

const QUESTION = { facts: { method: 'GET', host: 'api.test', path: '/', rawHeaders: [] } };

test('requires credentials if one of several demands does', () => {
  for (const [demands, isRefused] of [
    [[optional, authenticated], true],
    [[authenticated, optional], true],
    [[open, optional], false],
    [[], false],
  ] as const) {
    const refused = checkAccess(demands, undefined, true, QUESTION, SURROUNDINGS);
    assert.equal(refused instanceof Refused, isRefused);
    if (refused instanceof Refused) assert.equal(refused.refusal.reason, 'no-credentials');
  }
});

test('shows no refusal of a verdict that was not awaited, and the verdict to who waits [§28]', async () => {
  const verdict = { refusal: undefined };
  const promise = toBeAwaited(verdict);
  assert.throws(() => (promise as unknown as typeof verdict).refusal, {
    name: 'TypeError',
    message: 'authorize waits for the decisions of this access; await it',
  });
  assert.equal(await promise, verdict);
});

test('admits only a caller that the sender check has made', () => {
  const genuine = callerWith({ scope: 'a' });
  for (const access of [authenticated, needs(scope('a'))]) {
    assert.equal(access.admit(genuine), genuine);
    for (const forged of [undefined, { ...genuine }, Object.create(genuine)]) {
      assert.throws(() => access.admit(forged), {
        name: 'TypeError',
        message: 'the caller was not made by the sender check',
      });
    }
  }
});

test('asks no guard about a caller that the sender check has not made', () => {
  const genuine = callerWith({ scope: 'a' });
  const asked: unknown[] = [];
  const guard = new MadeGuard('any', (caller) => asked.push(caller) > 0, scope('a').refused, undefined);
  const check = (caller: Caller) => checkAccess([needs(guard)], caller, true, QUESTION, SURROUNDINGS);
  for (const forged of [{ ...genuine }, Object.create(genuine)]) {
    assert.throws(() => check(forged), {
      name: 'TypeError',
      message: 'the caller was not made by the sender check',
    });
  }
  assert.equal(check(genuine), undefined);
  assert.deepEqual(asked, [genuine]);
});
