// What is read for each scrape: the keys and stores of gates and services, and what the process itself uses:
// processor, memory, and how late its timers run.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { catching } from '../../verify/base/encoding.ts';
import { VERSION } from '../../verify/base/version.ts';
import type { Watched } from '../../gate/options.ts';
import type { ReplayStore } from '../../verify/dpop/replay.ts';

export type Gauge = readonly [name: string, value: number];

type Join = (one: number, other: number) => number;

/** `join` gives the value of two gates or services. */
type Reading = readonly [name: string, value: number, join: Join];

/** Of gates and services that have the same gauge, the worst value counts, and the sum of entries. */
export function gaugesOf(watched: readonly Watched[]): readonly Gauge[] {
  const gauges = new Map<string, number>();
  for (const [name, value, join] of watched.flatMap(readingsOf)) {
    const before = gauges.get(name);
    gauges.set(name, before === undefined ? value : join(before, value));
  }
  return [...gauges];
}

function readingsOf({ name: profile, issuers, replayStore, revocations }: Watched): Reading[] {
  const ofKeys = issuers.flatMap(({ name, keys }): Reading[] => [
    [`gatehouse_keys_age_seconds{issuer="${name}"}`, keys.ageMillis() / 1000, Math.max],
    [`gatehouse_keys_usable{issuer="${name}"}`, keys.usable(), Math.min],
  ]);
  return [
    ...ofKeys,
    [`gatehouse_info{version="${VERSION}",profile="${profile}"}`, 1, Math.min],
    readingOf(replayStore),
    ...(revocations ? [upOf('revocation', revocations.isUp())] : []),
  ];
}

const add: Join = (one, other) => one + other;

function readingOf(store: ReplayStore): Reading {
  const state = store.state();
  return 'entries' in state ? ['gatehouse_replay_entries', state.entries, add] : upOf('replay', state.isUp);
}

function upOf(store: string, isUp: boolean): Reading {
  return [`gatehouse_${store}_store_up`, Number(isUp), Math.min];
}

const delays = monitorEventLoopDelay({ resolution: 20 });

/** Name and value of each gauge; NaN for what cannot be known at the moment. */
export function processGauges(): readonly Gauge[] {
  const { user, system } = process.cpuUsage();
  // Node opens a file for it, and there may be no descriptor left.
  const memory = catching('Error', process.memoryUsage);
  const { rss = NaN, heapUsed = NaN, heapTotal = NaN } = memory ?? {};
  const lateSeconds = delays.percentile(99) / 1e9;
  delays.enable();
  delays.reset();
  return Object.entries({
    process_start_time_seconds: performance.timeOrigin / 1000,
    process_cpu_seconds_total: (user + system) / 1e6,
    process_resident_memory_bytes: rss,
    nodejs_heap_size_used_bytes: heapUsed,
    nodejs_heap_size_total_bytes: heapTotal,
    // Each timer runs for 20 ms.
    nodejs_eventloop_lag_p99_seconds: Math.max(0, lateSeconds - 0.02),
  });
}
