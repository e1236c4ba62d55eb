// All metrics, as text for Prometheus (format 0.0.4). Promises: labels come from routes, options and closed
// lists, never from a request; foreseeable samples start at zero.
import { FETCH_ERROR_REASONS, type Count, type CountedEvent } from '../../verify/base/events.ts';
import { REFUSALS } from '../../verify/base/refusal.ts';
import type { Meter } from '../../gate/observe.ts';
import type { Metrics, Watched } from '../../gate/options.ts';
import { gaugesOf, processGauges, type Gauge } from './gauges.ts';

const REASONS = Object.values(REFUSALS).flatMap(Object.keys);

/** In seconds, as OpenTelemetry recommends for HTTP servers. */
const BOUNDS = '0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 Infinity'.split(' ').map(Number);

type Family = readonly [name: string, type: string, help: string];

const DURATION = 'http_server_request_duration_seconds';

/** No name may begin with another: `linesOfFamily` searches by prefix. */
const FAMILIES: readonly Family[] = [
  [DURATION, 'histogram', 'From the arrival of a request to its response.'],
  ['http_server_active_requests', 'gauge', 'Requests without a response yet.'],
  ['gatehouse_refusals_total', 'counter', 'Requests that were refused, except probes.'],
  ['gatehouse_tokens_total', 'counter', 'Valid tokens: verified, introspected or cached.'],
  ['gatehouse_key_fetches_total', 'counter', 'Fetches of signing keys.'],
  [
    'gatehouse_keys_age_seconds',
    'gauge',
    'Seconds since signing keys were fetched; infinite until a fetch succeeds.',
  ],
  ['gatehouse_keys_usable', 'gauge', 'Signing keys that can verify a token now.'],
  [
    'gatehouse_introspections_total',
    'counter',
    'Introspection requests, by their result; shed ones were not sent.',
  ],
  ['gatehouse_revocation_checks_total', 'counter', 'Revocation lookups, by result.'],
  ['gatehouse_revocation_store_up', 'gauge', 'Whether the revocation store responds.'],
  ['gatehouse_replay_proofs_total', 'counter', 'Proofs that passed every other check.'],
  ['gatehouse_decisions_total', 'counter', 'Decisions, by result.'],
  ['gatehouse_replay_entries', 'gauge', 'Used proofs in the replay store.'],
  ['gatehouse_replay_store_up', 'gauge', 'Whether the shared replay store responds.'],
  ['gatehouse_info', 'gauge', 'Version and profile.'],
  ['process_start_time_seconds', 'gauge', 'Start of the process, since the epoch.'],
  ['process_cpu_seconds_total', 'counter', 'Processor time of the process.'],
  ['process_resident_memory_bytes', 'gauge', 'Memory of the process.'],
  ['nodejs_heap_size_used_bytes', 'gauge', 'Heap in use.'],
  ['nodejs_heap_size_total_bytes', 'gauge', 'Heap held.'],
  [
    'nodejs_eventloop_lag_p99_seconds',
    'gauge',
    'How late timers ran since the last scrape: the 99th percentile.',
  ],
];

/** The sample of each counted event. */
const COUNTERS: Readonly<Record<CountedEvent, (word: string, issuer: string) => string>> = {
  refusal: (reason) => `gatehouse_refusals_total{reason="${reason}"}`,
  token: (result) => `gatehouse_tokens_total{result="${result}"}`,
  introspection: (result, issuer) => `gatehouse_introspections_total{issuer="${issuer}",result="${result}"}`,
  'revocation check': (result) => `gatehouse_revocation_checks_total{result="${result}"}`,
  proof: (result) => `gatehouse_replay_proofs_total{result="${result}"}`,
  decision: (result) => `gatehouse_decisions_total{result="${result}"}`,
  'key fetch': (result, issuer) => `gatehouse_key_fetches_total{issuer="${issuer}",result="${result}"}`,
};

interface Bucket {
  readonly bound: number;
  count: number;
}

interface Histogram {
  readonly labels: string;
  readonly buckets: readonly Bucket[];
  sum: number;
}

/** What gates and services tell, and what is read for each scrape. */
export class Counting implements Omit<Metrics, 'endpoint'>, Meter {
  /** By name. */
  readonly #counts = new Map<string, number>();
  /** By route, method and status. */
  readonly #durations = new Map<string, Histogram>();
  readonly #watched = new Set<Watched>();
  #active = 0;
  readonly meter = this;

  #add(name: string, count: number) {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  /** Looked up by each request: its labels are made once. */
  #durationsOf(pattern: string | undefined, method: string, status: number | null) {
    const key = `${method} ${status} ${pattern}`;
    const known = this.#durations.get(key);
    if (known !== undefined) return known;

    const route = pattern === undefined ? '' : `http_route=${JSON.stringify(pattern)},`;
    const statusLabel = status === null ? '' : `,http_response_status_code="${status}"`;
    const labels = `${route}http_request_method="${method}"${statusLabel}`;
    const buckets = BOUNDS.map((bound) => ({ bound, count: 0 }));
    const histogram = { labels, buckets, sum: 0 };
    this.#durations.set(key, histogram);
    return histogram;
  }

  readonly count: Count = (event, word, issuer = '') => {
    this.#add(COUNTERS[event](word, issuer), 1);
  };

  requestBegan() {
    this.#active += 1;
  }

  requestEnded(...[method, pattern, status, seconds]: Parameters<Meter['requestEnded']>) {
    this.#active -= 1;
    if (method === undefined) return;

    const histogram = this.#durationsOf(pattern, method, status);
    histogram.sum += seconds;
    for (const bucket of histogram.buckets) {
      if (seconds <= bucket.bound) bucket.count += 1;
    }
  }

  #foresee(event: CountedEvent, words: readonly string[], issuer = '') {
    for (const word of words) this.#add(COUNTERS[event](word, issuer), 0);
  }

  #foreseeRoutes(routes: Watched['routes']) {
    for (const { method, pattern } of routes) {
      for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        // From 0: Prometheus sees no rise in a series that begins at 1, so an alert would miss the first 500.
        for (const status of method === 'GET' ? [200, 500] : [200, 201, 204, 500]) {
          this.#durationsOf(pattern, each, status);
        }
      }
    }
  }

  readonly watch = (one: Watched) => {
    this.#watched.add(one);
    this.#foreseeRoutes([...one.ownRoutes, ...one.routes]);
    this.#foresee('refusal', REASONS);
    this.#foresee('token', ['remembered', 'verified']);
    if (one.revocations) this.#foresee('revocation check', ['clear', 'revoked', 'unavailable']);
    this.#foresee('proof', ['new', 'seen', 'full', 'unavailable']);
    this.#foresee('decision', ['allowed', 'refused', 'failed']);
    for (const { name, introspect } of one.issuers) {
      this.#foresee('key fetch', ['ok', ...FETCH_ERROR_REASONS], name);
      if (introspect === undefined) continue;

      this.#foresee('introspection', ['active', 'inactive', 'failed', 'shed'], name);
      this.#foresee('token', ['introspected']);
    }

    return () => {
      this.#watched.delete(one);
    };
  };

  /** All metrics for Prometheus (format 0.0.4). */
  readonly text = () => {
    const active: Gauge = ['http_server_active_requests', this.#active];
    const gauges = [...gaugesOf([...this.#watched]), ...processGauges()];
    const durations = Array.from(this.#durations.values(), linesOf);
    const others = [active, ...this.#counts, ...gauges].map(lineOf);
    const all = [...durations, ...others];
    return FAMILIES.flatMap((family) => linesOfFamily(family, all)).join('');
  };
}

function linesOfFamily([family, type, help]: Family, all: readonly string[]) {
  const lines = all.filter((line) => line.startsWith(family));
  const head = `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
  return lines.length === 0 ? [] : [head, ...lines];
}

const lineOf = ([name, value]: Gauge) => `${name} ${numeral(value)}\n`;

function linesOf({ labels, buckets, sum }: Histogram) {
  const lines = buckets.map(({ bound, count }) => {
    const edge = `${labels},le="${numeral(bound)}"`;
    return `${DURATION}_bucket{${edge}} ${count}\n`;
  });
  lines.push(
    `${DURATION}_count{${labels}} ${buckets.at(-1)?.count}\n`,
    `${DURATION}_sum{${labels}} ${numeral(sum)}\n`,
  );
  return lines.join('');
}

const numeral = (value: number) => (value === Infinity ? '+Inf' : String(value));
