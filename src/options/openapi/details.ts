// What a document says about the API and its operations that the routes do not. Promises: an unknown member
// throws, and so do details of a route that does not exist; each operation has its own id.
import { isJsonObject, type JsonObject } from '../../verify/base/encoding.ts';
import {
  boolean,
  listOf,
  requireGood,
  text,
  throwProblem,
  type Rule,
  type Rules,
} from '../../verify/base/option.ts';
import type { Route } from '../../service/routes/route.ts';
import { requireSchema, type Schema } from '../../service/routes/schema.ts';

/** The members of OpenAPI's `info` (3.1, §4.8.2), and also `servers` and `issuer`. */
export interface OpenApiInfo {
  readonly title: string;
  readonly version: string;
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly termsOfService?: string | undefined;
  readonly contact?: object | undefined;
  readonly license?: object | undefined;
  /** Objects with the `url` of the API. Default: the document's own origin. */
  readonly servers?: readonly object[] | undefined;
  /** The issuer of tokens: makes the security scheme `openIdConnect`. */
  readonly issuer?: string | undefined;
}

const object: Rule = (value) => (isJsonObject(value) ? undefined : 'must be an object');

/** OpenAPI 3.1 §4.8.5. It may be relative, and have variables. */
const hasUrl = (server: unknown) => typeof Object(server).url === 'string';

/** OpenAPI 3.1 §4.8.1 */
const serverList: Rule = (value) =>
  Array.isArray(value) && value.length > 0 && Array.from(value).every(hasUrl)
    ? undefined
    : 'must be a list of one or more objects with a url';

const INFO_RULES = {
  title: text,
  version: text,
  summary: text,
  description: text,
  termsOfService: text,
  contact: object,
  license: object,
  servers: serverList,
};

const NO_INFO = 'openApi needs an info with a title and a version';

/** A copy of its own members: those that it inherits would not reach the document. */
export function readInfo(given: OpenApiInfo): OpenApiInfo {
  const info = { ...given };
  const { title, version, issuer, ...others } = info;
  if (typeof title !== 'string' || typeof version !== 'string') throw new TypeError(NO_INFO);

  requireMembers('info', others, INFO_RULES);
  if (issuer !== undefined && !URL.canParse(issuer)) throw new TypeError('info: issuer must be a URL');
  return info;
}

/** An extension may have any name (OpenAPI 3.1 §4.9). */
function requireMembers(owner: string, members: object, rules: Rules) {
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || name.startsWith('x-')) continue;

    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    const known = Object.keys(rules).join(', ');
    if (rule === undefined) throwProblem(owner, `${name} is unknown; write ${known}`);
    requireGood(`${owner}: ${name}`, rule, value);
  }
}

/** Without members that are `undefined`, which JSON does not have. */
export const present = (members: object): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

export function securityScheme(issuer: string | undefined): JsonObject {
  if (issuer === undefined) return { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' };

  // OpenID Connect Discovery §4
  const openIdConnectUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  return { type: 'openIdConnect', openIdConnectUrl };
}

/** What a route does not say. */
export interface OperationDetails {
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly operationId?: string | undefined;
  readonly deprecated?: boolean | undefined;
  /** The schema of the body of a successful response. */
  readonly response?: Schema | undefined;
}

/** By method and pattern, such as `GET /api/orders/{id}`. */
export type OpenApiDetails = Readonly<Record<string, OperationDetails>>;

const OPERATION_RULES = {
  summary: text,
  description: text,
  tags: listOf(text, 0),
  operationId: text,
  deprecated: boolean,
  /** `requireSchema` checks it. */
  response: () => undefined,
};

export const keyOf = ({ method, pattern }: Route) => `${method} ${pattern}`;

export function requireDetails(routes: readonly Route[], details: OpenApiDetails) {
  const keys = routes.map(keyOf);
  for (const [key, given] of Object.entries(details)) {
    if (!keys.includes(key)) {
      throw new TypeError(`details: ${key} is no route; write one of ${keys.join(', ')}`);
    }

    requireGood(key, object, given);
    requireMembers(key, given, OPERATION_RULES);
    if (given.response !== undefined) requireSchema(given.response);
  }
}

/** Those of the details, and for other routes one from method and pattern. Each is unique. */
export function operationIds(routes: readonly Route[], details: OpenApiDetails) {
  const ids = new Map<Route, string>();
  const taken = new Set<string>();
  for (const route of routes) {
    const { operationId } = details[keyOf(route)] ?? {};
    if (operationId === undefined) continue;
    if (taken.has(operationId)) throw new TypeError(`${keyOf(route)}: the operationId is not unique`);

    ids.set(route, operationId);
    taken.add(operationId);
  }

  for (const route of routes) {
    if (ids.has(route)) continue;

    const id = unusedId(route, taken);
    ids.set(route, id);
    taken.add(id);
  }
  return ids;
}

function capitalized(word: string) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** `GET /api/orders/{id}` becomes `getApiOrdersById`. */
function unusedId({ method, pattern }: Route, taken: ReadonlySet<string>) {
  const words = pattern.replace(/\{(\w+)\}/g, 'by $1').match(/[A-Za-z0-9]+/g) ?? ['root'];
  const id = method.toLowerCase() + words.map(capitalized).join('');
  for (let number = 2; ; number += 1) {
    const next = taken.has(id) ? `${id}${number}` : id;
    if (!taken.has(next)) return next;
  }
}
