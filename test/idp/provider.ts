/**
 * A fake identity provider in this process: discovery, key set and token endpoint over real TLS, with key
 * rotation, counters, and faults on demand. For tests and for development on loopback; its keys are public.
 */
import { fileURLToPath } from 'node:url';
import { Endpoints, type Counts, type EndpointService, type Place } from './endpoints.ts';
import type { Fault } from './faults.ts';
import { KeyRing, type SigningKey } from './keys.ts';
import { Listener, type ListenerState } from './listener.ts';
import { TOKEN_LIFETIME_SECONDS, type Client } from './token-endpoint.ts';
import { signJws } from './tokens.ts';

export type { Client, Counts, Fault, Place, SigningKey };

export interface ProviderOptions {
  /** Default 0: a free port. */
  port?: number;
  /** Default: `test-client` with secret `test-secret` and the scopes `read:messages` and `write:messages`. */
  clients?: readonly Client[];
  /** The scopes of the API. Default: all those of the clients. */
  scopes?: readonly string[];
  /** The API's identifier. Default `https://api.test`. */
  audience?: string;
  /**
   * The name in `domain` and `issuer`: `localhost` (default), `127.0.0.1`, `::1`, or `provider.test` for
   * callers that bring their own `lookup`.
   */
  host?: string;
  /** The clock, in milliseconds since 1970. Default `Date.now`. */
  now?: () => number;
}

export interface Provider {
  readonly port: number;
  /** `localhost:<port>` */
  readonly domain: string;
  /** `https://localhost:<port>/` */
  readonly issuer: string;
  readonly audience: string;
  /** Absolute path of the authority's certificate, for `NODE_EXTRA_CA_CERTS`. */
  readonly authorityFile: string;
  /** The current key. */
  readonly signingKey: SigningKey;
  /**
   * A token signed by the current key with RS256, whatever its header says. Claims and header members replace
   * the defaults; `undefined` removes one.
   */
  issue(claims?: Record<string, unknown>, header?: Record<string, unknown>): string;
  /** Makes a new key current and publishes it. The old one stays published unless `keepOld` is false. */
  rotate(options?: { keepOld?: boolean }): SigningKey;
  /** Removes a key from the key set. The current key keeps signing. */
  withdraw(kid: string): void;
  /** Serves this value as the key set; `undefined` restores the real one. */
  publish(jwks: unknown): void;
  /** Overrides members of the discovery document (`undefined` removes one). `undefined` restores it. */
  discoveryDocument(change: Record<string, unknown> | undefined): void;
  /** Sets a fault, or ends it, and resolves when that is done. Faults of an endpoint apply at once. */
  fault(where: Place | 'all', fault: Fault | undefined): Promise<void>;
  /** A copy of the counters. */
  readonly counts: Readonly<Counts>;
  resetCounts(): void;
  readonly openSockets: number;
  /** Closes the listener and every socket. Resolves when nothing is left. */
  stop(): Promise<void>;
}

const DEFAULT_CLIENTS: readonly Client[] = [
  { id: 'test-client', secret: 'test-secret', scopes: ['read:messages', 'write:messages'] },
];

/** Starts a provider. */
export async function startProvider(options: ProviderOptions = {}): Promise<Provider> {
  const provider = new RunningProvider(options);
  await provider.start();
  return provider;
}

class RunningProvider implements Provider {
  readonly audience: string;
  readonly authorityFile = fileURLToPath(new URL('tls/authority.pem', import.meta.url));
  readonly #host: string;
  readonly #clients: readonly Client[];
  readonly #scopes: readonly string[];
  readonly #now: () => number;
  readonly #keys = new KeyRing();
  readonly #endpoints = new Endpoints(() => this.#service());
  readonly #listener: Listener;
  #stopped = false;

  constructor(options: ProviderOptions) {
    const { port = 0, host = 'localhost' } = options;
    this.audience = options.audience ?? 'https://api.test';
    this.#host = host.includes(':') ? `[${host}]` : host;
    this.#clients = options.clients ?? DEFAULT_CLIENTS;
    this.#scopes = options.scopes ?? [...new Set(this.#clients.flatMap((client) => client.scopes))];
    this.#now = options.now ?? Date.now;
    this.#listener = new Listener(host, port, this.#endpoints);
  }

  start(): Promise<void> {
    return this.#listener.enter(this.#listenerState());
  }

  get port(): number {
    return this.#listener.port;
  }

  get domain(): string {
    return `${this.#host}:${this.port}`;
  }

  get issuer(): string {
    return `https://${this.domain}/`;
  }

  get signingKey(): SigningKey {
    return this.#keys.current;
  }

  get counts(): Counts {
    return this.#endpoints.counts;
  }

  get openSockets(): number {
    return this.#listener.openSockets;
  }

  issue(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
    const { kid, privateKey } = this.signingKey;
    const iat = this.#nowSeconds();
    const exp = iat + TOKEN_LIFETIME_SECONDS;
    const standard = { iss: this.issuer, sub: 'auth0|user', aud: this.audience, iat, exp };
    return signJws(
      { alg: 'RS256', typ: 'JWT', kid, ...header },
      { ...standard, ...claims },
      privateKey,
      'RS256',
    );
  }

  rotate({ keepOld = true }: { keepOld?: boolean } = {}): SigningKey {
    return this.#keys.rotate(keepOld);
  }

  withdraw(kid: string): void {
    this.#keys.withdraw(kid);
  }

  publish(jwks: unknown): void {
    this.#endpoints.keySet = jwks;
  }

  discoveryDocument(change: Record<string, unknown> | undefined): void {
    this.#endpoints.discoveryChange = change;
  }

  fault(where: Place | 'all', fault: Fault | undefined): Promise<void> {
    this.#endpoints.setFault(where, fault);
    return this.#listener.enter(this.#listenerState());
  }

  resetCounts(): void {
    this.#endpoints.resetCounts();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.#listener.enter(this.#listenerState());
  }

  #nowSeconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  #service(): EndpointService {
    return {
      issuer: this.issuer,
      audience: this.audience,
      clients: this.#clients,
      scopes: this.#scopes,
      nowSeconds: () => this.#nowSeconds(),
      issue: (claims) => this.issue(claims),
      keySet: () => this.#keys.document(),
    };
  }

  #listenerState(): ListenerState {
    const { faults } = this.#endpoints;
    const other = faults.includes('wrong-host-certificate') ? 'other-host' : 'provider';
    const certificate = faults.includes('expired-certificate') ? 'expired' : other;
    return { listening: !this.#stopped && !faults.includes('refuse'), certificate };
  }
}
