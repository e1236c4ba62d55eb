// Cross-origin replies (Fetch standard §3.2), on only when origins are configured. Trusts Origin for nothing
// but whether a browser may read the reply. Promises: only an origin equal to a listed one gets permission;
// `*` and `null` never do.
import type { IncomingMessage } from 'node:http';
import type { DpopMode } from '../sender/credentials.ts';
import { emptyReply, type Reply } from './reply.ts';

/** Settings; origins are exact, and none turns all of this off. */
export interface CorsOptions {
  readonly dpopMode: DpopMode;
  readonly corsAllowedOrigins: readonly string[];
  readonly corsAllowCredentials: boolean;
  readonly corsAllowedMethods: readonly string[];
  readonly corsAllowedHeaders: readonly string[];
  readonly corsExposedHeaders: readonly string[];
}

export interface Cors {
  /** The fields of every reply to a request with this `Origin`, names and values in turn. */
  headers(origin: string | undefined): readonly string[];
  /** The whole reply, when the request is a preflight. */
  preflight(request: IncomingMessage): Reply | undefined;
}

const VARY = ['Vary', 'Origin'];

const OFF: Cors = { headers: () => [], preflight: () => undefined };

/** What is said to every listed origin is made here, once. */
export function createCors(options: CorsOptions): Cors {
  if (options.corsAllowedOrigins.length === 0) return OFF;

  const headersByOrigin = new Map<string, readonly string[]>();
  const preflightByOrigin = new Map<string, Reply>();
  const exposed = exposedFields(options);
  const allowed = allowedFields(options);
  for (const origin of options.corsAllowedOrigins) {
    const permission = ['Access-Control-Allow-Origin', origin];
    if (options.corsAllowCredentials) permission.push('Access-Control-Allow-Credentials', 'true');
    headersByOrigin.set(origin, [...permission, ...exposed, ...VARY]);
    preflightByOrigin.set(origin, emptyReply([...permission, ...allowed, ...VARY]));
  }

  return {
    headers: (origin = '') => headersByOrigin.get(origin) ?? VARY,

    preflight: ({ method, headers }) => {
      const { origin, 'access-control-request-method': intended } = headers;
      // Fetch standard §3.2.2: what makes a request a CORS preflight.
      if (method !== 'OPTIONS' || origin === undefined || intended === undefined) return undefined;

      return preflightByOrigin.get(origin) ?? emptyReply(VARY);
    },
  };
}

/** What a browser lets a script read. */
function exposedFields({ dpopMode, corsExposedHeaders }: CorsOptions) {
  const nonce = dpopMode === 'DISABLED' ? [] : ['DPoP-Nonce'];
  const names = ['WWW-Authenticate', ...nonce, ...corsExposedHeaders];
  return ['Access-Control-Expose-Headers', names.join(', ')];
}

/** What a browser lets a script send. */
function allowedFields({ dpopMode, corsAllowedMethods, corsAllowedHeaders }: CorsOptions) {
  const proof = dpopMode === 'DISABLED' ? [] : ['DPoP'];
  const names = ['Authorization', 'Content-Type', ...proof, ...corsAllowedHeaders];
  return [
    'Access-Control-Allow-Methods',
    corsAllowedMethods.join(', '),
    'Access-Control-Allow-Headers',
    names.join(', '),
    'Access-Control-Max-Age',
    '600',
  ];
}
