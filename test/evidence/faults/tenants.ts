/* Key sets of tenants that fail in each way, under load: requests of the tenant whose keys are missing get 503
   and nothing else, those of the other tenants go on, and all is well as soon as a fetch is due
   (docs/tenants.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../../idp/provider.ts';
import { openFixture, privately, type ProcessFixture } from '../../faults/process-fixture.ts';
import { figures } from '../../support/figures.ts';
import { getBytes, startLoad } from '../../support/load.ts';
import { until } from '../../support/watch.ts';

const rows = figures('faults of the key set of a tenant');

const HELD_SECONDS = 3;
/** Contract: a failed fetch is not repeated for five seconds. */
const PAUSE_SECONDS = 5;
/** A fetch that gets no response ends by its deadline. */
const DEADLINE_SECONDS = 5;

type Fault = (response: ServerResponse) => void;

const SILENT: readonly (readonly [what: string, fault: Fault])[] = [
  ['no response', () => {}],
  ['half a response', (response) => void response.writeHead(200, { 'Content-Length': 99 }).write('{')],
];

const PROMPT: readonly (readonly [what: string, fault: Fault])[] = [
  ['connections end', (response) => response.socket?.destroy()],
  ['500', (response) => response.writeHead(500).end('{}')],
  ['a redirect', (response) => response.writeHead(307, { Location: '/contoso/keys' }).end()],
  ['no JSON', (response) => response.end('<html>')],
  ['no keys', (response) => response.end('{"keys":[]}')],
];

interface Directory {
  readonly origin: string;
  /** By tenant. */
  readonly faults: Map<string, Fault>;
  keys: object;
}

const tls = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../idp/tls/${name}.pem`, import.meta.url)));

/** Serves the same keys for every tenant. It closes with the test. */
async function startDirectory(t: TestContext): Promise<Directory> {
  const faults = new Map<string, Fault>();
  const server = createServer({ cert: tls('provider'), key: tls('provider-key') }, (request, response) => {
    const [, tenant = ''] = (request.url ?? '').split('/');
    const fault = faults.get(tenant);
    if (fault === undefined) response.end(JSON.stringify(directory.keys));
    else fault(response);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const directory: Directory = { origin: `https://localhost:${port}`, faults, keys: { keys: [] } };
  return directory;
}

interface Started extends ProcessFixture {
  readonly directory: Directory;
  tokenOf(tenant: string): string;
}

async function start(
  t: TestContext,
  tenants: readonly string[],
  ...faults: [string, Fault][]
): Promise<Started> {
  const directory = await startDirectory(t);
  for (const [tenant, fault] of faults) directory.faults.set(tenant, fault);

  const provider = await startProvider({ host: '127.0.0.1' });
  directory.keys = { keys: [provider.signingKey.publicJwk] };
  const environment = {
    IDP_ISSUER: `${directory.origin}/{tenant}/v2.0`,
    IDP_JWKS_URI: `${directory.origin}/{tenant}/keys`,
    IDP_TENANTS: tenants.join(','),
  };
  const fixture = await openFixture(t, { provider, environment });

  const tokenOf = (tenant: string) =>
    provider.issue({ iss: `${directory.origin}/${tenant}/v2.0`, tid: tenant });

  return { ...fixture, directory, tokenOf };
}

const loadOf = ({ service, tokenOf }: Started, tenant: string) => {
  const bytes = getBytes('/api/private', tokenOf(tenant));
  const next = () => ({ kind: tenant, bytes });
  return startLoad({ port: service.port, connections: 4, pauseMillis: 5, next });
};

describe('a service with tenants', { timeout: 240_000 }, () => {
  for (const [what, fault, limitSeconds] of [
    ...SILENT.map((one) => [...one, DEADLINE_SECONDS + PAUSE_SECONDS] as const),
    ...PROMPT.map((one) => [...one, PAUSE_SECONDS] as const),
  ]) {
    test(`answers 503 to the tenant alone whose keys cannot be fetched, and accepts it as soon as they can: ${what} [§23]`, async (t) => {
      const started = await start(t, ['contoso', 'fabrikam'], ['fabrikam', fault]);
      const others = loadOf(started, 'contoso');
      const load = loadOf(started, 'fabrikam');
      const token = started.tokenOf('fabrikam');
      const statusOf = async () => (await privately(started, token)).status;
      assert.equal(await statusOf(), 503);
      const { answered } = others.tally;
      await pass(HELD_SECONDS * 1_000);
      assert.ok(others.tally.answered > answered);

      started.directory.faults.clear();
      const isAccepted = async () => (await statusOf()) === 200;
      const seconds = await until('its tokens pass', isAccepted, limitSeconds + 2);
      const mine = await load.stop();
      const theirs = await others.stop();
      rows.push({ fault: what, requests: mine.answered, others: theirs.answered, 'recovery s': seconds });
      assert.deepEqual([mine.except('fabrikam 200', 'fabrikam 503'), mine.lost], [{}, 0]);
      assert.deepEqual([theirs.except('contoso 200'), theirs.lost], [{}, 0]);
      assert.ok(seconds <= limitSeconds + 0.5, `${seconds} s`);
    });
  }

  test('accepts the tokens of every tenant whose keys it holds while no key set can be fetched [§23, §7]', async (t) => {
    const started = await start(t, ['contoso', 'fabrikam']);
    for (const tenant of ['contoso', 'fabrikam']) {
      assert.equal((await privately(started, started.tokenOf(tenant))).status, 200);
      started.directory.faults.set(tenant, (response) => response.socket?.destroy());
    }
    const loads = [loadOf(started, 'contoso'), loadOf(started, 'fabrikam')];
    await pass(HELD_SECONDS * 1_000);
    for (const load of loads) {
      const tally = await load.stop();
      assert.deepEqual([tally.except('contoso 200', 'fabrikam 200'), tally.lost], [{}, 0]);
      assert.ok(tally.answered > 0);
    }
  });

  test('has room for a new tenant while thirty others hang, once each of them has failed [§23]', async (t) => {
    const dead = Array.from({ length: 30 }, (_, index) => `dead-${index}`);
    const hangs = dead.map((tenant): [string, Fault] => [tenant, () => {}]);
    const started = await start(t, ['contoso', ...dead, 'fabrikam'], ...hangs);
    const shots = dead.map((tenant) => ({
      kind: 'dead',
      bytes: getBytes('/api/private', started.tokenOf(tenant)),
    }));
    let turn = 0;

    const next = () => {
      turn += 1;
      return shots[turn % shots.length];
    };

    const load = startLoad({ port: started.service.port, connections: 60, pauseMillis: 20, next });
    // Twenty at a time hang for five seconds each, and those that had no turn come again.
    await pass(4 * (DEADLINE_SECONDS + PAUSE_SECONDS) * 1_000);

    const before = performance.now();
    assert.equal((await privately(started, started.tokenOf('fabrikam'))).status, 200);
    const seconds = (performance.now() - before) / 1_000;
    const tally = await load.stop();
    rows.push({ fault: 'thirty tenants hang', requests: tally.answered, 'recovery s': seconds });
    assert.deepEqual([tally.except('dead 503'), tally.lost], [{}, 0]);
  });
});
