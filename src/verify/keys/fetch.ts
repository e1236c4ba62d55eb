// Fetches the provider's key set over HTTPS. Trusts Node's authorities and those of NODE_EXTRA_CA_CERTS.
// Promises: one deadline, bounded bytes, no redirects, no way around a proxy, no socket left open. Does not
// check keys: verify/keys/jwks.ts does.
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { ByteBuffer } from '../base/byte-buffer.ts';
import { parseJsonObject, type JsonObject } from '../base/encoding.ts';
import { VERSION } from '../base/version.ts';
import { FetchError } from './jwks.ts';

const MAX_BYTES = 512 * 1024;

const HEADERS = {
  // RFC 9110 §10.1.5: firewalls turn away requests without it.
  'User-Agent': `gatehouse/${VERSION}`,
  // RFC 9110 §12.5.1, RFC 7517 §8.5.2
  Accept: 'application/json, application/jwk-set+json',
  // RFC 9110 §12.5.3: without it, some servers send what they stored compressed.
  'Accept-Encoding': 'identity',
};

/** `domain` is a host with an optional port. */
export type KeySource = Readonly<{ domain: string; issuer: string; jwksUri: string | undefined }>;

/** Rejects with `FetchError`. */
export type Connect = (address: URL, signal: AbortSignal) => Promise<object>;

/**
 * Returns a function that fetches the key set within `timeoutMillis`, over `connect` if given. It rejects
 * with `FetchError`; any other error is a bug.
 */
export function createKeyFetcher(
  { domain, issuer, jwksUri }: KeySource,
  connect: Connect | undefined,
  timeoutMillis?: number,
) {
  /** If there is no discovery document. */
  const defaultDocument = { issuer, jwks_uri: `https://${domain}/.well-known/jwks.json` };

  async function fetchKeySet(signal: AbortSignal) {
    return fetchJson(jwksUri ?? (await discover(signal)), signal);
  }

  /** The key-set URL (OpenID Connect Discovery §4), which a provider may move. */
  async function discover(signal: AbortSignal) {
    const documentUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = await fetchJson(documentUrl, signal, defaultDocument);
    // OpenID Connect Discovery §4.3
    if (document.issuer !== issuer) throw new FetchError('issuer-mismatch');

    const address = document.jwks_uri;
    if (typeof address !== 'string' || !/^https:/i.test(address) || !URL.canParse(address)) {
      throw new FetchError('address-refused');
    }
    return address;
  }

  /** Returns `fallback`, if given, for a 404. */
  async function fetchJson(address: string, signal: AbortSignal, fallback?: JsonObject) {
    // The deadline may have passed during discovery.
    signal.throwIfAborted();

    const socket = await connect?.(new URL(address), signal);
    const response = await fetchResponse(address, { socket, signal });
    try {
      const status = response.statusCode ?? 0;
      if (status === 404 && fallback !== undefined) return fallback;

      // RFC 9110 §15.4: redirects are not followed.
      if (status !== 200) throw new FetchError('status-refused', status);

      const document = parseJsonObject(await readBody(response));
      if (document === undefined) throw new FetchError('not-a-json-object');
      return document;
    } finally {
      response.destroy();
    }
  }

  return withDeadline((signal) => fetchKeySet(signal).catch(rethrow), timeoutMillis);
}

/** Rejects with `FetchError` after `timeoutMillis`, even if `fetch` ignores the signal. */
export function withDeadline(fetch: (signal: AbortSignal) => Promise<JsonObject>, timeoutMillis = 5_000) {
  return () => {
    const signal = AbortSignal.timeout(timeoutMillis);
    // First: if it throws, nobody would handle the deadline.
    const fetched = fetch(signal);

    const deadline = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new FetchError('timeout')));
    });
    return Promise.race([deadline, fetched]);
  };
}

function fetchResponse(address: string, connection: object) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      ...connection,
      // An agent would save 2.8 % of startup, but Node then misses some errors.
      agent: false,
      headers: HEADERS,
      // Explicit: neither NODE_TLS_REJECT_UNAUTHORIZED nor NODE_OPTIONS changes these.
      rejectUnauthorized: true,
      insecureHTTPParser: false,
    };
    const request = get(address, options, resolve);
    request.on('error', reject);

    // RFC 9110 §15.2.2: `close` also follows a switch of protocols.
    request.on('close', () => reject(new FetchError('connection-failed')));
  });
}

async function readBody(response: AsyncIterable<Buffer>) {
  const body = new ByteBuffer();
  for await (const chunk of response) {
    if (body.add(chunk) > MAX_BYTES) throw new FetchError('too-large');
  }
  return body.release();
}

/** Sorts Node's errors by what an operator can do. */
function rethrow(error: unknown): never {
  if (!(error instanceof Error && 'code' in error)) throw error;

  const code = String(error.code);
  const isAboutCertificates = /CERT|SIGNATURE|TLS|SSL|CA$|PATH_LENGTH|PURPOSE|HOSTNAME/.test(code);
  throw new FetchError(isAboutCertificates ? 'certificate-refused' : 'connection-failed', code);
}
