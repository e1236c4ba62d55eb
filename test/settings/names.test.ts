/* Unknown names (docs/settings.md): a misspelled safeguard is not silently ignored. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { load, onlyProblem, problemsOf, REQUIRED, withYaml } from './every-setting.ts';

const inDotEnv = (line: string) => ({ environment: REQUIRED, files: { '.env': `# x\n${line}\n` } });

/** Without letter case and underscores. */
const bare = (name: string | undefined) => String(name).toLowerCase().split('_').join('');

const warningsOf = (environment: Record<string, string>) =>
  load({ environment: { ...REQUIRED, ...environment } }).warnings;

for (const section of [
  'idp',
  'issuers',
  'api',
  'cors',
  'resource',
  'metrics',
  'revocation',
  'server',
  'log',
]) {
  for (const [what, yaml, name, line] of [
    ['an unknown key', `# x\n${section}:\n  nonsense: secret-value`, `${section}.nonsense`, 3],
    ['a nested key', `${section}:\n  nonsense:\n    y: 1`, `${section}.nonsense.y`, 3],
    ['a value in place of its keys', `${section}: secret-value`, section, 1],
    ['a list in place of its keys', `${section}: [a]`, section, 1],
    ['an unknown key without a value', `${section}:\n  nonsense:`, `${section}.nonsense`, 2],
  ] as const) {
    test(`refuses ${what} in the section ${section} and names its line [H2]`, () => {
      // Without domain and audience, it is an issuer with these problems too.
      const [problem = '', ...others] = problemsOf(withYaml(yaml)).toReversed();
      assert.ok(problem.startsWith(`${name} (`), problem);
      const isOfIssuer = section === 'issuers' && what === 'a nested key';
      assert.equal(others.length, isOfIssuer ? 2 : 0);
      const list = isOfIssuer ? 'if ISSUERS does not list its issuer, add the issuer; otherwise ' : '';
      assert.match(
        problem,
        new RegExp(`/application\\.yml, line ${line}\\): is not a setting; ${list}correct or remove it$`),
      );
    });
  }

  test(`accepts the section ${section} without any key`, () =>
    assert.deepEqual(load(withYaml(`${section}:\n`)).warnings, []));
}

/** A wrong key, and the right one. */
const KEYS: readonly (readonly [yaml: string, name: string, nearest: string])[] = [
  ['idp:\n  dpopmode: REQUIRED', 'idp.dpopmode', 'idp.dpopMode'],
  ['idp:\n  dpop: REQUIRED', 'idp.dpop', 'undefined'],
  ['idp:\n  dpopMod: REQUIRED', 'idp.dpopMod', 'idp.dpopMode'],
  ['idp:\n  dpop_mode: REQUIRED', 'idp.dpop_mode', 'idp.dpopMode'],
  ['idp:\n  dpopMood: REQUIRED', 'idp.dpopMood', 'idp.dpopMode'],
  ['idp:\n  dpop-mode: REQUIRED', 'idp.dpop-mode', 'idp.dpopMode'],
  ['idp:\n  dpop:\n    mode: REQUIRED', 'idp.dpop.mode', 'idp.dpopMode'],
  ['idp:\n  dpopMode": REQUIRED', 'idp.dpopMode"', 'idp.dpopMode'],
  ['idp:\n  Audience: x', 'idp.Audience', 'idp.audience'],
  ['IDP:\n  domain: x', 'IDP.domain', 'idp.domain'],
  ['Cors:\n  allowedOrigin: x', 'Cors.allowedOrigin', 'cors.allowedOrigins'],
  ['SERVER:\n  PORT: 1', 'SERVER.PORT', 'server.port'],
  ['server:\n  hosrt: x', 'server.hosrt', 'server.host'],
  ['server:\n  hsot: x', 'server.hsot', 'server.host'],
  ['IDP:', 'IDP', 'idp'],
  ['Metrics: 9464', 'Metrics', 'metrics'],
  ['ISSUERS: [partner]', 'ISSUERS', 'issuers'],
  ['idp:\n  domain:\n    x: 1', 'idp.domain.x', 'idp.domain'],
  ['idp:\n  Xaudience: x', 'idp.Xaudience', 'idp.audience'],
  ['IDP:\n  doman: x', 'IDP.doman', 'idp.domain'],
];

for (const [yaml, name, nearest] of KEYS) {
  test(`suggests the spelling of the key ${name} if only its letter case or its underscores differ`, () => {
    const isCase = bare(nearest) === bare(name);
    const advice = isCase ? `write ${nearest}` : 'correct';
    const problem = onlyProblem(withYaml(yaml));
    assert.ok(
      problem.startsWith(`${name} (`) && problem.endsWith(`: is not a setting; ${advice} or remove it`),
      problem,
    );
  });
}

for (const yaml of ['profile: A', 'PROFILE: B', 'Profile: A', 'profile:']) {
  test(`refuses ${JSON.stringify(yaml)} in YAML and says that the profile comes from the environment only`, () => {
    assert.match(
      onlyProblem(withYaml(yaml)),
      / line \d\): is not a setting; write PROFILE in the environment only or remove it$/,
    );
  });
}

test('ignores an empty section of others, even one that begins like the profile', () => {
  assert.deepEqual(load(withYaml('profiles:\nmanagement:\n')).warnings, []);
});

test('warns of unknown keys in sections that are not its own, with their lines, and of nothing else', () => {
  const yaml =
    'spring:\n  main: 2\n  application:\n    name: x\napplication:\n  title: 3\nidpx: [a]\nconstructor: 4\n__proto__: 5\nmanagement:\n  metrics: 6';
  const { warnings } = load(withYaml(yaml));
  assert.deepEqual(
    warnings.map((warning) => warning.replace(/\(\/.*\/application\.yml, /, '(')),
    [
      'spring.main (line 2)',
      'application.title (line 6)',
      'idpx (line 7)',
      'constructor (line 8)',
      '__proto__ (line 9)',
      'management.metrics (line 11)',
    ].map((source) => `${source}: is not a setting; correct or remove it`),
  );
});

for (const [yaml, name] of [
  ['"idp.dpopMode": REQUIRED', '"idp.dpopMode"'],
  ["'idp.dpopMode': REQUIRED", '"idp.dpopMode"'],
  ['idp.dpopMode: REQUIRED', '"idp.dpopMode"'],
  ['IDP.dpopMode: REQUIRED', '"IDP.dpopMode"'],
  ['idp.:', '"idp."'],
  ['"server.port": 1', '"server.port"'],
  ['profile.x: 1', '"profile.x"'],
  ['"issuers.partner.domain": two.test', '"issuers.partner.domain"'],
  ['issuers.partner:\n  domain: two.test', '"issuers.partner".domain'],
  ['idp:\n  "dpop.mode": 1', 'idp."dpop.mode"'],
] as const) {
  test(`refuses ${JSON.stringify(yaml)}: a dot in a key does not nest [YAML 1.2.2 §7.3, H2]`, () => {
    const problem = onlyProblem(withYaml(yaml));
    assert.ok(problem.startsWith(`${name} (`), problem);
    assert.match(problem, /\): is not a setting; nest the keys that its dots separate, or remove it$/);
  });
}

test('does not treat a key with a dot as nested keys', () => {
  const { settings, warnings } = load(
    withYaml('application.name: x\nspring:\n  application.name: y\n  "idp.domain": z'),
  );
  assert.equal(settings.applicationName, 'gatehouse');
  assert.deepEqual(
    warnings.map((warning) => warning.replace(/ \(.*/, '')),
    ['"application.name"', 'spring."application.name"', 'spring."idp.domain"'],
  );
});

/** A wrong name, and the right one. */
const VARIABLES: readonly (readonly [name: string, nearest: string | undefined])[] = [
  ['IDP_DPOPMODE', 'IDP_DPOP_MODE'],
  ['IDPDPOPMODE', 'IDP_DPOP_MODE'],
  // Three letters left out, added, changed; then four.
  ['IDP_DPMODE', 'IDP_DPOP_MODE'],
  ['IDP_DPOP_MODELLO', 'IDP_DPOP_MODE'],
  ['IDP_DPOP_MXYZ', 'IDP_DPOP_MODE'],
  ['IDP_DMODE', undefined],
  ['IDP_DPOP_MODELLOS', undefined],
  ['IDP_DPOP_WXYZ', undefined],
  ['IDP_DPOP_MODUS', 'IDP_DPOP_MODE'],
  ['IDP_AUD', undefined],
  ['IDP_DOMAINS', 'IDP_DOMAIN'],
  ['IDP_DPOP_IAT_OFFSET', undefined],
  ['IDP_dpop_mode', 'IDP_DPOP_MODE'],
  ['CORS_ALOWED_ORIGINS', 'CORS_ALLOWED_ORIGINS'],
  ['CORS_ALLOWED_HEADER', 'CORS_ALLOWED_HEADERS'],
  ['RESOURCE_URI', 'RESOURCE_URL'],
  ['RESOURCE_IDENTIFIER', undefined],
  ['METRICS_X', undefined],
  // Letter case alone.
  ['idp_dpop_mode', 'IDP_DPOP_MODE'],
  ['Idp_Domain', 'IDP_DOMAIN'],
  ['idp_nonsense', undefined],
  ['idp_domian', 'IDP_DOMAIN'],
  ['trust_proxy', 'TRUST_PROXY'],
  ['Public_Url', 'PUBLIC_URL'],
  ['scope_policy', 'SCOPE_POLICY'],
  ['port', 'PORT'],
  ['config_file', 'CONFIG_FILE'],
  ['METRICSPORT', 'METRICS_PORT'],
  ['TRUSTPROXY', 'TRUST_PROXY'],
  ['PORT_', 'PORT'],
  ['CLIENT_CERT_X', undefined],
  ['Client_Cert_Source', 'CLIENT_CERT_SOURCE'],
  ['REVOCATION_STORES', undefined],
  ['REVOCATIONSTORE', 'REVOCATION_STORE'],
];

for (const [name, nearest] of VARIABLES) {
  const isCase = bare(nearest) === bare(name);
  const advice = `is not a setting; ${isCase ? `write ${nearest}` : 'correct'} or remove it`;

  test(`refuses ${name} in .env with its line, and suggests the spelling if only its letter case or its underscores differ [H2]`, () => {
    const problem = onlyProblem(inDotEnv(`${name}=secret-value`));
    assert.ok(problem.startsWith(`${name} (`) && problem.endsWith(`/.env, line 2): ${advice}`), problem);
  });

  test(`warns of ${name} in the process environment and does not show its value`, () => {
    assert.deepEqual(warningsOf({ [name]: 'secret-value' }), [`${name} (environment): ${advice}`]);
  });
}

for (const name of [
  // Shells set it.
  '_',
  'IDP',
  'IDPX_DOMAIN',
  'ISSUER_BASE_URL',
  'DATABASE_URL',
  'idp',
  'trust_proxies',
  'MY_IDP_DOMAIN',
  'CORS',
  '__proto__',
  'constructor',
]) {
  test(`ignores ${name}, which does not begin like a setting`, () => {
    assert.deepEqual(problemsOf(inDotEnv(`${name}=x`)), []);
    assert.deepEqual(warningsOf({ [name]: 'x' }), []);
  });
}

const ORCHESTRATED: Readonly<Record<string, string>> = {
  IDP_SERVICE_HOST: '10.0.0.1',
  IDP_SERVICE_PORT: '443',
  IDP_SERVICE_PORT_HTTPS: '443',
  IDP_PORT: '443',
  CORS_PORT: '443',
  RESOURCE_PORT: '443',
  CLIENT_CERT_PORT: '443',
  REVOCATION_PORT: '443',
  IDP_PORT_443_TCP: 'tcp://10.0.0.1:443',
  IDP_PORT_443_TCP_PROTO: 'tcp',
  IDP_PORT_443_TCP_PORT: '443',
  IDP_PORT_443_TCP_ADDR: '10.0.0.1',
  CORS_PROXY_SERVICE_HOST: '10.0.0.2',
  RESOURCE_API_PORT: 'udp://10.0.0.3:53',
  RESOURCE_API_PORT_53_UDP: 'udp://10.0.0.3:53',
  IDP_SIGNALS_PORT: 'sctp://10.0.0.5:3868',
  METRICS_PORT: 'tcp://10.0.0.4:9090',
  METRICS_SERVICE_PORT: '9090',
};

test('ignores variables that orchestrators set for services called idp or metrics', () => {
  assert.deepEqual(warningsOf(ORCHESTRATED), []);
});

for (const [name, value] of [
  ['IDP_A-B_SERVICE_HOST', 'x'],
  ['IDP_SERVICE_PORTS', '443'],
  ['IDP_SERVICE_HOSTNAME', 'x'],
  ['IDP_PORT_443', 'tcp://10.0.0.1:443'],
  ['IDP_PORT_TCP', 'tcp://10.0.0.1:443'],
  ['IDP_PORT__TCP', 'tcp://10.0.0.1:443'],
  ['RESOURCE_API_PORT', 'http://10.0.0.3:53'],
] as const) {
  test(`warns of ${name} with ${value}, which is only like what orchestrators set`, () => {
    const warnings = warningsOf({ [name]: value });
    assert.deepEqual(warnings, [`${name} (environment): is not a setting; correct or remove it`]);
  });
}

test('ignores the port of a service that is named like an issuer, and warns of a longer name', () => {
  const partner = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: 'x' };
  const [warning, ...others] = warningsOf({
    ...partner,
    ISSUER_PARTNER_PORT: '443',
    ISSUER_PARTNER_KEYS_PORT: '443',
  });
  assert.match(String(warning), /^ISSUER_PARTNER_KEYS_PORT \(environment\): is not a setting; /);
  assert.deepEqual(others, []);
});

for (const name of Object.keys(ORCHESTRATED)) {
  test(`refuses ${name} in .env, which no orchestrator writes`, () => {
    assert.match(
      onlyProblem(inDotEnv(`${name}=${ORCHESTRATED[name]}`)),
      / is not a setting; | must be a whole number /,
    );
  });
}

for (const name of ['IDP_AUDIENCE', 'IDP_CLAIM_NAMESPACE', 'HOST', 'IDP_REQUIRED_CLAIMS']) {
  test(`refuses the address of another service as ${name} [§2]`, () => {
    const environment = { ...REQUIRED, [name]: 'tcp://10.0.0.1:443' };
    assert.equal(
      onlyProblem({ environment }),
      `${name} (environment): begins with tcp://, like the variable of another service; correct it, or rename that service`,
    );
  });
}

test('accepts a value that has an address within, or only begins like that of another service', () => {
  for (const audience of ['tcp:orders', 'urn:tcp://orders']) {
    assert.deepEqual(load({ environment: { ...REQUIRED, IDP_AUDIENCE: audience } }).problems, []);
  }
});

test('ignores a name with blanks in the environment', () => {
  assert.deepEqual(warningsOf({ 'MY NAME': 'x', 'A\tB': 'x' }), []);
});

test('refuses a name of two lines in the environment, which Node 20 makes with --env-file [H2]', () => {
  for (const start of [' ', '\t', ' # a comment', '[section]']) {
    const environment = { ...REQUIRED, [`${start}\nIDP_DPOP_MODE`]: 'REQUIRED' };
    assert.match(
      onlyProblem({ environment }),
      /^a name of several lines \(environment\): is not a setting; /,
    );
  }
});

/** What Node 20 makes of a key over several lines with --env-file. */
const TORN = [
  'U0VDUkVU\n-----END PRIVATE KEY-----\nIDP_DPOP_MODE',
  'U0VDUkVU\r\n-----END PRIVATE KEY-----"\r\nIDP_DOMAIN',
  'U0VDUkVU\n log_level ',
  'U0VDUkVUU0VDUkVU\nIDPU0VDUkVU',
  'U0VDUkVU\n',
];

for (const name of TORN) {
  test(`shows nothing of a secret that has become part of the name ${JSON.stringify(name)} [CWE-532]`, () => {
    const problem = onlyProblem({ environment: { ...REQUIRED, [name]: 'REQUIRED' } });
    assert.equal(
      problem,
      'a name of several lines (environment): is not a setting; correct the lines above it, which became a part of its name',
    );
  });
}
