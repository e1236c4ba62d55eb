// Refusal → status, challenge and body (docs/refusals.md). Trusts the refusal.
// Promises: nothing from the request is in the reply; every kind of refusal has its row here.
import {
  HTTP_REFUSALS,
  PROOF_FLAWS,
  REQUEST_FLAWS,
  TOKEN_FLAWS,
  UNAVAILABILITIES,
  type Refusal,
  type RefusalReason,
} from '../base/refusal.ts';
import { PROOF_ALGORITHMS } from '../keys/jwk.ts';
import { SCHEMES, type DpopMode, type Scheme } from '../sender/credentials.ts';
import { reply, type Reply } from './reply.ts';

const STATUSES: Readonly<Record<Refusal['kind'], number>> = {
  invalid_request: 400,
  unauthorized: 401,
  invalid_token: 401,
  invalid_dpop_proof: 401,
  use_dpop_nonce: 401,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  expectation_failed: 417,
  header_fields_too_large: 431,
  temporarily_unavailable: 503,
};

/** The fixed sentence that names the failed check; guards bring their own. */
const SENTENCES: Readonly<Record<Exclude<RefusalReason, 'scope-missing' | 'claim-missing'>, string>> = {
  ...TOKEN_FLAWS,
  ...PROOF_FLAWS,
  ...REQUEST_FLAWS,
  ...UNAVAILABILITIES,
  ...HTTP_REFUSALS,
  'no-credentials': '',
  'scheme-refused': '',
  'proof-nonce': 'the proof needs the nonce of this answer (nonce)',
};

const DETAILS: Readonly<Partial<Record<Refusal['kind'], string>>> = {
  invalid_token: 'The access token is invalid or has expired',
  invalid_dpop_proof: 'The DPoP proof is invalid',
};

/** After these the bytes that follow on the connection cannot be trusted to be a request (RFC 9110 §15.5.9). */
const CLOSING: readonly RefusalReason[] = [
  'malformed-http',
  'host-refused',
  'target-refused',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
];

/** Statuses that are about credentials or access, and so carry a challenge (RFC 6750 §3, RFC 9110 §11.6.1). */
const CHALLENGED = [400, 401, 403];

/** How refusals are shown; settings decide. */
export interface ChallengeOptions {
  readonly dpopMode: DpopMode;
  /** Bodies of the more telling kind. */
  readonly errorDetail: boolean;
}

/** Gives the reply to a refusal; `scheme` is that of the caller's credentials, if it was an accepted one. */
export type RefusalReplies = (refusal: Refusal, scheme: Scheme | undefined) => Reply;

/** Replies under these options. What depends on nothing but reason and scheme is made once. */
export function createRefusalReplies(options: ChallengeOptions): RefusalReplies {
  const made = {
    none: new Map<RefusalReason, Reply>(),
    Bearer: new Map<RefusalReason, Reply>(),
    DPoP: new Map<RefusalReason, Reply>(),
  };

  return (refusal, scheme) => {
    const isConstant = !('description' in refusal) && !('retryAfterSeconds' in refusal);
    if (!isConstant) return refusalReply(refusal, scheme, options);

    const replies = made[scheme ?? 'none'];
    const refused = replies.get(refusal.reason) ?? refusalReply(refusal, scheme, options);
    replies.set(refusal.reason, refused);
    return refused;
  };
}

function refusalReply(refusal: Refusal, scheme: Scheme | undefined, options: ChallengeOptions): Reply {
  const { kind, reason } = refusal;
  const status = STATUSES[kind];
  const headers = CHALLENGED.includes(status)
    ? challenges(options.dpopMode, scheme, errorParameters(refusal))
    : otherHeaders(refusal);
  const body = bodyOf(refusal, status, options.errorDetail);
  return { ...reply(status, body, headers), closes: CLOSING.includes(reason) };
}

const descriptionOf = (refusal: Refusal) =>
  'description' in refusal ? refusal.description : SENTENCES[refusal.reason];

/** RFC 6750 §3, RFC 9449 §7.1; without credentials there is no error to name (RFC 6750 §3.1). */
function errorParameters(refusal: Refusal): string {
  if (refusal.kind === 'unauthorized') return '';

  const scope = 'scopes' in refusal ? `, scope="${refusal.scopes.join(' ')}"` : '';
  return `error="${refusal.kind}", error_description="${descriptionOf(refusal)}"${scope}`;
}

function bodyOf(refusal: Refusal, status: number, errorDetail: boolean): object {
  const description = descriptionOf(refusal);
  if (errorDetail && status === 403) {
    const message = `Missing permission: ${description}`;
    if (!('scopes' in refusal)) return { error: 'forbidden', message };
    return { error: 'forbidden', message, required_scopes: refusal.scopes };
  }

  const plain = status === 401 ? 'Authentication required' : description;
  const message = errorDetail ? (DETAILS[refusal.kind] ?? plain) : plain;
  return { error: refusal.kind, message };
}

/** RFC 9110 §10.2.3, §15.5.6 */
function otherHeaders(refusal: Refusal): readonly string[] {
  if ('retryAfterSeconds' in refusal) return ['Retry-After', String(refusal.retryAfterSeconds)];
  return refusal.kind === 'method_not_allowed' ? ['Allow', 'GET, HEAD'] : [];
}

const ALGS = `algs="${PROOF_ALGORITHMS.join(' ')}"`;

/** One field for each accepted scheme (RFC 9110 §11.6.1); the error goes on the scheme that the caller used. */
function challenges(mode: DpopMode, scheme: Scheme | undefined, error: string): string[] {
  const first = SCHEMES[mode][0];
  const withError = scheme ?? first;
  return SCHEMES[mode].flatMap((accepted) => {
    const realm = accepted === first ? 'realm="api"' : '';
    const algs = accepted === 'DPoP' ? ALGS : '';
    const parameters = [realm, accepted === withError ? error : '', algs].filter(Boolean);
    return ['WWW-Authenticate', `${accepted} ${parameters.join(', ')}`];
  });
}
