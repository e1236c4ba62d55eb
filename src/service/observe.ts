// What is told of requests, from the one record that each leaves: a line for a refusal, a line for a bug, and
// a summary once a minute, so that an operator at the default level sees that callers are turned away, and
// why. Trusts that the pipeline calls it once a request. Does not decide what a line may hold: base/events.ts
// does.
import type { Clock } from '../base/clock.ts';
import {
  describeBug,
  printable,
  printableSetting,
  type Log,
  type Observe,
  type RequestRecord,
} from '../base/events.ts';
import type { RefusalReason } from '../base/refusal.ts';

const SUMMARY_MILLIS = 60_000;

/** A probe that finds the service not ready is no caller who was turned away. */
const PROBES = ['/healthz', '/readyz'];

export interface Observer {
  readonly observe: Observe;
  /** Writes the last summary, if there is something to say. */
  stop(): void;
}

export interface ObserverParts {
  readonly log: Log;
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
}

export function createObserver({ log, clock }: ObserverParts): Observer {
  const counts = new Map<RefusalReason, number>();
  let period: { readonly since: number; readonly cancel: () => void } | undefined;

  const summarize = () => {
    if (period === undefined) return;

    const seconds = Math.round((clock.monotonic() - period.since) / 1000);
    const numbers = [...counts.values()];
    const total = numbers.reduce((sum, number) => sum + number, 0);
    log('requests refused', { seconds, total, ...Object.fromEntries(counts) });

    period.cancel();
    period = undefined;
    counts.clear();
  };

  const count = (reason: RefusalReason) => {
    period ??= { since: clock.monotonic(), cancel: clock.after(SUMMARY_MILLIS, summarize) };
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  };

  const observe = ({ row, status, reason, kid, failure }: RequestRecord) => {
    if (reason === undefined) return;

    if (reason === 'bug') {
      const place = row && { method: printable(row.method), route: printableSetting(row.pattern) };
      log('request failed', { ...place, ...describeBug(failure) });
      return;
    }

    log('request refused', { status, reason, kid: kid === undefined ? undefined : printable(kid) });
    if (row === undefined || !PROBES.includes(row.pattern)) count(reason);
  };

  return { observe, stop: summarize };
}
