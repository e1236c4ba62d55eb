// What accesses and inputs mean in OpenAPI: requirements of security, and the refusals of a route. Promises:
// the statuses and errors are those of the table that refusals are made from.
import type { JsonObject } from '../../verify/base/encoding.ts';
import type { Kind } from '../../verify/base/refusal.ts';
import { STATUSES } from '../../gate/replies/refusal-replies.ts';
import type { DecidedAccess } from '../../gate/rules/access.ts';
import type { AnyGuard } from '../../gate/rules/further.ts';
import type { Route } from '../../service/routes/route.ts';

/** The accesses of the rules, then that of the route. */
export type InForce = readonly DecidedAccess<unknown>[];

/** Whether a caller must show a token, or may. */
export const isProtected = (inForce: InForce): boolean =>
  inForce.some(({ credentials }) => credentials !== 'ignored');

type Requirement = Readonly<Record<string, readonly string[]>>;

/** One requirement for each way to have the scopes: those of `anyScope` are alternatives. */
export function securityOf(inForce: InForce): readonly Requirement[] {
  if (!isProtected(inForce)) return [];
  const isOptional = inForce.every(({ credentials }) => credentials !== 'required');
  if (isOptional) return [{}, { token: [] }];

  const guards = inForce.flatMap((access) => access.guards);
  const ways = guards.reduce<readonly (readonly string[])[]>(withScopes, [[]]);
  return ways.map((scopes) => ({ token: [...new Set(scopes)] }));
}

function withScopes(ways: readonly (readonly string[])[], { name, refused }: AnyGuard) {
  const { scopes = [] } = refused.refusal;
  const isAny = name.startsWith('any scope of ');
  const choices = isAny ? scopes.map((one) => [one]) : [scopes];
  return ways.flatMap((way) => {
    return choices.map((choice) => [...way, ...choice]);
  });
}

/** Each operation can give these. */
const ALWAYS: readonly Kind[] = [
  'invalid_request',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
  'temporarily_unavailable',
];

/** Also where they may be missing. */
const OF_CREDENTIALS = ['unauthorized', 'invalid_token', 'invalid_dpop_proof', 'use_dpop_nonce'] as const;

function kindsOf({ query, body }: Route, inForce: InForce): readonly Kind[] {
  const kinds = [...ALWAYS];
  if (isProtected(inForce)) kinds.push(...OF_CREDENTIALS);

  const guards = inForce.flatMap((access) => access.guards);
  const ofGuards = guards.map(({ refused }) => refused.refusal.kind);
  kinds.push(...new Set(ofGuards));
  if (query !== undefined) kinds.push('invalid_query');
  if (body === undefined) return kinds;

  kinds.push('invalid_body', 'content_too_large', 'unsupported_media_type');
  if (body.schema !== undefined) kinds.push('unprocessable_content');
  return kinds;
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'The request is not well-formed',
  401: 'A valid access token is required, with a proof if the token is bound to a key',
  403: 'The access token does not allow this',
  408: 'The request did not arrive in time',
  413: 'The body is too large',
  415: 'The media type, coding or charset of the body is not accepted',
  417: 'The expectation cannot be met',
  422: 'The body does not match its schema',
  431: 'The header fields are too large',
  500: 'The service failed',
  503: 'Try again later',
};

/** By status. */
export function responsesOf(route: Route, inForce: InForce): Readonly<Record<string, JsonObject>> {
  const errors = new Map<number, string[]>([[500, ['server_error']]]);
  for (const kind of kindsOf(route, inForce)) {
    const status = STATUSES[kind];
    errors.set(status, [...(errors.get(status) ?? []), kind]);
  }
  // With `ERROR_DETAIL`.
  errors.get(403)?.push('forbidden');

  const responses: Record<string, JsonObject> = {};
  for (const [status, words] of errors) responses[status] = responseOf(status, words);
  return responses;
}

function responseOf(status: number, errors: readonly string[]): JsonObject {
  const headers = headersOf(status, errors);
  const description = DESCRIPTIONS[status] ?? 'Refused';
  const content = { 'application/json': { schema: bodySchema(errors) } };
  return { description, ...(headers && { headers }), content };
}

const TEXT = { schema: { type: 'string' } };

/** RFC 9110 §10.2.3, §11.6.1 */
function headersOf(status: number, errors: readonly string[]) {
  const isChallenge = status === 401 || status === 403 || errors.includes('invalid_request');
  if (isChallenge) return { 'WWW-Authenticate': TEXT };
  return status === 503 ? { 'Retry-After': TEXT } : undefined;
}

const ISSUE = {
  type: 'object',
  required: ['path', 'message'],
  properties: {
    path: { type: 'array', items: { type: ['string', 'number'] } },
    message: { type: 'string' },
  },
};

function bodySchema(errors: readonly string[]): JsonObject {
  const hasIssues = errors.includes('invalid_query') || errors.includes('unprocessable_content');
  const hasScopes = errors.includes('forbidden');

  return {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: { type: 'string', enum: errors },
      message: { type: 'string' },
      ...(hasIssues && { issues: { type: 'array', items: ISSUE } }),
      ...(hasScopes && { required_scopes: { type: 'array', items: { type: 'string' } } }),
    },
  };
}
