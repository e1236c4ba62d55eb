/* The sources of settings: application.yml, .env, CONFIG_FILE, and what stands in them that is not known (contract §2). */
import { strict as assert } from 'node:assert';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigurationError, loadSettings } from '../../src/settings/load.ts';
import { load, onlyProblem, problemsOf, REQUIRED, withYaml } from './every-setting.ts';

for (const section of ['idp', 'api', 'cors', 'server', 'log']) {
  for (const [what, yaml, path, line] of [
    ['an unknown key', `# x\n${section}:\n  nonsense: secret-value`, `${section}.nonsense`, 3],
    ['a nested key', `${section}:\n  x:\n    y: 1`, `${section}.x.y`, 3],
    ['a value in place of its keys', `${section}: secret-value`, section, 1],
    ['a list in place of its keys', `${section}: [a]`, section, 1],
    ['an unknown key without a value', `${section}:\n  x:`, `${section}.x`, 2],
  ] as const) {
    test(`refuses ${what} in the section ${section} and names its line [contract §2]`, () => {
      const problem = onlyProblem(withYaml(yaml));
      assert.ok(problem.startsWith(`${path}: line ${line}: is not a setting`), problem);
      assert.ok(!problem.includes('secret-value'));
    });
  }
  test(`takes the section ${section} without any key`, () =>
    assert.deepEqual(load(withYaml(`${section}:\n`)).unknown, []));
}

test('refuses the misspelt name of a safeguard [contract §2]', () => {
  assert.match(
    onlyProblem(withYaml('idp:\n  dpopmode: REQUIRED')),
    /^idp\.dpopmode: line 2: is not a setting; correct or remove it$/,
  );
  assert.match(onlyProblem(withYaml('idp:\n  domain:\n    x: idp.test')), /^idp\.domain\.x: /);
});

test('gives unknown settings elsewhere for a warning [contract §2]', () => {
  const yaml =
    'IDP:\n  x: 1\nspring:\n  main: 2\napplication:\n  title: 3\nidpx: [a]\nconstructor: 4\n__proto__: 5';
  const { unknown } = load(withYaml(yaml));
  assert.deepEqual(unknown, [
    'IDP.x',
    'spring.main',
    'application.title',
    'idpx',
    'constructor',
    '__proto__',
  ]);
});

test('reads the file that CONFIG_FILE names instead of application.yml, from the environment or .env [contract §2]', () => {
  const files = {
    'application.yml': 'server:\n  port: 1',
    'other.yaml': 'server:\n  port: 2',
    'third.yaml': 'server:\n  port: 3',
  };
  const portOf = (environment: Record<string, string>, dotEnv = '') =>
    load({ environment: { ...REQUIRED, ...environment }, files: { ...files, '.env': dotEnv } }).settings.port;
  assert.equal(portOf({}), 1);
  assert.equal(portOf({ CONFIG_FILE: 'other.yaml' }), 2);
  assert.equal(portOf({}, 'CONFIG_FILE=./third.yaml'), 3);
  assert.equal(portOf({ CONFIG_FILE: 'other.yaml' }, 'CONFIG_FILE=third.yaml'), 2);
  assert.equal(portOf({ CONFIG_FILE: '' }, 'CONFIG_FILE=third.yaml'), 3);
  assert.equal(portOf({ CONFIG_FILE: '' }, 'CONFIG_FILE='), 1);
  assert.deepEqual(
    problemsOf({ environment: { ...REQUIRED, CONFIG_FILE: '' }, files: { '.env': 'CONFIG_FILE=' } }),
    [],
  );
});

test('reads a CONFIG_FILE elsewhere', () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  writeFileSync(join(elsewhere, 'x.yml'), 'server:\n  port: 4');
  const environment = { ...REQUIRED, CONFIG_FILE: join(elsewhere, 'x.yml') };
  assert.equal(load({ environment, files: { 'application.yml': 'server:\n  port: 1' } }).settings.port, 4);
  rmSync(elsewhere, { recursive: true });
});

test('refuses a CONFIG_FILE that cannot be read [contract §2]', () => {
  for (const [file, code] of [
    ['missing.yml', 'ENOENT'],
    ['.', 'EISDIR'],
  ] as const) {
    const problem = onlyProblem({ environment: { ...REQUIRED, CONFIG_FILE: file } });
    assert.ok(problem.startsWith('CONFIG_FILE: ') && problem.includes(code), problem);
  }
  assert.match(
    onlyProblem({ environment: REQUIRED, files: { '.env': 'CONFIG_FILE=missing.yml' } }),
    /^CONFIG_FILE: .*missing\.yml: .*ENOENT/,
  );
});

test('does without .env and application.yml, but not when they cannot be read [contract §2]', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  assert.equal(loadSettings(REQUIRED, directory).settings.port, 3001);
  mkdirSync(join(directory, '.env'));
  mkdirSync(join(directory, 'application.yml'));
  const files = ['.env', 'application.yml'].map((name) => join(directory, name));
  assert.throws(
    () => loadSettings(REQUIRED, directory),
    (failure) => {
      assert.ok(failure instanceof ConfigurationError);
      assert.equal(failure.message, failure.problems.join('\n'));
      assert.deepEqual(
        failure.problems.map((problem) => problem.split(': ')[0]),
        files,
      );
      for (const problem of failure.problems) assert.match(problem, /\bEISDIR\b/);
      return true;
    },
  );
  rmSync(directory, { recursive: true });
});

test('refuses files that are not UTF-8', () => {
  for (const name of ['.env', 'application.yml']) {
    assert.ok(
      onlyProblem({
        environment: REQUIRED,
        files: { [name]: Buffer.from('LOG_LEVEL=\xff', 'latin1') },
      }).endsWith(`${name}: is not UTF-8`),
    );
  }
});

test('names the file and the line of a fault in YAML [contract §2]', () => {
  assert.match(onlyProblem(withYaml('server:\n\tport: 1')), /application\.yml: line 2: a tab/);
  assert.match(
    onlyProblem({ environment: { ...REQUIRED, CONFIG_FILE: 'x.yml' }, files: { 'x.yml': '- a' } }),
    /x\.yml: line 1: /,
  );
});

test('reads .env as Node does, a byte-order mark aside [contract §2]', () => {
  const dotEnv = '\uFEFFPORT=81 # port\nexport LOG_LEVEL="warn"\nIDP_ORG_ID=\'org #1\'\r\n';
  const { port, logLevel, orgId } = load({ environment: REQUIRED, files: { '.env': dotEnv } }).settings;
  assert.deepEqual({ port, logLevel, orgId }, { port: 81, logLevel: 'warn', orgId: 'org #1' });
});

test('leaves a byte-order mark inside .env as Node does [contract §2]', () => {
  assert.equal(
    load({ environment: REQUIRED, files: { '.env': 'IDP_ORG_ID=a\uFEFFb' } }).settings.orgId,
    'a\uFEFFb',
  );
});

test('writes each problem on one line, whatever a key or a file is called [contract §2]', () => {
  const yaml = 'idp:\n  "a\\nb": 1\n  "c\\r\\0\\x1b[0m": 2\n';
  const twice = withYaml('"a\\nb": 1\n"a\\nb": 2');
  for (const sources of [withYaml(yaml), twice, { environment: { ...REQUIRED, CONFIG_FILE: 'a\nb' } }]) {
    for (const problem of problemsOf(sources))
      assert.doesNotMatch(problem, /[\x00-\x1f\x7f-\x9f\u2028\u2029]/);
  }
  assert.equal(problemsOf(withYaml(yaml)).length, 2);
});
