/*
 * Refusal → status, challenge and body (contract §6).
 * Trusts the refusal. Promises: nothing from the request is in the reply; every kind of refusal has its row here.
 */
import { DEAD_ENDS, REQUEST_FLAWS, TOKEN_FLAWS, UNAVAILABILITIES, type Refusal } from '../refusal.ts';
import type { DpopMode, Scheme } from '../sender/credentials.ts';
import { reply, type Reply } from './reply.ts';

const STATUSES: Readonly<Record<Refusal['kind'], number>> = {
  invalid_request: 400,
  unauthorized: 401,
  invalid_token: 401,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  expectation_failed: 417,
  header_fields_too_large: 431,
  temporarily_unavailable: 503,
};

/** How refusals are shown; settings decide. */
export interface ChallengeRules {
  readonly dpopMode: DpopMode;
  readonly errorDetail: boolean;
}

/** Refusals after which the bytes that follow on the connection cannot be trusted to be a request. */
const CLOSING: readonly Refusal['reason'][] = ['malformed-http', 'host-refused', 'target-refused', 'request_timeout', 'expectation_failed', 'header_fields_too_large'];

/** The reply to a refusal; `used` is the scheme of the caller's credentials, if it was an accepted one. */
export function refusalReply(refusal: Refusal, used: Scheme | undefined, rules: ChallengeRules): Reply {
  const status = STATUSES[refusal.kind];
  const headers = refusalHeaders(refusal, used, rules.dpopMode);
  if (rules.errorDetail && refusal.kind === 'invalid_token') {
    return reply(status, { error: 'invalid_token', message: 'The access token is invalid or has expired' }, headers);
  }
  if (rules.errorDetail && refusal.kind === 'insufficient_scope') {
    const required = 'scopes' in refusal ? { required_scopes: refusal.scopes } : {};
    return reply(status, { error: 'forbidden', message: `Missing permission: ${refusal.description}`, ...required }, headers);
  }
  const message = status === 401 ? 'Authentication required' : description(refusal);
  return { ...reply(status, { error: refusal.kind, message }, headers), closes: CLOSING.includes(refusal.reason) };
}

/** The fixed sentence that names the failed check. */
function description(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'unauthorized': return 'Authentication required';
    case 'invalid_token': return TOKEN_FLAWS[refusal.reason];
    case 'invalid_request': return REQUEST_FLAWS[refusal.reason];
    case 'insufficient_scope': return refusal.description;
    case 'temporarily_unavailable': return UNAVAILABILITIES[refusal.reason];
    default: return DEAD_ENDS[refusal.kind];
  }
}

function refusalHeaders(refusal: Refusal, used: Scheme | undefined, mode: DpopMode): readonly string[] {
  switch (refusal.kind) {
    case 'unauthorized': return challenges(mode, used, '');
    case 'invalid_token':
    case 'invalid_request': return challenges(mode, used, errorParameters(refusal.kind, description(refusal)));
    case 'insufficient_scope': {
      const scope = 'scopes' in refusal ? `, scope="${refusal.scopes.join(' ')}"` : '';
      return challenges(mode, used, errorParameters(refusal.kind, refusal.description) + scope);
    }
    // RFC 9110 §10.2.3
    case 'temporarily_unavailable': return ['Retry-After', String(refusal.retryAfterSeconds)];
    // RFC 9110 §15.5.6
    case 'method_not_allowed': return ['Allow', 'GET, HEAD'];
    default: return [];
  }
}

/** RFC 6750 §3, RFC 9449 §7.1 */
const errorParameters = (error: string, text: string) => `, error="${error}", error_description="${text}"`;

/** One field for each accepted scheme (RFC 9110 §11.6.1); the error goes on the scheme that the caller used. */
function challenges(mode: DpopMode, used: Scheme | undefined, error: string): string[] {
  const schemes: Scheme[] = mode === 'ALLOWED' ? ['Bearer', 'DPoP'] : mode === 'REQUIRED' ? ['DPoP'] : ['Bearer'];
  const blamed = used ?? schemes[0];
  return schemes.flatMap((scheme) => ['WWW-Authenticate', `${scheme} realm="api"${scheme === blamed ? error : ''}`]);
}
