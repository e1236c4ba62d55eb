/* Several issuers: which they are, the names of their settings, and their problems
   (docs/several-issuers.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readGateOptions } from '../../src/gate/options.ts';
import { introspection } from '../../src/introspection.ts';
import { keyAccess } from '../../src/key-access.ts';
import { tenants } from '../../src/tenants.ts';
import { ISSUER_RULES, type IssuerValues } from '../../src/verify/options.ts';
import { valuesOf } from '../support/settings.ts';
import { load, onlyProblem, problemsOf, REQUIRED, type Sources } from './every-setting.ts';

const PARTNER = { ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: 'orders-api' };
const TWO = { ...REQUIRED, ISSUERS: 'partner', ...PARTNER };

const PARTNER_YAML = 'issuers:\n  partner:\n    domain: partner.test\n    audience: orders-api\n';

/** The defaults of an issuer. */
const PLAIN = {
  domain: 'partner.test',
  audience: ['orders-api'],
  issuer: 'https://partner.test/',
  jwksUri: undefined,
  claimNamespace: '',
  scopeClaim: 'scope',
  tokenType: 'any',
  algorithms: ['RS256'],
  requiredClaims: [],
  keyAccess: undefined,
  tenants: undefined,
  introspection: undefined,
};

const issuersOf = (sources: Sources) => load(sources).settings.issuers;

test('trusts one issuer, named idp, by default', () => {
  assert.deepEqual(issuersOf({ environment: REQUIRED }), {
    idp: { ...PLAIN, domain: 'idp.test', audience: ['https://api.test'], issuer: 'https://idp.test/' },
  });
});

test('reads the settings of an issuer in ISSUERS from the environment, and gives it defaults rather than the settings of the first issuer', () => {
  const first = {
    IDP_CLAIM_NAMESPACE: 'https://idp.test/claims/',
    IDP_SCOPE_CLAIM: 'scp',
    IDP_TOKEN_TYPE: 'at+jwt',
    IDP_ALGORITHMS: 'PS256',
    IDP_REQUIRED_CLAIMS: 'scp',
    IDP_JWKS_URI: 'https://idp.test/keys',
    IDP_ISSUER: 'https://idp.test/realm',
    IDP_JWKS_TOKEN_FILE: EVERYTHING.jwksTokenFile,
    IDP_CA_FILE: EVERYTHING.caFile,
    IDP_INTROSPECTION: 'jwt',
    IDP_INTROSPECTION_URI: EVERYTHING.introspectionUri,
    IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
    IDP_INTROSPECTION_KEY_FILE: EVERYTHING.introspectionKeyFile,
    IDP_INTROSPECTION_KEY_ID: 'key-1',
    IDP_INTROSPECTION_AUDIENCE: 'provider',
    IDP_INTROSPECTION_CACHE_SECONDS: '1',
  };
  assert.deepEqual(issuersOf({ environment: { ...TWO, ...first } }).partner, PLAIN);
});

const EVERYTHING = {
  domain: 'login.partner.test',
  audience: ['a', 'b'],
  issuer: 'https://login.partner.test/realms/orders',
  jwksUri: 'https://keys.partner.test/',
  claimNamespace: 'https://partner.test/claims/',
  scopeClaim: 'scp',
  tokenType: 'at+jwt',
  algorithms: ['ES256', 'EdDSA'],
  requiredClaims: ['scp', 'azp'],
  jwksTokenFile: fileURLToPath(new URL('token-1.txt', import.meta.url)),
  caFile: fileURLToPath(new URL('../idp/tls/authority.pem', import.meta.url)),
  introspection: ['jwt'],
  introspectionUri: 'https://login.partner.test/introspect',
  introspectionClientId: 'orders-api',
  introspectionKeyFile: fileURLToPath(new URL('../idp/tls/client-key.pem', import.meta.url)),
  introspectionKeyId: 'key-1',
  introspectionAudience: 'provider',
  introspectionCacheSeconds: 1,
} as const;

/** The parts are made later. */
const LOADED = {
  ...EVERYTHING,
  introspectionTokens: EVERYTHING.introspection,
  keyAccess: undefined,
  tenants: undefined,
  introspection: undefined,
};

test('reads every setting of an issuer from the environment and from .env', () => {
  const variables = {
    ISSUERS: 'partner',
    ISSUER_PARTNER_DOMAIN: EVERYTHING.domain,
    ISSUER_PARTNER_AUDIENCE: 'a, b',
    ISSUER_PARTNER_ISSUER: EVERYTHING.issuer,
    ISSUER_PARTNER_JWKS_URI: EVERYTHING.jwksUri,
    ISSUER_PARTNER_CLAIM_NAMESPACE: EVERYTHING.claimNamespace,
    ISSUER_PARTNER_SCOPE_CLAIM: 'scp',
    ISSUER_PARTNER_TOKEN_TYPE: 'at+jwt',
    ISSUER_PARTNER_ALGORITHMS: 'ES256, EdDSA',
    ISSUER_PARTNER_REQUIRED_CLAIMS: 'scp, azp',
    ISSUER_PARTNER_JWKS_TOKEN_FILE: EVERYTHING.jwksTokenFile,
    ISSUER_PARTNER_CA_FILE: EVERYTHING.caFile,
    ISSUER_PARTNER_INTROSPECTION: 'jwt',
    ISSUER_PARTNER_INTROSPECTION_URI: EVERYTHING.introspectionUri,
    ISSUER_PARTNER_INTROSPECTION_CLIENT_ID: 'orders-api',
    ISSUER_PARTNER_INTROSPECTION_KEY_FILE: EVERYTHING.introspectionKeyFile,
    ISSUER_PARTNER_INTROSPECTION_KEY_ID: 'key-1',
    ISSUER_PARTNER_INTROSPECTION_AUDIENCE: 'provider',
    ISSUER_PARTNER_INTROSPECTION_CACHE_SECONDS: '1',
  };
  const dotEnv = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  assert.deepEqual(issuersOf({ environment: { ...REQUIRED, ...variables } }).partner, LOADED);
  assert.deepEqual(issuersOf({ environment: REQUIRED, files: { '.env': dotEnv.join('') } }).partner, LOADED);
});

test('reads every setting of an issuer from YAML, where the map names the issuers', () => {
  const lines = Object.entries(EVERYTHING).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}\n`);
  const yaml = `issuers:\n  partner:\n${lines.join('')}`;
  assert.deepEqual(issuersOf({ environment: REQUIRED, files: { 'application.yml': yaml } }).partner, LOADED);
});

test('prefers the environment to YAML for each setting of an issuer', () => {
  const environment = { ...REQUIRED, ISSUER_PARTNER_AUDIENCE: 'from-the-environment' };
  const { partner } = issuersOf({ environment, files: { 'application.yml': PARTNER_YAML } });
  assert.deepEqual(partner, { ...PLAIN, audience: ['from-the-environment'] });
});

test('keeps the order in which the issuers are named', () => {
  const more = { ISSUER_A_DOMAIN: 'a.test', ISSUER_A_AUDIENCE: 'a' };

  const names = (list: string) => Object.keys(issuersOf({ environment: { ...TWO, ...more, ISSUERS: list } }));
  assert.deepEqual(names('partner, a'), ['idp', 'partner', 'a']);
  assert.deepEqual(names('a,partner,a'), ['idp', 'a', 'partner']);
});

test('finds no issuer in a map named issuers below another key', () => {
  const files = { 'application.yml': 'other:\n  issuers:\n    partner:\n      domain: partner.test\n' };
  const { settings, warnings } = load({ environment: REQUIRED, files });
  assert.deepEqual([Object.keys(settings.issuers), warnings.length], [['idp'], 1]);
});

test('accepts a list of audiences and refuses an empty one', () => {
  assert.deepEqual(issuersOf({ environment: { ...TWO, IDP_AUDIENCE: 'a, b' } }).idp?.audience, ['a', 'b']);
  assert.match(
    onlyProblem({ environment: { ...TWO, ISSUER_PARTNER_AUDIENCE: ' , ' } }),
    /^ISSUER_PARTNER_AUDIENCE \(environment\): is empty/,
  );
  const yaml = PARTNER_YAML.replace('orders-api', '[]');
  assert.match(
    onlyProblem({ environment: REQUIRED, files: { 'application.yml': yaml } }),
    /^issuers\.partner\.audience \(.*application\.yml, line 4\): must be a list/,
  );
});

for (const missing of ['DOMAIN', 'AUDIENCE']) {
  test(`requires the ${missing} of every issuer, without inheriting that of the first`, () => {
    const environment = { ...TWO, [`ISSUER_PARTNER_${missing}`]: '' };
    assert.match(
      onlyProblem({ environment }),
      new RegExp(
        `^ISSUER_PARTNER_${missing} or issuers\\.partner\\.${missing.toLowerCase()} \\(environment, .*required`,
      ),
    );
  });
}

test('reports an invalid value of any issuer with its source', () => {
  const faults = problemsOf({
    environment: { ...TWO, ISSUER_PARTNER_DOMAIN: 'https://partner.test', ISSUER_PARTNER_TOKEN_TYPE: 'jwt' },
  });
  assert.deepEqual(faults, [
    'ISSUER_PARTNER_DOMAIN (environment): has a scheme; remove "https://" and keep the host name',
    'ISSUER_PARTNER_TOKEN_TYPE (environment): must be one of any, at+jwt',
  ]);
});

test('refuses two issuers with the same iss, set or derived, at the source of the later one', () => {
  const derived = { ...TWO, ISSUER_PARTNER_DOMAIN: 'idp.test' };
  assert.match(
    onlyProblem({ environment: derived }),
    /^ISSUER_PARTNER_ISSUER or issuers\.partner\.issuer \(environment, .*\): is also the issuer \(iss\) of another/,
  );
  const said = { ...TWO, ISSUER_PARTNER_ISSUER: 'https://idp.test/' };
  assert.match(
    onlyProblem({ environment: said }),
    /^ISSUER_PARTNER_ISSUER \(environment\): is also the issuer \(iss\) of another; give each its own$/,
  );
  const more = {
    ISSUERS: 'partner, a',
    ISSUER_A_DOMAIN: 'a.test',
    ISSUER_A_AUDIENCE: 'a',
    ISSUER_A_ISSUER: 'https://partner.test/',
  };
  assert.match(
    onlyProblem({ environment: { ...TWO, ...more } }),
    /^ISSUER_A_ISSUER \(environment\): is also the/,
  );
});

test('accepts two issuers whose iss differ in one character, even if one equals the claim namespace of the other', () => {
  const environment = {
    ...TWO,
    ISSUER_PARTNER_ISSUER: 'https://idp.test',
    IDP_CLAIM_NAMESPACE: 'https://idp.test',
  };
  assert.deepEqual(problemsOf({ environment }), []);
});

test('does not compare the iss of issuers whose domains are invalid', () => {
  const environment = { ...TWO, IDP_DOMAIN: '', ISSUER_PARTNER_DOMAIN: 'a b' };
  const settings = problemsOf({ environment }).map((problem) => problem.split(' ')[0]);
  assert.deepEqual(settings, ['IDP_DOMAIN', 'ISSUER_PARTNER_DOMAIN']);
});

for (const name of ['Partner', 'a-b', '1a', 'a_b', 'x'.repeat(17), 'idp', 'ü', 'a.b', 'a b', ',']) {
  test(`refuses ${name} as the name of an issuer`, () => {
    const problems = problemsOf({ environment: { ...REQUIRED, ISSUERS: name } });
    assert.equal(
      problems[0],
      'ISSUERS (environment): must be up to 20 names in lower case, each a letter and up to 15 letters or digits; none may be idp',
    );
  });
}

test('reports invalid names of issuers before missing settings of the first issuer', () => {
  const told = problemsOf({ environment: { ISSUERS: 'Partner' } }).map((problem) => problem.split(' ')[0]);
  assert.deepEqual(told, ['ISSUERS', 'IDP_DOMAIN', 'IDP_AUDIENCE']);
});

for (const name of ['a', 'a234567890123456', 'api', 'server', 'issuers', 'idp2', 'idpeu']) {
  test(`accepts ${name} as the name of an issuer, with settings from the environment, YAML and code`, () => {
    const prefix = `ISSUER_${name.toUpperCase()}`;
    const own = { ISSUERS: name, [`${prefix}_DOMAIN`]: 'x.test', [`${prefix}_AUDIENCE`]: 'x' };
    const files = { 'application.yml': `issuers:\n  ${name}:\n    domain: x.test\n    audience: x\n` };
    const other = { domain: 'x.test', audience: 'x' };
    const given = { domain: 'idp.test', audience: 'x', issuers: { [name]: other } };
    for (const issuers of [
      issuersOf({ environment: { ...REQUIRED, ...own } }),
      issuersOf({ environment: REQUIRED, files }),
      readGateOptions(given).issuers,
    ]) {
      assert.deepEqual(Object.keys(issuers), ['idp', name]);
      assert.equal(issuers[name]?.domain, 'x.test');
    }
  });
}

test('refuses an invalid name of an issuer in YAML, and corrects the letter case of the key issuers', () => {
  const at = (yaml: string) =>
    problemsOf({ environment: { ...REQUIRED, ...PARTNER }, files: { 'application.yml': yaml } });

  for (const name of ['Partner', '"a b"', '"a,b"', '"a\\nb"', 'idp']) {
    assert.match(
      at(PARTNER_YAML.replace('partner', name))[0] ?? '',
      /^issuers \(.*application\.yml, line [23]\): must be up to/,
    );
  }
  const misspelt = at(PARTNER_YAML.replace('issuers', 'Issuers'));
  assert.match(misspelt[0] ?? '', /Issuers\.partner\.domain .* write issuers\.partner\.domain or remove it$/);
});

test('accepts twenty issuers besides the first and refuses another', () => {
  const names = Array.from({ length: 21 }, (_, index) => `a${index}`);
  const own = names.flatMap((name) => [
    [`ISSUER_${name.toUpperCase()}_DOMAIN`, `${name}.test`],
    [`ISSUER_${name.toUpperCase()}_AUDIENCE`, 'x'],
  ]);
  const environment = { ...REQUIRED, ...Object.fromEntries(own) };
  const twenty = { ...environment, ISSUERS: names.slice(1).join() };
  assert.equal(Object.keys(issuersOf({ environment: twenty })).length, 21);
  assert.match(
    onlyProblem({ environment: { ...environment, ISSUERS: names.join() } }),
    /^ISSUERS \(environment\): must be up to 20 names/,
  );
});

test('refuses issuers in the map that ISSUERS leaves out, with their lines', () => {
  const environment = { ...TWO, ISSUERS: '' };
  const files = { 'application.yml': `${PARTNER_YAML}  other:\n    domain: other.test\n    audience: x\n` };
  assert.deepEqual(Object.keys(issuersOf({ environment, files })), ['idp', 'partner', 'other']);

  const problems = problemsOf({ environment: { ...environment, ISSUERS: 'partner' }, files });
  assert.match(
    problems[0] ?? '',
    /^issuers\.other\.domain \(.*, line 6\): is not a setting; if ISSUERS does not list its issuer, add the issuer; otherwise correct or/,
  );
  assert.match(
    problems[1] ?? '',
    /^issuers\.other\.audience \(.*, line 7\): is not a setting; if ISSUERS does not list its issuer, add the issuer; otherwise correct or/,
  );
  assert.equal(problems.length, 2);
});

test('accepts names in ISSUERS whose settings are in YAML', () => {
  const files = { 'application.yml': PARTNER_YAML };
  assert.deepEqual(issuersOf({ environment: { ...REQUIRED, ISSUERS: 'partner' }, files }).partner, PLAIN);
});

test('refuses a misspelled name of a listed issuer in .env, and ignores other ISSUER_ names [H2]', () => {
  const lines = 'ISSUER_PARTNER_AUDIANCE=x\nISSUER_BASE_URL=https://x.test\nISSUER_OTHER_DOMAIN=x\n';
  assert.match(
    onlyProblem({ environment: TWO, files: { '.env': lines } }),
    /^ISSUER_PARTNER_AUDIANCE \(.*\.env, line 1\): is not a setting; correct or remove/,
  );
});

test('refuses ISSUERS in another letter case, which would silently leave out the issuers [H2]', () => {
  assert.match(
    onlyProblem({ environment: REQUIRED, files: { '.env': 'Issuers=partner\n' } }),
    /^Issuers \(.*\): is not a setting; write ISSUERS or remove it$/,
  );
});

test('suggests the issuer whose name differs only in letter case [H2]', () => {
  const issuers = ['A', 'B'].flatMap((name) => [
    [`ISSUER_${name}_DOMAIN`, `${name}.test`],
    [`ISSUER_${name}_AUDIENCE`, 'x'],
  ]);
  const environment = { ...REQUIRED, ISSUERS: 'a, b', ...Object.fromEntries(issuers) };
  assert.match(
    onlyProblem({ environment, files: { '.env': 'issuer_b_domain=x\n' } }),
    /^issuer_b_domain \(.*\): is not a setting; write ISSUER_B_DOMAIN or remove it$/,
  );
});

test('warns of a misspelled name of a listed issuer in the environment, and ignores names that orchestrators set [H2]', () => {
  const environment = {
    ...TWO,
    ISSUER_PARTNER_SCOPES: 'x',
    ISSUER_PARTNER_SERVICE_HOST: '10.0.0.1',
    ISSUER_PARTNER_PORT: '80',
    ISSUER_PARTNER_PORT_80_TCP: 'tcp://10.0.0.1:80',
    ISSUER_BASE_URL: 'x',
    ISSUER_PARTNERS_DOMAIN: 'x',
  };
  const { warnings } = load({ environment });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /^ISSUER_PARTNER_SCOPES \(environment\): is not a setting/);
});

test('refuses a misspelled key of an issuer in YAML and shows its spelling [H2]', () => {
  const files = { 'application.yml': `${PARTNER_YAML}    ScopeClaim: scp\n` };
  assert.match(
    onlyProblem({ environment: REQUIRED, files }),
    /^issuers\.partner\.ScopeClaim \(.*\): is not a setting; write issuers\.partner\.scopeClaim or remove it$/,
  );
});

const GIVEN = {
  domain: 'idp.test',
  audience: 'https://api.test',
  issuers: { partner: { domain: 'partner.test', audience: 'orders-api' } },
};

test('gives issuers in code the values that loaded ones have', async () => {
  const { settings } = load({ environment: TWO });
  assert.deepEqual(readGateOptions(GIVEN).issuers, settings.issuers);
  assert.deepEqual((await valuesOf(settings)).issuers, settings.issuers);
  const options = Object.fromEntries(Object.entries(LOADED).filter(([name]) => name in ISSUER_RULES));
  const everything = { ...GIVEN, issuers: { partner: options } };
  assert.deepEqual(readGateOptions(everything as never).issuers.partner, options);
});

test('keeps the parts of an issuer, and those of no other', () => {
  const caFile = fileURLToPath(new URL('../idp/tls/authority.pem', import.meta.url));
  for (const part of [
    { keyAccess: keyAccess({ caFile }) },
    { introspection: introspection({ tokens: ['jwt'], clientId: 'a', clientSecret: 'b' }) },
    {
      tenants: tenants({ issuer: 'https://partner.test/{tenant}', list: ['a'] }),
      jwksUri: 'https://partner.test/keys',
    },
  ]) {
    const { idp, partner } = readGateOptions({ ...GIVEN, issuers: partnerWith(part) }).issuers;
    const [[name, value]] = Object.entries(part) as [[keyof IssuerValues, unknown]];
    assert.deepEqual([idp?.[name], partner?.[name] === value], [undefined, true]);
  }
});

const partnerWith = (changes: object) => ({ partner: { ...GIVEN.issuers.partner, ...changes } });

const NAMES = /^issuers: must be up to 20 names in lower case, /;

for (const [what, issuers, problem] of [
  [
    'no audience',
    partnerWith({ audience: undefined }),
    /^issuers\.partner: audience: the audience is required/,
  ],
  ['an empty audience', partnerWith({ audience: '' }), /^issuers\.partner: audience: is empty, or has white/],
  ['an unknown option', partnerWith({ scopeClam: 'x' }), /^issuers\.partner: scopeClam: is no option; /],
  ['an option of all issuers', partnerWith({ port: 1 }), /^issuers\.partner: port: is no option; /],
  [
    'the issuer of another',
    partnerWith({ domain: 'idp.test' }),
    /^issuers\.partner: issuer: is also the issuer/,
  ],
  [
    'the issuer of one of several others',
    { ...GIVEN.issuers, again: GIVEN.issuers.partner },
    /^issuers\.again: issuer: is also the issuer \(iss\) of another; give each its own$/,
  ],
  [
    'a brace in the URL of the keys',
    partnerWith({ jwksUri: 'https://partner.test/{tenant}/keys' }),
    /^issuers\.partner: jwksUri: must have no brace without the option tenants; /,
  ],
  ['an upper-case name', { Other: GIVEN.issuers.partner }, NAMES],
  ['the name of the first', { idp: GIVEN.issuers.partner }, NAMES],
  ['a Map', new Map([['partner', GIVEN.issuers.partner]]), /^issuers: must be an object with the options of/],
  ['only inherited names', Object.create(GIVEN.issuers), /^issuers: must be an object with the options of/],
  ['a list', [GIVEN.issuers.partner], /^issuers: must be an object with the options of/],
  ['null', null, /^issuers: must be an object with the options of/],
  ['an issuer that is a Map', { partner: new Map() }, /^issuers\.partner: domain: the issuer base URL is/],
  ['an issuer that is undefined', { partner: undefined }, /^issuers\.partner: must be an object/],
] as const) {
  test(`refuses issuers in code with ${what}, and names the option [H2]`, () => {
    assert.throws(() => readGateOptions({ ...GIVEN, issuers } as never), {
      name: 'TypeError',
      message: problem,
    });
  });
}

test('accepts twenty issuers in code besides the first, and refuses another', () => {
  const some = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`a${at}`, { domain: `a${at}.test`, audience: 'x' }]),
    );

  assert.equal(Object.keys(readGateOptions({ ...GIVEN, issuers: some(20) }).issuers).length, 21);
  assert.throws(() => readGateOptions({ ...GIVEN, issuers: some(21) }), { message: NAMES });
});
