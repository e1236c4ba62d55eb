// Header fields → credentials. Never reads a token from query or body (RFC 9700 §4.3.2). Does not check it:
// verify/token/verify.ts does.
import { refuse } from './base/refusal.ts';
import { fieldValues } from './request/facts.ts';

/** Bearer only, both, DPoP only. */
export type DpopMode = 'DISABLED' | 'ALLOWED' | 'REQUIRED';
/** RFC 6750 §2.1, RFC 9449 §7.1 */
export type Scheme = 'Bearer' | 'DPoP';

export const SCHEMES: Readonly<Record<DpopMode, readonly Scheme[]>> = {
  DISABLED: ['Bearer'],
  ALLOWED: ['Bearer', 'DPoP'],
  REQUIRED: ['DPoP'],
};

export interface Credentials {
  readonly scheme: Scheme;
  readonly token: string;
  readonly proof: string | undefined;
}

/** The scheme of an Authorization field, in any letter case (RFC 9110 §5.6.2, §11.1). */
export function acceptedScheme(authorization: string, mode: DpopMode): Scheme | undefined {
  const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+/.exec(authorization)?.[0].toLowerCase();
  return SCHEMES[mode].find((scheme) => scheme.toLowerCase() === name);
}

/** Returns `undefined` without an Authorization field. */
export function parseCredentials(rawHeaders: readonly string[], mode: DpopMode) {
  const [authorization, secondAuthorization] = fieldValues(rawHeaders, 'authorization');
  // RFC 9110 §5.3
  if (secondAuthorization !== undefined) return refuse('authorization-repeated');
  if (authorization === undefined) return undefined;

  const scheme = acceptedScheme(authorization, mode);
  if (scheme === undefined || authorization.length === scheme.length) return refuse('scheme-refused');

  const [proof, secondProof] = mode === 'DISABLED' ? [] : fieldValues(rawHeaders, 'dpop');
  // RFC 9449 §4.3(1)
  if (scheme === 'DPoP' && secondProof !== undefined) return refuse('proof-repeated');

  // Stricter: RFC 6750 §2.1 and RFC 9110 §11.4 allow several spaces before the token.
  const token = authorization.slice(scheme.length + 1);
  if (authorization[scheme.length] !== ' ' || !isToken(token)) return refuse('credentials-malformed');

  // Stricter: RFC 9449 leaves this case open.
  if (scheme === 'Bearer' && proof !== undefined) return refuse('proof-beside-bearer');

  return { scheme, token, proof };
}

/** The white space of Latin-1, in which Node reads fields, and the comma, which would begin another token. */
const SEPARATORS = [...' ,\t\n\v\f\r\u00a0'];

/** For speed: a regular expression would take 7 % of a request whose token is cached. */
function isToken(text: string) {
  for (const separator of SEPARATORS) {
    if (text.includes(separator)) return false;
  }
  return text !== '';
}
