// The only outbound socket: fetches the provider's key set over HTTPS (contract §7). Trusts the authorities of Node (and of
// NODE_EXTRA_CA_CERTS). Promises: no redirect followed, one deadline over everything, bounded bytes, the socket gone at the end.
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { parseJsonObject, type JsonObject } from '../base/encoding.ts';
import type { FetchFlaw } from '../base/events.ts';
import { FetchFailure } from './key-set.ts';

const MAX_BYTES = 512 * 1024;
/** Where the keys are: host (and port), expected issuer URL, and the key-set address when it is configured. */
export type KeySource = Readonly<{ domain: string; issuer: string; jwksUri: string | undefined }>;
/** A function that fetches the key set within `timeoutMillis` in all, discovery included; it rejects with `FetchFailure`. */
export function createKeyFetcher(source: KeySource, timeoutMillis = 5_000): () => Promise<JsonObject> {
  return async () => {
    const signal = AbortSignal.timeout(timeoutMillis);
    try {
      return (
        (await fetchJson(source.jwksUri ?? (await discover(source, signal)), signal)) ??
        fail('status-refused', '404')
      );
    } catch (failure) {
      throw signal.aborted ? new FetchFailure('timeout') : describe(failure);
    }
  };
}
/** The key-set address (OpenID Connect Discovery §4): found anew at every fetch, since a provider may move it. */
async function discover({ issuer, domain }: KeySource, signal: AbortSignal): Promise<string> {
  const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  if (document === undefined) return `https://${domain}/.well-known/jwks.json`;
  // OpenID Connect Discovery §4.3: the issuer must be the very one that was asked.
  if (document.issuer !== issuer) fail('issuer-mismatch');
  const address = document.jwks_uri;
  return typeof address === 'string' && URL.canParse(address) && new URL(address).protocol === 'https:'
    ? address
    : fail('address-refused');
}
/** The JSON object at `address`; `undefined` when there is nothing (404). */
async function fetchJson(address: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // rejectUnauthorized is said aloud so that NODE_TLS_REJECT_UNAUTHORIZED=0 cannot turn it off. Accept: RFC 9110 §12.5.1.
    get(
      address,
      { signal, agent: false, rejectUnauthorized: true, headers: { Accept: 'application/json' } },
      resolve,
    ).on('error', reject);
  });
  try {
    const status = response.statusCode ?? 0;
    if (status === 404) return undefined;
    if (status !== 200)
      fail(
        status >= 300 && status < 400 && response.headers.location ? 'redirect-refused' : 'status-refused',
        String(status),
      );
    return parseJsonObject(await readBody(response)) ?? fail('not-a-json-object');
  } finally {
    response.destroy();
  }
}
async function readBody(response: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) fail('too-large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
function fail(reason: FetchFlaw, code?: string): never {
  throw new FetchFailure(reason, code);
}
/** Sorts Node's errors by what an operator would do about them. */
function describe(failure: unknown): FetchFailure {
  if (failure instanceof FetchFailure) return failure;
  const code = failure instanceof Error && 'code' in failure ? String(failure.code) : '';
  if (code === '') return new FetchFailure('unforeseen');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return new FetchFailure('name-not-resolved', code);
  if (/CERT|SIGNATURE|TLS|SSL|CA$|PATH_LENGTH|PURPOSE|HOSTNAME/.test(code))
    return new FetchFailure('certificate-refused', code);
  return new FetchFailure(code === 'ECONNREFUSED' ? 'connection-refused' : 'connection-failed', code);
}
