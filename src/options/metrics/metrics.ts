// All metrics, as text for Prometheus (format 0.0.4). Promises: labels come from routes, settings and closed
// lists, never from a request; foreseeable samples start at zero.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { FETCH_ERROR_REASONS, type Count, type CountedEvent } from '../../verify/base/events.ts';
import { SENTENCES } from '../../verify/base/refusal.ts';
import { VERSION } from '../../verify/base/version.ts';
import type { Route } from '../../service/routes/route.ts';
import type { ReplayStore } from '../../verify/dpop/replay.ts';
import type { Issuer } from '../../verify/token/verify.ts';

const REASONS = Object.values(SENTENCES).flatMap(Object.keys);

/** In seconds, as OpenTelemetry recommends for HTTP servers. */
const BOUNDS = '0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 Infinity'.split(' ').map(Number);

/** No name may begin with another: `textOf` searches by prefix. */
const HEADS = `# HELP http_server_request_duration_seconds From the arrival of a request to its response.
# TYPE http_server_request_duration_seconds histogram
# HELP http_server_active_requests Requests without a response yet.
# TYPE http_server_active_requests gauge
# HELP gatehouse_refusals_total Requests that were refused, except probes.
# TYPE gatehouse_refusals_total counter
# HELP gatehouse_tokens_total Tokens that were verified or found in the token cache.
# TYPE gatehouse_tokens_total counter
# HELP gatehouse_key_fetches_total Fetches of signing keys.
# TYPE gatehouse_key_fetches_total counter
# HELP gatehouse_keys_age_seconds Seconds since signing keys were fetched; infinite until a fetch succeeds.
# TYPE gatehouse_keys_age_seconds gauge
# HELP gatehouse_keys_usable Signing keys that can verify a token now.
# TYPE gatehouse_keys_usable gauge
# HELP gatehouse_replay_proofs_total Proofs that passed every other check.
# TYPE gatehouse_replay_proofs_total counter
# HELP gatehouse_replay_entries Used proofs in the replay store.
# TYPE gatehouse_replay_entries gauge
# HELP gatehouse_replay_store_up Whether the shared replay store responds.
# TYPE gatehouse_replay_store_up gauge
# HELP gatehouse_info Version and profile.
# TYPE gatehouse_info gauge
# HELP process_start_time_seconds Start of the process, since the epoch.
# TYPE process_start_time_seconds gauge
# HELP process_cpu_seconds_total Processor time of the process.
# TYPE process_cpu_seconds_total counter
# HELP process_resident_memory_bytes Memory of the process.
# TYPE process_resident_memory_bytes gauge
# HELP nodejs_heap_size_used_bytes Heap in use.
# TYPE nodejs_heap_size_used_bytes gauge
# HELP nodejs_heap_size_total_bytes Heap held.
# TYPE nodejs_heap_size_total_bytes gauge
# HELP nodejs_eventloop_lag_p99_seconds How late timers ran since the last scrape: the 99th percentile.
# TYPE nodejs_eventloop_lag_p99_seconds gauge
`;

/** The sample of each counted event. */
const COUNTERS: Readonly<Record<CountedEvent, (word: string, issuer: string) => string>> = {
  refusal: (reason) => `gatehouse_refusals_total{reason="${reason}"}`,
  token: (result) => `gatehouse_tokens_total{result="${result}"}`,
  proof: (result) => `gatehouse_replay_proofs_total{result="${result}"}`,
  'key fetch': (result, issuer) => `gatehouse_key_fetches_total{issuer="${issuer}",result="${result}"}`,
};

const delays = monitorEventLoopDelay({ resolution: 20 });

interface Sample {
  readonly name: string;
  value: number;
}

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(profile: string) {
  const samples: Sample[] = [];

  const sample = makingOnce((name: string) => {
    const made = { name, value: 0 };
    samples.push(made);
    return made;
  });

  const durations = makingOnce((pattern?: string) =>
    makingOnce((method: string) =>
      makingOnce((status: number | null) => {
        const route = pattern === undefined ? '' : `http_route=${JSON.stringify(pattern)},`;
        const statusLabel = status === null ? '' : `,http_response_status_code="${status}"`;
        return createHistogram(`${route}http_request_method="${method}"${statusLabel}`);
      }),
    ),
  );

  function createHistogram(labels: string) {
    const buckets = BOUNDS.map((bound) => {
      const edge = `${labels},le="${numeral(bound)}"`;
      return { bound, count: sample(`http_server_request_duration_seconds_bucket{${edge}}`) };
    });
    const all = sample(`http_server_request_duration_seconds_count{${labels}}`);
    const sum = sample(`http_server_request_duration_seconds_sum{${labels}}`);

    return (seconds: number) => {
      sum.value += seconds;
      all.value += 1;
      for (const { bound, count } of buckets) {
        if (seconds <= bound) count.value += 1;
      }
    };
  }

  const count: Count = (event, word, issuer = '') => {
    sample(COUNTERS[event](word, issuer)).value += 1;
  };

  const active = sample('http_server_active_requests');

  function requestBegan() {
    active.value += 1;
  }

  function requestEnded(
    method: string | undefined,
    pattern: string | undefined,
    status: number | null,
    seconds: number,
  ) {
    active.value -= 1;
    if (method !== undefined) durations(pattern)(method)(status)(seconds);
  }

  function foresee(event: CountedEvent, words: readonly string[], issuer = '') {
    for (const word of words) sample(COUNTERS[event](word, issuer));
  }

  function foreseeRoutes(routes: readonly Route[]) {
    for (const { method, pattern } of routes) {
      for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        // From 0: Prometheus sees no rise in a series that begins at 1, so an alert would miss the first 500.
        for (const status of method === 'GET' ? [200, 500] : [200, 201, 204, 500]) {
          durations(pattern)(each)(status);
        }
      }
    }
  }

  function read(issuers: readonly Issuer[], store: ReplayStore) {
    foresee('refusal', REASONS);
    foresee('token', ['remembered', 'verified']);
    foresee('proof', ['new', 'seen', 'full', 'unavailable']);

    for (const { name, keys } of issuers) {
      foresee('key fetch', ['ok', ...FETCH_ERROR_REASONS], name);
      sample(`gatehouse_keys_age_seconds{issuer="${name}"}`).value = keys.ageMillis() / 1000;
      sample(`gatehouse_keys_usable{issuer="${name}"}`).value = keys.usable();
    }

    sample(`gatehouse_info{version="${VERSION}",profile="${profile}"}`).value = 1;
    for (const [name, value] of [gaugeOf(store), ...processGauges()]) {
      sample(name).value = value;
    }
    return HEADS.replace(/# HELP (\S+) .+\n.+\n/g, textOf);
  }

  function textOf(head: string, family: string) {
    const lines = samples
      .filter(({ name }) => name.startsWith(family))
      .map(lineOf)
      .join('');
    return lines && head + lines;
  }

  return { count, durations, requestBegan, requestEnded, foreseeRoutes, read };
}

function makingOnce<Key, Value>(make: (key: Key) => Value) {
  const made = new Map<Key, Value>();
  return (key: Key): Value => {
    const before = made.get(key);
    if (before !== undefined) return before;

    const value = make(key);
    made.set(key, value);
    return value;
  };
}

const lineOf = ({ name, value }: Sample) => `${name} ${numeral(value)}\n`;

const numeral = (value: number) => (value === Infinity ? '+Inf' : String(value));

function gaugeOf(store: ReplayStore): [name: string, value: number] {
  const state = store.state();
  return 'entries' in state
    ? ['gatehouse_replay_entries', state.entries]
    : ['gatehouse_replay_store_up', Number(state.isUp)];
}

function processGauges() {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, heapTotal } = process.memoryUsage();
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
