/* `.env.example` says what the settings are: every name, its key, and values that load. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadSettings } from '../../src/settings/load.ts';
import { load, SETTINGS } from './every-setting.ts';

const EXAMPLE = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');

/** Every assignment with the comment above it. */
const assignments = [...EXAMPLE.matchAll(/((?:^#.*\n)+?)?^(# )?([A-Z_]+)=(.*)$/gm)].map(
  ([, comment = '', hash = '', name = '', value = '']) => ({ comment, isOff: hash !== '', name, value }),
);

/** The environment names that src asks for. */
function knownNames(): Set<string> {
  const asked = new Set<string>();
  const given: Record<string, string> = { IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'x' };
  const environment = new Proxy(given, {
    get: (target, name) => {
      asked.add(String(name));
      return target[String(name)];
    },
  });
  loadSettings(environment, '/nonexistent');
  // A setting without an environment name may be asked for by none.
  asked.delete('');
  return asked;
}

test('.env.example names exactly the settings that are read, each once', () => {
  assert.deepEqual(assignments.map(({ name }) => name).sort(), [...knownNames()].sort());
});

test('the settings that are read are those of the contract [contract §2]', () => {
  assert.deepEqual(
    [...knownNames()].sort(),
    ['CONFIG_FILE', ...SETTINGS.flatMap(({ env }) => env ?? [])].sort(),
  );
});

test('.env.example comments out all but what is required', () => {
  assert.deepEqual(
    assignments.filter(({ isOff }) => !isOff).map(({ name }) => name),
    ['IDP_DOMAIN', 'IDP_AUDIENCE'],
  );
});

for (const { name, comment } of assignments) {
  test(`.env.example gives ${name} its key in application.yml, its meaning and its default`, () => {
    const yaml = SETTINGS.find(({ env }) => env === name)?.yaml;
    assert.equal(/^# \[(.*?)\] /.exec(comment)?.[1], yaml);
    assert.match(comment, /Default: .+\.\n$/);
  });
}

test('.env.example names the key of the application name and its default', () => {
  assert.match(
    EXAMPLE,
    /application\.name \(or spring\.application\.name\) in application\.yml, default gatehouse\./,
  );
});

test('.env.example loads as it stands', () => {
  const { settings, unknown } = load({ files: { '.env': EXAMPLE } });
  assert.deepEqual(
    [settings.domain, settings.audience, unknown],
    ['your-tenant.example.com', 'https://api.example.com', []],
  );
});

const uncommented = EXAMPLE.replace(/^# (?=[A-Z_]+=)/gm, '');

test('.env.example loads with everything in it turned on', () => {
  const { settings } = load({ files: { '.env': uncommented, 'application.yml': '' } });
  assert.equal(settings.host, '127.0.0.1');
  assert.deepEqual(settings.corsAllowedOrigins, ['https://app.example.com', 'https://admin.example.com']);
});

test('.env.example shows the default of every setting that has one', () => {
  const withDefault = assignments.filter(
    ({ comment, name }) => !/Default: none/.test(comment) || name.startsWith('IDP_DOMAIN'),
  );
  const shown = withDefault.map(({ name, value }) => `${name}=${value}\n`).join('');
  const audience = 'IDP_AUDIENCE=https://api.example.com\n';
  const files = { '.env': audience + shown, 'application.yml': '' };
  assert.deepEqual(load({ files }).settings, load({ files: { '.env': EXAMPLE } }).settings);
});
