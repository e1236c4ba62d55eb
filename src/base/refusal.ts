// The closed list of ways in which a request is turned away. Promises: each has one fixed sentence, which
// holds no value from the request and fits RFC 6750 §3 (printable ASCII, no " or \). Does not decide status,
// challenge or body: reply/challenge.ts does.

/** Why an access token is refused (401 `invalid_token`, RFC 6750 §3.1): log reason → `error_description`. */
export const TOKEN_FLAWS = {
  'credentials-malformed': 'the scheme is not followed by exactly one space and one token',
  'token-malformed': 'the token is not three parts of canonical base64url',
  'header-malformed': 'the token header is not a JSON object in UTF-8',
  'payload-malformed': 'the token payload is not a JSON object in UTF-8',
  'algorithm-refused': 'the token is not signed with RS256',
  'critical-header': 'the token header names critical members (crit or b64)',
  'type-refused': 'the token header names another type (typ) than an access token',
  'key-id-malformed': 'the key identifier (kid) of the token is not text',
  'key-unknown': 'the token names no usable signing key of the issuer',
  'signature-mismatch': 'the token signature does not match',
  'issuer-mismatch': 'the token has another issuer (iss)',
  'audience-mismatch': 'the token is not for this audience (aud)',
  'expiry-malformed': 'the token has no expiry (exp) that is a number',
  expired: 'the token has expired',
  'not-before-malformed': 'the start of validity (nbf) of the token is not a number',
  'not-yet-valid': 'the token is not valid yet',
  'issued-at-malformed': 'the time of issue (iat) of the token is not a number',
  'subject-malformed': 'the token has no subject (sub) that is text',
  'token-use-refused': 'the token is for another use (token_use) than access',
  'payload-type-refused': 'the token payload names another type (typ) than an access token',
  'event-token': 'the token is a security event or logout token (events)',
  'id-token': 'the token is an ID token, not an access token',
  'profile-required': 'the token is not of the at+jwt profile with client_id, iat and jti',
  'claim-required': 'the token lacks a claim that this service requires',
  'bound-token': 'the token is bound to a key and was presented as Bearer',
  'not-bound': 'the token is not bound to a key (cnf.jkt) and was presented as DPoP',
  'confirmation-refused': 'the token names a confirmation (cnf) that cannot be checked here',
  'key-mismatch': 'the token is bound to another key than that of the proof',
} as const;

/** Why a DPoP proof is refused (401 `invalid_dpop_proof`, RFC 9449 §7.1). */
export const PROOF_FLAWS = {
  'proof-missing': 'the request has no DPoP proof',
  'proof-malformed': 'the proof is not one JWS of canonical base64url and JSON objects',
  'proof-type': 'the proof header does not say that it is of type dpop+jwt (typ)',
  'proof-algorithm': 'the proof is not signed with an accepted algorithm (alg)',
  'proof-critical': 'the proof header names critical members (crit or b64)',
  'proof-key': 'the proof has no public key (jwk) that fits its algorithm',
  'proof-jti': 'the proof has no identifier (jti) of 1 to 256 characters',
  'proof-iat': 'the proof has no time of issue (iat) that is a number',
  'proof-htm': 'the proof is for another method (htm)',
  'proof-htu': 'the proof is for another URI (htu)',
  'proof-too-old': 'the proof is too old (iat)',
  'proof-too-new': 'the proof is from the future (iat)',
  'proof-ath': 'the proof is for another token (ath)',
  'proof-signature': 'the proof signature does not match',
  'proof-replayed': 'the proof has been used before (jti)',
} as const;

/** Why a request is refused as such (400 `invalid_request`). */
export const REQUEST_FLAWS = {
  'malformed-http': 'the request is not well-formed HTTP',
  'host-refused': 'the request needs exactly one Host header field with a host and an optional port',
  'target-refused': 'the request target is not a path',
  'authorization-repeated': 'the request has more than one Authorization header field',
  'proof-repeated': 'the request has more than one DPoP header field',
  'forwarded-refused': 'the forwarded scheme or host of the request is not one',
  'proof-beside-bearer': 'the request has a DPoP header field beside a Bearer token',
} as const;

/** Why the service cannot decide now (503 `temporarily_unavailable`); never a statement about the token. */
export const UNAVAILABILITIES = {
  'keys-unavailable': 'The signing keys are temporarily unavailable',
  'replay-memory-full': 'The memory of used proofs is full',
  'replay-store-unavailable': 'The memory of used proofs is temporarily unavailable',
  'too-many-waiting': 'Too many requests are waiting for the signing keys',
  'handler-timeout': 'The answer took too long',
  'shutting-down': 'The service is shutting down',
} as const;

/** Requests that end before a route is looked for, or without one. */
export const HTTP_FLAWS = {
  not_found: 'There is nothing at this path',
  method_not_allowed: 'This method is not supported here',
  request_timeout: 'The request did not arrive in time',
  expectation_failed: 'The expectation of the request cannot be met',
  header_fields_too_large: 'The header fields of the request are too large',
} as const;

/**
 * Why a body or a query is refused, once access is granted: log reason → the kind of refusal, and what the
 * client is told.
 */
export const CONTENT_FLAWS = {
  'body-missing': ['invalid_body', 'The request has no body'],
  'coding-refused': ['unsupported_media_type', 'The body has a content coding'],
  'media-type-refused': ['unsupported_media_type', 'The body is not of a media type that is taken here'],
  'charset-refused': ['unsupported_media_type', 'The body is not declared as UTF-8'],
  'body-too-large': ['content_too_large', 'The body is too large'],
  'body-malformed': ['invalid_body', 'The body is not JSON in UTF-8'],
  'body-too-deep': ['invalid_body', 'The body is nested too deeply'],
  'body-member-refused': ['invalid_body', 'The body has a member that is not taken'],
  'body-refused': ['unprocessable_content', 'The body does not fit'],
  'query-refused': ['invalid_query', 'The query does not fit'],
} as const;

export type TokenFlaw = keyof typeof TOKEN_FLAWS;

export type ProofFlaw = keyof typeof PROOF_FLAWS;

export type RequestFlaw = keyof typeof REQUEST_FLAWS;

export type HttpFlaw = Exclude<keyof typeof HTTP_FLAWS, 'method_not_allowed'>;

export type ContentFlaw = keyof typeof CONTENT_FLAWS;

type Unavailability = keyof typeof UNAVAILABILITIES;

/** What a client is told of a value that does not fit: where it is, by keys, and why. */
export interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** One refusal. `kind` is the `error` member of the body; `reason` is what the log says. */
export type Refusal = Readonly<
  | { kind: 'unauthorized'; reason: 'no-credentials' | 'scheme-refused' }
  | { kind: 'invalid_token'; reason: TokenFlaw }
  | { kind: 'invalid_dpop_proof'; reason: ProofFlaw }
  | { kind: 'use_dpop_nonce'; reason: 'proof-nonce' }
  | { kind: 'invalid_request'; reason: RequestFlaw }
  | { kind: 'insufficient_scope'; reason: 'scope-missing'; description: string; scopes: readonly string[] }
  | { kind: 'insufficient_scope'; reason: 'claim-missing'; description: string }
  | {
      kind: 'insufficient_user_authentication';
      reason: 'login-insufficient';
      /** As they stand in a challenge. */
      demands: readonly (string | undefined)[];
    }
  | { kind: 'temporarily_unavailable'; reason: Unavailability; retryAfterSeconds: number }
  | { kind: HttpFlaw; reason: HttpFlaw }
  | { kind: 'method_not_allowed'; reason: 'method_not_allowed'; allowed: readonly string[] }
  | {
      kind: (typeof CONTENT_FLAWS)[ContentFlaw][0];
      reason: ContentFlaw;
      description: string;
      headers: readonly string[];
      issues: readonly Issue[] | undefined;
    }
>;

export type RefusalReason = Refusal['reason'];

/**
 * What was learnt on the way to a refusal: the key of the token, by the provider's name; its issuer, by the
 * configured one; a nonce to offer.
 */
interface Findings {
  readonly kid?: string | undefined;
  readonly issuerName?: string | undefined;
  readonly freshNonce?: string | undefined;
}

/**
 * What is thrown to turn a request away. Not an `Error`: it is an answer, and a stack would cost and could
 * leak.
 */
export class Refused {
  readonly refusal: Refusal;
  readonly findings: Findings;

  constructor(refusal: Refusal, findings: Findings = {}) {
    this.refusal = refusal;
    this.findings = findings;
  }

  /** The same refusal with more that was learnt. */
  with(findings: Findings): Refused {
    return new Refused(this.refusal, { ...this.findings, ...findings });
  }
}

export const refuseToken = (reason: TokenFlaw) => new Refused({ kind: 'invalid_token', reason });

export const refuseProof = (reason: ProofFlaw) => new Refused({ kind: 'invalid_dpop_proof', reason });

export const refuseRequest = (reason: RequestFlaw) => new Refused({ kind: 'invalid_request', reason });

export const refuseHttp = (reason: HttpFlaw) => new Refused({ kind: reason, reason });

/** RFC 9110 §15.5.6: `allowed` are the methods of the rows at this path. */
export const refuseMethod = (allowed: readonly string[]) =>
  new Refused({ kind: 'method_not_allowed', reason: 'method_not_allowed', allowed });

/** `headers` are fields of the reply, names and values in turn; `issues` is what a schema says. */
export function refuseContent(
  reason: ContentFlaw,
  headers: readonly string[] = [],
  issues?: readonly Issue[],
): Refused {
  const [kind, description] = CONTENT_FLAWS[reason];
  return new Refused({ kind, reason, description, headers, issues });
}

export const unavailable = (reason: Unavailability, retryAfterSeconds: number) =>
  new Refused({ kind: 'temporarily_unavailable', reason, retryAfterSeconds });

/** What is thrown when nobody is left to be answered. */
export class ClientGone {}
