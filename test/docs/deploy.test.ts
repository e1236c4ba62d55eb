/* The manifests and the unit that docs/deploy.md links to load, and fit the service. So do the parts of
   docs/proxies.md and docs/logs-and-metrics.md for Kubernetes. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseYaml } from '../../src/settings/yaml.ts';
import { load } from '../settings/every-setting.ts';
import { withReason } from '../support/skipped.ts';
import { read, samplesUnder, sampleUnder } from './pages.ts';

const PAGE = 'docs/deploy.md';
const REPORTS = 'docs/logs-and-metrics.md';

const manifests = read('docs/kubernetes.yaml');
const monitor = sampleUnder(REPORTS, 'Metrics in Kubernetes', 'yaml');
/** The samples before it are parts of manifests. */
const middleware = samplesUnder('docs/proxies.md', 'Kubernetes', 'yaml').at(-1) ?? '';
const unit = read('docs/gatehouse.service');

const missing = (program: string) =>
  spawnSync(program, ['--help']).error === undefined ? undefined : `${program} is not installed`;

/** Runs a program on files in a folder of its own; it must succeed. Returns its output. */
function run(program: string, words: readonly string[], files: Readonly<Record<string, string>>): string {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-deploy-'));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
    const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
    return stdout;
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Replaces what stands in angle brackets, which readers fill in. */
const filled = (text: string) => text.replaceAll(/<[A-Z ]+>/g, 'a1');

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

test('the settings of docs/kubernetes.yaml load without a problem or a warning', () => {
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

const noKubectl = missing('kubectl');

test(
  withReason('docs/kubernetes.yaml and the parts of other pages are valid YAML for kubectl', noKubectl),
  { skip: noKubectl !== undefined },
  () => {
    const files = {
      'manifests.yaml': filled([manifests, monitor, middleware].join('---\n')),
      'kustomization.yaml': 'resources: [manifests.yaml]\n',
    };
    const kinds = run('kubectl', ['kustomize', '.'], files).match(/^kind: \w+$/gm) ?? [];
    assert.deepEqual([...kinds].sort(), [
      'kind: ConfigMap',
      'kind: Deployment',
      'kind: Middleware',
      'kind: NetworkPolicy',
      'kind: PodDisruptionBudget',
      'kind: Service',
      'kind: ServiceMonitor',
    ]);
  },
);

test('the ServiceMonitor of docs/logs-and-metrics.md selects the Service and a port that it has', () => {
  const service = /kind: Service\n[^]*?---/.exec(manifests)?.[0] ?? '';
  const [, label = ''] = /matchLabels: (\{ [^}]+ \})/.exec(monitor) ?? [];
  assert.ok(service.includes(`labels: ${label}`), label);
  const [, port = ''] = /port: (\w+)/.exec(monitor) ?? [];
  assert.ok(service.includes(`name: ${port}, port: ${numberAfter(manifests, 'METRICS_PORT')}`), port);
});

test('the NetworkPolicy of docs/kubernetes.yaml lets the provider be reached by IPv4 and IPv6, and DNS by UDP and TCP', () => {
  const egress = manifests.slice(manifests.indexOf('  egress:'));
  for (const block of [
    'cidr: 0.0.0.0/0',
    'cidr: ::/0',
    'protocol: UDP, port: 53',
    'protocol: TCP, port: 53',
  ]) {
    assert.ok(egress.includes(block), block);
  }
  // Addresses of clouds' metadata, link-local and unique local ones stay out of reach.
  for (const block of ['169.254.0.0/16', '10.0.0.0/8', 'fc00::/7', 'fe80::/10']) {
    assert.match(egress, new RegExp(`except: .*${block.replaceAll('.', '\\.')}`), block);
  }
});

const noPromtool = missing('promtool');

test(
  withReason(
    'Prometheus accepts the scrape configuration of docs/logs-and-metrics.md with the alerts',
    noPromtool,
  ),
  { skip: noPromtool !== undefined },
  () => {
    const config = filled(sampleUnder(REPORTS, 'Scraping', 'yaml'));
    run('promtool', ['check', 'config', 'prometheus.yml'], {
      'prometheus.yml': config,
      'rules.yml': read('docs/rules.yml'),
    });
    assert.ok(config.includes(`:${numberAfter(manifests, 'METRICS_PORT')}`));
  },
);

test('docs/kubernetes.yaml and docs/gatehouse.service give the service time to drain', () => {
  const { SHUTDOWN_DELAY_SECONDS = '' } = environmentOfManifests();
  for (const seconds of [
    numberAfter(manifests, 'terminationGracePeriodSeconds'),
    numberAfter(unit, 'TimeoutStopSec'),
  ]) {
    assert.ok(seconds > Number(SHUTDOWN_DELAY_SECONDS) + 10);
  }
});

test('docs/kubernetes.yaml runs the image as its own user', () => {
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
  test(`docs/deploy.md quotes ${file}`, () => {
    const has = new Set(
      read(`test/example/${file}`)
        .split('\n')
        .map((line) => line.trim()),
    );
    const shown = sampleUnder(PAGE, 'nginx and HAProxy', language)
      .split('\n')
      .map((line) => line.trim());
    assert.ok(shown.length > 4);
    assert.deepEqual(
      shown.filter((line) => line !== '' && !has.has(line)),
      [],
    );
  });
}

test('docs/gatehouse.service does not restart after a configuration problem', () => {
  assert.match(unit, /^ExecStart=\/usr\/bin\/node .*\/dist\/server\.js$/m);
  assert.match(unit, /^RestartPreventExitStatus=1$/m);
});

test('docs/gatehouse.service says that a failed onStart has the exit code of a configuration problem', () => {
  assert.match(unit, /\bA failed onStart exits with 1, too: [^.]*\.\nRestartPreventExitStatus=1$/m);
});

test('docs/proxies.md asks the Service of docs/kubernetes.yaml at a port that it has', () => {
  const [, service = ''] = /kind: Service\n([^]*?)\n---/.exec(manifests) ?? [];
  const ports = [...service.matchAll(/ port: (\d+)/g)].map(([, port]) => port);
  const urls = read('docs/proxies.md').match(/http:\/\/gatehouse\.\S+/g) ?? [];
  assert.equal(urls.length, 2);
  for (const url of urls) assert.ok(ports.includes(new URL(filled(url)).port || '80'), url);
});

test('docs/workloads.md says what docs/kubernetes.yaml keeps from gatehouse', () => {
  assert.match(manifests, /automountServiceAccountToken: false/);
  assert.match(read('docs/workloads.md'), /remove\s+`automountServiceAccountToken: false`/);
});

test('the health check of docs/deploy.md for Compose fails unless /healthz returns 200', async (t) => {
  const sample = sampleUnder(PAGE, 'Container', 'yaml');
  const [, words = '', script = ''] = /test: \[(CMD, node, -e), '(.*)'\]/.exec(sample) ?? [];
  assert.equal(words, 'CMD, node, -e');
  let status = 200;
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/healthz' ? status : 404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;

  const exitCode = async () => {
    const child = spawn(process.execPath, ['-e', script.replace(':3001', `:${port}`)], { stdio: 'ignore' });
    return (await once(child, 'exit'))[0];
  };

  assert.equal(await exitCode(), 0);
  status = 503;
  assert.equal(await exitCode(), 1);
  server.close();
  server.closeAllConnections();
  assert.equal(await exitCode(), 1);
});
