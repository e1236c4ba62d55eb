// Cross-origin requests (Fetch standard §3.2). Promises: only a listed origin gets permission; `*` and `null`
// never do. Refuses nothing: tells browsers who may read responses.
import type { CrossOrigin, Early } from '../gate/early.ts';
import { NO_CONTENT } from '../gate/reply.ts';
import type { DpopMode } from '../verify/credentials.ts';
import { fieldValues } from '../verify/request/fields.ts';
import { isPreflight } from './preflight.ts';

interface CorsOptions {
  readonly dpopMode: DpopMode;
  readonly corsAllowedOrigins: readonly string[];
  readonly corsAllowCredentials: boolean;
  readonly corsAllowedMethods: readonly string[];
  readonly corsAllowedHeaders: readonly string[];
  readonly corsExposedHeaders: readonly string[];
}

const NONE: readonly string[] = [];

/** RFC 6454 §6.2, RFC 1035 §2.3.1: up to 63 letters, digits, hyphens; some hosts have underscores. */
const FIRST_LABEL = /^([a-z][a-z0-9+.-]*:\/\/)[a-z0-9_-]{1,63}\./;

type Routes = readonly Readonly<{ method: string }>[];

/** Preflights allow the methods of the routes, unless a setting says which. */
export function createCors(
  options: CorsOptions,
  routes: Routes = [],
): CrossOrigin & { readonly preflight: Early } {
  const { corsAllowedOrigins: origins, corsAllowedMethods: given } = options;
  const ofRoutes = new Set(routes.map(({ method }) => method));
  const methods = given.length > 0 ? given : [...ofRoutes];
  const patterns = new Set(origins.filter((origin) => origin.includes('*')));
  const exact = origins.filter((origin) => !patterns.has(origin));
  const permissions = new Map(exact.map((origin) => [origin, permissionOf(origin, methods, options)]));

  function permissionFor(origin: string) {
    const listed = permissions.get(origin);
    if (listed !== undefined || patterns.size === 0) return listed;

    // Exactly one label in place of `*`, which is no label itself.
    const pattern = origin.replace(FIRST_LABEL, '$1*.');
    const isMatch = pattern !== origin && patterns.has(pattern);
    return isMatch ? permissionOf(origin, methods, options) : undefined;
  }

  return {
    vary: ['Vary', 'Origin'],
    forReading: (origin = '') => permissionFor(origin)?.forReading ?? NONE,

    preflight: (facts) => {
      if (!isPreflight(facts)) return undefined;

      const origin = fieldValues(facts.rawHeaders, 'origin').join();
      const crossOrigin = permissionFor(origin)?.forPreflight ?? NONE;
      return { known: { crossOrigin }, reply: NO_CONTENT };
    },
  };
}

function permissionOf(origin: string, methods: readonly string[], options: CorsOptions) {
  const permission = ['Access-Control-Allow-Origin', origin];
  if (options.corsAllowCredentials) permission.push('Access-Control-Allow-Credentials', 'true');
  const isBearerOnly = options.dpopMode === 'DISABLED';
  const nonce = isBearerOnly ? [] : ['DPoP-Nonce'];
  const proof = isBearerOnly ? [] : ['DPoP'];
  const exposed = ['WWW-Authenticate', ...nonce, ...options.corsExposedHeaders];
  const allowed = ['Authorization', 'Content-Type', ...proof, ...options.corsAllowedHeaders];

  return {
    forReading: [...permission, 'Access-Control-Expose-Headers', exposed.join(', ')],
    forPreflight: [
      ...permission,
      'Access-Control-Allow-Methods',
      methods.join(', '),
      'Access-Control-Allow-Headers',
      allowed.join(', '),
      'Access-Control-Max-Age',
      '600',
    ],
  };
}
