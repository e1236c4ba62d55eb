/* Settings in code: by the rules of the other sources, and none is passed over in silence. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSettings, type GivenSettings } from '../../src/settings/load.ts';
import { load, problemsIn, REQUIRED } from './every-setting.ts';

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
  ['a list with a hole, which a token without an audience would meet,', 'audience', [, 'https://api.test']],
];

for (const [what, name, value] of OBJECTS) {
  test(`refuses ${what} as ${name} in code, which would count as absent in silence [H2]`, () => {
    const problems = problemsOf({ ...GIVEN, [name]: value });
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? '', new RegExp(`^\\S+ \\(${name} in code\\): must be `));
  });
}

for (const [what, name, issuers] of [
  ['a map of issuers', 'issuers', new Map([['partner', GIVEN]])],
  ['issuers that show none', 'issuers', Object.create({ partner: GIVEN })],
  ['an issuer that is a map', 'issuers.partner', { partner: new Map(Object.entries(GIVEN)) }],
  ['an issuer of which nothing is set', 'issuers.partner', { partner: { domain: undefined } }],
  ['an empty issuer', 'issuers.partner', { partner: {} }],
] as const) {
  test(`refuses ${what} in code, whom nobody would trust in silence [H2]`, () => {
    const [problem = '', ...others] = problemsOf({ ...GIVEN, issuers });
    assert.deepEqual(others, []);
    assert.ok(problem.startsWith(`${name} (${name} in code): is not a setting`), problem);
  });
}

test('takes no issuers in code for none', () => {
  for (const issuers of [{}, undefined]) assert.deepEqual(problemsOf({ ...GIVEN, issuers }), []);
});

test('refuses a setting beside issuers that were loaded, one of which would be lost in silence [H2]', () => {
  const { settings } = load({ environment: REQUIRED });
  const { issuers } = settings;
  assert.deepEqual(problemsOf({ ...GIVEN, domain: undefined, audience: undefined, issuers }), []);
  assert.deepEqual(problemsOf({ issuers, tokenType: 'at+jwt' }), [
    'idp.tokenType (tokenType in code): is set before; remove one (issuers.idp.tokenType in code)',
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
