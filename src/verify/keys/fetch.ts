// Fetches the provider's key set over HTTPS. Trusts the authorities of Node (and of NODE_EXTRA_CA_CERTS).
// Promises: whatever the other side does, it settles within one deadline over everything; where there is a
// proxy nothing goes around it; no redirect is followed, bytes are bounded, the socket is gone at the end.
// Does not judge the keys: verify/keys/jwks.ts does.
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { ByteBuffer } from '../base/byte-buffer.ts';
import { parseJsonObject, type JsonObject } from '../base/encoding.ts';
import { FetchFailure } from './jwks.ts';
import { lookupOnce } from './lookup.ts';
import { openTunnel } from '../../options/proxy-tunnel.ts';

const MAX_BYTES = 512 * 1024;
const MAX_INTERIM_RESPONSES = 10;

/** Where keys are: host (and port), expected issuer URL, and the key-set address when it is configured. */
export type KeySource = Readonly<{ domain: string; issuer: string; jwksUri: string | undefined }>;

/**
 * A function that fetches the key set, through the proxy if there is one, within `timeoutMillis` in all,
 * tunnels and discovery included; it rejects with `FetchFailure`, or with what nobody foresaw.
 */
export function createKeyFetcher(
  { domain, issuer, jwksUri }: KeySource,
  proxy: string | undefined,
  timeoutMillis = 5_000,
): () => Promise<JsonObject> {
  /** What a provider without a discovery document would say in it. */
  const usual = { issuer, jwks_uri: `https://${domain}/.well-known/jwks.json` };

  async function fetchKeySet(signal: AbortSignal) {
    return fetchJson(jwksUri ?? (await discover(signal)), signal);
  }

  /**
   * The key-set address (OpenID Connect Discovery §4), found anew at every fetch: a provider may move it.
   */
  async function discover(signal: AbortSignal) {
    const documentUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = await fetchJson(documentUrl, signal, usual);
    // OpenID Connect Discovery §4.3: the issuer must be the very one that was asked.
    if (document.issuer !== issuer) throw new FetchFailure('issuer-mismatch');

    const address = document.jwks_uri;
    if (typeof address !== 'string' || !/^https:/i.test(address) || !URL.canParse(address)) {
      throw new FetchFailure('address-refused');
    }
    return address;
  }

  /** The JSON object at `address`, or what stands in for it when there is nothing (404). */
  async function fetchJson(address: string, signal: AbortSignal, standIn?: JsonObject) {
    // Cut off by the deadline, a document without a length ends as if it were whole.
    signal.throwIfAborted();

    const socket = proxy && (await openTunnel(proxy, new URL(address), signal));
    const response = await fetchHead(address, { socket, signal });
    try {
      const status = response.statusCode ?? 0;
      if (status === 404 && standIn !== undefined) return standIn;

      // RFC 9110 §15.4: a redirect is no answer either.
      if (status !== 200) throw new FetchFailure('status-refused', status);

      const document = parseJsonObject(await readBody(response));
      if (document === undefined) throw new FetchFailure('not-a-json-object');
      return document;
    } finally {
      response.destroy();
    }
  }

  return () => {
    const signal = AbortSignal.timeout(timeoutMillis);

    // The deadline needs nobody's help to end the fetch; the signal ends the connection.
    const deadline = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new FetchFailure('timeout')));
    });
    return Promise.race([deadline, fetchKeySet(signal).catch(sortFailure)]);
  };
}

/** The head of the final response; whatever else Node may end a request with is a failure. */
function fetchHead(address: string, way: object) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      ...way,
      // One kept from discovery to keys saves a start 2.8 %, and Node does not listen for all of its errors.
      agent: false,
      // RFC 9110 §12.5.1
      headers: { Accept: 'application/json' },
      lookup: lookupOnce,
      // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED and NODE_OPTIONS cannot turn them off.
      rejectUnauthorized: true,
      insecureHTTPParser: false,
    };
    const request = get(address, options, resolve);
    request.on('error', reject);

    // Stricter: RFC 9110 §15.2 sets no bound to interim responses; a flood of them costs the processor.
    let interimResponses = 0;
    request.on('information', ({ statusCode }) => {
      interimResponses += 1;
      if (interimResponses <= MAX_INTERIM_RESPONSES) return;
      request.destroy();
      reject(new FetchFailure('status-refused', statusCode));
    });

    // RFC 9110 §15.2.2: also when it switches protocols, for which nobody asked.
    request.on('close', () => reject(new FetchFailure('connection-failed')));
  });
}

async function readBody(response: AsyncIterable<Buffer>) {
  const body = new ByteBuffer();
  for await (const chunk of response) {
    if (body.add(chunk) > MAX_BYTES) throw new FetchFailure('too-large');
  }
  return body.release();
}

/** Sorts Node's errors by what an operator would do about them, and throws what it makes of them. */
function sortFailure(failure: unknown): never {
  if (!(failure instanceof Error && 'code' in failure)) throw failure;

  const code = String(failure.code);
  const isAboutCertificates = /CERT|SIGNATURE|TLS|SSL|CA$|PATH_LENGTH|PURPOSE|HOSTNAME/.test(code);
  throw new FetchFailure(isAboutCertificates ? 'certificate-refused' : 'connection-failed', code);
}
