/* Settings in code: the same checks as in other sources, and none is silently ignored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGate, createService, type Routes } from '../../src/gatehouse.ts';
import type { GivenSettings } from '../../src/settings/service-settings.ts';
import { checkSettings, load, problemsIn, REQUIRED } from './every-setting.ts';

const GIVEN = { domain: 'idp.test', audience: 'https://api.test' };

const problemsOf = (given: object) => problemsIn(() => checkSettings(given as GivenSettings));

const OBJECTS: readonly [what: string, name: string, value: object][] = [
  ['a URL', 'proxy', new URL('http://proxy.test:3128')],
  ['a URL', 'publicUrl', new URL('https://api.test')],
  ['a URL', 'jwksUri', new URL('https://idp.test/keys')],
  ['a promise', 'dpopNonceSecret', Promise.resolve('s'.repeat(32))],
  ['a promise', 'dpopMode', Promise.resolve('REQUIRED')],
  ['an object without members', 'dpopMode', {}],
  ['an object without a prototype', 'dpopMode', Object.create(null)],
  ['a list of an object without a prototype', 'requiredClaims', [Object.create(null)]],
  ['a set', 'requiredClaims', new Set(['scp'])],
  ['a list with a hole', 'requiredClaims', [, 'scp']],
  // The hole would match a token without an audience.
  ['a list with a hole', 'audience', [, 'https://api.test']],
];

for (const [what, name, value] of OBJECTS) {
  test(`refuses ${what} as ${name} in code, which would silently count as absent [H2]`, () => {
    const problems = problemsOf({ ...GIVEN, [name]: value });
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? '', new RegExp(`^${name} \\(in code\\): must be `));
  });
}

for (const [what, name, issuers] of [
  ['a map of issuers', 'issuers', new Map([['partner', GIVEN]])],
  ['issuers whose members are only inherited', 'issuers', Object.create({ partner: GIVEN })],
  ['an issuer that is a map', 'issuers.partner', { partner: new Map(Object.entries(GIVEN)) }],
  ['an issuer of which nothing is set', 'issuers.partner', { partner: { domain: undefined } }],
  ['an empty issuer', 'issuers.partner', { partner: {} }],
] as const) {
  test(`refuses ${what} in code, since the issuer would silently not be trusted [H2]`, () => {
    const [problem = '', ...others] = problemsOf({ ...GIVEN, issuers });
    assert.deepEqual(others, []);
    assert.ok(problem.startsWith(`${name} (in code): is not a setting`), problem);
  });
}

test('treats undefined issuers in code as none', () => {
  for (const issuers of [{}, undefined]) assert.deepEqual(problemsOf({ ...GIVEN, issuers }), []);
});

test('refuses a setting together with loaded issuers, since one would be silently lost [H2]', () => {
  const { settings } = load({ environment: REQUIRED });
  const { issuers } = settings;
  assert.deepEqual(problemsOf({ ...GIVEN, domain: undefined, audience: undefined, issuers }), []);
  assert.deepEqual(problemsOf({ issuers, tokenType: 'at+jwt' }), [
    'tokenType (in code): is already set; remove one (in code, as issuers.idp.tokenType)',
  ]);
});

test('reads settings in code that are getters of a class, or inherited [H2]', () => {
  class Own {
    readonly domain = 'idp.test';
    readonly audience = 'https://api.test';

    get dpopMode() {
      return 'REQUIRED' as const;
    }

    get issuers() {
      return { partner: { domain: 'partner.test', audience: 'orders-api' } };
    }
  }

  const { dpopMode, issuers } = checkSettings(new Own());
  assert.deepEqual([dpopMode, Object.keys(issuers)], ['REQUIRED', ['idp', 'partner']]);
  assert.equal(checkSettings(Object.create(new Own())).issuers.idp?.domain, 'idp.test');
});

const OFF = { ...GIVEN, dpopMode: 'DISABLED' } as const;

test('reads the options of a gate from code, even inherited ones, and refuses misspelled ones [H2]', async () => {
  class Own {
    readonly domain = 'idp.test';
    readonly audience = 'https://api.test';
    readonly dpopMode = 'DISABLED';

    get dpopReplayStore() {
      return 'redis://store.test';
    }
  }

  const unused = 'dpopReplayStore (in code): has no use while the DPoP mode is DISABLED;';
  for (const [given, problem] of [
    [{ ...OFF, dpopReplayStore: 'redis://store.test' }, unused],
    [new Own(), unused],
    [Object.defineProperty({ ...OFF }, 'dpopReplayStore', { value: 'redis://store.test' }), unused],
    [new Proxy({}, { get: (_, name) => Reflect.get(new Own(), name) }), unused],
    [{ ...GIVEN, metricsPort: -1 }, 'metricsPort (in code): must be a whole number from 0 to 65535'],
    [{ ...GIVEN, corsAllowedOrigin: [] }, 'corsAllowedOrigin (in code): is not a setting; correct or remove'],
    [{ ...GIVEN, port: -1 }, 'port (in code): must be a whole number from 0 to 65535'],
  ] as const) {
    await assert.rejects(createGate(given as GivenSettings), (error: Error) => {
      assert.equal(error.name, 'ConfigurationError');
      assert.ok(error.message.startsWith(problem), error.message);
      return true;
    });
  }
});

test('names settings in code as the caller wrote them, even missing, misspelled or conflicting ones', () => {
  const resource = { ...GIVEN, publicUrl: 'https://other.test', resourceUrl: 'https://api.test' };
  for (const [given, problem] of [
    [{ ...GIVEN, dpopIatOffsetSeconds: -1 }, 'dpopIatOffsetSeconds (in code): must be a whole number'],
    [{ audience: 'x' }, 'domain (in code): the issuer base URL is required'],
    [{ ...GIVEN, dpopmode: 'REQUIRED' }, 'dpopmode (in code): is not a setting; write dpopMode or'],
    [{ ...GIVEN, accesslog: true }, 'accesslog (in code): is not a setting; write accessLog or'],
    [{ ...GIVEN, resourceName: 'x' }, 'resourceUrl (in code): is required by the scopes, name and'],
    [{ ...OFF, dpopReplayStore: 'redis://a' }, 'dpopReplayStore (in code): has no use while the DPoP mode'],
    [{ ...GIVEN, issuers: { other: { domain: 'x' } } }, 'issuers.other.audience (in code): the audience is'],
    [
      { ...GIVEN, issuers: { idp: { tokentype: 'any' } } },
      'tokentype (in code, as issuers.idp.tokentype): is',
    ],
    [
      resource,
      'resourceUrl (in code): must be https:// (http:// on loopback), with the origin of the public URL',
    ],
  ] as const) {
    const [found = '', ...others] = problemsOf(given);
    assert.ok(found.startsWith(problem) && others.length === 0, [found, ...others].join('\n'));
    assert.ok(!/[A-Z]_[A-Z]|\b(idp|server|api|resource)\./.test(found.replace('as issuers.idp', '')), found);
  }
});

test('names every setting in code as its type does, whatever the problem', () => {
  const { settings } = load({ environment: REQUIRED });
  const names = Object.keys({ ...settings.issuers.idp, ...settings });
  const own = names.filter((name) => !['issuers', 'profile', 'orgId', 'scopePolicy'].includes(name));
  assert.ok(own.length > 30);
  for (const name of own) {
    const found = problemsOf({ ...GIVEN, [name]: [[]] });
    assert.ok(found[0]?.startsWith(`${name} (in code): `), `${name}: ${found}`);
  }
});

test('reports missing settings together with problems of the routes', async () => {
  const problem = 'settings: are missing; give an object with at least domain and audience';
  const make = createService as (routes?: Routes, settings?: unknown) => unknown;
  const open = createGate as (settings?: unknown) => Promise<unknown>;
  for (const none of [undefined, null, 'https://idp.test', 5]) {
    assert.deepEqual(problemsOf(none as never), [problem]);
    await assert.rejects(open(none), { name: 'ConfigurationError', problems: [problem] });
    assert.throws(() => make({ routes: [] }, none), { name: 'ConfigurationError', problems: [problem] });
    assert.throws(() => make(undefined, none), { problems: ['routes and rules: must be lists', problem] });
  }
});
