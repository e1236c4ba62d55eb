// The trusted issuers, each with its own keys (RFC 8725 §3.8).
import type { Clock } from './base/clock.ts';
import type { Count, Log } from './base/events.ts';
import { Part } from './base/part.ts';
import { createKeyFetcher, withDeadline } from './keys/fetch.ts';
import { KeySet } from './keys/key-set.ts';
import type { CheckValues, IssuersByName } from './options.ts';
import type { Issuer } from './token/verify.ts';

interface IssuersOptions extends CheckValues {
  readonly issuers: IssuersByName;
}

/** What parts of a deployment share. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  readonly count: Count | undefined;
}

export function createIssuers(
  { issuers, clockToleranceSeconds, connect, fetchKeys }: IssuersOptions,
  { clock, log, count }: Surroundings,
): readonly Issuer[] {
  if (fetchKeys !== undefined) log('signing keys not from the provider', {});

  return Object.entries(issuers).map(([name, issuer]) => {
    const fetch = fetchKeys
      ? withDeadline(() => fetchKeys(issuer, name))
      : createKeyFetcher(issuer, Part.contentOf(connect));
    const keys = new KeySet(name, fetch, clock, log, count, issuer.algorithms);
    return { ...issuer, name, clockToleranceSeconds, keys };
  });
}

/** Whether tokens can be verified. */
export function haveKeys(issuers: readonly Issuer[]): boolean {
  // Asks all: asking keeps keys fresh.
  const usable = issuers.filter(({ keys }) => keys.usable() > 0);
  // Choice: a rollout waits for the first keys of the first issuer only.
  return usable.length > 0 && issuers[0]?.keys.ageMillis() !== Infinity;
}
