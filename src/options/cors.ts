// Cross-origin requests (Fetch standard §3.3). Promises: only a listed origin gets permission; `*` and `null`
// never do. Refuses nothing: tells browsers who may read responses.
import {
  boolean,
  listOf,
  readOptions,
  textMatching,
  Part,
  type Given,
  type RulesOf,
} from '../verify/base/option.ts';
import type { Cors, CorsContext, CorsPart } from '../gate/options.ts';
import { NO_CONTENT } from '../gate/replies/reply.ts';
import { fieldValues, type RequestFacts } from '../verify/request/facts.ts';
import { isPreflight } from './preflight.ts';

interface CorsValues {
  /** Exact origins. `*` can replace the first host label if at least two others follow. */
  readonly origins: readonly string[];
  /** Whether browsers may send credentials such as cookies. Default: `true`. */
  readonly credentials: boolean;
  /** Methods that preflight responses allow. Default: the routes' methods. */
  readonly methods: readonly string[];
  /** Headers that a page may send besides `Authorization`, `Content-Type` and (unless it is off) `DPoP`. */
  readonly headers: readonly string[];
  /** Headers that a page may read besides `WWW-Authenticate` and (unless DPoP is off) `DPoP-Nonce`. */
  readonly exposedHeaders: readonly string[];
}

/** The options of `cors`. */
export interface CorsOptions extends Given<Omit<CorsValues, 'origins'>>, Pick<CorsValues, 'origins'> {}

const NONE: readonly string[] = [];

/**
 * An origin, spelled exactly as browsers and the web views of apps send it (RFC 6454 §6.2). Stricter: no
 * `file`, whose origin is shared by every file. A `*` stands for one label; at least two others follow it.
 */
const origin = textMatching(
  /^(?!file:)[a-z][a-z0-9+.-]*:\/\/(?!\.|.*\.\.)(?:\*\.(?=[^.:]+\.[^.:]))?[a-z0-9._~:[\]-]+$/,
  'must be an origin as browsers send it: scheme (not file), lower-case host, port unless default; ' +
    'no final "/", no "*" but for the first of three or more labels',
  isOrigin,
);

function isOrigin(value: string) {
  if (!URL.canParse(value)) return false;

  const { protocol, host } = new URL(value);
  return `${protocol}//${host}` === value;
}

/** RFC 9110 §9.1. */
const methodName = textMatching(/^[A-Z]+$/, 'must be a method name in upper case');

/** RFC 9110 §5.1. Stricter: not `*`, which would mean every field. */
const fieldName = textMatching(
  /^[\w!#$%&'+.^`|~-]+$/,
  'must be the name of a header field; list each, without "*"',
);

export const CORS_RULES: RulesOf<CorsOptions> = {
  origins: listOf(origin),
  credentials: boolean,
  methods: listOf(methodName),
  headers: listOf(fieldName),
  exposedHeaders: listOf(fieldName),
};

export const CORS_DEFAULTS = { credentials: true, methods: NONE, headers: NONE, exposedHeaders: NONE };

const REQUIRED = { origins: 'are missing; list those whose pages may read responses' };

/**
 * Lets pages of these origins read responses: for the option `cors`. Throws a `TypeError` for an option that
 * is wrong.
 *
 * @example createService({ routes }, { domain, audience, cors: cors({ origins }) });
 */
export function cors(options: CorsOptions): CorsPart {
  const values = readOptions<CorsValues>(options, CORS_RULES, CORS_DEFAULTS, REQUIRED, 'cors');
  return Part.make('cors', (context: CorsContext) => new ListedOrigins(values, context));
}

/** RFC 6454 §6.2, RFC 1035 §2.3.1: up to 63 letters, digits, hyphens; some hosts have underscores. */
const FIRST_LABEL = /^([a-z][a-z0-9+.-]*:\/\/)[a-z0-9_-]{1,63}\./;

class ListedOrigins implements Cors {
  readonly vary = ['Vary', 'Origin'];
  readonly #options;
  readonly #permissions;

  /** Preflights allow the methods of the routes, unless an option says which. */
  constructor(options: CorsValues, { dpopMode, methods }: CorsContext) {
    const { origins, methods: given } = options;
    this.#options = { ...options, dpopMode, methods: given.length > 0 ? given : methods };
    this.#permissions = new Map(origins.map((origin) => [origin, permissionOf(origin, this.#options)]));
  }

  #permissionFor(origin: string) {
    const listed = this.#permissions.get(origin);
    // A pattern is no origin.
    if (listed) return origin.includes('*') ? undefined : listed;

    // Exactly one label in place of `*`, which is no label itself.
    const pattern = origin.replace(FIRST_LABEL, '$1*.');
    return this.#permissions.has(pattern) ? permissionOf(origin, this.#options) : undefined;
  }

  forReading(origin = '') {
    return this.#permissionFor(origin)?.forReading ?? NONE;
  }

  readonly preflight = (facts: RequestFacts) => {
    if (!isPreflight(facts)) return undefined;

    const origin = fieldValues(facts.rawHeaders, 'origin').join();
    const crossOrigin = this.#permissionFor(origin)?.forPreflight ?? NONE;
    return { crossOrigin, reply: NO_CONTENT };
  };
}

function permissionOf(origin: string, options: CorsValues & Pick<CorsContext, 'dpopMode'>) {
  const isBearerOnly = options.dpopMode === 'DISABLED';
  const permission = ['Access-Control-Allow-Origin', origin];
  if (options.credentials) permission.push('Access-Control-Allow-Credentials', 'true');
  const nonce = isBearerOnly ? [] : ['DPoP-Nonce'];
  const proof = isBearerOnly ? [] : ['DPoP'];
  const exposed = ['WWW-Authenticate', ...nonce, ...options.exposedHeaders];
  const allowed = ['Authorization', 'Content-Type', ...proof, ...options.headers];

  return {
    forReading: [...permission, 'Access-Control-Expose-Headers', exposed.join(', ')],
    forPreflight: [
      ...permission,
      'Access-Control-Allow-Methods',
      options.methods.join(', '),
      'Access-Control-Allow-Headers',
      allowed.join(', '),
      'Access-Control-Max-Age',
      '600',
    ],
  };
}
