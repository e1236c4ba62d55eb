// Fetches the provider's key set over HTTPS. Trusts Node's authorities and those of NODE_EXTRA_CA_CERTS, or
// those of the issuer alone. Promises: one deadline, bounded bytes, no redirects, no way around a proxy, no
// socket left open, and no token for a second origin. Does not check keys: verify/keys/jwks.ts does.
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect as connectSocket, type Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ByteBuffer } from '../base/byte-buffer.ts';
import { parseJsonObject, type JsonObject } from '../base/encoding.ts';
import { Part } from '../base/option.ts';
import { VERSION } from '../base/version.ts';
import { ByteLimit } from './byte-limit.ts';
import { FetchError, otherIssuer } from './jwks.ts';

/** Stricter: Node needs seconds for a long host outside ASCII. */
const MAX_ADDRESS_LENGTH = 2_000;

export const HEADERS = {
  // RFC 9110 §10.1.5: firewalls turn away requests without it.
  'User-Agent': `gatehouse/${VERSION}`,
  // RFC 9110 §12.5.1, RFC 7517 §8.5.1
  Accept: 'application/json, application/jwk-set+json',
  // RFC 9110 §12.5.3: without it, some servers send what they stored compressed.
  'Accept-Encoding': 'identity',
};

/** `domain` is a host with an optional port. */
export type KeySource = Readonly<{
  domain: string;
  issuer: string;
  jwksUri: string | undefined;
  keyAccess?: KeyAccessPart | undefined;
}>;

/** The token that one fetch shows, and the authorities that it trusts in place of all others. */
export type Access = Readonly<{ token?: string | undefined; secureContext?: SecureContext | undefined }>;

/** Called for each fetch, whose deadline covers it. Reject with `FetchError`. */
export interface KeyAccess {
  readonly read: () => Promise<Access>;
  /** For what is no fetch of keys, and must not show their token. */
  readonly readAuthorities: () => Promise<Access>;
}

/** Made by `keyAccess`, for one gate or service. */
export interface KeyAccessPart extends Part<'keyAccess', KeyAccess> {}

export type Limits = Access & Readonly<{ signal: AbortSignal; bytes: ByteLimit }>;

/** Resolves with a connected socket without TLS that `bytes` watches. */
export type Connect = (address: URL, limits: Limits) => Promise<Socket>;

/** Rejects with `FetchError`; any other error is a bug. */
export type FetchKeySet = (signal: AbortSignal) => Promise<JsonObject>;

/** Fetches the key set of a source, over `connect` if given. */
export class KeyFetch {
  readonly #source;
  readonly #connect;
  /** Node would make one for each connection. */
  #usualContext: SecureContext | undefined;

  constructor(source: KeySource, connect: Connect = connectDirectly) {
    this.#source = source;
    this.#connect = connect;
  }

  readonly fetch: FetchKeySet = async (signal) => {
    const { token, secureContext } = (await Part.contentOf(this.#source.keyAccess)?.read()) ?? {};
    if (secureContext === undefined) this.#usualContext ??= createSecureContext();

    const bytes = new ByteLimit();
    const limits = { signal, bytes, token, secureContext: secureContext ?? this.#usualContext };
    return bytes.during(this.#fetchKeySet(limits));
  };

  async #fetchKeySet(limits: Limits) {
    return this.#fetchJson(this.#source.jwksUri ?? (await this.#discover(limits)), limits);
  }

  /** The key-set URL (OpenID Connect Discovery §4), which a provider may move. */
  async #discover(limits: Limits) {
    const { domain, issuer } = this.#source;
    const documentUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    // If there is no discovery document.
    const usual = { issuer, jwks_uri: `https://${domain}/.well-known/jwks.json` };
    const document = await this.#fetchJson(documentUrl, limits, usual);
    // OpenID Connect Discovery §4.3
    if (document.issuer !== issuer) throw otherIssuer(document);

    const address = document.jwks_uri;
    if (!isFetchable(address)) throw new FetchError('address-refused');
    return address;
  }

  /** Returns `fallback`, if given, for a 404. */
  async #fetchJson(address: string, limits: Limits, fallback?: JsonObject) {
    // Discovery may have reached either limit.
    limits.signal.throwIfAborted();
    limits.bytes.check();

    const url = new URL(address);
    if (url.protocol !== 'https:') throw new FetchError('connection-failed', 'ERR_INVALID_PROTOCOL');

    if (limits.token !== undefined) this.#requireOrigin(url);

    const response = await fetchResponse(url, await this.#connect(url, limits), limits);
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

  /** RFC 6750 §5.3: no other server learns the token. */
  #requireOrigin({ origin }: URL) {
    const { issuer, jwksUri = issuer } = this.#source;
    if (origin !== new URL(jwksUri).origin) throw new FetchError('address-refused');
  }
}

/** Rejects with `FetchError` after `timeoutMillis`, even if `fetch` ignores the signal. */
export function withDeadline(fetch: FetchKeySet, timeoutMillis = 5_000) {
  return () => {
    const signal = AbortSignal.timeout(timeoutMillis);
    // First: if it throws, the deadline would be an unhandled rejection.
    const fetched = fetch(signal);

    return Promise.race([rejectionBy(signal), fetched]);
  };
}

/** Rejects with `FetchError` when the signal aborts. */
export const rejectionBy = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new FetchError('timeout')));
  });

export function isFetchable(address: unknown): address is string {
  if (typeof address !== 'string' || address.length > MAX_ADDRESS_LENGTH) return false;
  if (!/^https:/i.test(address) || !URL.canParse(address)) return false;

  // RFC 9110 §4.2.4: Node would send a user and password, or fail to decode them.
  const { username, password } = new URL(address);
  return username === '' && password === '';
}

export function connectDirectly({ hostname, port }: URL, { signal, bytes }: Limits) {
  return new Promise<Socket>((resolve, reject) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connectSocket({ host, port: Number(port || 443), signal });
    bytes.watch(socket);
    socket.on('connect', () => resolve(socket)).on('error', reject);

    // `bytes` ends it without an error.
    socket.on('close', () => reject(new FetchError('connection-failed')));
  });
}

function fetchResponse(address: URL, socket: Socket, limits: Limits) {
  const { signal, bytes, token, secureContext } = limits;
  return new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      socket,
      signal,
      secureContext,
      // An agent would save 2.8 % of startup, but Node then misses some errors.
      agent: false,
      // RFC 6750 §2.1
      headers: token === undefined ? HEADERS : { ...HEADERS, Authorization: `Bearer ${token}` },
      // Explicit: neither NODE_TLS_REJECT_UNAUTHORIZED nor NODE_OPTIONS changes these.
      rejectUnauthorized: true,
      insecureHTTPParser: false,
    };
    const request = get(address, options, resolve);
    request.on('socket', (secure) => bytes.count(secure)).on('error', reject);

    // RFC 9110 §15.2.2: `close` also follows a switch of protocols.
    request.on('close', () => reject(new FetchError('connection-failed')));
  });
}

export async function readBody(response: AsyncIterable<Buffer>): Promise<Buffer> {
  const body = new ByteBuffer();
  for await (const chunk of response) body.add(chunk);
  return body.release();
}
