/* Sends targets through a proxy, and compares what gatehouse was asked about with what the server behind got.
 */
import assert from 'node:assert/strict';
import { open } from '../../src/gate/rules/access.ts';
import { get, upstream } from '../../src/service/routes/route.ts';
import { openWire } from '../support/client.ts';
import { startPolicy } from './forward-auth-fixture.ts';
import { startApi, type Proxy } from './forward-auth-proxies.ts';
import { targetsOf } from './forward-auth-targets.ts';

/** Lets every path pass that gatehouse does not refuse by itself. */
const ANY_PATH = ['/', '/{a}', '/{a}/{b}', '/{a}/{b}/{c}', '/{a}/{b}/{c}/{d}', '/{a}/{b}/{c}/{d}/{e}'];

export interface Outcome {
  readonly passed: number;
  readonly refusedByGatehouse: number;
  readonly refusedByProxy: number;
}

/** Bytes as a client would send them; gives what comes back. */
export async function sendThrough(port: number, head: string, isEnough = /^HTTP\/1\.1 \d{3}[^]*?\r\n\r\n/) {
  const wire = await openWire(port);
  wire.send(Buffer.from(head, 'latin1'));
  const received = await wire.until((text) => isEnough.test(text));
  wire.destroy();
  return received;
}

export const statusIn = (received: string) => Number(/^HTTP\/1\.[01] (\d{3})/.exec(received)?.[1] ?? 0);

/** Throws at the first target that was served otherwise than it was judged. */
export async function walkTargets(proxy: Proxy, count: number, seed?: number): Promise<Outcome> {
  const policy = await startPolicy(
    { routes: ANY_PATH.map((path) => get(path, open, upstream)) },
    { log: undefined },
  );
  const api = await startApi();
  const running = await proxy.start({ gatehouse: policy.port, api: api.port });
  const counts = { passed: 0, refusedByGatehouse: 0, refusedByProxy: 0 };
  try {
    for (const target of targetsOf(count, seed)) {
      const asked = policy.questions.length;
      const served = api.seen.length;
      const head = `GET ${target} HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n`;
      const status = statusIn(await sendThrough(running.port, head));
      const judged = policy.questions.slice(asked).map(({ headers }) => headers['x-forwarded-uri']);
      const got = api.seen.slice(served).map((one) => one.target);
      const what = JSON.stringify({ target, status, judged, got });
      if (got.length > 0) {
        assert.deepEqual(judged, got, `served otherwise than judged: ${what}`);
        assert.equal(status, 200, what);
        counts.passed += 1;
      } else {
        assert.notEqual(status, 200, `not served, but 200: ${what}`);
        if (judged.length > 0) counts.refusedByGatehouse += 1;
        else counts.refusedByProxy += 1;
      }
    }
    return counts;
  } finally {
    await running.stop();
    await api.stop();
    await policy.stop();
  }
}
