/* The alerts of docs/rules.yml, tested by Prometheus's promtool on the metrics of the service. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { authenticated, createService, get, open } from '../../src/gatehouse.ts';
import { createMetrics } from '../../src/metrics.ts';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { makeIssuer } from '../support/issuer.ts';
import { ask } from '../support/client.ts';
import { readExposition } from '../support/exposition.ts';
import { withReason } from '../support/skipped.ts';
import { codeIn, read, tableUnder } from './pages.ts';

const RULES = fileURLToPath(new URL('../../docs/rules.yml', import.meta.url));

const missing =
  spawnSync('promtool', ['--version']).error === undefined ? undefined : 'promtool is not installed';

const skip = missing !== undefined;

const named = (name: string) => withReason(name, missing);

type Samples = ReadonlyMap<string, number>;

/** The same sample for a number of scrapes, 15 s apart, in promtool's notation. */
const held = (value: number, looks: number) => `${value.toFixed(6)}+0x${looks - 1}`;

/** The labels that Prometheus adds to each series of a target. */
const TARGET = 'job="api",instance="api:9464"';

/** A series of a target. */
function seriesOf(sample: string, target = TARGET): string {
  const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(sample) ?? [];
  return `${name}{${[labels, target].filter(Boolean).join()}}`;
}

/** What is scraped, and the alerts of the service that fire at a time after the first scrape, each once. */
interface Case {
  readonly series: ReadonlyMap<string, string>;
  readonly alerts: readonly string[];
  readonly when?: { readonly eval_time: string; readonly interval?: string };
}

/** As promtool reads it. */
function unitTest({ series, alerts, when = { eval_time: '10m' } }: Case) {
  const { eval_time, interval = '15s' } = when;
  const ending = { eval_time, expr: 'sum by (alertname, job, instance) (ALERTS{alertstate="firing"})' };
  const exp_samples = alerts.map((name) => ({ labels: `{alertname="${name}",${TARGET}}`, value: 1 }));
  const input_series = [...series].map(([name, values]) => ({ series: name, values }));
  const one = { interval, input_series, promql_expr_test: [{ ...ending, exp_samples }] };
  return { rule_files: [RULES], evaluation_interval: interval, tests: [one] };
}

/** What promtool says of each, in their order. One process tests all: it begins for longer than it tests. */
function outcomesOf(cases: readonly Case[]): readonly string[] {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rules-'));
  const files = cases.map((each, index) => {
    const file = join(directory, `${index}.test.yml`);
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(unitTest(each)));
    return file;
  });
  // It writes names to standard output, and what failed to standard error.
  const words = ['-c', 'exec promtool test rules "$@" 2>&1', 'sh', ...files];
  try {
    const said = spawnSync('sh', words, { encoding: 'utf8' }).stdout.split(/^Unit Testing: +/m);
    return files.map((file) => said.find((text) => text.startsWith(`${file}\n`)) ?? 'nothing');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The metrics of a service before its first 500, and after it. */
async function looks(): Promise<{ quiet: Samples; failed: Samples }> {
  const issuer = makeIssuer();
  const routes = [
    get('/me', authenticated, () => ({})),
    get('/bug', open, () => Promise.reject(new Error('x'))),
  ];
  const metrics = createMetrics();
  const given = { ...issuer.options, metrics, host: '127.0.0.1', port: 0, dpopMode: 'ALLOWED' as const };
  const service = createService({ routes }, given);
  const port = Number(new URL(await service.listen()).port);

  const look = () =>
    new Map([
      ...[...readExposition(metrics.text()).values()].flatMap(({ samples }) => [...samples]),
      // The lag of this machine is not under test.
      ['nodejs_eventloop_lag_p99_seconds', 0],
    ]);

  // Waits for the keys.
  await ask(port, '/me', { token: issuer.token() });
  const quiet = look();
  await ask(port, '/bug');
  const failed = look();
  await service.stop();
  return { quiet, failed };
}

const DURATIONS = 'http_server_request_duration_seconds_count';

const INTROSPECTIONS = 'gatehouse_introspections_total';

/** The values of one series that make each alert fire. */
const CAUSES: Readonly<Record<string, readonly [series: string, values: string]>> = {
  GatehouseRefusals: ['gatehouse_refusals_total{reason="token-malformed"}', '0+20x40'],
  GatehouseKeysGrowOld: ['gatehouse_keys_age_seconds{issuer="idp"}', held(1801, 41)],
  GatehouseNoKeys: ['gatehouse_keys_usable{issuer="idp"}', held(0, 41)],
  GatehouseReplayStoreAway: ['gatehouse_replay_store_up', held(0, 41)],
  GatehouseRevocationStoreAway: ['gatehouse_revocation_store_up', held(0, 41)],
  GatehouseIntrospectionAway: [`${INTROSPECTIONS}{issuer="idp",result="failed"}`, '0+1x40'],
  GatehouseReplayStoreFillsUp: ['gatehouse_replay_entries', held(900_001, 41)],
  GatehouseUnavailable: [`${DURATIONS}{http_route="/bug",http_response_status_code="503"}`, '0+1x40'],
  GatehouseBug: [`${DURATIONS}{http_route="/bug",http_response_status_code="500"}`, '0+1x40'],
  GatehouseOverworked: ['nodejs_eventloop_lag_p99_seconds', held(0.2, 41)],
  GatehouseDown: ['up', held(0, 41)],
};

/** Refusals with 503 that only a service gives, and counts as responses. */
const OF_SERVICES: ReadonlySet<string> = new Set(['handler-timeout', 'shutting-down']);

/** Similar values that are harmless. */
const HARMLESS: readonly (readonly [series: string, values: string])[] = [
  ['gatehouse_refusals_total{reason="no-credentials"}', '0+100x40'],
  ['gatehouse_refusals_total{reason="token-malformed"}', '0+10x40'],
  [`${DURATIONS}{http_route="/readyz",http_response_status_code="503"}`, '0+1x40'],
  ['gatehouse_keys_age_seconds{issuer="idp"}', held(1799, 41)],
];

describe('docs/rules.yml', () => {
  let quiet: ReadonlyMap<string, string> = new Map();
  let failing: ReadonlyMap<string, string> = new Map();
  let outcomes: readonly string[] = [];
  const cases: (() => Case)[] = [];

  /** For a case that can be made once the service has been looked at. */
  function testCase(name: string, make: () => Case): void {
    const index = cases.push(make) - 1;
    test(named(name), { skip }, () => assert.match(outcomes[index] ?? '', /^\S+\n\s*SUCCESS\s*$/));
  }

  before(async () => {
    const seen = await looks();
    quiet = new Map([...seen.quiet].map(([name, value]) => [seriesOf(name), held(value, 41)]));
    // The failure is between scrapes 37 and 38.
    failing = new Map(
      [...seen.failed].map(([name, value]) => {
        const before = seen.quiet.get(name);
        return [seriesOf(name), `${before === undefined ? '_x37' : held(before, 37)} ${held(value, 4)}`];
      }),
    );
    if (!skip) outcomes = outcomesOf(cases.map((make) => make()));
  });

  test(named('is valid for Prometheus'), { skip }, () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  });

  testCase('does not fire while all is well', () => ({ series: quiet, alerts: [] }));

  testCase('alerts on the very first 500 of a route', () => ({ series: failing, alerts: ['GatehouseBug'] }));

  test('has only alerts that are tested here', () => {
    const alerts = [...read('docs/rules.yml').matchAll(/- alert: (\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(alerts, Object.keys(CAUSES));
  });

  for (const [alert, [series, values]] of Object.entries(CAUSES)) {
    testCase(`only ${alert} fires for its cause`, () => ({
      series: new Map([...quiet, [seriesOf(series), values]]),
      alerts: [alert],
    }));
  }

  for (const [alert, [series, values]] of Object.entries(CAUSES)) {
    // Of another job, and of another target of the same job.
    const targets = ['job="other",instance="api:9464"', 'job="api",instance="other:9464"'];

    testCase(`${alert} does not fire for another service`, () => {
      const foreign = targets.map((target) => [seriesOf(series, target), values] as const);
      return { series: new Map([...quiet, ...foreign]), alerts: [] };
    });
  }

  test('every alert names its service in its summary', () => {
    const rules = read('docs/rules.yml').split('- alert: ').slice(1);
    assert.equal(rules.length, Object.keys(CAUSES).length);
    for (const rule of rules) {
      assert.match(rule, /summary: .*\{\{ \$labels\.job \}\}.*\{\{ \$labels\.instance \}\}/);
    }
  });

  test('docs/logs-and-metrics.md explains every alert', () => {
    const explained = tableUnder('docs/logs-and-metrics.md', 'Dashboard and alerts').map(
      ([alert = '']) => codeIn(alert)[0],
    );
    assert.deepEqual(explained, Object.keys(CAUSES));
  });

  // It is gatehouse for ten minutes or longer, then every scrape fails.
  const leaves = `${held(1, 40)} stale`;
  const down = `${held(1, 40)} 0x800`;

  for (const [what, when] of [
    ['soon after a target has ended', { eval_time: '13m' }],
    ['two days after a target has ended', { eval_time: '50h', interval: '4m' }],
  ] as const) {
    testCase(`GatehouseDown fires ${what}`, () => {
      const series = [
        [seriesOf('gatehouse_info'), leaves],
        [seriesOf('up'), down],
      ] as const;
      return { series: new Map(series), alerts: ['GatehouseDown'], when };
    });
  }

  for (const [what, ending] of [
    ['is back', '1x40'],
    ['is no longer one', 'stale'],
  ] as const) {
    testCase(`GatehouseDown stops firing when the target ${what}`, () => {
      const series = [
        [seriesOf('gatehouse_info'), leaves],
        [seriesOf('up'), `${held(1, 40)} 0x20 ${ending}`],
      ] as const;
      return { series: new Map(series), alerts: [], when: { eval_time: '16m' } };
    });
  }

  testCase('GatehouseIntrospectionAway does not fire while the issuer answers some requests', () => {
    const series = ['failed', 'inactive'].map(
      (result) => [seriesOf(`${INTROSPECTIONS}{issuer="idp",result="${result}"}`), '0+1x40'] as const,
    );
    return { series: new Map([...quiet, ...series]), alerts: [] };
  });

  for (const reason of Object.keys(REFUSALS.temporarily_unavailable).filter(
    (reason) => !OF_SERVICES.has(reason),
  )) {
    testCase(`GatehouseUnavailable fires for ${reason} at a gate, which counts no responses`, () => {
      const ofGate = [...quiet].filter(([name]) => !name.startsWith('http_server_'));
      const cause = [seriesOf(`gatehouse_refusals_total{reason="${reason}"}`), '0+1x40'] as const;
      return { series: new Map([...ofGate, cause]), alerts: ['GatehouseUnavailable'] };
    });
  }

  for (const [series, values] of HARMLESS) {
    testCase(`does not fire on ${series} ${values}`, () => ({
      series: new Map([...quiet, [seriesOf(series), values]]),
      alerts: [],
    }));
  }
});
