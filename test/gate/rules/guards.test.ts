import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MadeGuard,
  anyScope,
  claimCheck,
  claimEquals,
  claimIncludes,
  scope,
  type Guard,
} from '../../../src/gate/rules/guards.ts';
import { needs, checkAccess } from '../../../src/gate/rules/access.ts';
import { stackOf } from '../../support/call-lines.ts';
import { callerWith, clock } from '../../support/caller.ts';
import type { Environment } from '../../support/settings.ts';

type Claims = Record<string, unknown>;

const passes = (guard: Guard, claims: Claims, environment?: Environment) =>
  guard.passes(callerWith(claims, environment));

function check(
  what: string,
  guard: Guard,
  cases: { readonly held: readonly Claims[]; readonly missing: readonly Claims[] },
): void {
  for (const claims of cases.held) {
    test(`${what} passes ${JSON.stringify(claims)}`, () => assert.equal(passes(guard, claims), true));
  }
  for (const claims of cases.missing) {
    test(`${what} refuses ${JSON.stringify(claims)}`, () => assert.equal(passes(guard, claims), false));
  }
}

check('a guard of two scopes', scope('read', 'write'), {
  held: [
    { scope: 'read write' },
    { scope: 'write admin read' },
    { scope: ['read', 'write'] },
    { scope: ' read  write' },
  ],
  missing: [
    {},
    { scope: '' },
    { scope: 'read' },
    { scope: 'write' },
    { scope: 'read:all write' },
    { scope: 'spread write' },
    { scope: 'readwrite' },
    { scope: 'read\twrite' },
    { scope: 'read\nwrite' },
    { scope: 'read,write' },
    { scope: 'READ WRITE' },
    { scope: ['read write'] },
    { scope: ['read'] },
    { scope: ['read', 'write', 7] },
    { scope: [['read', 'write']] },
    { scope: { read: true, write: true } },
    { scope: 7 },
    { scope: null },
    { scope: true },
    { scp: 'read write' },
    { scopes: 'read write' },
  ],
});

check('a guard of any of two scopes', anyScope('read:users', 'write:users'), {
  held: [
    { scope: 'read:users' },
    { scope: 'write:users' },
    { scope: 'x write:users read:users' },
    { scope: ['write:users'] },
  ],
  missing: [
    {},
    { scope: '' },
    { scope: 'read' },
    { scope: 'users' },
    { scope: 'read:users:all' },
    { scope: 'read:users\twrite:users' },
    { scope: ['read:users write:users'] },
    { scope: 7 },
  ],
});

check('a guard of a string claim', claimEquals('org', 'a1'), {
  held: [{ org: 'a1' }],
  missing: [
    {},
    { org: 'a' },
    { org: 'a12' },
    { org: 'A1' },
    { org: ' a1' },
    { org: ['a1'] },
    { org: null },
    { org: { toString: 'a1' } },
    { org: true },
  ],
});

check('a guard of a number claim', claimEquals('level', 1), {
  held: [{ level: 1 }],
  missing: [{}, { level: '1' }, { level: true }, { level: [1] }, { level: 2 }, { level: 0 }, { level: null }],
});

check('a guard of a boolean claim', claimEquals('verified', false), {
  held: [{ verified: false }],
  missing: [
    {},
    { verified: 'false' },
    { verified: 0 },
    { verified: '' },
    { verified: null },
    { verified: true },
    { verified: [] },
  ],
});

check('a guard of three included values', claimIncludes('roles', ['a', 'b', 'c']), {
  held: [{ roles: 'c b a' }],
  missing: [{ roles: 'a b' }, { roles: ['a', 'b'] }],
});

check(
  'a guard of an included value with a blank, which only a list can have',
  claimIncludes('roles', ['a b']),
  {
    held: [{ roles: ['a b'] }],
    missing: [{ roles: 'a b' }, { roles: ['a', 'b'] }],
  },
);

check('a guard of included values', claimIncludes('roles', ['editor', 'viewer']), {
  held: [
    { roles: ['editor', 'viewer'] },
    { roles: ['viewer', 'x', 'editor', 7, null] },
    { roles: 'editor viewer' },
    { roles: 'viewer admin editor' },
  ],
  missing: [
    {},
    { roles: ['editor'] },
    { roles: ['viewer'] },
    { roles: 'editor' },
    { roles: 'editors viewers' },
    { roles: 'editor\tviewer' },
    { roles: 'editor,viewer' },
    { roles: ['editor viewer'] },
    { roles: [['editor'], ['viewer']] },
    { roles: { editor: 1, viewer: 1 } },
    { roles: { 0: 'editor', 1: 'viewer', length: 2 } },
    { roles: ['Editor', 'Viewer'] },
    { roles: [] },
    { roles: '' },
    { roles: 7 },
    { roles: null },
    { roles: true },
  ],
});

for (const verdict of [true, false]) {
  test(`a claim check that returns ${verdict} ${verdict ? 'passes' : 'refuses'} the caller [docs/refusals.md]`, () => {
    const guard = claimCheck('something', () => verdict);
    assert.equal(passes(guard, {}), verdict);
  });
}

for (const [what, verdict] of [
  ['a number', 1],
  ['text', 'true'],
  ['an object', {}],
  ['nothing', undefined],
  ['null', null],
  ['a promise', Promise.resolve(true)],
  ['an object with a method then', { then: () => {} }],
] as const) {
  test(`a claim check that returns ${what} is a bug, not a refusal, and the error names decision`, () => {
    const guard = claimCheck('something', () => verdict as never);
    assert.throws(() => passes(guard, {}), /decision/);
  });
}

test('a claim check reads claims by name', () => {
  const guard = claimCheck('a equals b', (claim) => claim('a') !== undefined && claim('a') === claim('b'));
  assert.equal(passes(guard, { a: 1, b: 1 }), true);
  assert.equal(passes(guard, { a: 1, b: 2 }), false);
});

const NAMESPACE = { IDP_CLAIM_NAMESPACE: 'https://ns.example/' };

for (const [what, guard] of [
  ['claim equals', claimEquals('org', 'a1')],
  ['claim includes', claimIncludes('org', ['a1'])],
  ['claim check', claimCheck('org is a1', (claim) => claim('org') === 'a1')],
] as const) {
  test(`${what} reads the namespaced claim, even if it is null, and otherwise the plain one [docs/settings.md IDP_CLAIM_NAMESPACE]`, () => {
    assert.equal(passes(guard, { org: 'a1' }, NAMESPACE), true);
    assert.equal(passes(guard, { 'https://ns.example/org': 'a1' }, NAMESPACE), true);
    assert.equal(passes(guard, { org: 'x', 'https://ns.example/org': 'a1' }, NAMESPACE), true);
    assert.equal(passes(guard, { org: 'a1', 'https://ns.example/org': null }, NAMESPACE), false);
    assert.equal(passes(guard, { 'https://ns.example/org': 'a1' }), false);
  });
}

test('a scope guard reads the configured claim', () => {
  assert.equal(passes(scope('read'), { scp: ['read'] }, { IDP_SCOPE_CLAIM: 'scp' }), true);
  assert.equal(passes(scope('read'), { scope: 'read' }, { IDP_SCOPE_CLAIM: 'scp' }), false);
});

for (const [guard, name, refusal] of [
  [
    scope('a', 'b'),
    'scope a b',
    {
      reason: 'scope-missing',
      description: 'the token lacks a required scope',
      scopes: ['a', 'b'],
      demands: { scope: 'a b' },
    },
  ],
  [
    anyScope('a', 'b'),
    'any scope of a b',
    {
      reason: 'scope-missing',
      description: 'the token has none of the required scopes',
      scopes: ['a', 'b'],
      demands: { scope: 'a b' },
    },
  ],
  [
    claimEquals('org', 'a1'),
    'claim org equals a1',
    { reason: 'claim-missing', description: 'the claim org is missing or has another value' },
  ],
  [
    claimIncludes('roles', ['x', 'y']),
    'claim roles includes x y',
    { reason: 'claim-missing', description: 'the claim roles is missing or lacks a required value' },
  ],
  [
    claimCheck('a is b', () => true),
    'claims a is b',
    { reason: 'claim-missing', description: 'the claims do not satisfy: a is b' },
  ],
] as const) {
  test(`the guard "${name}" exposes its name and its refusal [RFC 6750 §3.1]`, () => {
    assert.equal(guard.name, name);
    assert.deepEqual(guard.refused.refusal, { kind: 'insufficient_scope', ...refusal });
  });
}

for (const word of ['', 'a b', 'a"b', 'a\\b', 'a\tb', 'a\u007f', 'é', '\u0000', ' ']) {
  test(`refuses ${JSON.stringify(word)} as a scope [RFC 6749 §3.3]`, () => {
    const wrong = (name: string) => new TypeError(`${name}: needs scopes, each as its own argument`);
    assert.throws(() => scope(word), wrong(`scope ${word}`));
    assert.throws(() => scope('good', word), wrong(`scope good ${word}`));
    assert.throws(() => anyScope(word), wrong(`any scope of ${word}`));
  });
}

test('accepts every character of a scope-token [RFC 6749 §3.3]', () => {
  for (const word of ['!', '#', '[', ']', '~', 'read:messages', 'https://a.example/x?y=z']) {
    assert.equal(scope(word).name, `scope ${word}`);
  }
});

for (const text of ['a"b', 'a\\b', 'a\nb', 'a\rb', 'é', '\u007f', '中', '\u0000', '\u001f', 'a=b']) {
  test(`refuses a claim name with ${JSON.stringify(text)}, which no challenge can carry [RFC 6750 §3, G16]`, () => {
    const wrong = (name: string) =>
      new TypeError(`${name}: needs 1 to 200 printable ASCII characters except ", \\ and =`);

    assert.throws(() => claimEquals(text, 'x'), wrong(`claim ${text} equals x`));
    assert.throws(() => claimIncludes(text, ['x']), wrong(`claim ${text} includes x`));
    assert.throws(() => claimCheck(text, () => true), wrong(`claims ${text}`));
  });
}

test('accepts every character of an error_description in the demand of a claim check [RFC 6750 §3]', () => {
  for (const what of ['!', '#', '[', ']', '~', ' ', 'https://ns.example/x']) {
    assert.equal(claimCheck(what, () => true).name, `claims ${what}`);
  }
});

const LONGEST = 'x'.repeat(200);

test('takes 1 to 200 characters as the name of a claim check and of a claim, and throws for anything else [§5]', () => {
  for (const what of ['x', LONGEST]) assert.equal(claimCheck(what, () => true).name, `claims ${what}`);

  for (const what of ['', `${LONGEST}x`, undefined, null, 7, ['x']] as never[]) {
    const wrong = (name: string) =>
      new TypeError(`${name}: needs 1 to 200 printable ASCII characters except ", \\ and =`);

    assert.throws(() => claimCheck(what, () => true), wrong(`claims ${what}`));
    assert.throws(() => claimEquals(what, 'x'), wrong(`claim ${what} equals x`));
    assert.throws(() => claimIncludes(what, ['x']), wrong(`claim ${what} includes x`));
  }
});

const demandsNothing = (name: string) =>
  new TypeError(
    `${name}: needs a value: ` +
      'text, number or boolean (claimEquals), texts (claimIncludes, actor), function (claimCheck)',
  );

test('refuses a guard that demands nothing, such as one made from a missing setting or an empty list [H2]', () => {
  const absent = undefined as never;
  const none = [] as unknown as readonly [never];
  assert.throws(() => claimEquals('org_id', absent), demandsNothing('claim org_id equals undefined'));
  assert.throws(() => claimIncludes('roles', none), demandsNothing('claim roles includes '));
  assert.throws(() => claimIncludes('roles', 'editor' as never), demandsNothing('claim roles includes '));
  assert.throws(() => claimCheck('x', absent), demandsNothing('claims x'));
  const wrong = (name: string) => new TypeError(`${name}: needs scopes, each as its own argument`);
  assert.throws(() => scope(...none), wrong('scope '));
  assert.throws(() => scope('read', absent), wrong('scope read '));
});

test('refuses needs() without a guard, and says what to write', () => {
  const none = [] as unknown as readonly [never];
  const wrong = new TypeError(
    'needs() takes guards of the same copy of the package, like scope(…); without one, use authenticated',
  );
  assert.throws(() => needs(...none), wrong);
});

test('reports that a guard demands nothing before it reports an invalid claim name [H2]', () => {
  const absent = undefined as never;
  assert.throws(() => claimEquals('é', absent), demandsNothing('claim é equals undefined'));
});

test('accepts false, 0 and an empty string as demanded values', () => {
  for (const expected of [false, 0, '']) {
    const guard = claimEquals('blocked', expected);
    assert.deepEqual(
      [expected, undefined, null, true].map((blocked) => passes(guard, { blocked })),
      [true, false, false, false],
    );
  }
});

test('refuses null, a function, a promise or what no JSON can say in claimEquals, what is no list, null, a promise or an empty string in claimIncludes, and what is not a function in claimCheck [H2]', () => {
  const nothing = null as never;
  for (const [name, make] of [
    ['claim org_id equals null', () => claimEquals('org_id', nothing)],
    ['claim level equals NaN', () => claimEquals('level', Number('five'))],
    ['claim level equals Infinity', () => claimEquals('level', Infinity)],
    ['claim level equals 1', () => claimEquals('level', 1n as never)],
    ['claim roles includes editor ', () => claimIncludes('roles', ['editor', nothing])],
    ['claim roles includes ', () => claimIncludes('roles', [''])],
    ['claim roles includes ', () => claimIncludes('roles', new Array(1) as [string])],
    [`claim org_id equals ${String}`, () => claimEquals('org_id', String as never)],
    ['claim org_id equals [object Promise]', () => claimEquals('org_id', Promise.resolve('a') as never)],
    ['claim roles includes ', () => claimIncludes('roles', 'editor' as never)],
    ['claim roles includes ', () => claimIncludes('roles', undefined as never)],
    ['claim roles includes [object Promise]', () => claimIncludes('roles', [Promise.resolve('a') as never])],
    ['claims is here', () => claimCheck('is here', nothing)],
    ['claims is true', () => claimCheck('is true', true as never)],
  ] as const) {
    assert.throws(make, demandsNothing(name));
  }
});

test('refuses what is not a guard in needs(), such as the name of a scope or a function that was not called [H2]', () => {
  const error = new TypeError(
    'needs() takes guards of the same copy of the package, like scope(…); without one, use authenticated',
  );
  for (const given of ['read', scope, undefined, null, {}, needs(scope('read'))]) {
    assert.throws(() => needs(given as never), error);
    assert.throws(() => needs(scope('read'), given as never), error);
  }
});

test('refuses a string as a list of values, which would be taken as a list of its characters [H2]', () => {
  const text = 'editor' as unknown as [string];
  assert.throws(() => claimIncludes('roles', text), TypeError);
});

test('demands the values that a list had when the guard was made [H2]', () => {
  const values: [string, ...string[]] = ['editor'];
  const guard = claimIncludes('roles', values);
  values.length = 0 as 1;
  assert.equal(passes(guard, { roles: [] }), false);
  assert.equal(passes(guard, { roles: ['editor'] }), true);
});

test('no code can change a guard, which every request shares', () => {
  const made = [scope('a'), claimEquals('a', 1), claimIncludes('a', ['b']), claimCheck('a', () => true)];
  for (const guard of made) assert.ok(Object.isFrozen(guard), guard.name);
});

test('a promise of claimCheck that rejects is no error of the process', async (t) => {
  const unhandled: unknown[] = [];
  const noteUnhandled = (failure: unknown) => void unhandled.push(failure);
  process.on('unhandledRejection', noteUnhandled);
  t.after(() => process.off('unhandledRejection', noteUnhandled));
  const guard = claimCheck('a', (() => Promise.reject(new Error('x'))) as never);
  assert.throws(() => passes(guard, {}), /to wait, write a decision/);
  await new Promise(setImmediate);
  assert.deepEqual(unhandled, []);
});

test('admits no caller by a guard that returns a promise [H2]', () => {
  const passes = async () => true;
  const guard = new MadeGuard('read', passes as never, scope('read').refused, undefined);
  const caller = callerWith({ scope: 'read' });
  const question = { facts: { method: 'GET', host: undefined, path: '/', rawHeaders: [] } };

  const refusalOf = (demanded: Guard) =>
    checkAccess([needs(demanded)], caller, true, question, { clock, log: () => {}, count: undefined });

  assert.equal(refusalOf(guard), guard.refused);
  assert.equal(refusalOf(scope('read')), undefined);
});

test('refuses a guard whose name a challenge cannot show, with an error that names it', () => {
  const wrong = new TypeError(
    'claim é equals x: needs 1 to 200 printable ASCII characters except ", \\ and =',
  );
  assert.throws(() => claimEquals('é', 'x'), wrong);
});

for (const [what, line] of [
  ['scope', "  needs(scope('a b')),"],
  ['claimEquals', "  needs(scope('a'), claimEquals('org_id', undefined)),"],
  ['needs', '  needs(),'],
] as const) {
  test(`the error that ${what} throws names the line of the call in its stack`, () => {
    const names = { claimEquals, needs, scope };
    assert.match(stackOf(['const accesses = [', "  needs(scope('a')),", line, '];'], names), /routes\.js:3:/);
  });
}

test('can require that the subject is not the client [D9]', () => {
  const isUser = claimCheck(
    'the subject is not the client',
    (claim) => typeof claim('client_id') === 'string' && claim('sub') !== claim('client_id'),
  );
  assert.ok(passes(isUser, { client_id: 'c', sub: 'u' }));
  assert.ok(!passes(isUser, { client_id: 'c', sub: 'c' }));
  assert.ok(!passes(isUser, { sub: 'u' }));
});
