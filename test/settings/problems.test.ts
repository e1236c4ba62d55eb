/* What an operator reads when the service does not start (docs/settings.md): every problem at once, with its
   source and its remedy. */
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadSettings } from '../../src/settings/load-settings.ts';
import { loadProfileNow } from '../support/settings.ts';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import {
  inDirectory,
  onlyProblem,
  problemsIn,
  problemsOf,
  REQUIRED,
  SETTINGS,
  withYaml,
  type Sources,
} from './every-setting.ts';

test('explains what a missing domain and audience are, what to set and which sources were read', () => {
  for (const [files, states] of [
    [{}, ['not there', 'not there']],
    [{ '.env': '' }, ['there', 'not there']],
    [{ '.env': '', 'application.yml': '' }, ['there', 'there']],
    [{ '.env': 'IDP_DOMAIN=\n', 'application.yml': 'idp:\n  domain: ""\n  audience:\n' }, ['there', 'there']],
  ] as const) {
    inDirectory(files, (directory) => {
      const environment = { IDP_DOMAIN: '', IDP_AUDIENCE: '' };
      const [dotEnv, yaml] = ['.env', 'application.yml'].map((name) => join(directory, name));
      const places = `(environment, ${dotEnv} (${states[0]}), ${yaml} (${states[1]}))`;
      assert.deepEqual(
        problemsIn(() => loadProfileNow(environment, directory)),
        [
          `IDP_DOMAIN or idp.domain ${places}: the issuer base URL is required; set this to its host name`,
          `IDP_AUDIENCE or idp.audience ${places}: the audience is required; set this to the identifier of this API at the provider`,
        ],
      );
    });
  }
});

test('names the file in CONFIG_FILE among the sources of a missing setting', () => {
  const problem = onlyProblem({
    environment: { IDP_DOMAIN: 'idp.test', CONFIG_FILE: 'x.yml' },
    files: { 'x.yml': '' },
  });
  assert.match(
    problem,
    /^IDP_AUDIENCE or idp\.audience \(environment, \S+\.env \(not there\), \S+x\.yml \(there\)\): /,
  );
});

test('reports the source of an invalid value: environment, .env or YAML, with the line', () => {
  const secret = 'shorter-than-32-characters';
  const line = `IDP_DPOP_NONCE_SECRET=${secret}`;
  inDirectory(
    { '.env': `# x\n\n${line}\n`, 'application.yml': 'server:\n  port: x\nlog:\n  level: y\n' },
    (directory) => {
      const environment = { ...REQUIRED, ERROR_DETAIL: 'yes' };
      assert.deepEqual(
        problemsIn(() => loadProfileNow(environment, directory)),
        [
          `server.port (${directory}/application.yml, line 2): must be a whole number from 0 to 65535`,
          `IDP_DPOP_NONCE_SECRET (${directory}/.env, line 3): must have at least 32 characters`,
          'ERROR_DETAIL (environment): must be one of true, false',
          `log.level (${directory}/application.yml, line 4): must be one of silent, error, warn, info, debug`,
        ],
      );
    },
  );
});

test('reports every problem of every source at once', () => {
  const bad = Object.fromEntries(
    SETTINGS.flatMap(({ env, bad: fault }) => (env && fault ? [[env, fault[0]]] : [])),
  );
  const files = {
    '.env': 'no assignment\nIDP_DPOPMODE=x\nnor this\n',
    'application.yml': 'api:\n  x: 1\napplication:\n  name: 1\n',
  };
  const names = problemsOf({ environment: bad, files }).map((problem) =>
    problem.replace(/^\S+\/|[ :].*/g, ''),
  );
  const faulty = SETTINGS.filter(({ bad: fault }) => fault).map(({ env }) => env ?? '');
  assert.deepEqual(
    names.sort(),
    [...faulty, '.env,', '.env,', 'IDP_DPOPMODE', 'api.x', 'application.name'].sort(),
  );
});

test('reports only that a source cannot be read, and not that settings are missing', () => {
  const yaml = 'idp:\n  domain: idp.test\n\taudience: x\n';
  assert.match(onlyProblem({ files: { 'application.yml': yaml } }), /application\.yml, line 3: a tab/);
  assert.match(
    onlyProblem({ environment: { CONFIG_FILE: 'no.yml' } }),
    /no\.yml: cannot be read \(ENOENT\); make it readable, or correct the setting that points to it$/,
  );
});

test('refuses a placeholder in CONFIG_FILE, even if there is a file of this name', () => {
  const file = '${X}.yml';
  for (const files of [{}, { [file]: '' }]) {
    assert.match(
      onlyProblem({ environment: { CONFIG_FILE: file }, files }),
      /^CONFIG_FILE \(environment\): contains "\$\{", but nothing is substituted here; write the value$/,
    );
  }
});

test('reads the file in CONFIG_FILE from a directory whose name looks like a placeholder', () => {
  const directory = mkdtempSync(join(tmpdir(), '${x}'));
  writeFileSync(join(directory, 'c.yml'), 'server:\n  port: 4000\n');
  const { settings } = loadProfileNow({ ...REQUIRED, CONFIG_FILE: 'c.yml' }, directory);
  rmSync(directory, { recursive: true });
  assert.equal(settings.port, 4000);
});

for (const [what, dotEnv, line] of [
  ['a line that is no assignment', 'IDP_DOMAIN: idp.test', /\.env, line 1: is neither NAME=value/],
  ['a name that is set twice', 'HOST=a\nHOST=b', /^HOST \(\S+\.env, line 2\): is already set/],
] as const) {
  test(`reports missing settings together with ${what} in .env, since the rest of it is read`, () => {
    const [first = '', ...others] = problemsOf({ files: { '.env': dotEnv } });
    assert.match(first, line);
    assert.deepEqual(
      others.map((problem) => problem.replace(/ .*/, '')),
      ['IDP_DOMAIN', 'IDP_AUDIENCE'],
    );
  });
}

test('reports no setting as useless for lack of another that may be in a YAML file which does not parse', () => {
  const problems = problemsOf({
    environment: {
      RESOURCE_NAME: 'Orders',
      METRICS_PORT: '3001',
      CLIENT_CERT_FIELD: 'X-Cert',
      IDP_INTROSPECTION_URI: 'https://idp.test/introspect',
      IDP_TENANTS: 'acme',
    },
    files: { 'application.yml': 'resource:\n  url: https://api.test\n x' },
  });
  assert.deepEqual(
    problems.map((problem) => problem.replace(/^.*(?=application)|:.*/g, '')),
    ['application.yml, line 3'],
  );
});

test('reports the problems of every source when the YAML is invalid, and reads the lines around an invalid line of .env', () => {
  const problems = problemsOf({
    environment: { PORT: 'x' },
    files: { '.env': 'PROFILE=A\nx\nSCOPE_POLICY=true\nLOG_LEVEL=loud\n', 'application.yml': '- x' },
  });
  assert.deepEqual(
    problems.map((problem) => problem.replace(/\/\S+\//g, '')),
    [
      '.env, line 2: is neither NAME=value in visible characters, nor a comment, nor empty; correct it, and quote a #',
      'application.yml, line 1: a missing "key: value", a quote not closed on its line, or a list item out of place',
      'PORT (environment): must be a whole number from 0 to 65535',
      'LOG_LEVEL (.env, line 4): must be one of silent, error, warn, info, debug',
    ],
  );
});

for (const [what, sources, name] of [
  ['the environment', { environment: { ...REQUIRED, IDP_AUDIENCE: 'https://${HOST}/' } }, 'IDP_AUDIENCE'],
  ['.env', { environment: REQUIRED, files: { '.env': 'PUBLIC_URL="${URL}"' } }, 'PUBLIC_URL'],
  ['.env in single quotes', { environment: REQUIRED, files: { '.env': "HOST='${A}'" } }, 'HOST'],
  ['YAML', withYaml('server:\n  host: ${HOST:localhost}'), 'server.host'],
  ['a list in YAML', withYaml('idp:\n  requiredClaims:\n  - scp\n  - ${CLAIM}'), 'idp.requiredClaims'],
  ['the first of a list', withYaml("idp:\n  requiredClaims: ['${CLAIM}', scp]"), 'idp.requiredClaims'],
  ['a value that must be a number', { environment: { ...REQUIRED, PORT: '${PORT}' } }, 'PORT'],
  [
    'a list with commas',
    { environment: { ...REQUIRED, CORS_ALLOWED_METHODS: 'GET,${X}' } },
    'CORS_ALLOWED_METHODS',
  ],
  ['the name of an issuer', { environment: { ...REQUIRED, ISSUERS: 'b${X}' } }, 'ISSUERS'],
] as const satisfies readonly (readonly [string, Sources, string])[]) {
  test(`refuses a placeholder in ${what}, since placeholders are not substituted`, () => {
    const problem = onlyProblem(sources);
    assert.ok(problem.startsWith(`${name} (`), problem);
    assert.match(problem, /: contains "\$\{", but nothing is substituted here; write the value$/);
  });
}

test('accepts a dollar sign and braces that are not a placeholder', () => {
  const secret = '$0123456789{abcdefghijklmnopqrst}$uv';
  assert.deepEqual(problemsOf({ environment: { ...REQUIRED, IDP_DPOP_NONCE_SECRET: secret } }), []);
});

test('writes each problem on one line of printable ASCII, whatever the name of a key or a file', () => {
  const yaml = 'idp:\n  "a\\n\u00e9b": 1\n  "c\\r\\u0000\\u001b[0m": 2\n';
  const twice = withYaml('"a\\nb": 1\n"a\\nb": 2');
  for (const sources of [
    withYaml(yaml),
    twice,
    { environment: { ...REQUIRED, CONFIG_FILE: 'a\n\u2028b' } },
  ]) {
    for (const problem of problemsOf(sources)) assert.doesNotMatch(problem, /[^\x20-\x7e]/);
  }
  assert.match(problemsOf(withYaml(yaml))[0] ?? '', /^idp\.a\?\?b \(/);
});

test('rejects with a ConfigurationError whose message lists the problems', async () => {
  await assert.rejects(
    loadSettings({}, '/nonexistent'),
    (failure) =>
      failure instanceof ConfigurationError &&
      failure.name === 'ConfigurationError' &&
      failure.problems.length === 2 &&
      failure.message === failure.problems.join('\n'),
  );
});
