// Sends one request to the introspection endpoint of an issuer (RFC 7662 §2.1). Trusts the authorities that
// the issuer's keys are fetched with. Promises: one deadline, bounded bytes, no redirects, no way around a
// proxy, and no token for an address without TLS. Does not say what a response means.
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Agent, request, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { parseJsonObject, type JsonObject } from '../../verify/base/encoding.ts';
import { Part } from '../../verify/base/option.ts';
import { ByteLimit } from '../../verify/keys/byte-limit.ts';
import {
  connectDirectly,
  KeyFetch,
  HEADERS,
  isFetchable,
  readBody,
  withDeadline,
  type Connect,
  type Limits,
} from '../../verify/keys/fetch.ts';
import { FetchError, otherIssuer } from '../../verify/keys/jwks.ts';
import type { IssuerValues } from '../../verify/options.ts';
import type { Authenticate } from './client.ts';

const MAX_BYTES = 64 * 1024;

/** RFC 7662 §2.1, §2.2 */
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' };

/** How long an idle connection is kept. */
const IDLE_MILLIS = 30_000;

/** Of the discovery document: its status says nothing about a token, or about this client. */
export class DiscoveryError extends FetchError {}

function rethrowOfDiscovery(error: unknown): never {
  throw FetchError.is(error) ? new DiscoveryError(error.reason, error.code) : error;
}

/** Sends introspection requests. */
export interface Asker {
  /** Rejects with `FetchError`; any other error is a bug. */
  readonly ask: (token: string, signal: AbortSignal) => Promise<JsonObject>;
  /** After an introspection request that failed. */
  readonly forget?: () => void;
  /** The address, once it is known. */
  readonly address?: () => string | undefined;
}

/** `limits` covers one introspection request, and the connection that may be opened for it. */
interface Asking extends RequestOptions {
  readonly address: URL;
  readonly limits: Limits;
}

export class IntrospectionEndpoint implements Asker {
  readonly #issuer;
  readonly #uri;
  readonly #authenticate;
  readonly #connections;
  readonly #fetchDocument;
  #discovered: Promise<string> | undefined;
  #found: string | undefined;

  constructor(
    issuer: IssuerValues,
    uri: string | undefined,
    authenticate: Authenticate,
    connect: Connect = connectDirectly,
  ) {
    this.#issuer = issuer;
    this.#uri = uri;
    this.#authenticate = authenticate;
    this.#connections = new Connections(issuer, connect);
    this.#fetchDocument = createDocumentFetch(issuer, connect);
  }

  async ask(token: string, signal: AbortSignal) {
    const url = new URL(this.#uri ?? (await this.#findAddress()));
    const { headers, form } = this.#authenticate();
    // RFC 7662 §2.1
    const body = new URLSearchParams({ token, token_type_hint: 'access_token', ...form }).toString();
    return this.#connections.ask(url, headers, body, signal);
  }

  forget() {
    this.#discovered = undefined;
  }

  address() {
    return this.#uri ?? this.#found;
  }

  async #findAddress() {
    this.#discovered ??= this.#discover();
    this.#found = await this.#discovered;
    return this.#found;
  }

  /** The endpoint (RFC 8414 §2), which a provider may move. */
  async #discover() {
    const document = await this.#fetchDocument().catch(rethrowOfDiscovery);
    // OpenID Connect Discovery §4.3
    if (document.issuer !== this.#issuer.issuer) throw otherIssuer(document);

    const { introspection_endpoint: found } = document;
    if (!isFetchable(found)) throw new FetchError('address-refused');
    return found;
  }
}

/** Never shows the token of key fetches. */
function createDocumentFetch({ domain, issuer, keyAccess }: IssuerValues, connect: Connect) {
  const access = Part.contentOf(keyAccess);
  const withoutToken = access && Part.make('keyAccess', { ...access, read: access.readAuthorities });
  const jwksUri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const source = { domain, issuer, jwksUri, keyAccess: withoutToken };
  return withDeadline(new KeyFetch(source, connect).fetch);
}

/** Keeps connections for further requests. TLS sessions are not kept: authorities may change. */
class Connections extends Agent {
  readonly #connect;
  readonly #readAuthorities;
  /** Node would make one for each connection. */
  #usualContext: SecureContext | undefined;
  /** The connection below TLS, where all bytes can be counted. */
  readonly #sockets = new WeakMap<object, Socket>();

  constructor({ keyAccess }: IssuerValues, connect: Connect) {
    super({ keepAlive: true, timeout: IDLE_MILLIS });
    this.#connect = connect;
    this.#readAuthorities = Part.contentOf(keyAccess)?.readAuthorities;
  }

  async ask(address: URL, headers: OutgoingHttpHeaders, body: string, signal: AbortSignal) {
    const bytes = new ByteLimit(MAX_BYTES);
    const asking = { address, headers, limits: { signal, bytes } };
    const { status, content } = await bytes.during(this.#exchange(asking, body));

    // RFC 9110 §15.4: redirects are not followed.
    if (status !== 200) throw new FetchError('status-refused', status);

    const response = parseJsonObject(content);
    if (response === undefined) throw new FetchError('not-a-json-object');
    return response;
  }

  async #exchange(asking: Asking, body: string) {
    const response = await this.#post(asking, body);
    return { status: response.statusCode, content: await readBody(response) };
  }

  #post(asking: Asking, body: string): Promise<IncomingMessage> {
    const { address, headers, limits } = asking;
    const { signal, bytes } = limits;
    return new Promise((resolve, reject) => {
      const options = {
        ...asking,
        method: 'POST',
        headers: { ...HEADERS, ...FORM, ...headers },
        agent: this,
        signal,
        insecureHTTPParser: false,
      };
      const asked = request(address, options, resolve);

      asked.on('socket', (secure) => {
        const kept = asked.reusedSocket ? this.#sockets.get(secure) : undefined;
        if (kept !== undefined) bytes.watch(kept);
        bytes.count(secure);
      });

      asked.on('error', (error) => {
        // RFC 9112 §9.3.1: the server may have closed it in the meantime.
        const isStale = asked.reusedSocket && bytes.isUntouched;
        if (isStale) resolve(this.#postAgain(asking, body));
        else reject(error);
      });

      // RFC 9110 §15.2.2: `close` also follows a switch of protocols.
      asked.on('close', () => reject(new FetchError('connection-failed')));
      asked.end(body);
    });
  }

  /** On a new connection: the others that are kept may be as stale. */
  #postAgain(asking: Asking, body: string) {
    for (const socket of Object.values(this.freeSockets).flat()) socket?.destroy();
    return this.#post(asking, body);
  }

  /** Node calls it for a request for which no kept connection is free. */
  override createConnection(options: Asking, callback?: (error: Error | null, socket: Duplex) => void) {
    this.#open(options).then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback && Reflect.apply(callback, undefined, [error]),
    );
    return undefined;
  }

  async #open({ address, limits, host, servername }: Asking) {
    const { secureContext = this.#contextOfNode() } = (await this.#readAuthorities?.()) ?? {};
    const socket = await this.#connectFor(address, limits);
    // RFC 9110 §4.3.4: the certificate is for this host.
    const named = { host: host ?? undefined, servername };
    const secure = connectTls({ ...named, socket, secureContext, rejectUnauthorized: true });
    this.#sockets.set(secure, socket);
    return secure;
  }

  #contextOfNode() {
    this.#usualContext ??= createSecureContext();
    return this.#usualContext;
  }

  /** The connection outlives the introspection request, and its signal. */
  async #connectFor(address: URL, { signal, bytes }: Limits) {
    signal.throwIfAborted();
    const opening = new AbortController();
    const abort = () => opening.abort();
    signal.addEventListener('abort', abort);
    return this.#connect(address, { bytes, signal: opening.signal }).finally(() => {
      signal.removeEventListener('abort', abort);
    });
  }
}
