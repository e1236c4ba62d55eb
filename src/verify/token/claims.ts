// The checks on the claims of an access token (RFC 7519 §4.1, RFC 9068 §4), in the order of
// docs/how-a-request-is-checked.md: of a SignedPayload, or of what an issuer itself says of a token. Does not
// check guards (gate/rules/guards.ts) or the binding to a key (verify/caller.ts).
import { isFiniteNumber, isPresent, isTextArray, type JsonObject } from '../base/encoding.ts';
import { refuse, type Refused } from '../base/refusal.ts';
import { mediaType, payloadOf, type SignedPayload } from '../jws/jws.ts';

export interface TokenOptions {
  readonly issuer: string;
  /** One of them must match. */
  readonly audience: readonly string[];
  /** Added to `exp` and subtracted from `nbf`. */
  readonly clockToleranceSeconds: number;
  /** `at+jwt` demands RFC 9068. */
  readonly tokenType: 'any' | 'at+jwt';
  readonly requiredClaims: readonly string[];
  /** Of a provider; none where the issuer is no tenant. */
  readonly tenant?: string | undefined;
  /** The claim that must be the tenant, in a token that has it. */
  readonly tenantClaim?: string | undefined;
}

/** `undefined`: all are good. */
export function checkClaims(
  signed: SignedPayload,
  header: JsonObject,
  options: TokenOptions,
  nowSeconds: number,
): Refused | undefined {
  // RFC 9068 §2.1, §4
  const isAtJwt = mediaType(header.typ) === 'at+jwt';
  return checkMembers(payloadOf(signed), isAtJwt, options, nowSeconds);
}

/** The same for claims that no signature covers, since the issuer itself says them (RFC 7662 §2.2). */
export function checkMembers(
  claims: JsonObject,
  isAtJwt: boolean,
  options: TokenOptions,
  nowSeconds: number,
): Refused | undefined {
  return (
    checkParties(claims, options) ??
    checkTimes(claims, options, nowSeconds) ??
    checkSubject(claims) ??
    checkTokenKind(claims, isAtJwt) ??
    checkDemands(claims, isAtJwt, options)
  );
}

function checkParties(claims: JsonObject, { issuer, audience, tenant, tenantClaim }: TokenOptions) {
  const { iss, aud } = claims;
  // RFC 7519 §4.1.1, RFC 9068 §4
  if (iss !== issuer) return refuse('issuer-mismatch');

  const named = tenantClaim === undefined ? undefined : claims[tenantClaim];
  if (named !== undefined && named !== tenant) return refuse('tenant-mismatch');

  // RFC 7519 §4.1.3
  const audiences: readonly unknown[] = isTextArray(aud) ? aud : [aud];
  return audience.some((one) => audiences.includes(one)) ? undefined : refuse('audience-mismatch');
}

/** RFC 7519 §4.1.4, §4.1.5. Repeated for cached tokens. */
export function checkTimes(
  { exp, nbf }: JsonObject,
  { clockToleranceSeconds }: TokenOptions,
  nowSeconds: number,
) {
  // Stricter: RFC 7519 §4.1.4 leaves `exp` optional.
  if (!isFiniteNumber(exp)) return refuse('expiry-malformed');
  if (nowSeconds >= exp + clockToleranceSeconds) return refuse('expired');

  if (nbf === undefined) return undefined;
  if (!isFiniteNumber(nbf)) return refuse('not-before-malformed');
  return nowSeconds < nbf - clockToleranceSeconds ? refuse('not-yet-valid') : undefined;
}

function checkSubject({ iat, sub }: JsonObject) {
  // RFC 7519 §4.1.6
  if (iat !== undefined && !isFiniteNumber(iat)) return refuse('issued-at-malformed');

  // RFC 7519 §4.1.2. Stricter: required, as in RFC 9068 §2.2.
  return typeof sub !== 'string' || sub === '' ? refuse('subject-malformed') : undefined;
}

const ACCESS_PAYLOAD_TYPES: readonly unknown[] = ['bearer', 'dpop', 'jwt', 'at+jwt'];

/** Marks of ID tokens (OpenID Connect Core §2, §3.3.2.11; FAPI 1.0 Advanced §5.1.1 for `s_hash`). */
const ID_TOKEN_MEMBERS = ['nonce', 'at_hash', 'c_hash', 's_hash'];

/** RFC 8725 §3.11, §3.12: refuses other kinds of token. Choice: a claim that is `null` counts as absent. */
function checkTokenKind(claims: JsonObject, isAtJwt: boolean) {
  const { token_use: use, typ, events } = claims;
  if (isPresent(use) && use !== 'access') return refuse('token-use-refused');

  const type = typeof typ === 'string' ? typ.toLowerCase() : typ;
  if (isPresent(type) && !ACCESS_PAYLOAD_TYPES.includes(type)) return refuse('payload-type-refused');

  // RFC 8417 §2.2, OpenID Connect Back-Channel Logout §2.4
  if (isPresent(events)) return refuse('event-token');

  // Choice: some providers add `nonce` to access tokens. These pass if they say what they are.
  const namesItself = use === 'access' || type === 'bearer' || type === 'dpop' || isAtJwt;
  const looksLikeIdToken = ID_TOKEN_MEMBERS.some((name) => isPresent(claims[name]));
  return looksLikeIdToken && !namesItself ? refuse('id-token') : undefined;
}

/** RFC 9068 §2.2, §4, and the claims that the options require. */
function checkDemands(claims: JsonObject, isAtJwt: boolean, options: TokenOptions) {
  const { client_id: client, jti, iat } = claims;
  const followsProfile =
    isAtJwt && typeof client === 'string' && typeof jti === 'string' && iat !== undefined;

  if (options.tokenType === 'at+jwt' && !followsProfile) return refuse('profile-required');

  return options.requiredClaims.some((name) => !isPresent(claims[name]))
    ? refuse('claim-required')
    : undefined;
}
