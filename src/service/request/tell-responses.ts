// Tells a hook of each response. Promises: without one, no request costs anything.
import type { Clock } from '../../verify/base/clock.ts';
import type { Log } from '../../verify/base/events.ts';
import type { RequestFacts } from '../../verify/request/facts.ts';
import type { OnResponse, ResponseEvent } from '../../gate/events.ts';
import type { Watcher } from '../../gate/observe.ts';
import { createTell } from '../../gate/tell.ts';

type Asked = Pick<ResponseEvent, 'method' | 'path'>;

type Served = Pick<ResponseEvent, 'route' | 'status' | 'durationMillis'> & (Asked | object);

interface HookOptions {
  readonly onResponse: OnResponse | undefined;
  readonly trustProxy: boolean;
}

/** The observer, which then tells the hook too. */
export function tellResponses(observer: Watcher, options: HookOptions, clock: Clock, log: Log): Watcher {
  const tell = createTell<Served>(options.onResponse, options, clock, log);
  if (tell === undefined) return observer;

  return {
    isWatching: true,

    startTiming() {
      observer.startTiming();
      return clock.monotonic();
    },

    observe(arrival, record, status) {
      observer.observe(arrival, record, status);
      const millis = clock.monotonic() - arrival.arrivedAtMillis;
      const durationMillis = Math.round(millis * 1_000) / 1_000;
      const route = record.route?.pattern ?? null;
      void tell(arrival.request, record, { ...askedOf(record.facts), route, status, durationMillis });
    },
  };
}

/** Forward-auth: the request that the proxy asks about. An ambiguous path is none. */
const askedOf = (facts: RequestFacts | undefined): Asked | object =>
  facts?.uri === undefined ? {} : { method: facts.method, path: facts.path || null };
