/* All sources → settings (docs/settings.md): which source wins, how it is read, and the defaults. */
import { strict as assert } from 'node:assert';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadProfileNow } from '../support/settings.ts';
import { readServiceOptions, type ServiceOptions } from '../../src/service/options.ts';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import { setting } from '../../src/settings/table.ts';
import { Part } from '../../src/verify/base/option.ts';
import { loadFrom, loadSettings, optionsOf } from '../../src/settings/load-settings.ts';
import { captureLog } from '../support/captured.ts';
import {
  inDirectory,
  load,
  onlyProblem,
  problemsOf,
  REQUIRED,
  SETTINGS,
  withYaml,
  yamlOf,
  type Sources,
  valueOf,
} from './every-setting.ts';

const REQUIRED_YAML = 'idp:\n  domain: idp.test\n  audience: https://api.test\n';

const quoted = (written: string) => JSON.stringify(written);

const KEY_FILE = fileURLToPath(new URL('../idp/tls/client-key.pem', import.meta.url));

const NEVER_ABSENT_ALONE = [
  'clientCertSource',
  'clientCertProxies',
  'tenantList',
  'introspectionTokens',
  'introspectionClientId',
  'introspectionClientSecret',
  'introspectionKeyFile',
];

/**
 * The other settings that it needs: profile A for the scope policy and the replay store, the URL of a
 * resource, where certificates come from, or a template for tenants.
 */
const around = (name: string) => {
  const isOfA = ['scopePolicy', 'dpopReplayStore'].includes(name);
  const isOfResource = name.startsWith('resource') && name !== 'resourceUrl';
  const isWithKey = name === 'introspectionKeyFile' || name === 'introspectionKeyId';
  const ofIntrospection = {
    IDP_INTROSPECTION: 'jwt',
    IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
    ...(isWithKey ? { IDP_INTROSPECTION_KEY_FILE: KEY_FILE } : { IDP_INTROSPECTION_CLIENT_SECRET: 'x' }),
  };
  const ofCertificates = { CLIENT_CERT_SOURCE: 'base64', CLIENT_CERT_PROXIES: '192.0.2.1' };
  const isOfTenants = ['tenantList', 'tenantClaim', 'authorizationServer'].includes(name);
  const template = { IDP_ISSUER: 'https://idp.test/{tenant}/', IDP_JWKS_URI: 'https://idp.test/keys' };
  return {
    ...REQUIRED,
    ...(isOfTenants ? { ...template, IDP_TENANTS: 'a' } : {}),
    ...(name.startsWith('clientCert') ? ofCertificates : {}),
    ...(name.startsWith('introspection') ? ofIntrospection : {}),
    ...(isOfA ? { PROFILE: 'A' } : {}),
    ...(isOfResource ? { RESOURCE_URL: 'https://api.test' } : {}),
  };
};

const without = (environment: Record<string, string>, env: string | undefined) =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => name !== env));

for (const { name, env, yaml, byDefault, byDefaultA = byDefault, good, bad } of SETTINGS) {
  const byDefaultIn = ({ PROFILE }: { PROFILE?: string }) => (PROFILE === 'A' ? byDefaultA : byDefault);
  const label = [env, yaml].filter(Boolean).join(' or ');
  if (byDefault !== 'required') {
    test(`gives ${label} its default in both profiles`, () => {
      assert.deepEqual(valueOf(load({ environment: REQUIRED }).settings, name), byDefault);
      if (name !== 'profile') {
        assert.deepEqual(
          valueOf(load({ environment: { ...REQUIRED, PROFILE: 'A' } }).settings, name),
          byDefaultA,
        );
      }
    });
  }

  test(`reads ${label} from the environment, then .env, then application.yml, ignoring empty values`, () => {
    const [first, second, third = first] = good;
    const others = without(around(name), env);
    const files = {
      '.env': env ? `${env}=${quoted(second[0])}\n` : '',
      'application.yml': yaml ? yamlOf(yaml, quoted(third[0])) : '',
    };

    const read = (environment: Record<string, string>, given: Sources['files'] = {}) =>
      valueOf(load({ environment, files: given }).settings, name);

    for (const [written, value] of [first, second, third]) {
      if (env) assert.deepEqual(read({ ...others, [env]: written }), value);
      if (yaml) assert.deepEqual(read(others, { 'application.yml': yamlOf(yaml, quoted(written)) }), value);
    }
    if (!env) return;
    assert.deepEqual(read({ ...others, [env]: first[0] }, files), first[1]);
    assert.deepEqual(read(others, files), second[1]);
    assert.deepEqual(read({ ...others, [env]: '' }, files), second[1]);
    if (yaml) assert.deepEqual(read({ ...others, [env]: '' }, { ...files, '.env': `${env}=\n` }), third[1]);
    if (byDefault === 'required' || NEVER_ABSENT_ALONE.includes(name)) return;
    for (const empty of yaml ? ['""', '~', ''] : []) {
      const nothing: Record<string, string> = {
        '.env': `${env}=""\n`,
        'application.yml': yamlOf(yaml ?? '', empty),
      };
      assert.deepEqual(read({ ...others, [env]: '' }, nothing), byDefaultIn(others));
    }
  });

  if (bad !== undefined) {
    test(`refuses an invalid ${label}, naming its source but not its value`, () => {
      const others = without(around(name), env);
      const inEnvironment = onlyProblem({ environment: { ...others, [env ?? '']: bad[0] } });
      assert.ok(inEnvironment.startsWith(`${env} (environment): `), inEnvironment);
      const inDotEnv = onlyProblem({ environment: others, files: { '.env': `\n${env}=${quoted(bad[0])}` } });
      assert.match(inDotEnv, new RegExp(`^${env} \\(/\\S+/\\.env, line 2\\): `));
      const problems = [inEnvironment, inDotEnv];
      if (yaml !== undefined) {
        const files = { 'application.yml': yamlOf(yaml, quoted(bad[0])) };
        const inYaml = onlyProblem({ environment: others, files });
        assert.match(inYaml, new RegExp(`^${yaml} \\(/\\S+/application\\.yml, line 2\\): `));
        problems.push(inYaml);
      }
      for (const problem of problems) {
        assert.match(problem, bad[1]);
        assert.ok(bad[0].length < 5 || !problem.includes(bad[0]), problem);
      }
    });
  }
}

const CHECKED_OTHERWISE = [
  'idp.dpopMode',
  'idp.tokenType',
  'log.level',
  'metrics.port',
  'cors.allowCredentials',
  'api.clientCertRequired',
  'idp.introspectionAudience',
  'idp.introspectionCacheSeconds',
];

for (const { env, yaml, byDefault } of SETTINGS) {
  if (
    !yaml ||
    typeof byDefault === 'number' ||
    typeof byDefault === 'boolean' ||
    CHECKED_OTHERWISE.includes(yaml)
  ) {
    continue;
  }
  for (const unquoted of ['12345', 'true', '1e3', '[1]']) {
    test(`says to quote the unquoted ${unquoted} as ${yaml}`, () => {
      const problem = onlyProblem({
        // Other settings of a resource need its URL.
        environment: without({ ...REQUIRED, RESOURCE_URL: 'https://api.test' }, env),
        files: { 'application.yml': yamlOf(yaml, unquoted) },
      });
      assert.match(problem, new RegExp(`^${yaml} \\(.*/application\\.yml, line 2\\): `));
      assert.match(problem, /quote/);
    });
  }
}

const CERTIFICATES = { ...REQUIRED, CLIENT_CERT_SOURCE: 'pem', CLIENT_CERT_PROXIES: 'any' };

for (const [name, value] of [
  ['CLIENT_CERT_FIELD', 'X-Cert'],
  ['CLIENT_CERT_PROXIES', '192.0.2.1'],
  ['CLIENT_CERT_PROXIES', 'any'],
  ['CLIENT_CERT_REQUIRED', 'true'],
] as const) {
  test(`refuses ${name}=${value} without CLIENT_CERT_SOURCE, but not beside an invalid one [J18]`, () => {
    const alone = { ...REQUIRED, [name]: value };
    const problem = `${name} (environment): has no effect without CLIENT_CERT_SOURCE; set that too, or remove this`;
    assert.equal(onlyProblem({ environment: alone }), problem);
    const faulty = { ...alone, CLIENT_CERT_SOURCE: 'Pem' };
    assert.match(onlyProblem({ environment: faulty }), /^CLIENT_CERT_SOURCE \(environment\): must be one of/);
    assert.deepEqual(problemsOf({ environment: { ...CERTIFICATES, [name]: value } }), []);
  });
}

test('names every setting of certificates that has no effect [J18]', () => {
  const { CLIENT_CERT_SOURCE: _, ...others } = CERTIFICATES;
  const environment = { ...others, CLIENT_CERT_FIELD: 'X', CLIENT_CERT_REQUIRED: 'true' };
  assert.deepEqual(
    problemsOf({ environment }).map((problem) => problem.split(' ')[0]),
    ['CLIENT_CERT_FIELD', 'CLIENT_CERT_PROXIES', 'CLIENT_CERT_REQUIRED'],
  );
  assert.deepEqual(problemsOf({ environment: { ...REQUIRED, CLIENT_CERT_REQUIRED: 'false' } }), []);
});

test('refuses a source of certificates without the addresses of the proxies', () => {
  const environment = { ...REQUIRED, CLIENT_CERT_SOURCE: 'pem' };
  assert.match(
    onlyProblem({ environment }),
    /^CLIENT_CERT_PROXIES or api\.clientCertProxies \(environment, .*\): is required by CLIENT_CERT_SOURCE; list the addresses of the proxies that send the field$/,
  );
});

test('refuses tls as the source of a service, and names one that a proxy can send', () => {
  const problem =
    'CLIENT_CERT_SOURCE (environment): must not be tls, since a service offers no TLS; choose the form that your proxy writes, such as rfc9440';
  for (const more of [{}, { CLIENT_CERT_PROXIES: 'any' }]) {
    assert.equal(onlyProblem({ environment: { ...REQUIRED, CLIENT_CERT_SOURCE: 'tls', ...more } }), problem);
  }
});

test('refuses to require certificates of Bearer tokens where none is accepted', () => {
  const environment = { ...CERTIFICATES, CLIENT_CERT_REQUIRED: 'true', IDP_DPOP_MODE: 'REQUIRED' };
  assert.equal(
    onlyProblem({ environment }),
    'CLIENT_CERT_REQUIRED (environment): has no effect while the DPoP mode is REQUIRED, which accepts no Bearer token; remove it',
  );
  for (const better of [{ CLIENT_CERT_REQUIRED: 'false' }, { IDP_DPOP_MODE: 'ALLOWED' }]) {
    assert.deepEqual(problemsOf({ environment: { ...environment, ...better } }), []);
  }
});

test('reads the word any alone, as text or as a list of one, in YAML too', () => {
  for (const [written, value] of [
    ['any', 'any'],
    ['[any]', 'any'],
    ['["192.0.2.1", "::1"]', ['192.0.2.1', '::1']],
  ] as const) {
    const yaml = `api:\n  clientCertSource: pem\n  clientCertProxies: ${written}\n`;
    assert.deepEqual(load(withYaml(yaml)).settings.clientCertProxies, value);
  }
});

test('refuses a replay store while DPoP is off, and accepts it in the other modes', () => {
  const store = { ...REQUIRED, IDP_DPOP_REPLAY_STORE: 'redis://:secret@store.test' };
  const fault =
    /^IDP_DPOP_REPLAY_STORE \(environment\): has no effect while the DPoP mode is DISABLED; remove it, or set another mode$/;
  assert.match(onlyProblem({ environment: store }), fault);
  assert.match(onlyProblem({ environment: { ...store, PROFILE: 'A', IDP_DPOP_MODE: 'disabled' } }), fault);
  for (const mode of ['ALLOWED', 'required']) {
    const { settings } = load({ environment: { ...store, IDP_DPOP_MODE: mode } });
    assert.equal(settings.dpopReplayStore, 'redis://:secret@store.test');
  }
});

for (const [name, value] of [
  ['RESOURCE_SCOPES', 'read'],
  ['RESOURCE_NAME', 'API'],
  ['RESOURCE_DOCUMENTATION', 'https://api.test/docs'],
] as const) {
  test(`names ${name} where RESOURCE_URL is missing, but not beside an invalid RESOURCE_URL`, () => {
    const environment = { ...REQUIRED, [name]: value };
    assert.equal(
      onlyProblem({ environment }),
      `${name} (environment): has no effect without RESOURCE_URL; set that too, or remove this`,
    );
    const faulty = { ...environment, RESOURCE_URL: 'https://api.test/#x' };
    assert.match(onlyProblem({ environment: faulty }), /^RESOURCE_URL \(environment\): must be a URL/);
    assert.deepEqual(problemsOf({ environment: { ...environment, RESOURCE_URL: 'https://api.test' } }), []);
  });
}

test('says once what is wrong with a RESOURCE_URL that is of no valid form and of another origin', () => {
  const environment = { ...REQUIRED, PUBLIC_URL: 'https://other.test', RESOURCE_URL: 'http://api.test' };
  assert.equal(onlyProblem({ environment }).split('must be https:').length, 2);
});

test('names each setting of a resource where RESOURCE_URL is missing, with its own place in the file', () => {
  const yaml = 'resource:\n  name: API\n  scopes: [openid]\n  documentation: https://api.test/docs\n';
  const lines = problemsOf(withYaml(yaml)).map((problem) => problem.replace(/ \(.*?, line/, ' (line'));
  assert.deepEqual(
    lines.map((line) => line.slice(0, line.indexOf(';'))),
    [
      'resource.scopes (line 3): must be a scope of this API, without white space, \'"\' or "\\"',
      'resource.name (line 2): has no effect without RESOURCE_URL',
      'resource.documentation (line 4): has no effect without RESOURCE_URL',
    ],
  );
});

test('imports the rule of a setting only when it is set', async () => {
  const given: unknown[] = [];

  const importRule = async (raw: unknown) => {
    given.push(raw);
    return () => 'wrong';
  };

  const table = { x: setting('X', 'x', String, { importRule }) };
  assert.deepEqual((await loadFrom(table, REQUIRED, '/nonexistent')).problems, []);
  assert.deepEqual(given, []);
  const { problems } = await loadFrom(table, { ...REQUIRED, X: 'y' }, '/nonexistent');
  assert.deepEqual([given, problems], [['y'], ['X (environment): wrong']]);
});

test('names what is wrong with a setting and what it needs, both at once [§2]', () => {
  const needs = '; has no effect without RESOURCE_URL; set that too, or remove this';
  for (const [name, value] of [
    ['RESOURCE_SCOPES', 'a"b'],
    ['RESOURCE_DOCUMENTATION', 'no URL'],
  ] as const) {
    const environment = { ...REQUIRED, [name]: value };
    const wrong = onlyProblem({ environment: { ...environment, RESOURCE_URL: 'https://api.test' } });
    assert.equal(onlyProblem({ environment }), `${wrong}${needs}`);
  }
  const template = {
    IDP_ISSUER: 'https://idp.test/{tenant}',
    IDP_TENANTS: 'acme',
    IDP_JWKS_URI: 'https://idp.test/keys',
  };
  for (const url of ['no URL', 'https://api.test/#x']) {
    const environment = { ...REQUIRED, ...template, RESOURCE_URL: url };
    assert.match(onlyProblem({ environment }), /: must be a URL.*; needs the authorization server/, url);
  }
  const faulty = { ...REQUIRED, RESOURCE_URL: 'no URL', PUBLIC_URL: 'https://api.test' };
  assert.doesNotMatch(onlyProblem({ environment: faulty }), /origin/);
});

test('refuses an empty list as the scopes of the resource, which would silently announce none', () => {
  const yaml = 'resource:\n  url: https://api.test\n  scopes: []\n';
  assert.match(onlyProblem(withYaml(yaml)), /^resource\.scopes \(.*\): must be a list of 1 or more strings,/);
});

test('refuses a resource with another origin than the public URL, and accepts one with another path [RFC 9728 §3.3]', () => {
  const fault =
    /^RESOURCE_URL \(environment\): must be https:\/\/ \(http:\/\/ on loopback\), with the origin of the public URL, /;
  for (const [publicUrl, resource, isGood] of [
    ['https://api.test', 'https://api.test/mcp', true],
    ['https://api.test/v1', 'https://api.test', true],
    ['https://API.test:443', 'https://api.test', true],
    ['https://api.test', 'https://other.test', false],
    ['https://api.test', 'https://api.test:8443', false],
    ['http://localhost', 'https://localhost', false],
    // An invalid public URL is reported alone.
    ['api.test', 'https://other.test', true],
  ] as const) {
    const environment = { ...REQUIRED, PUBLIC_URL: publicUrl, RESOURCE_URL: resource };
    const problems = problemsOf({ environment }).filter((problem) => !problem.startsWith('PUBLIC_URL'));
    assert.equal(problems.length, isGood ? 0 : 1);
    if (!isGood) assert.match(problems.join(), fault);
  }
});

test('keeps the spelling of the domain in the issuer', () => {
  for (const domain of ['idp.test', 'IdP.Test:8443', '[::1]:8443', 'idp.test:443']) {
    const { idp } = load({ environment: { ...REQUIRED, IDP_DOMAIN: domain } }).settings.issuers;
    assert.deepEqual([idp?.domain, idp?.issuer], [domain, `https://${domain}/`]);
  }
});

test('refuses the scope policy in profile B and accepts it in profile A', () => {
  assert.match(
    onlyProblem({ environment: { ...REQUIRED, SCOPE_POLICY: 'true' } }),
    /^SCOPE_POLICY \(environment\): belongs to profile A; remove it or set PROFILE=A$/,
  );
  assert.match(
    onlyProblem({
      environment: { ...REQUIRED, PROFILE: 'b' },
      files: { 'application.yml': 'api:\n  scopePolicy: true' },
    }),
    /profile A/,
  );
  assert.equal(
    load({ environment: { ...REQUIRED, PROFILE: 'a', SCOPE_POLICY: 'true' } }).settings.scopePolicy,
    true,
  );
  assert.equal(load({ environment: { ...REQUIRED, SCOPE_POLICY: 'false' } }).settings.scopePolicy, false);
});

test('does not check the scope policy when the profile itself is invalid', () => {
  assert.deepEqual(problemsOf({ environment: { ...REQUIRED, PROFILE: 'C', SCOPE_POLICY: 'true' } }), [
    'PROFILE (environment): must be one of A, B',
  ]);
});

test('reads YAML numbers, booleans and lists as the values of settings', () => {
  const yaml = `${REQUIRED_YAML}  tokenCacheEntries: 0x10
  requiredClaims: [scp, "1"]
server:
  port: 8081 # not 8080
api:
  errorDetail: True
cors:
  allowCredentials: FALSE
  allowedOrigins:
  - https://one.test
  - 'http://two.test:81'
`;
  const { settings } = load({ files: { 'application.yml': yaml } });
  const { requiredClaims } = settings.issuers.idp!;
  const { tokenCacheEntries, port, errorDetail, corsAllowCredentials, corsAllowedOrigins } = settings;
  assert.deepEqual(
    { tokenCacheEntries, requiredClaims, port, errorDetail, corsAllowCredentials, corsAllowedOrigins },
    {
      tokenCacheEntries: 16,
      requiredClaims: ['scp', '1'],
      port: 8081,
      errorDetail: true,
      corsAllowCredentials: false,
      corsAllowedOrigins: ['https://one.test', 'http://two.test:81'],
    },
  );
});

test('takes an empty list of origins, methods or fields for none, which has its default [§9]', () => {
  const names = ['Origins', 'Methods', 'Headers'].map((name) => `allowed${name}`);
  const { settings } = load(
    withYaml(`cors:\n${[...names, 'exposedHeaders'].map((name) => `  ${name}: []\n`).join('')}`),
  );
  const { corsAllowedOrigins, corsAllowedMethods, corsAllowedHeaders, corsExposedHeaders } = settings;
  assert.deepEqual([corsAllowedOrigins, corsAllowedHeaders, corsExposedHeaders], Array(3).fill(undefined));
  assert.deepEqual(corsAllowedMethods, ['GET', 'POST', 'PUT', 'DELETE']);
});

test('reads spring.application.name as application.name', () => {
  const yaml = yamlOf('spring.application.name', 'mine');
  const { settings, warnings } = load(withYaml(yaml));
  assert.deepEqual([settings.applicationName, warnings], ['mine', []]);
  assert.match(
    onlyProblem(withYaml(yamlOf('spring.application.name', '1'))),
    /^spring\.application\.name \(.*\): must be text; quote it$/,
  );
});

test('prefers application.name to spring.application.name, in either order, and ignores an empty one', () => {
  const ours = yamlOf('application.name', 'mine');
  const empty = yamlOf('application.name', '""');
  const springs = yamlOf('spring.application.name', 'theirs');
  for (const [yaml, name] of [
    [ours + springs, 'mine'],
    [springs + ours, 'mine'],
    [empty + springs, 'theirs'],
    [springs + empty, 'theirs'],
    [ours + yamlOf('spring.application.name', ''), 'mine'],
  ] as const) {
    assert.equal(load(withYaml(yaml)).settings.applicationName, name);
  }
});

test('resolves with the options of a service, and with the part of each setting that is set [§11]', async () => {
  const environment = {
    ...REQUIRED,
    PROFILE: 'A',
    LOG_LEVEL: 'silent',
    IDP_PROXY: 'http://proxy.test',
    CLIENT_CERT_SOURCE: 'pem',
    CLIENT_CERT_PROXIES: '127.0.0.1',
    RESOURCE_URL: 'https://api.test',
    ISSUERS: 'partner',
    ISSUER_PARTNER_DOMAIN: 'partner.test',
    ISSUER_PARTNER_AUDIENCE: 'x',
  };
  const options = await loadSettings(environment, '/nonexistent');
  const parts = Object.entries(options).flatMap(([name, value]) => (Part.is(value) ? name : []));
  assert.deepEqual(parts.sort(), ['clientCertificates', 'connect', 'log', 'metadata']);
  assert.ok(Object.isFrozen(options));
  const { applicationName, ...others }: object & { applicationName?: string } = options;
  assert.equal(applicationName, undefined);
  assert.equal(readServiceOptions(others as ServiceOptions).issuers.partner?.domain, 'partner.test');
});

test('rejects with a TypeError that says what it takes, for no environment and for no directory [§11]', async () => {
  const message = 'loadSettings needs an environment and a directory, such as those of the process';
  for (const given of [[], [undefined, '/'], ['/', '/'], [process.env], [process.env, null]]) {
    await assert.rejects(Reflect.apply(loadSettings, undefined, given), { name: 'TypeError', message });
  }
});

const OF_INTROSPECTION = {
  introspectionTokens: ['opaque'],
  introspectionClientId: 'orders-api',
  introspectionClientSecret: 'x',
};

const OF_TENANTS = { issuer: 'https://idp.test/{tenant}/', tenantList: ['a'] };

/** Settings, one of which its part refuses, and what it says. */
for (const [settings, problem] of [
  [{ jwksTokenFile: 'nowhere' }, /^keyAccess: tokenFile: /],
  [{ caFile: 'nowhere' }, /^keyAccess: caFile: /],
  [{ ...OF_INTROSPECTION, introspectionTokens: ['x'] }, /^introspection: tokens: /],
  [{ ...OF_INTROSPECTION, introspectionUri: 'x' }, /^introspection: uri: /],
  [{ ...OF_INTROSPECTION, introspectionClientId: '' }, /^introspection: clientId: /],
  [{ ...OF_INTROSPECTION, introspectionClientSecret: '' }, /^introspection: clientSecret: /],
  [{ ...OF_INTROSPECTION, introspectionKeyFile: 'nowhere' }, /^introspection: keyFile: /],
  [{ ...OF_INTROSPECTION, introspectionKeyId: 'k' }, /^introspection: keyId: /],
  [{ ...OF_INTROSPECTION, introspectionAudience: 'x' }, /^introspection: audience: /],
  [{ ...OF_INTROSPECTION, introspectionCacheSeconds: -1 }, /^introspection: cacheSeconds: /],
  [{ ...OF_TENANTS, tenantList: [] }, /^tenants: list: /],
  [{ ...OF_TENANTS, tenantClaim: '' }, /^tenants: claim: /],
  [{ ...OF_TENANTS, authorizationServer: 'x' }, /^tenants: authorizationServer: /],
] as const) {
  test(`gives the part of an issuer its setting ${String(problem).slice(2, -3)} [§11]`, async () => {
    for (const name of ['idp', 'partner']) {
      const usual = { domain: 'idp.test', audience: ['x'] };
      const issuers = { idp: usual, [name]: { ...usual, ...settings } };
      await assert.rejects(optionsOf({ issuers }), { name: 'TypeError', message: problem });
    }
  });
}

test('makes options that a service accepts of an issuer with the settings of all its parts [§11]', async () => {
  const { keyFile, caFile } = { keyFile: KEY_FILE, caFile: KEY_FILE.replace(/[^/]*$/, 'authority.pem') };
  const environment = {
    ...REQUIRED,
    LOG_LEVEL: 'silent',
    IDP_CA_FILE: caFile,
    IDP_INTROSPECTION: 'jwt',
    IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
    IDP_INTROSPECTION_KEY_FILE: keyFile,
    ISSUERS: 'partner',
    ISSUER_PARTNER_DOMAIN: 'partner.test',
    ISSUER_PARTNER_AUDIENCE: 'x',
    ISSUER_PARTNER_ISSUER: 'https://partner.test/{tenant}/',
    ISSUER_PARTNER_JWKS_URI: 'https://partner.test/keys',
    ISSUER_PARTNER_TENANTS: 'a',
  };
  const { idp, partner } = readServiceOptions(await loadSettings(environment, '/nonexistent')).issuers;
  assert.ok(Part.is(idp?.keyAccess) && Part.is(idp?.introspection) && Part.is(partner?.tenants));
});

test('keeps what is set to 0 or to false, in YAML too', async () => {
  const yaml = 'idp:\n  tokenCacheEntries: 0\n  requiredClaims: []\nserver:\n  port: 0\n';
  const options = await inDirectory({ 'application.yml': yaml }, (directory) =>
    loadSettings({ ...REQUIRED, LOG_LEVEL: 'silent', ERROR_DETAIL: 'false' }, directory),
  );
  const { tokenCacheEntries, port, errorDetail, requiredClaims } = options;
  assert.deepEqual([tokenCacheEntries, port, errorDetail, requiredClaims], [0, 0, false, []]);
});

test('writes to its log each name that may be a misspelt setting, in printable ASCII [§11]', async (t) => {
  const logged = captureLog(t);
  const yaml = '"b\u00e9": 1\n';
  await inDirectory({ 'application.yml': yaml }, (directory) =>
    loadSettings({ ...REQUIRED, 'IDP_\u00e9': 'x', TRUSTPROXY: 'true' }, directory),
  );
  const told = (await logged()).map(({ message, setting }) => `${message}: ${setting.split(' ')[0]}`);
  assert.deepEqual(
    told,
    ['IDP_?', 'TRUSTPROXY', 'b?'].map((name) => `unknown setting ignored: ${name}`),
  );
});

for (const [what, environment, files] of [
  ['.env', {}, { '.env': 'PORT=81\n' }],
  ['application.yml', {}, { 'application.yml': 'server:\n  port: 81\n' }],
  ['the file of CONFIG_FILE', { CONFIG_FILE: 'x.yml' }, { 'x.yml': 'server:\n  port: 81\n' }],
] as const) {
  test(`reads ${what} where there is no other file, though it imports no reader before it may need one`, async () => {
    const options = await inDirectory(files, (directory) =>
      loadSettings({ ...REQUIRED, ...environment }, directory),
    );
    assert.equal(options.port, 81);
  });
}

test('refuses a file of settings that is there only once the readers are decided on [H2]', async () => {
  const files = { '.env': 'PORT=81\n' };
  await inDirectory(files, async (directory) => {
    const { existsSync } = fs;
    mock.method(fs, 'existsSync', (path: string) => !path.startsWith(directory) && existsSync(path));
    syncBuiltinESMExports();
    try {
      await assert.rejects(loadSettings(REQUIRED, directory), {
        message: 'a file of settings has just appeared; start again',
      });
    } finally {
      mock.restoreAll();
      syncBuiltinESMExports();
    }
  });
});

test('rejects with every problem, those of the settings of parts too', async () => {
  const environment = { IDP_AUDIENCE: 'x y', CORS_ALLOWED_ORIGINS: '*', METRICS_PORT: 'x' };
  await assert.rejects(loadSettings(environment, '/nonexistent'), (error) => {
    assert.ok(error instanceof ConfigurationError);
    const names = error.problems.map((problem) => problem.split(' ')[0]);
    assert.deepEqual(names, ['IDP_DOMAIN', 'IDP_AUDIENCE', 'CORS_ALLOWED_ORIGINS', 'METRICS_PORT']);
    return true;
  });
});

test('refuses the settings that belong to the profiles when it loads no profile', async () => {
  const files = { '.env': 'IDP_ORG_ID=x\n', 'application.yml': 'profile: A\napi:\n  scopePolicy: true\n' };
  const loading = inDirectory(files, (directory) =>
    loadSettings(REQUIRED, directory).catch((error) => error),
  );
  const { problems } = await loading;
  assert.deepEqual(
    problems.map((problem: string) => problem.split(' ')[0]),
    ['IDP_ORG_ID', 'profile', 'api.scopePolicy'],
  );
});

for (const name of ['PROFILE', 'Profile']) {
  test(`advises nobody to write ${name} as profile where there is no profile [§2]`, async () => {
    const loading = inDirectory({ 'application.yml': `${name}: A\n` }, (directory) =>
      loadSettings(REQUIRED, directory).catch((error) => error),
    );
    const { problems } = await loading;
    assert.equal(problems.length, 1);
    assert.match(problems[0], /, line 1\): is not a setting; correct or remove it$/);
  });
}

test('returns the paths of the files that were read, and of no others', () => {
  for (const [files, names] of [
    [{}, []],
    [{ '.env': '' }, ['.env']],
    [{ '.env': '', 'application.yml': '' }, ['.env', 'application.yml']],
    [{ '.env': 'CONFIG_FILE=x.yml', 'x.yml': '', 'application.yml': '' }, ['.env', 'x.yml']],
  ] as const) {
    inDirectory(files, (directory) => {
      const { files: read } = loadProfileNow(REQUIRED, directory);
      assert.deepEqual(
        read,
        names.map((name) => join(directory, name)),
      );
    });
  }
});

test('rethrows a bug in a reader instead of reporting a problem', async () => {
  const bug = new TypeError('x is not a function');

  function read(): number {
    throw bug;
  }

  const table = {
    x: setting('X', 'x', read, { byDefault: () => 1 }),
  };
  const loadWith = (environment: Record<string, string>) => loadFrom(table, environment, '/nonexistent');
  const { x }: { x?: unknown } = (await loadWith(REQUIRED)).settings as object;
  assert.equal(x, 1);
  await assert.rejects(loadWith({ ...REQUIRED, X: '2' }), (failure) => failure === bug);
});
