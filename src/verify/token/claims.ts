// What the claims of an access token must say (RFC 7519 §4.1, RFC 9068 §4), in the order of docs/tokens.md.
// Reads only a SignedPayload. Does not check scopes or other guards (gate/guards.ts), nor the binding to a
// key (sender/).
import { isFiniteNumber, isTextArray, type JsonObject } from '../base/encoding.ts';
import { mediaType } from './compact.ts';
import { payloadOf, type SignedPayload } from './signature.ts';

/** What the service expects of a token; settings decide. */
export interface TokenOptions {
  readonly issuer: string;
  /** Any of them. */
  readonly audience: readonly unknown[];
  /** By how much `exp` and `nbf` may be missed. */
  readonly clockToleranceSeconds: number;
  /** `at+jwt` takes only tokens of the RFC 9068 profile. */
  readonly tokenType: 'any' | 'at+jwt';
  readonly requiredClaims: readonly string[];
}

/** The first that is wrong with the claims at `nowSeconds` (since the epoch), if anything is. */
export function claimsFlaw(
  signed: SignedPayload,
  header: JsonObject,
  options: TokenOptions,
  nowSeconds: number,
) {
  const claims = payloadOf(signed);
  // RFC 9068 §2.1, §4
  const isAtJwt = mediaType(header.typ) === 'at+jwt';
  return (
    partiesFlaw(claims, options) ??
    timesFlaw(claims, options, nowSeconds) ??
    subjectFlaw(claims) ??
    kindFlaw(claims, isAtJwt) ??
    demandFlaw(claims, isAtJwt, options)
  );
}

function partiesFlaw({ iss, aud }: JsonObject, { issuer, audience }: TokenOptions) {
  // RFC 7519 §4.1.1, RFC 9068 §4: an exact match.
  if (iss !== issuer) return 'issuer-mismatch';

  // RFC 7519 §4.1.3: an audience of ours itself, or an array of strings that has one.
  const audiences = isTextArray(aud) ? aud : [aud];
  return audiences.some((one) => audience.includes(one)) ? undefined : 'audience-mismatch';
}

/**
 * What is wrong with `exp` and `nbf` (RFC 7519 §4.1.4, §4.1.5) at `nowSeconds` (since the epoch). Checked
 * again whenever a remembered token is used.
 */
export function timesFlaw(
  { exp, nbf }: JsonObject,
  { clockToleranceSeconds }: TokenOptions,
  nowSeconds: number,
) {
  // Stricter: RFC 7519 §4.1.4 leaves `exp` optional; a token without end is refused.
  if (!isFiniteNumber(exp)) return 'expiry-malformed';
  if (nowSeconds >= exp + clockToleranceSeconds) return 'expired';

  if (nbf === undefined) return undefined;
  if (!isFiniteNumber(nbf)) return 'not-before-malformed';
  return nowSeconds < nbf - clockToleranceSeconds ? 'not-yet-valid' : undefined;
}

function subjectFlaw({ iat, sub }: JsonObject) {
  // RFC 7519 §4.1.6
  if (iat !== undefined && !isFiniteNumber(iat)) return 'issued-at-malformed';

  // RFC 7519 §4.1.2. Stricter: a subject is required, as in RFC 9068 §2.2.
  return typeof sub !== 'string' || sub === '' ? 'subject-malformed' : undefined;
}

const ACCESS_PAYLOAD_TYPES: readonly unknown[] = ['bearer', 'dpop', 'jwt', 'at+jwt'];

/** Members that only ID tokens carry (OpenID Connect Core §2, §3.3.2.11). */
const ID_TOKEN_MEMBERS = ['nonce', 'at_hash', 'c_hash', 's_hash'];

/** Not another kind of token of the same provider (RFC 8725 §3.11, §3.12). */
function kindFlaw(claims: JsonObject, isAtJwt: boolean) {
  const { token_use: use, typ, events } = claims;
  if (use !== undefined && use !== 'access') return 'token-use-refused';

  const type = typeof typ === 'string' ? typ.toLowerCase() : typ;
  if (type !== undefined && !ACCESS_PAYLOAD_TYPES.includes(type)) return 'payload-type-refused';

  // RFC 8417 §2.2, OpenID Connect Back-Channel Logout §2.4
  if (events !== undefined) return 'event-token';

  const namesItself = use === 'access' || type === 'bearer' || type === 'dpop' || isAtJwt;
  const looksLikeIdToken = ID_TOKEN_MEMBERS.some((name) => claims[name] !== undefined);
  return looksLikeIdToken && !namesItself ? 'id-token' : undefined;
}

/** What the operator asked for beyond that: RFC 9068 §2.2, §4, and claims by name. */
function demandFlaw(claims: JsonObject, isAtJwt: boolean, options: TokenOptions) {
  const { client_id: client, jti, iat } = claims;
  const hasClaims = typeof client === 'string' && typeof jti === 'string' && iat !== undefined;
  const followsProfile = hasClaims && isAtJwt;
  if (options.tokenType === 'at+jwt' && !followsProfile) return 'profile-required';

  const isMissing = (name: string) => claims[name] === undefined || claims[name] === null;
  return options.requiredClaims.some(isMissing) ? 'claim-required' : undefined;
}
