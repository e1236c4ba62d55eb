// The closed list of refusals. Promises: each sentence is fixed, without values of the request, and fits
// RFC 6750 §3 (printable ASCII, no " or \). Does not set status, challenge or body:
// gate/replies/refusal-replies.ts does.

/**
 * Kind (`error` in the body) → reason (for the log) → sentence. If it is empty, the guard has one, or
 * none is sent.
 */
export const REFUSALS = {
  unauthorized: {
    'no-credentials': '',
    'scheme-refused': '',
  },
  /** 401, RFC 6750 §3.1 */
  invalid_token: {
    'credentials-malformed': 'the scheme is not followed by exactly one space and one token',
    'token-malformed': 'the token does not have three parts in canonical base64url',
    'header-malformed': 'the token header is not a JSON object in UTF-8',
    'payload-malformed': 'the token payload is not a JSON object in UTF-8',
    'algorithm-refused': 'the token is not signed with an algorithm that this API accepts',
    'critical-header': 'the token header has crit or b64, which this API does not support',
    'type-refused': 'the type (typ) in the token header does not mark an access token',
    'key-id-malformed': 'the key identifier (kid) of the token is not text',
    'key-unknown': 'no usable signing key of the issuer matches the token (kid)',
    'key-issuer-mismatch': 'the signing key of the token is not for its issuer',
    'signature-mismatch': 'the token signature does not match',
    'issuer-mismatch': 'the token has another issuer (iss)',
    'tenant-mismatch': 'the tenant that the token names is not that of its issuer',
    'audience-mismatch': 'the token is not for this audience (aud)',
    'expiry-malformed': 'the token has no numeric expiry (exp)',
    expired: 'the token has expired',
    'not-before-malformed': 'the not-before time (nbf) of the token is not a number',
    'not-yet-valid': 'the token is not valid yet',
    'issued-at-malformed': 'the issue time (iat) of the token is not a number',
    'subject-malformed': 'the token has no subject (sub) that is a non-empty string',
    'token-use-refused': 'the token_use of the token is not access',
    'payload-type-refused': 'the type (typ) in the token payload does not mark an access token',
    'event-token': 'the token is a security event or logout token (events)',
    'id-token': 'the token is an ID token, not an access token',
    'profile-required': 'the token is not an at+jwt token with client_id, iat and jti',
    'claim-required': 'the token is missing a claim that this API requires',
    'token-inactive': 'the token is not active at its issuer',
    revoked: 'the token has been revoked',
    'bound-token': 'the token is bound (cnf) but was presented as Bearer',
    'not-bound': 'the token is not bound to a key (cnf.jkt) but was presented as DPoP',
    'confirmation-refused': 'the token has a confirmation (cnf) that cannot be checked here',
    'key-mismatch': 'the token is bound to a key other than that of the proof',
    'certificate-untrusted': 'the client certificate did not come from a trusted proxy',
    'certificate-malformed': 'the client certificate that the proxy passed on cannot be read',
    'certificate-missing': 'the token is bound to a client certificate, but the request has none',
    'certificate-mismatch': 'the token is bound to another client certificate',
    'certificate-required': 'the token is not bound to a client certificate, which this API requires',
  },
  /** 401, RFC 9449 §7.1 */
  invalid_dpop_proof: {
    'proof-missing': 'the request has no DPoP proof',
    'proof-malformed': 'the proof is not one JWS with a JSON header and payload in canonical base64url',
    'proof-type': 'the type (typ) in the proof header is not dpop+jwt',
    'proof-algorithm': 'the proof is not signed with an accepted algorithm (alg)',
    'proof-critical': 'the proof header has crit or b64, which this API does not support',
    'proof-key': 'the proof has no public key (jwk) that fits its algorithm',
    'proof-jti': 'the proof has no identifier (jti) of 1 to 256 characters',
    'proof-iat': 'the proof has no numeric issue time (iat)',
    'proof-htm': 'the proof is for another method (htm)',
    'proof-htu': 'the proof is for another URI (htu)',
    'proof-too-old': 'the proof is too old (iat)',
    'proof-too-new': 'the proof is from the future (iat)',
    'proof-ath': 'the proof is for another token (ath)',
    'proof-signature': 'the proof signature does not match',
    'proof-replayed': 'the proof has been used before (jti)',
    'proof-repeated': 'the request has more than one DPoP header field',
  },
  use_dpop_nonce: {
    'proof-nonce': 'the proof needs the nonce that this response carries (nonce)',
  },
  insufficient_scope: {
    'scope-missing': '',
    'claim-missing': '',
    'claims-refused': 'the claims do not have the form that this API needs',
    'decision-refused': '',
    'route-missing': 'no route allows this method at this path',
  },
  insufficient_user_authentication: {
    'login-insufficient': 'the login of the user is not recent or strong enough',
  },
  invalid_request: {
    'malformed-http': 'the request is not well-formed HTTP',
    'host-refused': 'the request needs exactly one Host header field with a host and an optional port',
    'target-refused': 'the request target is not a path that can be served',
    'authorization-repeated': 'the request has more than one Authorization header field',
    'forwarded-refused': 'the forwarded scheme or host is missing, repeated or not valid',
    'question-malformed': 'the auth request does not have exactly one method and one path',
    'proof-beside-bearer': 'the request has both a DPoP header field and a Bearer token',
  },
  /** Says nothing about the token. */
  temporarily_unavailable: {
    'keys-unavailable': 'The signing keys are temporarily unavailable',
    'introspection-unavailable': 'The token cannot be checked at the moment',
    'replay-store-full': 'The replay store is full',
    'replay-store-unavailable': 'The replay store is temporarily unavailable',
    'revocation-store-unavailable': 'The revocation store is temporarily unavailable',
    'too-many-waiting': 'Too many requests are waiting',
    'decision-unavailable': 'The decision about this request is temporarily unavailable',
    'handler-timeout': 'The response took too long',
    'shutting-down': 'The service is shutting down',
  },
  // No route matched, or none was looked for.
  not_found: { not_found: 'There is nothing at this path' },
  method_not_allowed: { method_not_allowed: 'This method is not supported here' },
  request_timeout: { request_timeout: 'The request did not arrive in time' },
  expectation_failed: { expectation_failed: 'The expectation of the request cannot be met' },
  header_fields_too_large: { header_fields_too_large: 'The header fields of the request are too large' },
  // Of body and query, which are read after access was granted.
  invalid_body: {
    'body-missing': 'The request has no body',
    'body-malformed': 'The body is not JSON in UTF-8',
    'body-too-deep': 'The body is nested too deeply',
    'body-member-refused': 'The body has a member with a forbidden name',
  },
  unsupported_media_type: {
    'coding-refused': 'The body is compressed or otherwise encoded',
    'media-type-refused': 'The media type of the body is not accepted here',
    'charset-refused': 'The body is declared in a charset other than UTF-8',
  },
  content_too_large: {
    'body-too-large': 'The body is too large',
  },
  unprocessable_content: {
    'body-refused': 'The body does not match its schema',
  },
  invalid_query: {
    'query-refused': 'The query does not match its schema',
  },
};

type Sentences = typeof REFUSALS;

export type Kind = keyof Sentences;

export type RefusalReason = { [Each in Kind]: keyof Sentences[Each] }[Kind];

export interface Refusal {
  readonly kind: Kind;
  readonly reason: RefusalReason;
  readonly description: string;
  readonly scopes?: readonly string[];
  /** The route's demands, as parameters of a challenge. */
  readonly demands?: object;
  /** Alternating names and values. */
  readonly headers?: readonly string[];
  /** Path and message of each issue of a schema. */
  readonly issues?: readonly object[];
}

/** What verification has found out by the time it ends. */
export interface Found {
  readonly kid?: string | undefined;
  readonly issuerName?: string | undefined;
  /** For the response (RFC 9449 §9). */
  readonly freshNonce?: string | undefined;
  /** For `onError`. */
  readonly thrown?: { readonly error: unknown } | undefined;
  /** Whether the client has left. */
  readonly isGone?: boolean | undefined;
}

/**
 * A refused request. Returned, not thrown, where any client can cause it: a `throw` is costly.
 * Not an `Error`: a stack costs time and could leak.
 */
export class Refused {
  readonly #isGenuine = true;
  readonly refusal;
  readonly found;

  constructor(refusal: Refusal, found: Found = {}) {
    this.refusal = refusal;
    this.found = found;
  }

  /** `instanceof` would throw for a revoked `Proxy`. */
  static is(thrown: unknown): thrown is Refused {
    return #isGenuine in Object(thrown);
  }

  with(found: Found) {
    return new Refused(this.refusal, Object.assign({}, this.found, found));
  }
}

/** Shared between requests. */
const PLAIN = Object.fromEntries(
  Object.entries(REFUSALS).flatMap(([kind, sentences]) =>
    Object.entries(sentences).map(([reason, description]) => [reason, { kind, reason, description }]),
  ),
) as Readonly<Record<RefusalReason, Refusal>>;

export const refuse = (reason: RefusalReason, details?: Omit<Partial<Refusal>, 'kind' | 'reason'>) =>
  new Refused(details === undefined ? PLAIN[reason] : { ...PLAIN[reason], ...details });

/** RFC 9110 §10.2.3: retry after `seconds`. */
export const unavailable = (reason: keyof Sentences['temporarily_unavailable'], seconds = 1) =>
  refuse(reason, { headers: ['Retry-After', String(seconds)] });

/** RFC 9110 §15.5.6 */
export const refuseMethod = (allowed: readonly string[]) =>
  refuse('method_not_allowed', { headers: ['Allow', allowed.join(', ')] });
