// The reply to a refusal or an error: status, challenge and body (docs/refusals.md), with all its fields.
// Trusts the refusal. Promises: a reply repeats nothing of the request, except in the issues of a schema;
// anything but a refusal becomes a 500 that reveals nothing.
import { ignoreErrors, nothing } from '../../verify/base/clock.ts';
import { describeBug, type Fields } from '../../verify/base/events.ts';
import {
  fieldValues,
  acceptedScheme,
  SCHEMES,
  type RawRequest,
  type DpopMode,
  type Scheme,
} from '../../verify/request/facts.ts';
import type { Kind, Refusal, RefusalReason } from '../../verify/base/refusal.ts';
import { extraFields, jsonReply, parametersText, type CrossOrigin, type Reply } from './reply.ts';
import type { OnError } from '../events.ts';
import { extendRecord, type RequestRecord } from '../decide.ts';

export const STATUSES: Readonly<Record<Kind, number>> = {
  invalid_request: 400,
  invalid_body: 400,
  invalid_query: 400,
  unauthorized: 401,
  invalid_token: 401,
  invalid_dpop_proof: 401,
  use_dpop_nonce: 401,
  insufficient_user_authentication: 401,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  content_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  unprocessable_content: 422,
  header_fields_too_large: 431,
  temporarily_unavailable: 503,
};

const DETAILS: Readonly<Partial<Record<Kind, string>>> = {
  invalid_token: 'The access token is invalid or has expired',
  invalid_dpop_proof: 'The DPoP proof is invalid',
};

/** These end the connection: what follows may not be a request (RFC 9110 §15.5.9, RFC 9112 §9.6). */
const CLOSING: readonly RefusalReason[] = [
  'malformed-http',
  'host-refused',
  'target-refused',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
];

interface ChallengeOptions {
  readonly dpopMode: DpopMode;
  readonly dpopAlgorithms: readonly string[];
  /** Whether bodies say more. */
  readonly errorDetail: boolean;
  readonly errorDocsUrl?: string | undefined;
  /** RFC 9728 §5.1 */
  readonly metadataUrl?: string | undefined;
  /** One field for all schemes: nginx drops a second one. */
  readonly joinsChallenges?: boolean;
  readonly nameScopes?: NameScopes | undefined;
}

/** Makes each reply once, unless it has details of one request. */
export function createRefusalReplies(options: ChallengeOptions) {
  const make = (refusal: Refusal, scheme: Scheme | undefined) => replyTo(refusal, scheme, options);
  const makeOnce = onceForEach(make);

  return (refusal: Refusal, scheme: Scheme | undefined): Reply => {
    const details = refusal.headers ?? refusal.issues;
    return (details ? make : makeOnce)(refusal, scheme);
  };
}

function replyTo(refusal: Refusal, scheme: Scheme | undefined, options: ChallengeOptions) {
  const { kind, reason, headers } = refusal;
  const status = STATUSES[kind];
  // RFC 6750 §3, RFC 9110 §11.6.1
  const isChallenge = status === 401 || status === 403 || kind === 'invalid_request';
  const fields = isChallenge ? challenges(refusal, scheme, options) : headers;
  const body = JSON.stringify(bodyOf(refusal, status, options.errorDetail));
  return { ...jsonReply(status, body, fields), closes: CLOSING.includes(reason) };
}

/** A field for each accepted scheme (RFC 9110 §11.6.1). The error goes into that of the scheme used. */
function challenges(
  { kind, reason, description, demands }: Refusal,
  scheme: Scheme | undefined,
  { dpopMode, dpopAlgorithms, errorDocsUrl, metadataUrl, joinsChallenges }: ChallengeOptions,
) {
  const schemes = SCHEMES[dpopMode];
  // RFC 6750 §3.1: no credentials, no error. Choice: the first challenge then has the demands.
  const isError = kind !== 'unauthorized';
  const used = isError && scheme ? scheme : schemes[0];
  const error = {
    error: isError && kind,
    error_description: description,
    error_uri: isError && errorDocsUrl && `${errorDocsUrl}#${reason}`,
  };

  const each = schemes.map((accepted) => {
    const parameters = parametersText({
      realm: accepted === schemes[0] ? 'api' : undefined,
      // RFC 6750 §3, RFC 9470 §3
      ...(accepted === used && { ...error, ...demands }),
      // RFC 9449 §7.1
      algs: accepted === 'DPoP' ? dpopAlgorithms.join(' ') : undefined,
      resource_metadata: metadataUrl,
    });
    return `${accepted} ${parameters}`;
  });
  const fields = joinsChallenges ? [each.join(', ')] : each;
  return fields.flatMap((field) => ['WWW-Authenticate', field]);
}

function bodyOf({ kind, description, scopes, issues }: Refusal, status: number, errorDetail: boolean) {
  if (errorDetail && status === 403) {
    return { error: 'forbidden', message: `Missing permission: ${description}`, required_scopes: scopes };
  }

  const plain = status === 401 ? 'Authentication required' : description;
  const message = errorDetail ? (DETAILS[kind] ?? plain) : plain;
  return { error: kind, message, issues };
}

export function onceForEach<Key, Value>(make: (refusal: Refusal, key: Key) => Value) {
  const made = new WeakMap<Refusal, Map<Key, Value>>();

  return (refusal: Refusal, key: Key) => {
    const values = made.get(refusal) ?? new Map<Key, Value>();
    made.set(refusal, values);
    const value = values.get(key) ?? make(refusal, key);
    values.set(key, value);
    return value;
  };
}

const BUG_REPLY = jsonReply(500, '{"error":"server_error","message":"Internal Server Error"}');

/** Adds the scopes that the challenge names (RFC 6750 §3). */
export type NameScopes = (refusal: Refusal, record: RequestRecord) => Refusal;

/** A record whose reply is known. */
export type Replied = RequestRecord & { readonly reply: Reply };

export interface Replies {
  /** For `extraFields`. */
  readonly crossOrigin: CrossOrigin | undefined;
  /** Makes the reply to a refusal or error. Never throws. */
  readonly complete: (record: RequestRecord, request: RawRequest) => Replied;
  /** For replies that a service does not write: completes, and adds fields. */
  readonly finish: Replies['complete'];
}

export function createReplies(
  options: ChallengeOptions,
  crossOrigin?: CrossOrigin,
  onError: OnError = nothing,
): Replies {
  const replyToRefusal = createRefusalReplies(options);

  function complete(record: RequestRecord, { rawHeaders }: RawRequest): Replied {
    if (record.reply) return record as Replied;

    const { refusal, thrown, facts, route } = record;
    // First: an error has frames only until its stack is read.
    const bug = refusal === undefined ? describeBug(thrown?.error) : undefined;
    if (thrown) {
      const about = { method: facts?.method || null, route: route?.pattern ?? null };
      void ignoreErrors(() => onError(thrown.error, about));
    }
    if (!refusal) return withReply(record, BUG_REPLY, bug);

    const [authorization = ''] = fieldValues(rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, options.dpopMode);
    return withReply(record, replyToRefusal(options.nameScopes?.(refusal, record) ?? refusal, scheme));
  }

  function finish(record: RequestRecord, request: RawRequest): Replied {
    const replied = complete(record, request);
    const { status, content } = replied.reply;
    const origin = fieldValues(request.rawHeaders, 'origin').join();
    const fields = [...replied.reply.fields, ...extraFields(replied, crossOrigin, origin)];
    return withReply(replied, { status, fields, content });
  }

  return { crossOrigin, complete, finish };
}

const withReply = (record: RequestRecord, reply: Reply, bug?: Fields) =>
  extendRecord(record, { reply, bug }) as Replied;
