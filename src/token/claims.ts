// The rules that the claims of an access token must meet (RFC 7519 §4.1, RFC 9068 §4), in the contract's order. Reads only a
// SignedPayload. Does not check scopes, guards (guards.ts) or the binding to a key (sender/).
import { isFiniteNumber, isTextArray, type JsonObject } from '../base/encoding.ts';
import { refuseToken } from '../base/refusal.ts';
import { mediaType } from './compact.ts';
import { payloadOf, type SignedPayload } from './signature.ts';

/** What this service expects of a token; settings decide. `clockToleranceSeconds` is how far `exp` and `nbf` may be missed. */
export type TokenRules = Readonly<{
  issuer: string;
  audience: string;
  clockToleranceSeconds: number;
  tokenType: 'any' | 'at+jwt';
  requiredClaims: readonly string[];
}>;
/** Checks every claim rule at `nowSeconds` (since the epoch) and gives the claims. Throws `Refused`. */
export function checkClaims(
  signed: SignedPayload,
  header: JsonObject,
  rules: TokenRules,
  nowSeconds: number,
): JsonObject {
  const claims = payloadOf(signed);
  // RFC 7519 §4.1.1, RFC 9068 §4: an exact match.
  if (claims.iss !== rules.issuer) throw refuseToken('issuer-mismatch');
  if (!isForAudience(claims.aud, rules.audience)) throw refuseToken('audience-mismatch');
  checkTimes(claims, rules.clockToleranceSeconds, nowSeconds);
  // RFC 7519 §4.1.6
  if (claims.iat !== undefined && !isFiniteNumber(claims.iat)) throw refuseToken('issued-at-malformed');
  // RFC 7519 §4.1.2. Stricter: a subject is required, as in RFC 9068 §2.2.
  if (typeof claims.sub !== 'string' || claims.sub === '') throw refuseToken('subject-malformed');
  checkKind(claims, header);
  checkDemands(claims, header, rules);
  return claims;
}
/** Checks `exp` and `nbf` (RFC 7519 §4.1.4, §4.1.5); again whenever a remembered token is used. Throws `Refused`. */
export function checkTimes({ exp, nbf }: JsonObject, toleranceSeconds: number, nowSeconds: number): void {
  // Stricter: RFC 7519 §4.1.4 leaves `exp` optional; a token without end is refused.
  if (!isFiniteNumber(exp)) throw refuseToken('expiry-malformed');
  if (nowSeconds >= exp + toleranceSeconds) throw refuseToken('expired');
  if (nbf === undefined) return;
  if (!isFiniteNumber(nbf)) throw refuseToken('not-before-malformed');
  if (nowSeconds < nbf - toleranceSeconds) throw refuseToken('not-yet-valid');
}
/** RFC 7519 §4.1.3: the audience itself, or an array of strings that has it. */
const isForAudience = (aud: unknown, audience: string) =>
  isTextArray(aud) ? aud.includes(audience) : aud === audience;
const ACCESS_PAYLOAD_TYPES: readonly unknown[] = ['bearer', 'dpop', 'jwt', 'at+jwt'];
/** Members that only ID tokens carry (OpenID Connect Core §2, §3.3.2.11). */
const ID_TOKEN_MEMBERS = ['nonce', 'at_hash', 'c_hash', 's_hash'];
/** Not another kind of token of the same provider (RFC 8725 §3.11, §3.12). */
function checkKind(claims: JsonObject, header: JsonObject): void {
  const { token_use: use, typ, events } = claims;
  if (use !== undefined && use !== 'access') throw refuseToken('token-use-refused');
  const type = typeof typ === 'string' ? typ.toLowerCase() : typ;
  if (type !== undefined && !ACCESS_PAYLOAD_TYPES.includes(type)) throw refuseToken('payload-type-refused');
  // RFC 8417 §2.2, OpenID Connect Back-Channel Logout §2.4
  if (events !== undefined) throw refuseToken('event-token');
  const saysAccess =
    use === 'access' || type === 'bearer' || type === 'dpop' || isAccessTokenType(header.typ);
  if (!saysAccess && ID_TOKEN_MEMBERS.some((name) => claims[name] !== undefined))
    throw refuseToken('id-token');
}
/** RFC 9068 §2.1, §4 */
const isAccessTokenType = (typ: unknown) => typeof typ === 'string' && mediaType(typ) === 'at+jwt';
/** What the operator asked for beyond that: RFC 9068 §2.2, §4, and claims by name. */
function checkDemands(
  claims: JsonObject,
  header: JsonObject,
  { tokenType, requiredClaims }: TokenRules,
): void {
  const { client_id: client, jti, iat } = claims;
  const followsProfile =
    isAccessTokenType(header.typ) &&
    typeof client === 'string' &&
    typeof jti === 'string' &&
    iat !== undefined;
  if (tokenType === 'at+jwt' && !followsProfile) throw refuseToken('profile-required');
  if (requiredClaims.some((name) => (claims[name] ?? null) === null)) throw refuseToken('claim-required');
}
