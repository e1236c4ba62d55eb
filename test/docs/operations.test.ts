/* The manifests and the unit of docs/operations.md load, and fit the service. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from '../../src/settings/yaml.ts';
import { load } from '../settings/every-setting.ts';
import { read } from './pages.ts';

const PAGE = 'docs/operations.md';

/** The first sample in a language: the manifests, and the unit. */
function sampleOf(language: string): string {
  const sample = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(read(PAGE));
  return sample?.[1] ?? assert.fail(language);
}

const manifests = sampleOf('yaml');
const unit = sampleOf('ini');

/** The environment of the manifests, with the secret that their comment creates. */
function environmentOfManifests(): Record<string, string> {
  const [map = ''] = manifests.split('---\n');
  const data = parseYaml(map, PAGE).filter(({ name }) => name.startsWith('data.'));
  const literals = [...manifests.matchAll(/--from-literal=(\w+)=(.+?)(?: \\)?$/gm)].map(
    ([, name = '', value = '']) => [
      name,
      value.replace(/\$\(openssl rand -hex 32\)/, 'a1'.repeat(32)).replace('<PASSWORD>', 'secret'),
    ],
  );
  const values = data.map(({ name, value }) => [name.slice('data.'.length), value]);
  return Object.fromEntries([...values, ...literals]);
}

/** The first number after a word. */
const numberAfter = (text: string, word: string) =>
  Number(new RegExp(`${word}\\D{0,3}(\\d+)`).exec(text)?.[1] ?? assert.fail(word));

test('the settings in the manifests of docs/operations.md load without a problem or a warning', () => {
  const { settings, warnings } = load({ environment: environmentOfManifests() });
  assert.deepEqual(warnings, []);
  assert.match(settings.dpopReplayStore ?? '', /^rediss:/);
  assert.deepEqual(
    [settings.port, settings.metricsPort],
    [
      numberAfter(manifests, 'name: http, containerPort'),
      numberAfter(manifests, 'name: metrics, containerPort'),
    ],
  );
  const policy = manifests.slice(manifests.indexOf('kind: NetworkPolicy'));
  for (const port of [settings.port, settings.metricsPort, 53, 443, 6379]) {
    assert.ok(policy.includes(`port: ${port} }`), String(port));
  }
});

test('the manifests and the unit of docs/operations.md give the service time to drain', () => {
  const { SHUTDOWN_DELAY_SECONDS = '' } = environmentOfManifests();
  for (const seconds of [
    numberAfter(manifests, 'terminationGracePeriodSeconds'),
    numberAfter(unit, 'TimeoutStopSec'),
  ]) {
    assert.ok(seconds > Number(SHUTDOWN_DELAY_SECONDS) + 10);
  }
});

test('the manifests of docs/operations.md run the image as its own user', () => {
  const user = /^USER (\d+):(\d+)$/m.exec(read('Dockerfile')) ?? [];
  assert.deepEqual(
    [numberAfter(manifests, 'runAsUser'), numberAfter(manifests, 'runAsGroup')],
    user.slice(1).map(Number),
  );
  assert.match(manifests, /readOnlyRootFilesystem: true/);
});

for (const [language, file] of [
  ['nginx', 'nginx.conf'],
  ['haproxy', 'haproxy.cfg'],
] as const) {
  test(`docs/operations.md quotes ${file}`, () => {
    const has = new Set(
      read(`test/example/${file}`)
        .split('\n')
        .map((line) => line.trim()),
    );
    const shown = sampleOf(language)
      .split('\n')
      .map((line) => line.trim());
    assert.ok(shown.length > 4);
    assert.deepEqual(
      shown.filter((line) => line !== '' && !has.has(line)),
      [],
    );
  });
}

test('the unit of docs/operations.md does not restart after a configuration problem', () => {
  assert.match(unit, /^ExecStart=\/usr\/bin\/node .*\/dist\/server\.js$/m);
  assert.match(unit, /^RestartPreventExitStatus=1$/m);
});
