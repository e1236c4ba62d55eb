/*
 * Cross-origin answers (Fetch standard §3.2; contract §9), on only when origins are configured.
 * Trusts the Origin field for nothing but choosing whether a browser may read the answer; access is decided elsewhere.
 * Promises: an origin gets permission only when it equals a listed one; `*` and `null` never do.
 */
import type { IncomingMessage } from 'node:http';
import type { Reply } from './reply.ts';

/** Settings; origins are exact, and none turns all of this off. */
export interface CorsRules {
  readonly corsAllowedOrigins: readonly string[];
  readonly corsAllowCredentials: boolean;
  readonly corsAllowedMethods: readonly string[];
}

export interface Cors {
  /** The header fields of every answer to this request, names and values in turn. */
  headers(request: IncomingMessage): readonly string[];
  /** The whole answer when the request is a preflight. */
  preflight(request: IncomingMessage): Reply | undefined;
}

const OFF: Cors = { headers: () => [], preflight: () => undefined };
const MAX_AGE_SECONDS = '600';

/** Header fields for every listed origin are written here, once. */
export function createCors({ corsAllowedOrigins: origins, corsAllowCredentials, corsAllowedMethods }: CorsRules): Cors {
  if (origins.length === 0) return OFF;
  const vary = ['Vary', 'Origin'];
  const credentials = corsAllowCredentials ? ['Access-Control-Allow-Credentials', 'true'] : [];
  const granted = new Map(origins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...credentials]]));
  const exposed = ['Access-Control-Expose-Headers', 'WWW-Authenticate', ...vary];
  const allowed = [
    'Access-Control-Allow-Methods', corsAllowedMethods.join(', '),
    'Access-Control-Allow-Headers', 'Authorization, Content-Type',
    'Access-Control-Max-Age', MAX_AGE_SECONDS, ...vary,
  ];
  const answers = new Map([...granted].map(([origin, headers]) => [origin, [...headers, ...exposed]]));
  const preflights = new Map([...granted].map(([origin, headers]) => [origin, [...headers, ...allowed]]));
  return {
    headers: ({ headers }) => answers.get(headers.origin ?? '') ?? vary,
    preflight: ({ method, headers }) => {
      const { origin } = headers;
      // Fetch standard §3.2.2: what makes a request a CORS preflight.
      if (method !== 'OPTIONS' || origin === undefined || headers['access-control-request-method'] === undefined) return undefined;
      return { status: 204, headers: preflights.get(origin) ?? vary, body: undefined };
    },
  };
}
