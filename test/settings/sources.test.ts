/* The files of settings (docs/settings.md): which, and what prevents reading them. */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import fs, { mkdirSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { loadProfileNow } from '../support/settings.ts';
import { processorMillis } from '../support/processor-time.ts';
import {
  inDirectory,
  load,
  onlyProblem,
  problemsIn,
  problemsOf,
  REQUIRED,
  withYaml,
} from './every-setting.ts';

test('reads the file that CONFIG_FILE names instead of application.yml, from the environment or .env', () => {
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
});

test('takes the name in CONFIG_FILE as it is written, blanks too', () => {
  const environment = { ...REQUIRED, CONFIG_FILE: ' x.yml' };
  assert.match(onlyProblem({ environment, files: { 'x.yml': '' } }), / x\.yml: cannot be read \(ENOENT\)/);
  assert.deepEqual(problemsOf({ environment, files: { ' x.yml': '' } }), []);
});

test('reads a CONFIG_FILE in another directory', () => {
  inDirectory({ 'x.yml': 'server:\n  port: 4' }, (elsewhere) => {
    const environment = { ...REQUIRED, CONFIG_FILE: join(elsewhere, 'x.yml') };
    assert.equal(load({ environment, files: { 'application.yml': 'server:\n  port: 1' } }).settings.port, 4);
  });
});

test('needs neither .env nor application.yml nor the directory itself', () => {
  assert.deepEqual(
    problemsIn(() => loadProfileNow(REQUIRED, '/nonexistent')),
    [],
  );
  assert.equal(load({ environment: REQUIRED }).settings.port, 3001);
});

for (const [what, name] of [
  ['environment', 'CONFIG_FILE (environment)'],
  ['.env', 'CONFIG_FILE (.env, line 1)'],
] as const) {
  test(`refuses a CONFIG_FILE (${what}) that does not exist`, () => {
    const set = what === '.env' ? { files: { '.env': 'CONFIG_FILE=no.yml' } } : {};
    const environment = what === '.env' ? REQUIRED : { ...REQUIRED, CONFIG_FILE: 'no.yml' };
    const problem = onlyProblem({ environment, ...set });
    assert.equal(
      problem.replace(/\/\S+\//g, ''),
      `${name}: no.yml: cannot be read (ENOENT); make it readable, or correct the setting that points to it`,
    );
  });
}

/** How to make what is not a regular file. A pipe or a terminal would block the start for ever. */
const IRREGULAR: Readonly<Record<string, (path: string) => void>> = {
  'a directory': (path) => mkdirSync(path),
  'a pipe': (path) => execFileSync('mkfifo', [path]),
  'a device': (path) => symlinkSync('/dev/zero', path),
  'a link to a directory': (path) => symlinkSync('/tmp', path),
};

for (const [what, make] of Object.entries(IRREGULAR)) {
  for (const name of ['.env', 'application.yml', 'x.yml']) {
    test(`refuses ${what} as ${name} without reading it`, () => {
      inDirectory({}, (directory) => {
        make(join(directory, name));
        const environment = name === 'x.yml' ? { ...REQUIRED, CONFIG_FILE: name } : REQUIRED;
        const label = name === 'x.yml' ? 'CONFIG_FILE (environment): ' : '';
        assert.deepEqual(
          problemsIn(() => loadProfileNow(environment, directory)),
          [`${label}${join(directory, name)}: is not a regular file; put one there or remove it`],
        );
      });
    });
  }
}

test('does not report settings as missing that may be in an unreadable .env, even with an application.yml', () => {
  inDirectory({ 'application.yml': 'server:\n  port: 5' }, (directory) => {
    mkdirSync(join(directory, '.env'));
    assert.deepEqual(
      problemsIn(() => loadProfileNow({}, directory)),
      [`${directory}/.env: is not a regular file; put one there or remove it`],
    );
  });
});

test('suggests the spelling of a setting, even beside a file that cannot be read', () => {
  inDirectory({ '.env': 'TRUSTPROXY=true' }, (directory) => {
    mkdirSync(join(directory, 'application.yml'));
    const [, misspelt] = problemsIn(() => loadProfileNow(REQUIRED, directory));
    const problem = 'is not a setting; write TRUST_PROXY or remove it';
    assert.equal(misspelt, `TRUSTPROXY (${directory}/.env, line 1): ${problem}`);
  });
});

test('reads a link to a regular file', () => {
  inDirectory({ 'x.yml': 'server:\n  port: 5' }, (directory) => {
    symlinkSync('x.yml', join(directory, 'application.yml'));
    assert.equal(loadProfileNow(REQUIRED, directory).settings.port, 5);
  });
});

for (const name of ['.env', 'application.yml']) {
  test(`refuses a broken link as ${name}`, () => {
    inDirectory({}, (directory) => {
      symlinkSync('nowhere', join(directory, name));
      assert.deepEqual(
        problemsIn(() => loadProfileNow(REQUIRED, directory)),
        [
          `${directory}/${name}: cannot be read (ENOENT); make it readable, or correct the setting that points to it`,
        ],
      );
    });
  });
}

test('refuses an application.yaml, which is not read, whatever else is there [H2]', () => {
  const yaml = 'idp:\n  dpopMode: REQUIRED';
  for (const files of [
    { 'application.yaml': yaml },
    { 'application.yaml': '', 'application.yml': yaml, '.env': 'PORT=1' },
  ]) {
    const problem = onlyProblem({ environment: REQUIRED, files });
    assert.match(
      problem,
      /\/application\.yaml: is not read; rename it to application\.yml, or set CONFIG_FILE to it$/,
    );
  }
});

test('ignores an application.yaml when CONFIG_FILE is set', () => {
  const files = { 'application.yaml': 'server:\n  port: 7', 'x.yml': '' };

  const portWith = (name: string) =>
    load({ environment: { ...REQUIRED, CONFIG_FILE: name }, files }).settings.port;

  assert.deepEqual([portWith('application.yaml'), portWith('x.yml')], [7, 3001]);
});

test('says why a file cannot be read', () => {
  inDirectory({}, (directory) => {
    symlinkSync('application.yml', join(directory, 'application.yml'));
    assert.deepEqual(
      problemsIn(() => loadProfileNow(REQUIRED, directory)),
      [
        `${directory}/application.yml: cannot be read (ELOOP); make it readable, or correct the setting that points to it`,
      ],
    );
  });

  assert.match(
    onlyProblem({ environment: { ...REQUIRED, CONFIG_FILE: 'a\0b' } }),
    /cannot be read \(ERR_INVALID_ARG_VALUE\); make it readable/,
  );
});

type Reader = 'lstatSync' | 'readFileSync' | 'existsSync';

/**
 * Lets functions of the file system throw this while `action` runs, and no longer: Node loads the next file of
 * tests with them.
 */
function whileThrowing(names: readonly Reader[], error: Error, action: () => void) {
  for (const name of names) {
    mock.method(fs, name, () => {
      throw error;
    });
  }
  syncBuiltinESMExports();
  try {
    action();
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
}

const failureOf = (code: string) => Object.assign(new Error(code), { code });

for (const name of ['.env', 'application.yml']) {
  test(`refuses ${name} when its mode forbids reading, since it may hold a safeguard [H2]`, () => {
    inDirectory({ [name]: '' }, (directory) => {
      whileThrowing(['readFileSync'], failureOf('EACCES'), () =>
        assert.deepEqual(
          problemsIn(() => loadProfileNow(REQUIRED, directory)),
          [
            `${directory}/${name}: cannot be read (EACCES); make it readable, or correct the setting that points to it`,
          ],
        ),
      );
    });
  });
}

test('ignores files that the permission model hides, and names them as not granted when a setting is missing', () => {
  whileThrowing(['lstatSync', 'existsSync'], failureOf('ERR_ACCESS_DENIED'), () => {
    assert.deepEqual(
      problemsIn(() => loadProfileNow(REQUIRED, '/srv')),
      [],
    );
    const [problem] = problemsIn(() => loadProfileNow({ IDP_AUDIENCE: 'x' }, '/srv'));
    assert.ok(
      problem?.startsWith(
        'IDP_DOMAIN or idp.domain (environment, /srv/.env (not granted), /srv/application.yml (not granted)): ',
      ),
      problem,
    );
  });
});

test('refuses a CONFIG_FILE that the permission model hides', () => {
  whileThrowing(['lstatSync'], failureOf('ERR_ACCESS_DENIED'), () =>
    assert.deepEqual(
      problemsIn(() => loadProfileNow({ ...REQUIRED, CONFIG_FILE: 'x.yml' }, '/srv')),
      [
        'CONFIG_FILE (environment): /srv/x.yml: cannot be read (ERR_ACCESS_DENIED); make it readable, or correct the setting that points to it',
      ],
    ),
  );
});

test('rethrows an error that does not come from the file system, instead of reporting a problem', () => {
  const bug = new TypeError('x is not a function');
  whileThrowing(['lstatSync'], bug, () =>
    assert.throws(
      () => loadProfileNow(REQUIRED, '/nonexistent'),
      (failure) => failure === bug,
    ),
  );
});

test('takes little time to recognise a name that an orchestrator has set, however long it is [C10]', () => {
  const environment = { ...REQUIRED, [`${'_SERVICE_PORT_'.repeat(8_000)}-`]: '1' };
  const millis = processorMillis(() => load({ environment }));
  assert.ok(millis < 1_000, `${millis} ms`);
});

test('refuses files that are not UTF-8', () => {
  for (const name of ['.env', 'application.yml']) {
    const files = { [name]: Buffer.from('LOG_LEVEL=\xff', 'latin1') };
    assert.ok(onlyProblem({ environment: REQUIRED, files }).endsWith(`/${name}: is not UTF-8; convert it`));
  }
});

test('reads no file of more than a million bytes', () => {
  const long = `# ${'x'.repeat(999_998)}`;
  assert.deepEqual(problemsOf(withYaml(long)), []);
  for (const name of ['.env', 'application.yml']) {
    const problem = onlyProblem({ environment: REQUIRED, files: { [name]: `${long}x` } });
    assert.ok(problem.endsWith(`/${name}: is longer than a million bytes; shorten it`), problem);
  }
});

test('reads a quoted string that nearly fills a file of the maximum size', () => {
  const host = 'x'.repeat(999_900);
  assert.equal(load(withYaml(`server:\n  host: "${host}"`)).settings.host, host);
});

test('ignores one byte-order mark at the start of a file', () => {
  const files = { '.env': '\uFEFFPORT=81\n', 'application.yml': '\uFEFFserver:\n  host: x\n' };
  const { port, host } = load({ environment: REQUIRED, files }).settings;
  assert.deepEqual([port, host], [81, 'x']);
  assert.match(onlyProblem(withYaml('\uFEFF\uFEFFserver:\n')), /line 1: .*character/);
});

test('recognises a variable of an orchestrator by its name, whatever the values of other variables', () => {
  const environment = {
    ...REQUIRED,
    IDP_DPOP_NONCE_SECRET: `${'s'.repeat(40)}_PORT_1_a=`,
    PUBLIC_URL: 'https://api.test/a_PORT=tcp:b',
  };
  const { dpopNonceSecret, publicUrl } = load({ environment }).settings;
  assert.deepEqual([dpopNonceSecret, publicUrl], [environment.IDP_DPOP_NONCE_SECRET, environment.PUBLIC_URL]);
});
