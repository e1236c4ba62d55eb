/* The guard `recentLogin` (RFC 9470): what passes it, when it is checked, and its challenge. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { needs, open } from '../../../src/gate/rules/access.ts';
import { claimEquals, scope } from '../../../src/gate/rules/guards.ts';
import { recentLogin, type LoginDemands } from '../../../src/gate/rules/recent-login.ts';
import { get, under } from '../../../src/service/routes/route.ts';
import { callerWith, clock, rememberToken, tokenWith } from '../../support/caller.ts';
import { startRoutes, type RoutesToTest } from '../../support/routes.ts';
import type { Environment } from '../../support/settings.ts';

const NOW_MILLIS = 1_700_000_000_500;

/**
 * Whether a login with these claims passes at `NOW_MILLIS`, half a second past a whole second. Default
 * tolerance: none.
 */
function passes(demands: LoginDemands, claims: Record<string, unknown>, clockToleranceSeconds = 0): boolean {
  const environment = { IDP_CLOCK_TOLERANCE_SECONDS: String(clockToleranceSeconds) };
  return recentLogin(demands).passes(callerWith(claims, environment, NOW_MILLIS));
}

for (const [authTime, tolerance, isGood] of [
  // Half a second too old, and half a second young enough.
  [1_699_999_700, 0, false],
  [1_699_999_701, 0, true],
  [1_699_999_700.5, 0, true],
  [1_699_999_700.499, 0, false],
  [1_699_999_690, 10, false],
  [1_699_999_691, 10, true],
  [1_700_000_000, 0, true],
  // From the future.
  [1_700_000_001, 0, false],
  [1_700_000_000.5, 0, true],
  [1_700_000_010, 10, true],
  [1_700_000_011, 10, false],
] as const) {
  test(`at ${NOW_MILLIS} ms, a login at ${authTime} ${isGood ? 'passes' : 'does not pass'} a maximum age of 300 s with ${tolerance} s of tolerance [RFC 9470 §3, D10]`, () =>
    assert.equal(passes({ maxAgeSeconds: 300 }, { auth_time: authTime }, tolerance), isGood));
}

for (const authTime of [undefined, null, '1700000000', [1_700_000_000], {}, true, NaN]) {
  test(`an auth_time of ${typeof authTime === 'number' ? authTime : JSON.stringify(authTime)} proves no login, whatever the tolerance [RFC 9470 §3]`, () =>
    assert.equal(passes({ maxAgeSeconds: 1e9 }, { auth_time: authTime }, 300), false));
}

test('a login at the current time passes a maximum age of 0 s, and a login one second earlier does not [RFC 9470 §3]', () => {
  assert.equal(passes({ maxAgeSeconds: 0 }, { auth_time: 1_700_000_000.5 }), true);
  assert.equal(passes({ maxAgeSeconds: 0 }, { auth_time: 1_699_999_999.5 }), false);
});

for (const [acr, isGood] of [
  ['mfa', true],
  ['phr', true],
  ['MFA', false],
  ['mfa phr', false],
  ['mfax', false],
  ['', false],
  [['mfa'], false],
  [undefined, false],
  [null, false],
  [{ mfa: true }, false],
] as const) {
  test(`an acr of ${JSON.stringify(acr)} ${isGood ? 'passes' : 'does not pass'} a guard for mfa or phr [RFC 9470 §3]`, () =>
    assert.equal(passes({ acr: ['mfa', 'phr'] }, { acr }), isGood));
}

test('a guard with acr and maxAgeSeconds demands both [RFC 9470 §3]', () => {
  const both: LoginDemands = { acr: ['mfa'], maxAgeSeconds: 300 };
  assert.equal(passes(both, { acr: 'mfa', auth_time: 1_700_000_000 }), true);
  assert.equal(passes(both, { acr: 'pwd', auth_time: 1_700_000_000 }), false);
  assert.equal(passes(both, { acr: 'mfa', auth_time: 1_600_000_000 }), false);
  assert.equal(passes(both, { acr: 'mfa' }), false);
});

test('acr and auth_time are never read from the namespace', () => {
  const spaced = { 'https://ns.test/acr': 'mfa', 'https://ns.test/auth_time': 1_700_000_000 };
  const environment = { IDP_CLAIM_NAMESPACE: 'https://ns.test/' };
  for (const demands of [{ acr: ['mfa'] }, { maxAgeSeconds: 300 }] as const) {
    assert.equal(recentLogin(demands).passes(callerWith(spaced, environment, NOW_MILLIS)), false);
  }
  const plain = callerWith({ acr: 'mfa', 'https://ns.test/acr': 'pwd' }, environment);
  assert.equal(recentLogin({ acr: ['mfa'] }).passes(plain), true);
});

for (const [what, demands] of [
  ['no demands', {}],
  ['no acr', { acr: [] }],
  ['no acr beside an age', { acr: [], maxAgeSeconds: 1 }],
  ['an empty acr', { acr: ['mfa', ''] }],
  ['undefined as an acr, since tokens may not have an acr either', { acr: [undefined] }],
  ['an acr that is null', { acr: [null] }],
  ['a list of acr values with a hole', { acr: [, 'mfa'] }],
  ['an acr with a space', { acr: ['a b'] }],
  ['an acr with a quote', { acr: ['a"b'] }],
  ['an acr with a backslash', { acr: ['a\\b'] }],
  ['an acr beyond ASCII', { acr: ['é'] }],
  ['a string for acr', { acr: 'mfa' }],
  ['null for acr', { acr: null, maxAgeSeconds: 300 }],
  ['an age below 0', { maxAgeSeconds: -1 }],
  ['half a second', { maxAgeSeconds: 0.5 }],
  ['an age that is no number', { maxAgeSeconds: NaN }],
  ['an infinite age', { maxAgeSeconds: Infinity }],
  ['an age of 16 digits', { maxAgeSeconds: 1e15 }],
  ['an age beyond whole numbers', { maxAgeSeconds: 1e21 }],
  ['a string for an age', { maxAgeSeconds: '300' }],
  ['null for an age', { acr: ['mfa'], maxAgeSeconds: null }],
  ['null', null],
  ['nothing', undefined],
  ['an age under the name maxAge', { acr: ['mfa'], maxAge: 300 }],
] as const) {
  test(`recentLogin throws for ${what} [RFC 9470 §3]`, () =>
    assert.throws(
      () => recentLogin(demands as unknown as LoginDemands),
      new TypeError('recentLogin needs acr (a list of words), maxAgeSeconds (a whole number from 0) or both'),
    ));
}

test('a maximum age can have 15 digits, and the name of the guard shows them all [RFC 9470 §3]', () => {
  assert.equal(recentLogin({ maxAgeSeconds: 1e15 - 1 }).name, 'login max_age="999999999999999"');
});

test('a login guard demands the acr values that it was made with, even if the list changes later [H2]', () => {
  const acr: [string, ...string[]] = ['mfa'];
  const guard = recentLogin({ acr });
  acr.push('pwd');
  assert.equal(guard.passes(callerWith({ acr: 'pwd' })), false);
});

test('the name of a guard shows all that it demands of a login', () => {
  const { name } = recentLogin({ acr: ['mfa', 'phr'], maxAgeSeconds: 300 });
  assert.equal(name, 'login acr_values="mfa phr", max_age="300"');
});

test('a route demands at most one login', () => {
  const login = recentLogin({ maxAgeSeconds: 300 });
  const twoLogins = () => needs(login, scope('a'), recentLogin({ acr: ['mfa'] }));
  assert.throws(twoLogins, new TypeError('needs() has more than one recentLogin or claims; combine them'));
  assert.equal(needs(login, scope('a')).name, 'login max_age="300", scope a');
});

const ROUTES = [
  get('/first', needs(recentLogin({ acr: ['mfa', 'phr'], maxAgeSeconds: 0 }), scope('pay')), () => ({})),
  get('/last', needs(scope('pay'), claimEquals('org', 'a'), recentLogin({ maxAgeSeconds: 60 })), () => ({})),
  get('/ruled/x', needs(scope('pay')), () => ({})),
];

const RULES = [under('/ruled', needs(recentLogin({ acr: ['mfa'] })))];

async function serve(t: TestContext, more: Partial<RoutesToTest> = {}) {
  const app = await startRoutes({ routes: ROUTES, policy: RULES, ...more });
  t.after(() => app.stop());
  return app;
}

const METADATA = 'resource_metadata="https://api.test/.well-known/oauth-protected-resource"';

const LOGIN =
  'error="insufficient_user_authentication", error_description="the login of the user is not recent or strong enough"';

for (const [what, environment, path, expected] of [
  ['', {}, '/first', [`Bearer realm="api", ${LOGIN}, acr_values="mfa phr", max_age="0"`]],
  [
    ', and with the scopes if RESOURCE_URL is set',
    { RESOURCE_URL: 'https://api.test' },
    '/first',
    [`Bearer realm="api", ${LOGIN}, acr_values="mfa phr", max_age="0", scope="pay", ${METADATA}`],
  ],
  [' of the rule for its path', {}, '/ruled/x', [`Bearer realm="api", ${LOGIN}, acr_values="mfa"`]],
  [
    ' of the rule for its path, and with the scopes of the route',
    { RESOURCE_URL: 'https://api.test' },
    '/ruled/x',
    [`Bearer realm="api", ${LOGIN}, acr_values="mfa", scope="pay", ${METADATA}`],
  ],
] as const satisfies readonly (readonly [string, Environment, string, readonly string[]])[]) {
  test(`a caller without the demanded login gets a challenge with the demands${what} [RFC 9470 §3]`, async (t) => {
    const app = await serve(t, { environment });
    const token = tokenWith({ scope: 'pay', acr: 'pwd', auth_time: clock.now() / 1000 });
    const response = await app.ask(path, { token });
    assert.deepEqual(
      [response.status, response.body, response.challenges],
      [401, { error: 'insufficient_user_authentication', message: 'Authentication required' }, expected],
    );
    assert.equal(app.logs.at(-1)?.reason, 'login-insufficient');
  });
}

test('the login is checked last, whatever the order of the guards: a caller without a scope or claim is refused for that first [RFC 9470]', async (t) => {
  const app = await serve(t);
  for (const [path, claims, status] of [
    ['/first', {}, 403],
    ['/last', { scope: 'pay' }, 403],
    ['/last', { scope: 'pay', org: 'a' }, 401],
    ['/last', { scope: 'pay', org: 'a', auth_time: clock.now() / 1000 }, 200],
  ] as const) {
    assert.equal((await app.ask(path, { token: tokenWith(claims) })).status, status, path);
  }
  assert.equal((await app.ask('/first')).body.error, 'unauthorized');
});

test('the login of a rule is checked after the demands of the route, and never without a route [RFC 9470]', async (t) => {
  const routes = [
    get('/ruled/x', needs(scope('pay')), () => ({})),
    get('/ruled/login', needs(recentLogin({ maxAgeSeconds: 60 }), scope('pay')), () => ({})),
    get('/ruled/open', open, () => ({})),
  ];
  const policy = [
    under('/ruled', needs(recentLogin({ acr: ['mfa'] }), claimEquals('org', 'a'))),
    under('/', needs(scope('any'))),
  ];
  const app = await serve(t, { routes, policy });
  const strong = { acr: 'mfa', auth_time: clock.now() / 1000 };
  for (const [claims, path, method, status, reason] of [
    [{}, '/ruled/none', 'GET', 403, 'claim-missing'],
    [{ org: 'a' }, '/ruled/none', 'GET', 403, 'scope-missing'],
    [{ org: 'a', scope: 'any' }, '/ruled/none', 'GET', 404, 'not_found'],
    [{ org: 'a', scope: 'any' }, '/ruled/x', 'POST', 405, 'method_not_allowed'],
    [{ org: 'a', scope: 'any' }, '/ruled/x', 'GET', 403, 'scope-missing'],
    [{ org: 'a', scope: 'any' }, '/ruled/login', 'GET', 403, 'scope-missing'],
    [{ org: 'a', scope: 'any pay' }, '/ruled/x', 'GET', 401, 'login-insufficient'],
    [{ org: 'a', scope: 'any pay', ...strong, acr: 'pwd' }, '/ruled/login', 'GET', 401, 'login-insufficient'],
    [{ org: 'a', scope: 'any pay', acr: 'mfa' }, '/ruled/login', 'GET', 401, 'login-insufficient'],
    [{ org: 'a', scope: 'any' }, '/ruled/open', 'GET', 401, 'login-insufficient'],
    [{ org: 'a', scope: 'any pay', ...strong }, '/ruled/login', 'GET', 200, undefined],
    [{ org: 'a', scope: 'any', ...strong }, '/ruled/open', 'GET', 200, undefined],
  ] as const) {
    const response = await app.ask(path, { method, token: tokenWith(claims) });
    const told = reason && app.logs.at(-1)?.reason;
    assert.deepEqual(
      [response.status, told],
      [status, reason],
      `${method} ${path} ${JSON.stringify(claims)}`,
    );
  }
  assert.equal((await app.ask('/ruled/none')).body.error, 'unauthorized');
});

test('a caller without the logins of a rule and of the route gets the demands of the rule first [RFC 9470 §3]', async (t) => {
  const routes = [get('/ruled/x', needs(recentLogin({ maxAgeSeconds: 60 })), () => ({}))];
  const app = await serve(t, { routes });
  for (const [acr, demanded] of [
    ['pwd', 'acr_values="mfa"'],
    ['mfa', 'max_age="60"'],
  ]) {
    const { challenges } = await app.ask('/ruled/x', { token: tokenWith({ acr }) });
    assert.deepEqual(challenges, [`Bearer realm="api", ${LOGIN}, ${demanded}`]);
  }
});

test('a login can become too old while its token is cached [RFC 9470 §3, D10]', async (t) => {
  const app = await serve(t, { verify: rememberToken });
  const token = tokenWith({ scope: 'pay', org: 'a', auth_time: clock.now() / 1000 });
  assert.equal((await app.ask('/last', { token })).status, 200);
  const before = clock.now();
  clock.set(before + 60_001);
  t.after(() => clock.set(before));
  assert.equal((await app.ask('/last', { token })).body.error, 'insufficient_user_authentication');
});
