/* docs/settings.md says of each part by which option it is given, who makes it, where that is imported from, and
   whether gates and services can share it; and which settings are no options. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGate } from '../../src/gate.ts';
import { clientCertificates } from '../../src/certificates.ts';
import { cors } from '../../src/cors.ts';
import { keyAccess } from '../../src/key-access.ts';
import { introspection } from '../../src/introspection.ts';
import { jsonLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { throughProxy } from '../../src/proxy.ts';
import { redisReplayStore } from '../../src/redis.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { createRevocations } from '../../src/revocations.ts';
import { SERVICE_RULES } from '../../src/service/options.ts';
import { PART_SETTINGS } from '../../src/settings/parts.ts';
import { tenants } from '../../src/tenants.ts';
import { makeIssuer } from '../support/issuer.ts';
import { CLUSTER_AUTHORITY } from '../options/key-access-fixture.ts';
import { codeIn, read, tableUnder, under } from './pages.ts';

/** A part for each option. A port is left out: it binds the metrics to one service. */
const MAKERS: Readonly<Record<string, readonly [maker: string, make: () => object]>> = {
  log: ['jsonLog', () => jsonLog({ level: 'silent' })],
  replayStore: ['redisReplayStore', () => redisReplayStore('redis://127.0.0.1:1')],
  connect: ['throughProxy', () => throughProxy('http://127.0.0.1:1')],
  clientCertificates: ['clientCertificates', () => clientCertificates({ source: 'rfc9440', proxies: 'any' })],
  revocations: ['createRevocations', () => createRevocations({ store: 'redis://127.0.0.1:1' })],
  keyAccess: ['keyAccess', () => keyAccess({ caFile: CLUSTER_AUTHORITY })],
  tenants: ['tenants', () => tenants({ issuer: 'https://idp.test/{tenant}/', list: ['a'] })],
  introspection: [
    'introspection',
    () => introspection({ tokens: ['jwt'], clientId: 'orders-api', clientSecret: 'x' }),
  ],
  metadata: ['resourceMetadata', () => resourceMetadata({ url: 'https://api.test' })],
  cors: ['cors', () => cors({ origins: ['https://app.test'] })],
  metrics: ['createMetrics', () => createMetrics()],
};

const { options } = makeIssuer();

const { exports } = JSON.parse(read('package.json')) as { exports: Readonly<Record<string, object>> };

const ROWS = tableUnder('docs/settings.md', 'Parts').map((row) => {
  const [option = '', maker = '', path = ''] = row.map((cell) => codeIn(cell)[0] ?? '');
  return { option, maker, path, settings: codeIn(row[3] ?? '') };
});

/** The options whose parts any number of gates and services can share. */
const SHARED = codeIn(/share a part for ([^.]+)\./.exec(under('docs/settings.md', 'Parts'))?.[1] ?? '');

test('docs/settings.md has a row for each option that takes a part', () => {
  assert.deepEqual(
    ROWS.map(({ option }) => option),
    Object.keys(MAKERS),
  );
  const takers = Object.entries(SERVICE_RULES).filter(([, rule]) => /a part that/.test(rule({}) ?? ''));
  assert.deepEqual(takers.map(([name]) => name).sort(), Object.keys(MAKERS).sort());
});

for (const { option, maker, path } of ROWS) {
  test(`docs/settings.md says who makes the part ${option}, and whether gates can share it`, () => {
    const [name, make] = MAKERS[option]!;
    assert.ok(maker.startsWith(`${name}(`), maker);
    assert.ok(Object.hasOwn(exports, path.replace('gatehouse-http', '.')), path);
    assert.match(read(path.replace('gatehouse-http', 'src').concat('.ts')), new RegExp(`\\b${name}\\b`));

    const part = make();

    const createOne = () => createGate({ ...options, [option]: part }).close();

    createOne();
    if (SHARED.includes(option)) return createOne();

    assert.throws(createOne, { message: `${option}: already belongs to a gate or service; make another` });
  });
}

test('docs/settings.md names the settings of each part', () => {
  const named = ROWS.flatMap(({ settings }) => settings);

  const isNamed = (env: string) =>
    named.some((one) => env === one || (one.endsWith('…') && env.startsWith(one.slice(0, -1))));

  const missing = Object.values(PART_SETTINGS).filter(({ env }) => !isNamed(env));
  assert.deepEqual(missing, []);
});

test('docs/settings.md says which names only a service has, and which settings are no options', () => {
  const text = under('docs/settings.md', 'In code');
  const [, ofService = ''] = /only\s+a\s+service\s+has:\s+([^.]+)\./.exec(text) ?? [];
  assert.equal(codeIn(ofService).length, 7);
  for (const name of codeIn(ofService)) {
    const message = `${name}: is an option of createService alone; remove it here`;
    assert.throws(() => createGate({ ...options, [name]: 1 }), { message });
  }
  for (const name of ['profile', 'orgId', 'scopePolicy', 'applicationName', 'configFile']) {
    assert.throws(() => createGate({ ...options, [name]: 'x' }), {
      name: 'TypeError',
      message: /is no option/,
    });
  }
});
