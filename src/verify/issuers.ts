// The trusted issuers, each with its own keys (RFC 8725 §3.8).
import type { Surroundings } from './base/events.ts';
import { Part } from './base/option.ts';
import { KeyFetch, withDeadline } from './keys/fetch.ts';
import { importSigningKey } from './keys/jwk.ts';
import { KeySet } from './keys/key-set.ts';
import type { FetchFrom, IssuersValues } from './options.ts';
import type { Issuer } from './token/verify.ts';

export function createIssuers(values: IssuersValues, surroundings: Surroundings): readonly Issuer[] {
  const { issuers, clockToleranceSeconds, connect, fetchKeys } = values;
  if (fetchKeys !== undefined) surroundings.log('signing keys not from the provider', {});

  return Object.entries(issuers).map(([name, own]) => {
    const { jwksUri, algorithms, tenants } = own;
    const introspect = Part.contentOf(own.introspection)?.create(own, name, values, surroundings);
    const issuer = { ...own, name, clockToleranceSeconds, introspect };

    const fetchFrom: FetchFrom = (address, tenant) =>
      fetchKeys
        ? () => fetchKeys(own, name, tenant)
        : new KeyFetch({ ...own, jwksUri: address }, Part.contentOf(connect)).fetch;

    if (tenants !== undefined) return Part.contentOf(tenants).createIssuer(issuer, fetchFrom, surroundings);

    const keys = new KeySet(name, withDeadline(fetchFrom(jwksUri)), surroundings, (published) =>
      importSigningKey(published, algorithms),
    );
    return { ...issuer, keys };
  });
}

/** Whether tokens can be verified. */
export function haveKeys(issuers: readonly Issuer[]): boolean {
  // Asks all: asking keeps keys fresh.
  const usable = issuers.filter(({ keys }) => keys.usable() > 0);
  // Choice: a rollout waits for the first keys of the first issuer only.
  return usable.length > 0 && issuers[0]?.keys.ageMillis() !== Infinity;
}
