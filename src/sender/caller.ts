/*
 * Verified token × credentials × mode → Caller: who is calling, entitled to be heard under this mode.
 * Trusts the verified token. Promises: a Caller's token was presented in the way that its binding demands.
 * Does not check scopes or claims: guards.ts does.
 */
import type { JsonObject } from '../encoding.ts';
import { refuseToken } from '../refusal.ts';
import { claimsOf, type VerifiedToken } from '../token/verify.ts';
import type { Credentials, DpopMode } from './credentials.ts';

/** How claims are named at this provider, and which schemes are on; settings decide. */
export interface CallerRules {
  readonly dpopMode: DpopMode;
  readonly claimNamespace: string;
  readonly scopeClaim: string;
}

class VerifiedCaller {
  readonly #token: VerifiedToken;
  readonly #rules: CallerRules;

  constructor(token: VerifiedToken, rules: CallerRules) {
    this.#token = token;
    this.#rules = rules;
  }

  /** The claims of the token, as the provider wrote them. */
  get claims(): JsonObject {
    return claimsOf(this.#token);
  }

  /** The `sub` claim: the principal's name. */
  get subject(): string {
    return String(this.claims.sub);
  }

  /** The value of `<namespace>name` when the token has that claim, whatever its value; else of `name`. */
  claim(name: string): unknown {
    const namespaced = this.claims[this.#rules.claimNamespace + name];
    return namespaced === undefined ? this.claims[name] : namespaced;
  }

  /** The granted scopes: the words of a text (RFC 6749 §3.3) or an array of strings; none if it is anything else. */
  get scopes(): readonly string[] {
    const granted = this.claims[this.#rules.scopeClaim];
    if (typeof granted === 'string') return granted.split(' ').filter((word) => word !== '');
    return isTextArray(granted) ? granted : [];
  }

  /** The granted scopes as one space-separated text, or `null` when the token has none to show. */
  get scopeText(): string | null {
    const granted = this.claims[this.#rules.scopeClaim];
    return typeof granted === 'string' ? granted : isTextArray(granted) ? granted.join(' ') : null;
  }
}
/** Whoever presented a verified token as its binding and the mode demand. Only `checkCaller` makes one. */
export type Caller = VerifiedCaller;

const isTextArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((member) => typeof member === 'string');

/** Checks that the token may be presented like this. Throws `Refused`. */
export function checkCaller(token: VerifiedToken, credentials: Credentials, rules: CallerRules): Caller {
  // RFC 9449 §7.2, RFC 8705 §3: a bound token is no Bearer token, unless the operator has turned bindings off.
  const isBound = claimsOf(token).cnf !== undefined;
  if (rules.dpopMode !== 'DISABLED' && credentials.scheme === 'Bearer' && isBound) throw refuseToken('bound-token');
  return new VerifiedCaller(token, rules);
}
