/* The guards `actor` and `notDelegated`, and `actorOf`: the outermost claim `act` (RFC 8693 §4.1). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actor, actorOf, notDelegated } from '../../src/decisions.ts';
import { callerWith, settingsWith } from '../support/caller.ts';

type Claims = Record<string, unknown>;

const { issuer } = settingsWith().issuers.idp!;
const NAMESPACE = { IDP_CLAIM_NAMESPACE: 'https://api.example/' };

for (const [act, isGood] of [
  [{ sub: 'assistant-7' }, true],
  [{ sub: 'assistant-8' }, true],
  [{ sub: 'assistant-7', iss: issuer }, true],
  [{ sub: 'assistant-7', other: 1, act: { sub: 'stranger' } }, true],
  // Earlier actors are history, not for decisions.
  [{ sub: 'stranger', act: { sub: 'assistant-7' } }, false],
  [{ act: { sub: 'assistant-7' } }, false],
  [{ sub: 'assistant-7', iss: null }, false],
  [{ sub: 'assistant-7', iss: 'https://other.example/' }, false],
  [{ sub: 'assistant-7', iss: [issuer] }, false],
  [{ sub: 'ASSISTANT-7' }, false],
  [{ sub: 'assistant-7 assistant-8' }, false],
  [{ sub: ['assistant-7'] }, false],
  [{ sub: '' }, false],
  [{}, false],
  [[{ sub: 'assistant-7' }], false],
  ['assistant-7', false],
  [null, false],
  [undefined, false],
] as const) {
  test(`actor ${isGood ? 'passes' : 'refuses'} act ${JSON.stringify(act)} [RFC 8693 §4.1]`, () =>
    assert.equal(actor('assistant-7', 'assistant-8').passes(callerWith({ act })), isGood));
}

test('actor and notDelegated read act without the claim namespace', () => {
  const act = { sub: 'assistant-7' };
  const namespaced = callerWith({ 'https://api.example/act': act }, NAMESPACE);
  assert.equal(actor('assistant-7').passes(namespaced), false);
  assert.equal(notDelegated.passes(namespaced), true);
  const both = callerWith({ act, 'https://api.example/act': { sub: 'other' } }, NAMESPACE);
  assert.equal(actor('assistant-7').passes(both), true);
  assert.equal(actorOf(namespaced), undefined);
});

test('neither reads may_act [RFC 8693 §4.4]', () => {
  const caller = callerWith({ may_act: { sub: 'assistant-7' } });
  assert.equal(actor('assistant-7').passes(caller), false);
  assert.equal(notDelegated.passes(caller), true);
});

for (const act of [{ sub: 'x' }, {}, null, '', false, 0, []]) {
  test(`notDelegated refuses act ${JSON.stringify(act)} [RFC 8693 §4.1]`, () =>
    assert.equal(notDelegated.passes(callerWith({ act })), false));
}

test('notDelegated passes a token without act', () =>
  assert.equal(notDelegated.passes(callerWith({})), true));

for (const guard of [actor('assistant-7'), notDelegated]) {
  test(`${guard.name} fails as claim-missing, with a description that names act`, () => {
    const { kind, reason, description } = guard.refused.refusal;
    assert.deepEqual([kind, reason], ['insufficient_scope', 'claim-missing']);
    assert.match(description, /\bact\b/);
  });
}

for (const subjects of [[], [''], ['assistant-7', ''], [7], [undefined], new Array(1), ['a', null]]) {
  test(`actor throws for the subjects ${JSON.stringify(subjects)}`, () =>
    assert.throws(() => actor(...(subjects as [string])), TypeError));
}

test('actor demands the subjects that it was given', () => {
  const subjects: [string, ...string[]] = ['assistant-7'];
  const guard = actor(...subjects);
  subjects[0] = 'assistant-8';
  assert.equal(guard.passes(callerWith({ act: { sub: 'assistant-7' } })), true);
});

for (const [claims, expected] of [
  [{ act: { sub: 'assistant-7', act: { sub: 'history' } } }, 'assistant-7'],
  [{ act: { sub: 'assistant-7', iss: 'https://other.example/' } }, 'assistant-7'],
  [{ act: { sub: '' } }, undefined],
  [{ act: { sub: 7 } }, undefined],
  [{ act: {} }, undefined],
  [{ act: null }, undefined],
  [{ act: 'assistant-7' }, undefined],
  [{ act: [{ sub: 'assistant-7' }] }, undefined],
  [{}, undefined],
] as [Claims, string | undefined][]) {
  test(`actorOf a caller with ${JSON.stringify(claims)} is ${expected}`, () =>
    assert.equal(actorOf(callerWith(claims)), expected));
}

test('actorOf undefined is undefined, and of what is no caller it throws', () => {
  assert.equal(actorOf(undefined), undefined);
  for (const given of [null, {}, { claims: { act: { sub: 'assistant-7' } } }, 'assistant-7']) {
    assert.throws(() => actorOf(given as never), {
      name: 'TypeError',
      message: 'actorOf needs a caller of the same copy of the package',
    });
  }
});
