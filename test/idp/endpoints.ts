/**
 * The three endpoints: routing, documents, counters, and the current faults. The rules of the token endpoint
 * are in `token-endpoint.ts`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PROOF_ALGORITHMS } from './dpop.ts';
import { deliver, type Fault } from './faults.ts';
import { json, type Reply } from './reply.ts';
import { responseTokenRequest, TOKEN_PATH, type TokenService } from './token-endpoint.ts';

/** The endpoints that can fail. */
export type Place = 'discovery' | 'keySet' | 'token';

/** What has arrived since the start or the last reset: connections, and requests by endpoint. */
export type Counts = Record<'connections' | Place | 'other', number>;

/** What the endpoints need from the provider. */
export interface EndpointService extends TokenService {
  readonly keySet: () => unknown;
}

const DISCOVERY_PATH = '.well-known/openid-configuration';
const KEY_SET_PATH = '.well-known/jwks.json';

const PLACES: ReadonlyMap<string, Place> = new Map([
  [`/${DISCOVERY_PATH}`, 'discovery'],
  [`/${KEY_SET_PATH}`, 'keySet'],
  [`/${TOKEN_PATH}`, 'token'],
]);

const zero = (): Counts => ({ connections: 0, discovery: 0, keySet: 0, token: 0, other: 0 });

/** OpenID Connect Discovery 1.0 §3, as far as machine-to-machine clients and resource servers need it. */
function discoveryDocument({ issuer, scopes }: TokenService): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${issuer}authorize`,
    token_endpoint: `${issuer}${TOKEN_PATH}`,
    jwks_uri: `${issuer}${KEY_SET_PATH}`,
    scopes_supported: scopes,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    grant_types_supported: ['client_credentials'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
  };
}

/** The endpoints of one provider. */
export class Endpoints {
  /** Replaces the key set, unless `undefined`. */
  keySet: unknown;
  /** Overrides members of the discovery document. */
  discoveryChange: Record<string, unknown> | undefined;
  readonly #service: () => EndpointService;
  readonly #faults = new Map<Place, Fault>();
  #counts = zero();

  constructor(service: () => EndpointService) {
    this.#service = service;
  }

  get counts(): Counts {
    return { ...this.#counts };
  }

  get faults(): Fault[] {
    return [...this.#faults.values()];
  }

  resetCounts(): void {
    this.#counts = zero();
  }

  setFault(where: Place | 'all', fault: Fault | undefined): void {
    for (const place of where === 'all' ? PLACES.values() : [where]) {
      if (fault === undefined) this.#faults.delete(place);
      else this.#faults.set(place, fault);
    }
  }

  countConnection(): void {
    this.#counts.connections += 1;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const place = PLACES.get((request.url ?? '').split('?')[0]!);
    this.#counts[place ?? 'other'] += 1;
    try {
      const reply = await this.#answer(place, request);
      deliver(response, reply, place && this.#faults.get(place));
    } catch (error) {
      // The client has left in the middle of its body.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
    }
  }

  async #answer(place: Place | undefined, request: IncomingMessage): Promise<Reply> {
    if (place === 'token') return responseTokenRequest(request, this.#service());
    if (place === undefined) return json(404, { error: 'not_found' });
    if (request.method === 'GET' || request.method === 'HEAD') return json(200, this.#document(place));
    return json(405, { error: 'method_not_allowed' }, { Allow: 'GET, HEAD' });
  }

  #document(place: 'discovery' | 'keySet'): unknown {
    if (place === 'discovery') return { ...discoveryDocument(this.#service()), ...this.discoveryChange };
    return this.keySet === undefined ? this.#service().keySet() : this.keySet;
  }
}
