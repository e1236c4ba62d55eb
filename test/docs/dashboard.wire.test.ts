/* The dashboard, the alerts and docs/logs-and-metrics.md name existing metrics, and every one of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createService, get, open } from '../../src/gatehouse.ts';
import { introspection } from '../../src/introspection.ts';
import { createMetrics } from '../../src/metrics.ts';
import { redisReplayStore } from '../../src/redis.ts';
import { createRevocations } from '../../src/revocations.ts';
import { makeIssuer } from '../support/issuer.ts';
import { readExposition, type Family } from '../support/exposition.ts';
import { read } from './pages.ts';

const issuer = makeIssuer();

function familiesWith(settings: object): ReadonlyMap<string, Family> {
  const routes = [get('/a', open, () => ({}))];
  const metrics = createMetrics();
  const service = createService({ routes }, { ...issuer.options, metrics, ...settings });
  const families = readExposition(metrics.text());
  void service.stop();
  return families;
}

function namesWith(settings: object): readonly string[] {
  return [...familiesWith(settings)].flatMap(([name, { type }]) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
}

const store = 'redis://127.0.0.1:1';

const withRedis = {
  dpopMode: 'ALLOWED',
  replayStore: redisReplayStore(store),
  revocations: createRevocations({ store }),
};

const part = introspection({ tokens: ['opaque'], clientId: 'orders-api', clientSecret: 'x' });

const all = [{}, withRedis, { introspection: part }];
const NAMES = [...new Set(all.flatMap(namesWith))];

const metricsIn = (text: string): readonly string[] =>
  text.match(/\b(?:http_server|gatehouse|process|nodejs)_[a-z0-9_]*[a-z]\b/g) ?? [];

test('the dashboard can be imported, and shows exactly the metrics that exist', () => {
  const dashboard = JSON.parse(read('docs/dashboard.json'));
  const targets = dashboard.panels.flatMap((panel: { targets: { expr: string }[] }) => panel.targets);
  const named = targets.flatMap(({ expr }: { expr: string }) => metricsIn(expr));
  assert.ok(named.length > 15);
  assert.deepEqual(
    named.filter((name: string) => !NAMES.includes(name)),
    [],
  );
  const shown = NAMES.filter((name) => named.includes(name) || named.includes(`${name}_bucket`));
  const families = NAMES.filter((name) => !/_(?:bucket|sum|count)$/.test(name));
  assert.deepEqual(
    families.filter((name) => !shown.includes(name)),
    [],
  );
  const ids = dashboard.panels.map(({ id }: { id: number }) => id);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([typeof dashboard.title, typeof dashboard.schemaVersion], ['string', 'number']);
});

test('the alerts use only metrics that exist', () => {
  const named = metricsIn(read('docs/rules.yml'));
  assert.ok(named.length > 7);
  assert.deepEqual(
    named.filter((name) => !NAMES.includes(name)),
    [],
  );
});

test('docs/logs-and-metrics.md names exactly the metrics that exist', () => {
  const named = metricsIn(read('docs/logs-and-metrics.md'));
  assert.deepEqual(
    named.filter((name) => !NAMES.includes(name)),
    [],
  );
  const families = NAMES.filter((name) => !/_(?:bucket|sum|count)$/.test(name));
  assert.deepEqual(
    families.filter((name) => !named.includes(name)),
    [],
  );
});

test('the alerts use only labels and reasons that exist', () => {
  const samples = [...familiesWith({}).values()].flatMap((family) => [...family.samples.keys()]);

  const isThere = (label: string, value: string) =>
    samples.some((sample) => sample.includes(`${label}="${value}"`));

  const selectors = [...read('docs/rules.yml').matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)];
  const asked = selectors.filter(([, label = '']) => label === 'reason' || label === 'http_route');
  assert.ok(asked.length >= 2);
  for (const [selector, label = '', values = ''] of asked) {
    for (const value of values.split('|')) assert.ok(isThere(label, value), selector);
  }
});
