/* The example of three replicas, a store and a balancer: what it sets loads, and what it promises is there.
   It is run as processes in topology.long.ts. */
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseYaml } from '../../src/settings/yaml.ts';
import { load } from '../settings/every-setting.ts';

const HERE = new URL('./', import.meta.url);

const read = (name: string) => readFileSync(new URL(name, HERE), 'utf8');

const entries = new Map(
  parseYaml(read('compose.yaml'), 'compose.yaml').map(({ name, value }) => [name, value]),
);

const variables: Readonly<Record<string, string>> = {
  IDP_DOMAIN: 'idp.test',
  IDP_AUDIENCE: 'https://api.test',
  PUBLIC_URL: 'http://localhost:8080',
  STORE_PASSWORD: 'a1'.repeat(32),
  NONCE_SECRET: 'b2'.repeat(32),
};

/** What Compose puts in the place of a variable. */
const substituted = (text: string) =>
  text.replace(/\$\{(\w+):\?[^}]*\}/g, (_, name: string) => variables[name] ?? assert.fail(name));

const textAt = (name: string) => substituted(String(entries.get(name) ?? assert.fail(name)));

const listAt = (name: string): readonly unknown[] => {
  const list = entries.get(name);
  assert.ok(Array.isArray(list), name);
  return list.map((item) => substituted(String(item)));
};

/** The environment of the replicas. */
const environment = Object.fromEntries(
  [...entries.keys()]
    .filter((name) => name.startsWith('services.api.environment.'))
    .map((name) => [name.slice('services.api.environment.'.length), textAt(name)]),
);

test('compose.yaml has settings that load without a problem or a warning, and DPoP with a store and nonces', () => {
  const { settings, warnings } = load({ environment });
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    [settings.port, settings.dpopMode, settings.publicUrl],
    [3001, 'ALLOWED', variables.PUBLIC_URL],
  );
  assert.equal(settings.dpopReplayStore, `redis://:${variables.STORE_PASSWORD}@store:6379`);
});

test('compose.yaml asks for every variable that it uses, and holds no secret of its own', () => {
  const used = [...read('compose.yaml').matchAll(/\$\{(\w+)(.*?)\}/g)];
  assert.deepEqual([...new Set(used.map(([, name]) => name))].sort(), Object.keys(variables).sort());
  assert.deepEqual(
    used.filter(([, , rest]) => !rest?.startsWith(':?')),
    [],
  );
  const shown =
    read('compose.yaml')
      .match(/(?<=export ).*|(?<=# {3}export ).*/g)
      ?.join(' ') ?? '';
  for (const name of Object.keys(variables)) assert.ok(shown.includes(`${name}=`), name);
});

test('compose.yaml runs three replicas and gives each enough time to drain', () => {
  assert.equal(entries.get('services.api.deploy.replicas'), 3);
  const delay = Number(environment.SHUTDOWN_DELAY_SECONDS);
  assert.ok(parseInt(textAt('services.api.stop_grace_period'), 10) > delay + 10);
});

test('compose.yaml has a store that evicts nothing, with a password, and unreachable from outside', () => {
  const command = listAt('services.store.command').join(' ');
  assert.match(command, / --maxmemory-policy noeviction /);
  assert.match(command, / --appendonly yes /);
  assert.ok(command.includes(` --requirepass ${variables.STORE_PASSWORD} `));
  assert.deepEqual(listAt('services.store.networks'), ['store']);
  assert.equal(entries.get('networks.store.internal'), true);
  assert.equal(entries.has('services.store.ports'), false);
});

for (const service of ['api', 'store', 'balancer']) {
  test(`compose.yaml runs ${service} with a read-only root and without privileges`, () => {
    assert.equal(entries.get(`services.${service}.read_only`), true);
    assert.deepEqual(listAt(`services.${service}.cap_drop`), ['ALL']);
    assert.deepEqual(listAt(`services.${service}.security_opt`), ['no-new-privileges:true']);
  });
}

test('compose.yaml builds and mounts files that exist', () => {
  assert.ok(existsSync(new URL(`${textAt('services.api.build.context')}/Dockerfile`, HERE)));
  const [mount = ''] = listAt('services.balancer.volumes');
  assert.ok(existsSync(new URL(String(mount).split(':')[0] ?? '', HERE)));
});

test('nginx.conf forwards to the replicas, keeps the Host of the caller, and ends idle connections before the replicas do', () => {
  const conf = read('nginx.conf');
  assert.match(conf, new RegExp(`server api:${environment.PORT} max_fails=0;`));
  assert.match(conf, /proxy_set_header Host \$http_host;/);
  assert.match(conf, /proxy_next_upstream error timeout;/);
  assert.ok(Number(/keepalive_timeout (\d+)ms;/.exec(conf)?.[1]) < 1_000);
  assert.match(String(listAt('services.balancer.ports')[0]), /^127\.0\.0\.1:\d+:8080$/);
});

test('haproxy.cfg forwards to the replicas, and notices a draining replica before it ends', () => {
  const conf = read('haproxy.cfg');
  assert.match(conf, new RegExp(`server-template replica \\d+ api:${environment.PORT} `));
  assert.match(conf, /option httpchk GET \/readyz$/m);
  const [, seconds, failures] = /check inter (\d+)s fall (\d+) /.exec(conf) ?? [];
  assert.ok(Number(seconds) * Number(failures) < Number(environment.SHUTDOWN_DELAY_SECONDS));
});
