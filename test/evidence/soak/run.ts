/* Mixed traffic for as long as SOAK_SECONDS says (default 60): every response is checked, and memory must not
   grow. Prints what was asked, refused and fetched, the memory, and the slowest answers. Exit code 1 when
   anything was wrong.

   Shows: wrong responses and memory growth during mixed traffic (`SOAK_SECONDS`).
   Takes: 70 s.
   Needs: nothing. */
import { setTimeout as pass } from 'node:timers/promises';
import { warnings } from '../../faults/process-fixture.ts';
import { startProvider } from '../../idp/provider.ts';
import { printTable } from '../../support/figures.ts';
import { startLoad, type LoadResponse } from '../../support/load.ts';
import { providerSettings, startProcess } from '../../support/process.ts';
import { FetchWatch, descriptors, residentMebibytes } from '../../support/watch.ts';
import { createTraffic, faultOf, mix } from './traffic.ts';

const seconds = Number(process.env.SOAK_SECONDS ?? 60);
if (!(seconds > 0)) throw new Error('SOAK_SECONDS is not a number of seconds');

const CONNECTIONS = 12;
/** The allowed growth of the process in MiB, after a warm-up of a third of the time, or a minute. */
const GROWTH = 24;
const warmUpSeconds = Math.min(60, seconds / 3);

/** Short enough to settle within the warm-up: used proofs and cached tokens expire. */
const BOUNDS = {
  IDP_DPOP_MODE: 'ALLOWED',
  IDP_DPOP_IAT_OFFSET_SECONDS: '5',
  IDP_DPOP_IAT_LEEWAY_SECONDS: '5',
  IDP_TOKEN_CACHE_ENTRIES: '1000',
};

const provider = await startProvider({ host: '127.0.0.1' });
const refusals = new Map<string, number>();

const service = await startProcess({
  environment: { ...providerSettings(provider), ...BOUNDS, LOG_LEVEL: 'debug' },
  keeps: ({ message, reason }) => {
    if (message === 'request refused') refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
    return message !== 'request refused';
  },
});

await service.logged('signing keys loaded');
const pid = service.child.pid!;

const traffic = createTraffic(provider, service.port);
const wrong: string[] = [];
let slowest: LoadResponse[] = [];
const expected = new Map<string, number>();

const heed = (response: LoadResponse) => {
  const fault = faultOf(response, traffic);
  if (fault !== undefined && wrong.length < 20) wrong.push(fault);
  const { reason } = traffic[response.shot.kind]!;
  if (reason !== undefined) expected.set(reason, (expected.get(reason) ?? 0) + 1);
  if (slowest.length === 5 && response.millis <= slowest[4]!.millis) return;
  slowest = [...slowest, response].sort((one, other) => other.millis - one.millis).slice(0, 5);
};

const watch = new FetchWatch(provider);
const load = startLoad({ port: service.port, connections: CONNECTIONS, next: mix(traffic), heed });
const samples: { second: number; mebibytes: number }[] = [];
const start = performance.now();

const elapsed = () => (performance.now() - start) / 1000;

while (elapsed() < seconds) {
  await pass(Math.min(1_000, Math.max(1, (seconds - elapsed()) * 1_000)));
  samples.push({ second: elapsed(), mebibytes: residentMebibytes(pid) });
}

const tally = await load.stop();
const open = descriptors(pid);
service.child.kill('SIGTERM');
const code = await service.exited;
await service.stop();
await provider.stop();
watch.stop();

/** Garbage collection fluctuates: the lowest of several samples is the memory in use. */
const least = (of: typeof samples) => Math.min(...of.map(({ mebibytes }) => mebibytes));

const warm = samples.filter(({ second }) => second >= warmUpSeconds);
const width = Math.max(3, Math.floor(warm.length / 4));
const early = least(warm.slice(0, width));
const late = least(warm.slice(-width));

const problems = [
  ...wrong,
  ...(tally.lost > 0 ? [`${tally.lost} requests lost`] : []),
  ...(tally.refusedConnections > 0 ? [`${tally.refusedConnections} connections refused`] : []),
  ...(late - early > GROWTH ? [`memory grew from ${early} to ${late} MiB`] : []),
  ...(watch.starts.length > Math.floor(seconds / 5) + 2
    ? [`${watch.starts.length} fetches in ${seconds} s`]
    : []),
  ...(code === 0 ? [] : [`exit code ${code}`]),
  ...[...new Set([...expected.keys(), ...refusals.keys()])]
    .filter((reason) => expected.get(reason) !== refusals.get(reason))
    .map(
      (reason) => `${reason}: ${expected.get(reason) ?? 0} answers, ${refusals.get(reason) ?? 0} log lines`,
    ),
  ...warnings(service).map((warning) => `the log says: ${warning}`),
];

printTable(
  'answers',
  [...tally.statuses].sort().map(([response, count]) => ({ response, count })),
);

printTable(
  'refusals by reason',
  [...refusals].sort(([, one], [, other]) => other - one).map(([reason, count]) => ({ reason, count })),
);

printTable(
  'slowest answers',
  slowest.map(({ millis, shot: { kind }, status }) => ({ ms: millis, kind, status })),
);

printTable('soak', [
  {
    seconds,
    requests: tally.answered,
    'per second': Math.round(tally.answered / seconds),
    lost: tally.lost,
    fetches: watch.starts.length,
    'p50 ms': tally.latencies.percentile(0.5),
    'p99 ms': tally.latencies.percentile(0.99),
    'p99.9 ms': tally.latencies.percentile(0.999),
    'MiB at start': samples[0]?.mebibytes ?? 0,
    'MiB warm': early,
    'MiB at end': late,
    descriptors: open,
  },
]);

process.stdout.write(
  problems.length === 0
    ? 'nothing was wrong\n'
    : `wrong:\n${problems.map((problem) => `  ${problem}\n`).join('')}`,
);

process.exitCode = problems.length === 0 ? 0 : 1;
