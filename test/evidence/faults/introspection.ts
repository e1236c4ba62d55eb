/* An introspection endpoint that fails in each way, under load: requests with opaque tokens get 503 and nothing
   else, JWTs and public requests go on, and all is well within two seconds of the end of the fault
   (docs/introspection.md). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { json, startEndpoint, type Say } from '../../options/introspection/endpoint-fixture.ts';
import { figures } from '../../support/figures.ts';
import { getBytes, startLoad } from '../../support/load.ts';
import { until } from '../../support/watch.ts';
import { openFixture, privately } from '../../faults/process-fixture.ts';

const rows = figures('faults of the introspection endpoint');

const HELD_SECONDS = 3;
const RECOVERY_SECONDS = 2;

const FAULTS: readonly (readonly [what: string, say: Say])[] = [
  ['no response', () => {}],
  ['half a response', (_, response) => void response.writeHead(200, { 'Content-Length': 99 }).write('{')],
  ['connections end', (_, response) => response.socket?.destroy()],
  ['401 for the service itself', json({ error: 'invalid_client' }, 401)],
  ['500', json({}, 500)],
  ['a redirect', (_, response) => response.writeHead(307, { Location: '/elsewhere' }).end()],
  ['no JSON', (_, response) => response.end('<html>')],
  ['a verdict of another type', json({ active: 'true' })],
];

describe('the service', { timeout: 240_000 }, () => {
  for (const [what, say] of FAULTS) {
    test(`answers 503 to opaque tokens alone, and is well again in time, when the endpoint fails: ${what}`, async (t) => {
      const endpoint = await startEndpoint(t);
      const environment = {
        IDP_INTROSPECTION: 'opaque',
        IDP_INTROSPECTION_URI: endpoint.uri,
        IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
        IDP_INTROSPECTION_CLIENT_SECRET: 'x',
        IDP_INTROSPECTION_CACHE_SECONDS: '0',
      };
      const fixture = await openFixture(t, { environment });
      const { issuer: iss, audience: aud } = fixture.provider;
      const exp = Math.floor(Date.now() / 1000) + 600;
      const good = json({ active: true, iss, aud, sub: 'ada', exp });
      endpoint.say = good;
      const jwt = fixture.provider.issue();
      let longest = 0;
      let turn = 0;

      const load = startLoad({
        port: fixture.service.port,
        connections: 8,
        pauseMillis: 5,
        next: () => {
          turn += 1;
          return { kind: 'opaque', bytes: getBytes('/api/private', `opaque-${turn}`) };
        },
        heed: ({ millis }) => {
          longest = Math.max(longest, millis);
        },
      });
      const beside = startLoad({
        port: fixture.service.port,
        connections: 4,
        pauseMillis: 5,
        next: () => ({ kind: 'jwt', bytes: getBytes('/api/private', jwt) }),
      });

      const statusOf = async () => (await privately(fixture, 'opaque-probe')).status;
      const isAccepted = async () => (await statusOf()) === 200;
      await until('tokens pass', isAccepted, 5);
      endpoint.say = say;
      await until('the fault is noticed', async () => (await statusOf()) === 503, 8);
      const { answered } = beside.tally;
      await new Promise((resolve) => setTimeout(resolve, HELD_SECONDS * 1_000));
      assert.ok(beside.tally.answered > answered);

      endpoint.say = good;
      const seconds = await until('tokens pass again', isAccepted, RECOVERY_SECONDS + 1);
      const tokens = await load.stop();
      const others = await beside.stop();
      rows.push({ fault: what, requests: tokens.answered, 'longest ms': longest, 'recovery s': seconds });
      assert.deepEqual([tokens.except('opaque 200', 'opaque 503'), tokens.lost], [{}, 0]);
      assert.deepEqual([others.except('jwt 200'), others.lost], [{}, 0]);
      assert.ok(seconds <= RECOVERY_SECONDS + 0.5, `${seconds} s`);
    });
  }
});
