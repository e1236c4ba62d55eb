/* The alerts of docs/rules.yml, tested by Prometheus's promtool on the metrics of the service. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { authenticated, createService, get, open } from '../../src/gatehouse.ts';
import { createTestIssuer } from '../../src/testing.ts';
import { ask } from '../support/client.ts';
import { readExposition } from '../support/exposition.ts';
import { withReason } from '../support/skipped.ts';
import { read } from './pages.ts';

const RULES = fileURLToPath(new URL('../../docs/rules.yml', import.meta.url));

const missing =
  spawnSync('promtool', ['--version']).error === undefined ? undefined : 'promtool is not installed';

const skip = missing !== undefined;

const named = (name: string) => withReason(name, missing);

function promtool(...words: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', words, { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
}

type Samples = ReadonlyMap<string, number>;

/** The same sample for a number of scrapes, 15 s apart, in promtool's notation. */
const held = (value: number, looks: number) => `${value.toFixed(6)}+0x${looks - 1}`;

/** The alerts that fire ten minutes after the first scrape, each once. */
function assertFiring(series: ReadonlyMap<string, string>, alerts: readonly string[]): void {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rules-'));
  const file = join(directory, 'rules.test.yml');
  const ending = { eval_time: '10m', expr: 'sum by (alertname) (ALERTS{alertstate="firing"})' };
  const exp_samples = alerts.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  const input_series = [...series].map(([name, values]) => ({ series: name, values }));
  const one = { interval: '15s', input_series, promql_expr_test: [{ ...ending, exp_samples }] };
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '15s', tests: [one] }));
  try {
    promtool('test', 'rules', file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The metrics of a service before its first 500, and after it. */
async function looks(): Promise<{ quiet: Samples; failed: Samples }> {
  const issuer = createTestIssuer();
  const routes = [
    get('/me', authenticated, () => ({})),
    get('/bug', open, () => Promise.reject(new Error('x'))),
  ];
  const given = { ...issuer.settings, host: '127.0.0.1', port: 0, dpopMode: 'ALLOWED' as const };
  const service = createService({ routes }, given, issuer);
  const port = Number(new URL(await service.listen()).port);

  const look = () =>
    new Map([
      ...[...readExposition(service.metricsText()).values()].flatMap(({ samples }) => [...samples]),
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

/** The values of one series that make each alert fire. */
const CAUSES: Readonly<Record<string, readonly [series: string, values: string]>> = {
  GatehouseRefusals: ['gatehouse_refusals_total{reason="token-malformed"}', '0+20x40'],
  GatehouseKeysGrowOld: ['gatehouse_keys_age_seconds{issuer="idp"}', held(1801, 41)],
  GatehouseNoKeys: ['gatehouse_keys_usable{issuer="idp"}', held(0, 41)],
  GatehouseReplayStoreAway: ['gatehouse_replay_store_up', held(0, 41)],
  GatehouseReplayStoreFillsUp: ['gatehouse_replay_entries', held(900_001, 41)],
  GatehouseUnavailable: [`${DURATIONS}{http_route="/bug",http_response_status_code="503"}`, '0+1x40'],
  GatehouseBug: [`${DURATIONS}{http_route="/bug",http_response_status_code="500"}`, '0+1x40'],
  GatehouseOverworked: ['nodejs_eventloop_lag_p99_seconds', held(0.2, 41)],
  GatehouseDown: ['up', held(0, 41)],
};

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

  before(async () => {
    const seen = await looks();
    quiet = new Map([...seen.quiet].map(([name, value]) => [name, held(value, 41)]));
    // The failure is between scrapes 37 and 38.
    failing = new Map(
      [...seen.failed].map(([name, value]) => {
        const before = seen.quiet.get(name);
        return [name, `${before === undefined ? '_x37' : held(before, 37)} ${held(value, 4)}`];
      }),
    );
  });

  test(named('is valid for Prometheus'), { skip }, () => promtool('check', 'rules', RULES));

  test(named('does not fire while all is well'), { skip }, () => assertFiring(quiet, []));

  test(named('alerts on the very first 500 of a route'), { skip }, () =>
    assertFiring(failing, ['GatehouseBug']),
  );

  test('has only alerts that are tested here', () => {
    const alerts = [...read('docs/rules.yml').matchAll(/- alert: (\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(alerts, Object.keys(CAUSES));
  });

  for (const [alert, [series, values]] of Object.entries(CAUSES)) {
    test(named(`only ${alert} fires for its cause`), { skip }, () =>
      assertFiring(new Map([...quiet, [series, values]]), [alert]),
    );
  }

  for (const [alert, [series, values]] of Object.entries(CAUSES)) {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
    const foreign = `${name}{${[labels, 'job="other",instance="other:1"'].filter(Boolean).join()}}`;

    test(named(`${alert} does not fire for another service`), { skip }, () =>
      assertFiring(new Map([...quiet, [foreign, values]]), []),
    );
  }

  test(named('tells which service it is'), { skip }, () => {
    for (const rule of read('docs/rules.yml').split('- alert: ').slice(1)) {
      assert.match(rule, /on \(job, instance\) (?:last_over_time\()?gatehouse_info/);
      assert.match(rule, /summary: .*\{\{ \$labels\.job \}\}.*\{\{ \$labels\.instance \}\}/);
    }
  });

  for (const [series, values] of HARMLESS) {
    test(named(`does not fire on ${series} ${values}`), { skip }, () =>
      assertFiring(new Map([...quiet, [series, values]]), []),
    );
  }
});
