// Tells a hook of each response. Promises: without one, no request costs anything.
import type { Clock } from '../../verify/base/clock.ts';
import type { Log } from '../../verify/base/events.ts';
import type { OnResponse, ResponseEvent } from '../../gate/events.ts';
import type { Watcher } from '../../gate/observe.ts';
import { createTell } from '../../gate/tell.ts';

type Served = Pick<ResponseEvent, 'route' | 'status' | 'durationMillis'>;

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
      const { facts, route } = record;
      // Forward-auth: the request that the proxy asks about.
      const asked = facts?.uri && { method: facts.method, path: facts.path };
      const millis = clock.monotonic() - arrival.arrivedAtMillis;
      const durationMillis = Math.round(millis * 1_000) / 1_000;
      const served = { route: route?.pattern ?? null, status, durationMillis };
      void tell(arrival.request, record, { ...asked, ...served });
    },
  };
}
