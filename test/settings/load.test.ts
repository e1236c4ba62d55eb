/* All sources → settings, or every problem at once (contract §2). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import {
  load,
  onlyProblem,
  problemsOf,
  REQUIRED,
  SETTINGS,
  withYaml,
  yamlOf,
  type Sources,
} from './every-setting.ts';

const REQUIRED_YAML = 'idp:\n  domain: idp.test\n  audience: https://api.test\n';
const quoted = (written: string) => JSON.stringify(written);
/** What the row needs beside it: the scope policy belongs to profile A. */
const around = (name: string) => ({ ...REQUIRED, ...(name === 'scopePolicy' ? { PROFILE: 'A' } : {}) });
const without = (environment: Record<string, string>, env: string | undefined) =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => name !== env));

for (const { name, env, yaml, byDefault, byDefaultA = byDefault, good, bad } of SETTINGS) {
  const byDefaultIn = ({ PROFILE }: { PROFILE?: string }) => (PROFILE === 'A' ? byDefaultA : byDefault);
  const label = [env, yaml].filter(Boolean).join(' or ');
  if (byDefault !== 'required') {
    test(`gives ${label} its default in both profiles [contract §2]`, () => {
      assert.deepEqual(load({ environment: REQUIRED }).settings[name], byDefault);
      if (name !== 'profile')
        assert.deepEqual(load({ environment: { ...REQUIRED, PROFILE: 'A' } }).settings[name], byDefaultA);
    });
  }
  test(`takes ${label} from the environment, then .env, then application.yml, empty ones aside [contract §2]`, () => {
    const [first, second, third = first] = good;
    const others = without(around(name), env);
    const files = {
      '.env': env ? `${env}=${quoted(second[0])}\n` : '',
      'application.yml': yaml ? yamlOf(yaml, quoted(third[0])) : '',
    };
    const read = (environment: Record<string, string>, given: Sources['files'] = {}) =>
      load({ environment, files: given }).settings[name];
    for (const [written, value] of [first, second, third]) {
      if (env) assert.deepEqual(read({ ...others, [env]: written }), value);
      if (yaml) assert.deepEqual(read(others, { 'application.yml': yamlOf(yaml, quoted(written)) }), value);
    }
    if (!env) return;
    assert.deepEqual(read({ ...others, [env]: first[0] }, files), first[1]);
    assert.deepEqual(read(others, files), second[1]);
    assert.deepEqual(read({ ...others, [env]: '' }, files), second[1]);
    if (yaml) assert.deepEqual(read({ ...others, [env]: '' }, { ...files, '.env': `${env}=\n` }), third[1]);
    if (byDefault === 'required') return;
    for (const empty of yaml ? ['""', '~', ''] : []) {
      const nothing: Record<string, string> = {
        '.env': `${env}=""\n`,
        'application.yml': yamlOf(yaml ?? '', empty),
      };
      assert.deepEqual(read({ ...others, [env]: '' }, nothing), byDefaultIn(others));
    }
  });
  if (bad !== undefined) {
    test(`refuses a bad ${label}, naming both its names and never its value [contract §2]`, () => {
      const others = without(around(name), env);
      const sources = [
        { environment: { ...others, [env ?? '']: bad[0] } },
        ...(yaml
          ? [{ environment: others, files: { 'application.yml': yamlOf(yaml, quoted(bad[0])) } }]
          : []),
      ];
      for (const problem of sources.map(onlyProblem)) {
        assert.ok(problem.startsWith(`${label}: `), problem);
        assert.match(problem, bad[1]);
        assert.ok(bad[0].length < 5 || !problem.includes(bad[0]), problem);
      }
    });
  }
}

const CHECKED_OTHERWISE = ['idp.dpopMode', 'idp.tokenType', 'log.level'];
for (const { env, yaml, byDefault } of SETTINGS) {
  if (
    !yaml ||
    typeof byDefault === 'number' ||
    typeof byDefault === 'boolean' ||
    CHECKED_OTHERWISE.includes(yaml)
  )
    continue;
  for (const unquoted of ['12345', 'true', '1e3', '[1]']) {
    test(`says to quote the unquoted ${unquoted} as ${yaml} [contract §2]`, () => {
      const problem = onlyProblem({
        environment: without(REQUIRED, env),
        files: { 'application.yml': yamlOf(yaml, unquoted) },
      });
      assert.ok(problem.startsWith([env, yaml].filter(Boolean).join(' or ')), problem);
      assert.match(problem, /quote/);
    });
  }
}

test('keeps the domain as it is written in the issuer [contract §2]', () => {
  for (const domain of ['idp.test', 'IdP.Test:8443', '[::1]:8443', 'idp.test:443']) {
    const { settings } = load({ environment: { ...REQUIRED, IDP_DOMAIN: domain } });
    assert.deepEqual([settings.domain, settings.issuer], [domain, `https://${domain}/`]);
  }
});

test('reports a missing domain and a missing audience in words that name them [specification §7 rule 5]', () => {
  const [domain = '', audience = '', ...others] = problemsOf({});
  assert.match(domain, /^IDP_DOMAIN or idp\.domain: .*issuer base URL/);
  assert.match(audience, /^IDP_AUDIENCE or idp\.audience: .*audience.* required/);
  assert.deepEqual(others, []);
});

test('counts empty required settings as missing [contract §2]', () => {
  const empty = {
    environment: { IDP_DOMAIN: '', IDP_AUDIENCE: '' },
    files: { '.env': 'IDP_DOMAIN=\n', 'application.yml': 'idp:\n  domain: ""\n  audience:\n' },
  };
  assert.deepEqual(problemsOf(empty), problemsOf({}));
});

test('reports every problem of every source at once [contract §2]', () => {
  const bad = Object.fromEntries(
    SETTINGS.flatMap(({ env, bad: fault }) => (env && fault ? [[env, fault[0]]] : [])),
  );
  const files = { '.env': Buffer.from([0xff]), 'application.yml': 'api:\n  x: 1\napplication:\n  name: 1\n' };
  const named = problemsOf({ environment: bad, files }).map((problem) =>
    problem.split(':')[0]?.replace(/^.*\/|.* or /g, ''),
  );
  const faulty = SETTINGS.filter(({ bad: fault }) => fault).map(({ env, yaml }) => yaml ?? env);
  assert.deepEqual(named.sort(), [...faulty, '.env', 'api.x', 'application.name'].sort());
});

test('refuses the scope policy in profile B and takes it in profile A [contract §2]', () => {
  assert.match(
    onlyProblem({ environment: { ...REQUIRED, SCOPE_POLICY: 'true' } }),
    /^SCOPE_POLICY or api\.scopePolicy: .*profile A/,
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

test('does not read the profile from application.yml [contract §2]', () => {
  const { settings, unknown } = load(withYaml('profile: A\nPROFILE: A'));
  assert.deepEqual([settings.profile, unknown], ['B', ['profile', 'PROFILE']]);
});

test('reads native YAML values as their text [contract §2]', () => {
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
  const { tokenCacheEntries, requiredClaims, port, errorDetail, corsAllowCredentials, corsAllowedOrigins } =
    settings;
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

test('reads spring.application.name as application.name [contract §2]', () => {
  const nameFrom = (yaml: string) => load(withYaml(yaml)).settings.applicationName;
  assert.equal(nameFrom(yamlOf('spring.application.name', 'mine')), 'mine');
  assert.deepEqual(load(withYaml(yamlOf('spring.application.name', 'mine'))).unknown, []);
  assert.match(onlyProblem(withYaml(yamlOf('spring.application.name', '1'))), /^application\.name: .*quote/);
});

test('counts an empty spring.application.name as absent beside application.name, in either order [contract §2]', () => {
  const [ours, springs] = [yamlOf('application.name', 'mine'), yamlOf('spring.application.name', '')];
  for (const yaml of [ours + springs, springs + ours])
    assert.equal(load(withYaml(yaml)).settings.applicationName, 'mine');
});
