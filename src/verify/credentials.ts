// Header fields → credentials. Never looks for a token in a query or a body (RFC 9700 §4.3.2), nor inside
// the token: verify/token/verify.ts does.
import { refuse, Refused } from './base/refusal.ts';
import { fieldValues } from './request/fields.ts';

/** What the setting `IDP_DPOP_MODE` says of tokens that are bound to a key: no, both, nothing else. */
export type DpopMode = 'DISABLED' | 'ALLOWED' | 'REQUIRED';
/** How a token is presented (RFC 6750 §2.1, RFC 9449 §7.1). */
export type Scheme = 'Bearer' | 'DPoP';

/** The schemes that a mode accepts. */
export const SCHEMES: Readonly<Record<DpopMode, readonly Scheme[]>> = {
  DISABLED: ['Bearer'],
  ALLOWED: ['Bearer', 'DPoP'],
  REQUIRED: ['DPoP'],
};

/** What the caller presented. */
export interface Credentials {
  readonly scheme: Scheme;
  readonly token: string;
  /** The DPoP proof, if there was one. */
  readonly proof: string | undefined;
}

/**
 * The accepted scheme that an Authorization value uses, if it does: an RFC 9110 §5.6.2 token, in any case
 * (§11.1).
 */
export function acceptedScheme(authorization: string, mode: DpopMode): Scheme | undefined {
  const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+/.exec(authorization)?.[0].toLowerCase();
  return SCHEMES[mode].find((scheme) => scheme.toLowerCase() === name);
}

/** The credentials of a request, `undefined` when it has no Authorization field, or why they are refused. */
export function parseCredentials(
  rawHeaders: readonly string[],
  mode: DpopMode,
): Credentials | Refused | undefined {
  const [authorization, anotherOne] = fieldValues(rawHeaders, 'authorization');
  // RFC 9110 §5.3: a field that is not a list occurs once.
  if (anotherOne !== undefined) return refuse('authorization-repeated');
  if (authorization === undefined) return undefined;

  const scheme = acceptedScheme(authorization, mode);
  if (scheme === undefined || authorization.length === scheme.length) return refuse('scheme-refused');

  const [proof, anotherProof] = mode === 'DISABLED' ? [] : fieldValues(rawHeaders, 'dpop');
  // RFC 9449 §4.3(1)
  if (scheme === 'DPoP' && anotherProof !== undefined) return refuse('proof-repeated');

  const token = parseToken(authorization.slice(scheme.length));
  if (token === undefined) return refuse('credentials-malformed');
  // Stricter: RFC 9449 §7.2 would let the server ignore the proof.
  if (scheme === 'Bearer' && proof !== undefined) return refuse('proof-beside-bearer');

  return { scheme, token, proof };
}

/** The white space of Latin-1, in which Node reads fields, and the comma. */
const SEPARATORS = [...' ,\t\n\v\f\r\u00a0'];

/** RFC 6750 §2.1: one space, then one token; `undefined` for anything else. */
function parseToken(afterScheme: string) {
  const token = afterScheme.slice(1);
  // A pattern would take 3 % of a request to go through a token that is remembered.
  const isOne = token !== '' && !SEPARATORS.some((separator) => token.includes(separator));
  return isOne && afterScheme[0] === ' ' ? token : undefined;
}
