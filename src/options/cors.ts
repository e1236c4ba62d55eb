// Cross-origin replies (Fetch standard §3.2), on only when origins are configured. Trusts Origin for nothing
// but whether a browser may read the reply. Promises: only an origin equal to a listed one gets permission;
// `*` and `null` never do.
import { fieldValues } from '../verify/request/fields.ts';
import type { RequestFacts } from '../verify/request/uri.ts';
import type { DpopMode } from '../verify/credentials.ts';

/** Settings; origins are exact, and none turns all of this off. */
interface CorsOptions {
  readonly dpopMode: DpopMode;
  readonly corsAllowedOrigins: readonly string[];
  readonly corsAllowCredentials: boolean;
  readonly corsAllowedMethods: readonly string[];
  readonly corsAllowedHeaders: readonly string[];
  readonly corsExposedHeaders: readonly string[];
}

const NONE: readonly string[] = [];

/** What makes a request a CORS preflight, beside its method (Fetch standard §3.2.2). */
const PREFLIGHT_FIELDS = ['origin', 'access-control-request-method'];

/** Whether a browser asks what a script may send. */
export function isPreflight({ method, rawHeaders }: RequestFacts): boolean {
  return method === 'OPTIONS' && PREFLIGHT_FIELDS.every((name) => fieldValues(rawHeaders, name).length > 0);
}

/** Fields are names and values in turn; what is said to every listed origin is made here, once. */
export function createCors(options: CorsOptions) {
  const origins = options.corsAllowedOrigins;
  const permissions = new Map(origins.map((origin) => [origin, permissionOf(origin, options)]));
  const isOn = permissions.size > 0;

  return {
    /** The field of every reply, whatever is asked. */
    vary: isOn ? ['Vary', 'Origin'] : NONE,

    /** The fields of a reply to a request with this `Origin`. */
    forReading: (origin = '') => permissions.get(origin)?.forReading ?? NONE,

    /** The fields of the reply to a preflight; `undefined` for other requests. */
    forSending: (facts: RequestFacts) => {
      if (!isOn || !isPreflight(facts)) return undefined;

      const origin = fieldValues(facts.rawHeaders, 'origin').join();
      return permissions.get(origin)?.forSending ?? NONE;
    },
  };
}

/** What a browser lets a script of this origin read, and send. */
function permissionOf(origin: string, options: CorsOptions) {
  const permission = ['Access-Control-Allow-Origin', origin];
  if (options.corsAllowCredentials) permission.push('Access-Control-Allow-Credentials', 'true');
  const isBearerOnly = options.dpopMode === 'DISABLED';
  const nonce = isBearerOnly ? [] : ['DPoP-Nonce'];
  const proof = isBearerOnly ? [] : ['DPoP'];
  const exposed = ['WWW-Authenticate', ...nonce, ...options.corsExposedHeaders];
  const allowed = ['Authorization', 'Content-Type', ...proof, ...options.corsAllowedHeaders];

  return {
    forReading: [...permission, 'Access-Control-Expose-Headers', exposed.join(', ')],
    forSending: [
      ...permission,
      'Access-Control-Allow-Methods',
      options.corsAllowedMethods.join(', '),
      'Access-Control-Allow-Headers',
      allowed.join(', '),
      'Access-Control-Max-Age',
      '600',
    ],
  };
}
