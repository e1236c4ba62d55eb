/* The settings of introspection (docs/introspection.md): what contradicts what, for each issuer alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { optionsOf } from '../../src/settings/load-settings.ts';
import { Part } from '../../src/verify/base/option.ts';
import { load, onlyProblem, problemsOf, REQUIRED } from './every-setting.ts';

const KEY_FILE = fileURLToPath(new URL('../idp/tls/client-key.pem', import.meta.url));

const ID = { IDP_INTROSPECTION_CLIENT_ID: 'orders-api' };
const SECRET = { IDP_INTROSPECTION_CLIENT_SECRET: 'secret-word' };
const KEY = { IDP_INTROSPECTION_KEY_FILE: KEY_FILE };
const OPAQUE = { ...REQUIRED, IDP_INTROSPECTION: 'opaque', ...ID, ...SECRET };

const PARTNER = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: 'x' };

/** The same settings for the other issuer. */
const ofPartner = (settings: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(settings)
      .filter(([name]) => name.startsWith('IDP_INTROSPECTION'))
      .map(([name, value]) => [name.replace('IDP_', 'ISSUER_PARTNER_'), value]),
  );

const WITHOUT = 'has no effect without IDP_INTROSPECTION of the same issuer; set that too, or remove this';

for (const [name, value] of [
  ['URI', 'https://idp.test/introspect'],
  ['CLIENT_ID', 'orders-api'],
  ['CLIENT_SECRET', 'secret-word'],
  ['KEY_FILE', KEY_FILE],
  ['AUDIENCE', 'required'],
  ['CACHE_SECONDS', '10'],
] as const) {
  test(`refuses IDP_INTROSPECTION_${name} alone, for each issuer [§22, J18]`, () => {
    const alone = { [`IDP_INTROSPECTION_${name}`]: value };
    const problem = onlyProblem({ environment: { ...REQUIRED, ...alone } });
    assert.equal(problem, `IDP_INTROSPECTION_${name} (environment): ${WITHOUT}`);
    // That of the first issuer does not do for another.
    const partner = onlyProblem({ environment: { ...OPAQUE, ...PARTNER, ...ofPartner(alone) } });
    assert.equal(partner, `ISSUER_PARTNER_INTROSPECTION_${name} (environment): ${WITHOUT}`);
    // Beside a wrong one, that is the problem.
    const faulty = { ...REQUIRED, IDP_INTROSPECTION: 'x', ...alone };
    assert.match(onlyProblem({ environment: faulty }), /^IDP_INTROSPECTION \(environment\): must be one of/);
  });
}

for (const [what, change, problem] of [
  [
    'no client id',
    { IDP_INTROSPECTION_CLIENT_ID: '' },
    /^IDP_INTROSPECTION_CLIENT_ID or idp\.introspectionClientId \(environment.*\): is required by IDP_INTROSPECTION; set the client id of this API at the issuer$/,
  ],
  [
    'neither secret nor key file',
    { IDP_INTROSPECTION_CLIENT_SECRET: '' },
    /^IDP_INTROSPECTION_KEY_FILE or idp\.introspectionKeyFile \(environment.*\): is required by IDP_INTROSPECTION, or else a client secret; set one of the two$/,
  ],
  ['both', KEY, /^IDP_INTROSPECTION_KEY_FILE \(environment\): is set beside a client secret; remove one$/],
  [
    'a key id without a key file',
    { IDP_INTROSPECTION_KEY_ID: 'k' },
    /^IDP_INTROSPECTION_KEY_ID \(environment\): has no effect without the key file; set that too, or remove this$/,
  ],
  [
    'opaque beside at+jwt',
    { IDP_TOKEN_TYPE: 'at+jwt' },
    /^IDP_INTROSPECTION \(environment\): must not have opaque beside the token type at\+jwt, which only a JWT has; remove one$/,
  ],
  [
    'opaque after jwt, beside at+jwt',
    { IDP_TOKEN_TYPE: 'at+jwt', IDP_INTROSPECTION: 'jwt, opaque' },
    /^IDP_INTROSPECTION \(environment\): must not have opaque beside the token type at\+jwt/,
  ],
  [
    'a tenant template',
    {
      IDP_ISSUER: 'https://idp.test/{tenant}/',
      IDP_TENANTS: 'a',
      IDP_JWKS_URI: 'https://idp.test/keys',
    },
    /^IDP_INTROSPECTION \(environment\): is not available for a tenant template; remove it$/,
  ],
] as const) {
  test(`refuses ${what} [§22, J18]`, () => {
    const environment = { ...OPAQUE, ...change };
    assert.match(onlyProblem({ environment }), problem);
  });
}

test('refuses opaque for a second issuer, and takes jwt for it [§22]', () => {
  const environment = { ...OPAQUE, ...PARTNER, ...ofPartner(OPAQUE) };
  for (const [first, second] of [
    ['opaque', 'opaque'],
    ['jwt, opaque', 'opaque'],
    ['opaque', 'jwt, opaque'],
  ] as const) {
    const both = { IDP_INTROSPECTION: first, ISSUER_PARTNER_INTROSPECTION: second };
    assert.equal(
      onlyProblem({ environment: { ...environment, ...both } }),
      'ISSUER_PARTNER_INTROSPECTION (environment): must not have opaque for a second issuer; remove it from one',
    );
  }
  assert.deepEqual(problemsOf({ environment: { ...environment, ISSUER_PARTNER_INTROSPECTION: 'jwt' } }), []);
});

test('takes jwt beside at+jwt [§22]', () => {
  const environment = { ...OPAQUE, IDP_INTROSPECTION: 'jwt', IDP_TOKEN_TYPE: 'at+jwt' };
  assert.deepEqual(problemsOf({ environment }), []);
});

test('takes opaque beside the token type any [§22]', () => {
  assert.deepEqual(problemsOf({ environment: { ...OPAQUE, IDP_TOKEN_TYPE: 'any' } }), []);
});

test('asks for no key file beside a secret that has a problem [§22]', () => {
  const environment = { ...OPAQUE, IDP_INTROSPECTION_CLIENT_SECRET: '${SECRET}' };
  assert.match(onlyProblem({ environment }), /^IDP_INTROSPECTION_CLIENT_SECRET \(environment\): contains/);
});

test('never shows the secret in a problem [§22]', () => {
  const problems = problemsOf({ environment: { ...REQUIRED, ...SECRET, IDP_INTROSPECTION_AUDIENCE: 'x' } });
  assert.equal(problems.length, 2);
  assert.doesNotMatch(problems.join(), /secret-word/);
});

test('makes the part of each issuer that has the setting, and none of another [§22]', async () => {
  const environment = { ...OPAQUE, ...PARTNER };
  const options = await optionsOf(load({ environment }).settings);
  const { tokens, clientId, authentication } = Part.contentOf(options.introspection)!;
  assert.deepEqual([tokens, clientId, authentication], [['opaque'], 'orders-api', 'client_secret_basic']);
  assert.equal(options.issuers?.partner?.introspection, undefined);

  const ofKey = { ...REQUIRED, ...PARTNER, ...ofPartner({ IDP_INTROSPECTION: 'jwt', ...ID, ...KEY }) };
  const { introspection, issuers } = await optionsOf(load({ environment: ofKey }).settings);
  assert.equal(introspection, undefined);
  assert.equal(Part.contentOf(issuers?.partner?.introspection)?.authentication, 'private_key_jwt');
});
