/* Floods of invalid tokens: few fetches, flat memory, valid requests served meanwhile, and a new key accepted
   (F1). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { figures } from '../../support/figures.ts';
import { getBytes, startLoad, type Shot } from '../../support/load.ts';
import { FetchWatch, residentMebibytes, until } from '../../support/watch.ts';
import {
  addKey,
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  unsignedShot,
  unsignedToken,
  warnings,
  type ProcessFixture,
} from '../../faults/process-fixture.ts';

const rows = figures('floods');
/** What V8 may keep of a flood before it collects, in MiB. */
const SLACK = 64;

interface Flood {
  readonly name: string;
  readonly size: number;
  shot(fixture: ProcessFixture): Shot;
  readonly expected: readonly string[];
  readonly fetches: boolean;
}

const FLOODS: readonly Flood[] = [
  {
    name: 'random kid',
    size: 50_000,
    shot: () => unsignedShot('flood'),
    expected: ['flood 401'],
    fetches: true,
  },
  {
    name: 'forged signature, known kid',
    size: 30_000,
    expected: ['flood 401'],
    fetches: false,
    shot: ({ provider }) => unsignedShot('flood', provider.signingKey.kid, { iss: provider.issuer }),
  },
  {
    name: 'token of 15 kB, known kid',
    size: 10_000,
    expected: ['flood 401'],
    fetches: false,
    shot: ({ provider }) => unsignedShot('flood', provider.signingKey.kid, { padding: 'x'.repeat(10_500) }),
  },
  {
    name: 'token of 20 kB',
    size: 5_000,
    expected: ['flood 431'],
    fetches: false,
    shot: () => unsignedShot('flood', undefined, { padding: 'x'.repeat(15_000) }),
  },
  {
    name: 'malformed token',
    size: 30_000,
    expected: ['flood 401'],
    fetches: false,
    shot: () => ({ kind: 'flood', bytes: getBytes('/api/private', 'x') }),
  },
];

/** Sends this many requests on sixteen connections. */
function pour(fixture: ProcessFixture, { shot }: Flood, size: number) {
  let left = size;
  return startLoad({
    port: fixture.service.port,
    connections: 16,
    next: () => {
      left -= 1;
      return left >= 0 ? shot(fixture) : undefined;
    },
  });
}

describe('the service under a flood', { timeout: 200_000 }, () => {
  for (const flood of FLOODS) {
    test(`serves valid requests, fetches little and keeps its size: ${flood.name}`, async (t) => {
      const fixture = await openFixture(t);
      const { provider, service, pid } = fixture;
      await pour(fixture, flood, flood.size / 2).ended;
      const before = residentMebibytes(pid);
      const watch = new FetchWatch(provider);
      t.after(() => watch.stop());
      const beside = startGoodLoad(fixture, { connections: 2 });
      const start = performance.now();
      const { tally, ended } = pour(fixture, flood, flood.size);
      await ended;
      const seconds = (performance.now() - start) / 1000;
      const good = await beside.stop();
      const after = residentMebibytes(pid);
      rows.push({
        flood: flood.name,
        requests: tally.answered,
        seconds,
        'p99 ms': tally.latencies.percentile(0.99),
        fetches: watch.starts.length,
        'least gap s': watch.gaps.length === 0 ? '' : Math.min(...watch.gaps),
        'good beside': good.answered,
        'good refused': good.countExcept('valid 200'),
        'good p99 ms': good.latencies.percentile(0.99),
        'MiB before': before,
        'MiB after': after,
      });
      assertUntroubled(good);
      assert.deepEqual([tally.except(...flood.expected), tally.lost, tally.answered], [{}, 0, flood.size]);
      assert.ok(
        watch.starts.length <= (flood.fetches ? Math.floor(seconds / 5) + 1 : 0),
        `${watch.starts.length} fetches`,
      );
      assert.ok(
        watch.gaps.every((gap) => gap > 4.5),
        `fetches after ${watch.gaps} s`,
      );
      assert.ok(after - before < SLACK, `${before} MiB became ${after} MiB`);
      assert.deepEqual(warnings(service), []);
    });
  }

  test('accepts a key that is rotated in within five seconds', async (t) => {
    const fixture = await openFixture(t);
    const load = startLoad({
      port: fixture.service.port,
      connections: 8,
      pauseMillis: 1,
      next: () => unsignedShot('flood'),
    });
    // The flood has caused its fetch; the next is five seconds away.
    await until('the flood is running', () => load.tally.answered > 500, 10);
    const token = addKey(fixture.provider, 'rotated in');
    const accepted = await until(
      'the new key is accepted',
      async () => (await privately(fixture, token)).status === 200,
      10,
    );
    const beside = startGoodLoad(fixture, { connections: 2 });
    await until('valid requests have been served', () => beside.tally.answered > 200, 10);
    assertUntroubled(await beside.stop());
    const tally = await load.stop();
    rows.push({
      flood: 'random kid, with a rotation',
      requests: tally.answered,
      'accepted after s': accepted,
    });
    assert.deepEqual([tally.except('flood 401'), tally.lost], [{}, 0]);
    assert.ok(accepted < 6, `accepted after ${accepted} s`);
  });

  test('answers 503, never 401, to unknown keys when its provider goes down during the flood', async (t) => {
    const fixture = await openFixture(t);
    await fixture.provider.fault('all', { status: 500 });
    const beside = startGoodLoad(fixture, { connections: 2 });
    const flood = {
      ...FLOODS[0]!,
      shot: () => ({ kind: 'flood', bytes: getBytes('/api/private', unsignedToken()) }),
    };
    const watch = new FetchWatch(fixture.provider);
    t.after(() => watch.stop());
    const { tally, ended } = pour(fixture, flood, 10_000);
    await ended;
    const good = await beside.stop();
    rows.push({
      flood: 'random kid, provider down',
      requests: tally.answered,
      fetches: watch.starts.length,
      'good beside': good.answered,
      'good refused': good.countExcept('valid 200'),
    });
    assertUntroubled(good);
    assert.deepEqual([tally.except('flood 503'), tally.lost], [{}, 0]);
    assert.deepEqual(warnings(fixture.service), ['signing keys could not be fetched: status-refused']);
  });
});
