/* The settings of tenants: what they make, and every problem that they have together (docs/tenants.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import { loadSettings } from '../../src/gatehouse.ts';
import { Part } from '../../src/verify/base/option.ts';
import { REQUIRED } from './every-setting.ts';

const TEMPLATE = {
  ...REQUIRED,
  IDP_ISSUER: 'https://login.test/{tenant}/v2.0',
  IDP_JWKS_URI: 'https://login.test/common/keys',
};

const TENANTS = { ...TEMPLATE, IDP_TENANTS: 'a, b, a' };

const PARTNER = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: 'x' };

type Environment = Readonly<Record<string, string>>;

const NOWHERE = '/nonexistent';

async function problemsOf(environment: Environment): Promise<readonly string[]> {
  try {
    await loadSettings({ LOG_LEVEL: 'silent', ...environment }, NOWHERE);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigurationError);
    return error.problems;
  }
}

const partOf = async (environment: Environment, name = 'idp') => {
  const options = await loadSettings({ LOG_LEVEL: 'silent', ...environment }, NOWHERE);
  const { tenants, issuer } = name === 'idp' ? options : options.issuers![name]!;
  assert.equal(issuer, undefined);
  return Part.contentOf(tenants!);
};

test('makes the part of tenants, each tenant once [§23]', async () => {
  const { template, list, authorizationServer } = await partOf(TENANTS);
  assert.deepEqual([template, list, authorizationServer], [TEMPLATE.IDP_ISSUER, ['a', 'b'], undefined]);
  const every = { IDP_TENANTS: '*', IDP_AUTHORIZATION_SERVER: 'https://login.test/common' };
  const all = await partOf({ ...TEMPLATE, ...every });
  assert.deepEqual([all.list, all.authorizationServer], [['*'], 'https://login.test/common']);
});

test('makes it of a further issuer, which inherits nothing [§14, §23]', async () => {
  const own = {
    ISSUER_PARTNER_ISSUER: 'https://partner.test/realms/{tenant}',
    ISSUER_PARTNER_JWKS_URI: 'https://partner.test/realms/{tenant}/keys',
    ISSUER_PARTNER_TENANTS: 'x,y,z',
  };
  const { template, list } = await partOf({ ...REQUIRED, ...PARTNER, ...own }, 'partner');
  assert.deepEqual([template, list], [own.ISSUER_PARTNER_ISSUER, ['x', 'y', 'z']]);
  const { issuers } = await loadSettings({ LOG_LEVEL: 'silent', ...TENANTS, ...PARTNER }, NOWHERE);
  assert.equal(issuers?.partner?.tenants, undefined);
});

test('reads a list of tenants from 1 to 1,000 [§23]', async () => {
  const list = (length: number) => Array.from({ length }, (_, index) => `t${index}`).join();
  assert.deepEqual(await problemsOf({ ...TEMPLATE, IDP_TENANTS: list(1_000) }), []);
  const [problem = ''] = await problemsOf({ ...TEMPLATE, IDP_TENANTS: list(1_001) });
  assert.match(problem, /^IDP_TENANTS \(environment\): must be a list of 1 to 1,000 tenants/);
});

const BRACES = /^\w+ \(environment\): may have braces only as \{tenant\}, once, as a whole segment/;
const NO_TEMPLATE = /has no effect without \{tenant\} in the issuer/;

for (const [what, change, ...expected] of [
  ['a template in the host', { IDP_ISSUER: 'https://{tenant}.test/v2.0' }, BRACES],
  ['a template that is the host', { IDP_ISSUER: 'https://{tenant}/v2.0' }, BRACES],
  ['a template in part of a segment', { IDP_ISSUER: 'https://login.test/x-{tenant}/' }, BRACES],
  ['two templates', { IDP_ISSUER: 'https://login.test/{tenant}/{tenant}' }, BRACES],
  ['another brace', { IDP_ISSUER: 'https://login.test/{tenantid}/v2.0' }, BRACES],
  ['a lone brace', { IDP_ISSUER: 'https://login.test/{tenant}/}' }, BRACES],
  ['a template in the query', { IDP_ISSUER: 'https://login.test/?t={tenant}' }, BRACES],
  ['a template in the query of the keys', { IDP_JWKS_URI: 'https://login.test/keys?t={tenant}' }, BRACES],
  ['two templates in the keys', { IDP_JWKS_URI: 'https://login.test/{tenant}/{tenant}' }, BRACES],
  ['another brace in the keys', { IDP_JWKS_URI: 'https://login.test/{x}/keys' }, BRACES],
  [
    'a template without tenants',
    { IDP_TENANTS: '' },
    /^IDP_TENANTS or idp\.tenants \(.*: is required by \{tenant\}/,
  ],
  [
    'a template without a URL of the keys',
    { IDP_JWKS_URI: '' },
    /^IDP_JWKS_URI or idp\.jwksUri \(.*: is required by \{tenant\}/,
  ],
  [
    'a template without either',
    { IDP_JWKS_URI: '', IDP_TENANTS: '' },
    /^IDP_JWKS_URI or /,
    /^IDP_TENANTS or /,
  ],
  [
    'tenants, their claim and server without a template',
    { IDP_ISSUER: '', IDP_TENANT_CLAIM: 'tid', IDP_AUTHORIZATION_SERVER: 'https://login.test' },
    ...['IDP_TENANTS', 'IDP_TENANT_CLAIM', 'IDP_AUTHORIZATION_SERVER'].map(
      (name) => new RegExp(`^${name} \\(environment\\): ${NO_TEMPLATE.source}`),
    ),
  ],
  [
    'a URL of the keys with a place for tenants, without a template',
    { IDP_ISSUER: '', IDP_TENANTS: '', IDP_JWKS_URI: 'https://login.test/{tenant}/keys' },
    /^IDP_JWKS_URI \(environment\): has no effect without \{tenant\} in the issuer/,
  ],
  ['* beside another', { IDP_TENANTS: '*,a' }, /^IDP_TENANTS \(environment\): must be a list of 1 to 1,000/],
  [
    '* with a key set for each',
    { IDP_TENANTS: '*', IDP_JWKS_URI: 'https://login.test/{tenant}/keys' },
    /^IDP_TENANTS \(environment\): must not be \* with \{tenant\}/,
  ],
  [
    'a resource without an authorization server',
    { RESOURCE_URL: 'https://api.test' },
    /^RESOURCE_URL \(environment\): needs the authorization server .*IDP_AUTHORIZATION_SERVER/,
  ],
  [
    'a resource of another origin without an authorization server, both at once',
    { RESOURCE_URL: 'https://api.test', PUBLIC_URL: 'https://other.test' },
    /^RESOURCE_URL .*: must be https:.* the origin of the public URL, .*; needs the authorization server /,
  ],
  [
    'a resource that is wrong in three ways, each said once',
    { RESOURCE_URL: 'http://api.test', PUBLIC_URL: 'https://other.test' },
    /^RESOURCE_URL [^;]*: must be https:[^;]*; needs the authorization server [^;]*; set [^;]*$/,
  ],
  [
    'a resource where one of two issuers does not have its authorization server',
    { ...PARTNER, RESOURCE_URL: 'https://api.test' },
    /^RESOURCE_URL \(environment\): needs the authorization server /,
  ],
  [
    'a resource where a further issuer does not have its authorization server',
    {
      ...PARTNER,
      ISSUER_PARTNER_ISSUER: 'https://partner.test/{tenant}/',
      ISSUER_PARTNER_TENANTS: 'c',
      ISSUER_PARTNER_JWKS_URI: 'https://partner.test/keys',
      IDP_AUTHORIZATION_SERVER: 'https://login.test',
      RESOURCE_URL: 'https://api.test',
    },
    /^RESOURCE_URL \(environment\): needs the authorization server /,
  ],
  [
    'a resource with a wrong authorization server',
    { RESOURCE_URL: 'https://api.test', IDP_AUTHORIZATION_SERVER: 'x' },
    /^IDP_AUTHORIZATION_SERVER \(environment\): must be a URL/,
  ],
  [
    'a fixed issuer that the list yields',
    { ...PARTNER, ISSUER_PARTNER_ISSUER: 'https://login.test/b/v2.0' },
    /^ISSUER_PARTNER_ISSUER \(environment\): is also the issuer \(iss\) of another/,
  ],
  [
    'an equal template',
    {
      ...PARTNER,
      ISSUER_PARTNER_ISSUER: TEMPLATE.IDP_ISSUER,
      ISSUER_PARTNER_TENANTS: 'c',
      ISSUER_PARTNER_JWKS_URI: 'https://login.test/keys',
    },
    /^ISSUER_PARTNER_ISSUER \(environment\): is also the issuer/,
  ],
  [
    'a template that yields one of them',
    {
      ...PARTNER,
      ISSUER_PARTNER_ISSUER: 'https://login.test/a/{tenant}',
      ISSUER_PARTNER_TENANTS: '*',
      ISSUER_PARTNER_JWKS_URI: 'https://login.test/keys',
    },
    /^ISSUER_PARTNER_ISSUER \(environment\): is also the issuer/,
  ],
] as const) {
  test(`refuses at the start ${what} [§23]`, async () => {
    const problems = await problemsOf({ ...TENANTS, ...change });
    assert.equal(problems.length, expected.length, problems.join('\n'));
    for (const [index, problem] of expected.entries()) assert.match(problems[index] ?? '', problem);
  });
}

for (const [what, change] of [
  [
    'a fixed issuer beside *',
    { ...PARTNER, ISSUER_PARTNER_ISSUER: 'https://login.test/b/v2.0', IDP_TENANTS: '*' },
  ],
  ['a fixed issuer that is not listed', { ...PARTNER, ISSUER_PARTNER_ISSUER: 'https://login.test/c/v2.0' }],
  ['an authorization server without a resource', { IDP_AUTHORIZATION_SERVER: 'https://login.test/common' }],
  [
    'a resource with one',
    { IDP_AUTHORIZATION_SERVER: 'https://login.test/common', RESOURCE_URL: 'https://api.test' },
  ],
] as const) {
  test(`accepts ${what} [§23]`, async () => {
    assert.deepEqual(await problemsOf({ ...TENANTS, ...change }), []);
  });
}

test('says nothing of tenants beside an issuer that is wrong in another way', async () => {
  const problems = await problemsOf({ ...TENANTS, IDP_ISSUER: 'http://login.test/{tenant}/' });
  assert.equal(problems.length, 1, problems.join('\n'));
  assert.match(problems[0] ?? '', /^IDP_ISSUER \(environment\): must be a URL that begins with https/);
});

for (const [change, problem] of [
  [
    { IDP_ISSUER: '' },
    'IDP_TENANTS (environment): has no effect without {tenant} in the issuer; write it there, or remove this',
  ],
  [
    { IDP_TENANTS: '' },
    'is required by {tenant} in the issuer; list the tenants, or write * for every tenant of the provider',
  ],
  [
    { IDP_JWKS_URI: '' },
    'is required by {tenant} in the issuer, which turns discovery off; set the URL of the key set',
  ],
  [
    { IDP_TENANTS: '*', IDP_JWKS_URI: 'https://login.test/{tenant}/keys' },
    'must not be * with {tenant} in the key URL: unauthenticated clients could cause fetches; list the tenants',
  ],
  [
    { RESOURCE_URL: 'https://api.test' },
    'needs the authorization server of each issuer with {tenant}; set IDP_AUTHORIZATION_SERVER, or ISSUER_<NAME>_AUTHORIZATION_SERVER',
  ],
] as const) {
  test(`says what is wrong at the start: ${problem} [§23]`, async () => {
    const [told = ''] = await problemsOf({ ...TENANTS, ...change });
    assert.ok(told.endsWith(problem), told);
  });
}
