/* What operators see of settings at the start: standard error, exit code and log (docs/settings.md,
   docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProcess, type OutOfProcess } from '../support/process.ts';

/**
 * Starts with invalid settings. Returns the lines on standard error of a process that exited with 1 without
 * listening.
 */
async function refusalOf(given: OutOfProcess): Promise<string[]> {
  const service = await startProcess(given);
  try {
    assert.equal(await service.exited, 1);
    assert.deepEqual([service.port, service.logs], [0, []]);
    const lines = service.errors().split('\n');
    assert.equal(lines.pop(), '');
    return lines;
  } finally {
    await service.stop();
  }
}

test('exits with 1 when the domain and the audience are missing, and names both', async () => {
  const [domain = '', audience = '', ...others] = await refusalOf({});
  assert.match(domain, /^configuration: IDP_DOMAIN .*issuer base URL.*; set this to its host name$/);
  assert.match(
    audience,
    /^configuration: IDP_AUDIENCE .*audience.*; set this to the identifier of this API at the provider$/,
  );
  assert.deepEqual(others, []);
});

test('reports every problem at once, one line each, without the values', async () => {
  const secret = 'my-secret-of-less-than-32-chars';
  const lines = await refusalOf({
    environment: {
      IDP_DOMAIN: `https://user:${secret}@idp.test`,
      PORT: '65536',
      IDP_DPOP_NONCE_SECRET: secret,
      SCOPE_POLICY: 'true',
      CORS_ALLOWED_ORIGINS: '*',
    },
    files: {
      '.env': `LOG_LEVEL=${secret}\n`,
      'application.yml': `idp:\n  audience: 1\n  secret: ${secret}\n`,
    },
  });
  const named = [
    'idp.secret',
    'IDP_DOMAIN',
    'idp.audience',
    'PORT',
    'IDP_DPOP_NONCE_SECRET',
    'CORS_ALLOWED_ORIGINS',
    'LOG_LEVEL',
    'SCOPE_POLICY',
  ];
  for (const name of named) {
    assert.equal(lines.filter((line) => line.startsWith(`configuration: ${name} (`)).length, 1, name);
  }
  assert.equal(lines.length, named.length, lines.join('\n'));
  assert.ok(!lines.some((line) => line.includes(secret)));
});

test('exits with 1 when CONFIG_FILE names no file', async () => {
  const lines = await refusalOf({
    environment: { IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'x', CONFIG_FILE: 'missing.yml' },
  });
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    /^configuration: CONFIG_FILE \(environment\): \/\S+\/missing\.yml: cannot be read \(ENOENT\); make it readable, or correct the setting that points to it$/,
  );
});

test('starts from .env and application.yml of the working directory and warns of unknown settings', async () => {
  const service = await startProcess({
    environment: { PORT: '', HOST: '127.0.0.1', IDP_DPOPMODE: 'REQUIRED', IDP_SERVICE_HOST: '10.0.0.1' },
    files: {
      '.env': 'IDP_DOMAIN=localhost:1\nPORT=0\n',
      'application.yml':
        'idp:\n  audience: urn:x\nserver:\n  port: 1\nspring:\n  application:\n    name: x\n  main: 1\nother:\n- a\n',
    },
  });
  try {
    const listening = await service.logged('listening');
    assert.deepEqual(
      [listening.port, listening.address, listening.profile],
      [service.port, '127.0.0.1', 'B'],
    );
    const files = listening.files as string[];
    assert.deepEqual(
      files.map((file) => basename(file)),
      ['.env', 'application.yml'],
    );
    const warnings = service.logs
      .filter(({ message }) => message === 'unknown setting ignored')
      .map(({ level, setting }) => [level, setting]);
    assert.deepEqual(warnings, [
      ['warn', 'IDP_DPOPMODE (environment): is not a setting; write IDP_DPOP_MODE or remove it'],
      ['warn', `spring.main (${files[1]}, line 8): is not a setting; correct or remove it`],
      ['warn', `other (${files[1]}, line 9): is not a setting; correct or remove it`],
    ]);
    assert.equal((await service.ask('/api/public')).status, 200);
  } finally {
    await service.stop();
  }
});

test('exits with 1 when the working directory is gone, and reports other known problems', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  const words = [
    '-c',
    'cd "$0" && rmdir "$0" && exec "$@"',
    directory,
    process.execPath,
    fileURLToPath(new URL('../../dist/server.js', import.meta.url)),
    '--chekc',
  ];
  const env = { PATH: process.env.PATH ?? '', IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'x' };
  const { status, stdout, stderr } = spawnSync('sh', words, { encoding: 'utf8', env });
  const problems = [
    'configuration: arguments: must be none, or one of --check, --probe, --help and --version',
    'configuration: working directory: is gone; start in another',
    '',
  ];
  assert.deepEqual([status, stdout, stderr], [1, '', problems.join('\n')]);
});
