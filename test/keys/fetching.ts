/* What the tests of the outbound request share. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { JsonObject } from '../../src/base/encoding.ts';
import { createKeyFetcher, type KeySource } from '../../src/keys/fetch.ts';
import { FetchFailure } from '../../src/keys/key-set.ts';
import type { FetchFlaw } from '../../src/base/events.ts';
import type { Provider } from '../idp/provider.ts';

export const keySetOf = ({ issuer }: Provider) => `${issuer}.well-known/jwks.json`;

/** Where this provider's keys are, to be found by discovery unless `change` says otherwise. */
export const sourceOf = ({ domain, issuer }: Provider, change: Partial<KeySource> = {}): KeySource => ({
  domain,
  issuer,
  jwksUri: undefined,
  ...change,
});

export const fetchKeys = (source: KeySource, timeoutMillis?: number) =>
  createKeyFetcher(source, timeoutMillis)();
export const kidsOf = ({ keys }: JsonObject) => (keys as { kid: string }[]).map(({ kid }) => kid);

/** The reason and code with which a fetch fails. */
export async function flawOf(source: KeySource, timeoutMillis?: number): Promise<[FetchFlaw, string]> {
  const failure: unknown = await fetchKeys(source, timeoutMillis).then(
    () => assert.fail('the fetch succeeded'),
    (thrown) => thrown,
  );
  assert.ok(failure instanceof FetchFailure, String(failure));
  return [failure.reason, failure.code];
}

/** Resolves once the provider has no connection left. */
export async function closed(from: Provider): Promise<void> {
  while (from.openSockets > 0) await new Promise(setImmediate);
}

/** Ends every fault and change, and counts from zero. */
export async function restore(from: Provider): Promise<void> {
  await from.fault('all', undefined);
  from.publish(undefined);
  from.discoveryDocument(undefined);
  await closed(from);
  from.resetCounts();
}

/** A listener without TLS that accepts connections and never says a word. */
export async function startSilent(
  context: TestContext,
): Promise<{ port: number; connections: () => number; open: () => number }> {
  let connections = 0;
  let open = 0;
  const server = createServer((socket) => {
    connections += 1;
    open += 1;
    socket
      .on('error', () => {})
      .on('close', () => {
        open -= 1;
      })
      .resume();
  }).listen(0, 'localhost');
  await once(server, 'listening');
  context.after(() => once(server.close(), 'close'));
  return { port: (server.address() as AddressInfo).port, connections: () => connections, open: () => open };
}
