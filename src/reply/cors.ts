// Cross-origin answers (Fetch standard §3.2; contract §9), on only when origins are configured. Trusts Origin for nothing but
// whether a browser may read the answer. Promises: only an origin equal to a listed one gets permission; `*` and `null` never do.
import type { IncomingMessage } from 'node:http';
import type { DpopMode } from '../sender/credentials.ts';
import { noContent, type Reply } from './reply.ts';

/** Settings; origins are exact, and none turns all of this off. */
export type CorsRules = Readonly<{
  dpopMode: DpopMode;
  corsAllowedOrigins: readonly string[];
  corsAllowCredentials: boolean;
  corsAllowedMethods: readonly string[];
}>;
/** `headers` gives the fields of every answer to a request, in turn; `preflight` the whole answer when it is a preflight. */
export type Cors = Readonly<{
  headers: (request?: IncomingMessage) => readonly string[];
  preflight: (request: IncomingMessage) => Reply | undefined;
}>;
/** Header fields for every listed origin are written here, once. */
export function createCors({
  dpopMode,
  corsAllowedOrigins,
  corsAllowCredentials,
  corsAllowedMethods,
}: CorsRules): Cors {
  if (corsAllowedOrigins.length === 0) return { headers: () => [], preflight: () => undefined };
  const vary = ['Vary', 'Origin'];
  const [proof, nonce] = dpopMode === 'DISABLED' ? ['', ''] : [', DPoP', ', DPoP-Nonce'];
  const credentials = corsAllowCredentials ? ['Access-Control-Allow-Credentials', 'true'] : [];
  const exposed = ['Access-Control-Expose-Headers', `WWW-Authenticate${nonce}`];
  const methods = ['Access-Control-Allow-Methods', corsAllowedMethods.join(', ')];
  const fields = [
    'Access-Control-Allow-Headers',
    `Authorization, Content-Type${proof}`,
    'Access-Control-Max-Age',
    '600',
  ];
  const forOrigins = (more: readonly string[]) =>
    new Map(
      corsAllowedOrigins.map((origin) => [
        origin,
        ['Access-Control-Allow-Origin', origin, ...credentials, ...more, ...vary],
      ]),
    );
  const answers = forOrigins(exposed);
  const preflights = new Map(
    [...forOrigins([...methods, ...fields])].map(([origin, all]) => [origin, noContent(all)]),
  );
  return {
    headers: (request) => answers.get(request?.headers.origin ?? '') ?? vary,
    preflight: ({ method, headers: { origin, 'access-control-request-method': intended } }) => {
      // Fetch standard §3.2.2: what makes a request a CORS preflight.
      if (method !== 'OPTIONS' || origin === undefined || intended === undefined) return undefined;
      return preflights.get(origin) ?? noContent(vary);
    },
  };
}
