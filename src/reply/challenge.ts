// Refusal → status, challenge and body (contract §6). Trusts the refusal.
// Promises: nothing from the request is in the reply; every kind of refusal has its row here.
import { PROOF_ALGORITHMS } from '../keys/jwk.ts';
import {
  DEAD_ENDS,
  PROOF_FLAWS,
  REQUEST_FLAWS,
  TOKEN_FLAWS,
  UNAVAILABILITIES,
  type Refusal,
  type RefusalReason,
} from '../base/refusal.ts';
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
  ...DEAD_ENDS,
  'no-credentials': '',
  'scheme-refused': '',
  'proof-nonce': 'the proof needs the nonce of this answer (nonce)',
};
const DETAILS: Readonly<Partial<Record<Refusal['kind'], string>>> = {
  invalid_token: 'The access token is invalid or has expired',
  invalid_dpop_proof: 'The DPoP proof is invalid',
};
/** Refusals after which the bytes that follow on the connection cannot be trusted to be a request (RFC 9110 §15.5.9). */
const CLOSING: readonly RefusalReason[] = [
  'malformed-http',
  'host-refused',
  'target-refused',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
];
/** How refusals are shown; settings decide. */
export type ChallengeRules = Readonly<{ dpopMode: DpopMode; errorDetail: boolean }>;
/** `refusalReply` under these rules. What depends on nothing but reason and scheme is written once. */
export function createRefusalReplies(
  rules: ChallengeRules,
): (refusal: Refusal, used: Scheme | undefined) => Reply {
  const written = {
    none: new Map<RefusalReason, Reply>(),
    Bearer: new Map<RefusalReason, Reply>(),
    DPoP: new Map<RefusalReason, Reply>(),
  };
  return (refusal, used) => {
    const known = written[used ?? 'none'];
    const answer = known.get(refusal.reason) ?? refusalReply(refusal, used, rules);
    if (!known.has(refusal.reason) && Object.keys(refusal).length === 2) known.set(refusal.reason, answer);
    return answer;
  };
}
/** The reply to a refusal; `used` is the scheme of the caller's credentials, if it was an accepted one. */
export function refusalReply(
  refusal: Refusal,
  used: Scheme | undefined,
  { dpopMode, errorDetail }: ChallengeRules,
): Reply {
  const { kind, reason } = refusal;
  const status = STATUSES[kind];
  const description = 'description' in refusal ? refusal.description : SENTENCES[refusal.reason];
  const scopes = 'scopes' in refusal ? refusal.scopes : undefined;
  const scope = scopes === undefined ? '' : `, scope="${scopes.join(' ')}"`;
  // RFC 6750 §3, RFC 9449 §7.1; without credentials there is no error to name (RFC 6750 §3.1).
  const error = kind === 'unauthorized' ? '' : `error="${kind}", error_description="${description}"${scope}`;
  const headers = status < 404 ? challenges(dpopMode, used, error) : otherHeaders(refusal);
  if (errorDetail && status === 403) {
    return reply(
      status,
      {
        error: 'forbidden',
        message: `Missing permission: ${description}`,
        ...(scopes && { required_scopes: scopes }),
      },
      headers,
    );
  }
  const message =
    (errorDetail && DETAILS[kind]) || (status === 401 ? 'Authentication required' : description);
  return { ...reply(status, { error: kind, message }, headers), closes: CLOSING.includes(reason) };
}
/** RFC 9110 §10.2.3, §15.5.6 */
const otherHeaders = (refusal: Refusal) =>
  'retryAfterSeconds' in refusal
    ? ['Retry-After', String(refusal.retryAfterSeconds)]
    : refusal.kind === 'method_not_allowed'
      ? ['Allow', 'GET, HEAD']
      : [];
const ALGS = `algs="${PROOF_ALGORITHMS.join(' ')}"`;
/** One field for each accepted scheme (RFC 9110 §11.6.1); the error goes on the scheme that the caller used. */
function challenges(mode: DpopMode, used: Scheme | undefined, error: string): string[] {
  const [first] = SCHEMES[mode];
  return SCHEMES[mode].flatMap((scheme) => {
    const parameters = [
      scheme === first ? 'realm="api"' : '',
      scheme === (used ?? first) ? error : '',
      scheme === 'DPoP' ? ALGS : '',
    ];
    return ['WWW-Authenticate', `${scheme} ${parameters.filter(Boolean).join(', ')}`];
  });
}
