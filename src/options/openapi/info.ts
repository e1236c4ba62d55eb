// What a document says of the API as a whole. Promises: an unknown member throws.
import { isJsonObject, type JsonObject } from '../../verify/base/encoding.ts';
import { requireGood, text, throwProblem, type Rule } from '../../verify/base/option.ts';

/** The `info` of OpenAPI 3.1 (§4.8.2), and two members beside it. */
export interface OpenApiInfo {
  readonly title: string;
  readonly version: string;
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly termsOfService?: string | undefined;
  readonly contact?: object | undefined;
  readonly license?: object | undefined;
  /** Where the API is. Default: where the document is. */
  readonly servers?: readonly object[] | undefined;
  /** Tells readers to get tokens from this issuer (`openIdConnect`). */
  readonly issuer?: string | undefined;
}

const object: Rule = (value) => (isJsonObject(value) ? undefined : 'must be an object');

/** OpenAPI 3.1 §4.8.5. It may be relative, and have variables. */
const hasUrl = (server: unknown) => typeof Object(server).url === 'string';

/** OpenAPI 3.1 §4.8.1 */
const serverList: Rule = (value) =>
  Array.isArray(value) && value.length > 0 && value.every(hasUrl)
    ? undefined
    : 'must be a list of one or more objects with a url';

const RULES = {
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

export function requireInfo(info: OpenApiInfo) {
  const { title, version, issuer, ...others }: OpenApiInfo = Object(info);
  if (typeof title !== 'string' || typeof version !== 'string') throw new TypeError(NO_INFO);

  requireMembers('info', others, RULES);
  if (issuer !== undefined && !URL.canParse(issuer)) throw new TypeError('info: issuer must be a URL');
}

/** An extension may have any name (OpenAPI 3.1 §4.9). */
export function requireMembers(owner: string, members: object, rules: Readonly<Record<string, Rule>>) {
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
