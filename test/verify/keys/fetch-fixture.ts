/* Helpers for the tests of the outbound request. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { throughProxy } from '../../../src/options/proxy.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { KeyFetch, withDeadline, type Connect, type KeySource } from '../../../src/verify/keys/fetch.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import type { FetchErrorReason } from '../../../src/verify/base/events.ts';
import { Listener } from '../../idp/listener.ts';
import type { Provider } from '../../idp/provider.ts';

export const keySetOf = ({ issuer }: Provider) => `${issuer}.well-known/jwks.json`;

/** A key source without discovery. */
export const sourceAt = (jwksUri: string): KeySource => ({
  domain: 'localhost',
  issuer: 'https://localhost/',
  jwksUri,
});

/** This provider as a key source, by discovery unless `change` says otherwise. */
export const sourceOf = ({ domain, issuer }: Provider, change: Partial<KeySource> = {}): KeySource => ({
  domain,
  issuer,
  jwksUri: undefined,
  ...change,
});

/** Fetches as an issuer does, within a time of its own. */
export const createKeyFetcher = (source: KeySource, connect?: Connect, timeoutMillis?: number) =>
  withDeadline(new KeyFetch(source, connect).fetch, timeoutMillis);

/** Too long to pass while something else should end the fetch, however busy the machine. */
const FAR_DEADLINE_MILLIS = 60_000;

export const fetchKeys = (source: KeySource, timeoutMillis = FAR_DEADLINE_MILLIS, proxy?: string) =>
  createKeyFetcher(source, proxy === undefined ? undefined : connectThrough(proxy), timeoutMillis)();

/** What the part does. */
export const connectThrough = (proxy: string) => Part.contentOf(throughProxy(proxy));

export const kidsOf = ({ keys }: JsonObject) => (keys as { kid: string }[]).map(({ kid }) => kid);

/** The reason and code with which a fetch fails. */
export async function reasonOf(
  source: KeySource,
  timeoutMillis?: number,
  proxy?: string,
): Promise<[FetchErrorReason, string]> {
  const failure: unknown = await fetchKeys(source, timeoutMillis, proxy).then(
    () => assert.fail('the fetch succeeded'),
    (thrown) => thrown,
  );
  if (failure instanceof assert.AssertionError) throw failure;
  // Any other error counts as unforeseen, as in the key set.
  return failure instanceof FetchError ? [failure.reason, failure.code] : ['unforeseen', ''];
}

/**
 * The reason and code of a fetch that only its deadline ends. On a busy machine a short deadline may pass
 * before there is a connection: then it tries a longer one.
 */
export async function reasonAtDeadline(
  source: KeySource,
  server: { readonly connections: number },
  proxy?: string,
): Promise<[FetchErrorReason, string]> {
  for (let timeoutMillis = 120; ; timeoutMillis *= 2) {
    const reason = await reasonOf(source, timeoutMillis, proxy);
    // The server counts a connection one turn after the system has made it.
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
    if (server.connections > 0 || timeoutMillis > 20_000) return reason;
  }
}

/** Resolves once the provider has no connection left. */
export async function closed(from: Provider): Promise<void> {
  while (from.openSockets > 0) await new Promise(setImmediate);
}

/** Ends every fault and change, and resets the counters. */
export async function restore(from: Provider): Promise<void> {
  await from.fault('all', undefined);
  from.publish(undefined);
  from.discoveryDocument(undefined);
  await closed(from);
  from.resetCounts();
}

/** A server at `localhost:<port>` with the provider's certificate. */
export async function startServer(
  context: TestContext,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ domain: string }> {
  const listener = new Listener('localhost', 0, {
    countConnection: () => {},
    handle: async (...exchange) => handle(...exchange),
  });
  await listener.enter({ listening: true, certificate: 'provider' });
  context.after(() => listener.enter({ listening: false, certificate: 'provider' }));
  return { domain: `localhost:${listener.port}` };
}
