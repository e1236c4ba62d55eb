// Refusal → status, challenge and body (docs/refusals.md). Trusts the refusal. Promises: nothing from the
// request is in the reply, but what a schema says of it; every kind of refusal has its route here.
import type { Kind, Refusal, RefusalReason } from '../verify/base/refusal.ts';
import { SCHEMES, type DpopMode, type Scheme } from '../verify/credentials.ts';
import { jsonReply, type Reply } from './reply.ts';

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

/**
 * After these the bytes that follow on the connection cannot be trusted to be a request (RFC 9110 §15.5.9).
 */
const CLOSING: readonly RefusalReason[] = [
  'malformed-http',
  'host-refused',
  'target-refused',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
];

/** How refusals are shown; settings decide. */
export interface ChallengeOptions {
  readonly dpopMode: DpopMode;
  readonly dpopAlgorithms: readonly string[];
  /** Bodies of the more telling kind. */
  readonly errorDetail: boolean;
  /** Where clients find out how to get a token, if there is such a place. */
  readonly metadataUrl?: string | undefined;
}

/**
 * Gives what makes the reply to a refusal; `scheme` is that of the caller's credentials, if it was an
 * accepted one. A reason without details and a guard give the same refusal again and again: the reply is
 * made once, and each time when it tells of one request alone.
 */
export function createRefusalReplies({
  dpopMode,
  dpopAlgorithms,
  errorDetail,
  metadataUrl,
}: ChallengeOptions) {
  const made = new WeakMap<Refusal, Map<unknown, Reply>>();
  const schemes = SCHEMES[dpopMode];
  const algs = dpopAlgorithms.join(' ');

  /** One field for each accepted scheme (RFC 9110 §11.6.1); the error goes on the one that was used. */
  function challenges({ kind, description, demands }: Refusal, scheme: Scheme | undefined) {
    // RFC 6750 §3.1: without credentials there is no error to name. Choice: what is told then goes first,
    // which is where clients look.
    const error = kind !== 'unauthorized' && kind;
    const told = (error && scheme) || schemes[0];

    return schemes.flatMap((accepted) => {
      const parameters = parametersText({
        realm: accepted === schemes[0] && 'api',
        // RFC 6750 §3, RFC 9470 §3
        ...(accepted === told && { error, error_description: description, ...demands }),
        // RFC 9449 §7.1
        algs: accepted === 'DPoP' && algs,
        // RFC 9728 §5.1
        resource_metadata: metadataUrl,
      });
      return ['WWW-Authenticate', `${accepted} ${parameters}`];
    });
  }

  function bodyOf({ kind, description, scopes, issues }: Refusal, status: number) {
    if (errorDetail && status === 403) {
      return { error: 'forbidden', message: `Missing permission: ${description}`, required_scopes: scopes };
    }

    const plain = status === 401 ? 'Authentication required' : description;
    const message = errorDetail ? (DETAILS[kind] ?? plain) : plain;
    return { error: kind, message, issues };
  }

  function make(refusal: Refusal, scheme: Scheme | undefined) {
    const { kind, reason, headers } = refusal;
    const status = STATUSES[kind];
    // RFC 6750 §3, RFC 9110 §11.6.1: what is about credentials or access.
    const isChallenge = status === 401 || status === 403 || kind === 'invalid_request';
    const fields = isChallenge ? challenges(refusal, scheme) : headers;
    return { ...jsonReply(status, bodyOf(refusal, status), fields), closes: CLOSING.includes(reason) };
  }

  return (refusal: Refusal, scheme: Scheme | undefined): Reply => {
    const { headers, issues } = refusal;
    if ((headers ?? issues) !== undefined) return make(refusal, scheme);

    const replies = made.get(refusal) ?? new Map<unknown, Reply>();
    made.set(refusal, replies);
    const reply = replies.get(scheme) ?? make(refusal, scheme);
    replies.set(scheme, reply);
    return reply;
  };
}

/** The auth-params of a challenge that have something to tell. */
export function parametersText(parameters: object): string {
  const told = Object.entries(parameters).filter(([, value]) => value);
  return told.map(([name, value]) => `${name}="${value}"`).join(', ');
}
