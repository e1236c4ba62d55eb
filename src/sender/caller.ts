// Verified token × credentials × mode → Caller: entitled to be heard under this mode (RFC 9449 §7). Promises: the token was
// presented in the way that its binding demands, and one proof made one Caller (RFC 9449 §2). Does not check scopes or claims: guards.ts does.
import { asJsonObject, isTextArray, type JsonObject } from '../base/encoding.ts';
import { refuseProof, refuseToken, unavailable } from '../base/refusal.ts';
import { claimsOf, type VerifiedToken } from '../token/verify.ts';
import type { Credentials, DpopMode } from './credentials.ts';
import { requestUri, type UriRules } from '../request/uri.ts';
import { provenBy, type ProofSubject, type ProofVerifier } from './dpop-proof.ts';
import type { ReplayStore } from './replay.ts';

/** How claims are named at this provider, and which schemes are on; settings decide. */
export type CallerRules = UriRules &
  Readonly<{ dpopMode: DpopMode; claimNamespace: string; scopeClaim: string }>;
class AdmittedCaller {
  readonly #rules: CallerRules;
  /** The claims of the token, as the provider wrote them. */
  readonly claims: JsonObject;
  constructor(token: VerifiedToken, rules: CallerRules) {
    this.claims = claimsOf(token);
    this.#rules = rules;
    Object.freeze(this);
  }
  static isGenuine(caller: AdmittedCaller): boolean {
    return #rules in caller;
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
    if (typeof granted === 'string') return granted.split(' ').filter(Boolean);
    return isTextArray(granted) ? granted : [];
  }
  /** The granted scopes as one space-separated text, or `null` when the token has none to show. */
  get scopeText(): string | null {
    const granted = this.claims[this.#rules.scopeClaim];
    return typeof granted === 'string' ? granted : this.scopes.join(' ') || null;
  }
}
Object.defineProperty(AdmittedCaller.prototype, 'constructor', { value: Object });
/** Whoever presented a verified token as its binding and the mode demand. Only a `Sender` makes one. */
export type Caller = AdmittedCaller;
/** False for anything that merely looks like a Caller. */
export const { isGenuine } = AdmittedCaller;
/** The request that the credentials came with; `path` as it stands there, `nowMillis` since the epoch. */
export type Presentation = Readonly<{ path: string; rawHeaders: readonly string[] }> &
  Omit<ProofSubject, 'uri' | 'token'>;
/** Checks that the token may be presented like this. Throws, or rejects with, `Refused`. */
export type Sender = (
  token: VerifiedToken,
  credentials: Credentials,
  presentation: Presentation,
) => Caller | Promise<Caller>;
/** The checks on how a token is presented, in the contract's order (§8). */
export function createSender(rules: CallerRules, verifyProof: ProofVerifier, used: ReplayStore): Sender {
  return (token, { scheme, token: text, proof: proofText }, presentation) => {
    const caller = new AdmittedCaller(token, rules);
    // Choice: an operator who turns DPoP off takes bound tokens as if they were not.
    if (rules.dpopMode === 'DISABLED') return caller;
    // RFC 9449 §7.2, RFC 8705 §3: whatever it is bound to, nothing here confirms it.
    if (scheme === 'Bearer' && caller.claims.cnf !== undefined) throw refuseToken('bound-token');
    if (scheme === 'Bearer') return caller;
    const thumbprint = confirmedThumbprint(caller.claims.cnf);
    // RFC 9449 §7.1
    if (proofText === undefined) throw refuseProof('proof-missing');
    const uri = requestUri(presentation.rawHeaders, presentation.path, rules);
    const proof = provenBy(verifyProof(proofText, { ...presentation, uri, token: text }));
    // RFC 9449 §4.3(12), second half; §6.1
    if (proof.thumbprint !== thumbprint) throw refuseToken('key-mismatch');
    // RFC 9449 §11.1: last, and as one step, so that of many uses at once one is the first.
    return after(
      used.record(thumbprint, proof.jti, proof.expiresAt, Math.floor(presentation.nowMillis / 1000)),
      (verdict) => {
        if (verdict !== 'new')
          throw verdict === 'seen' ? refuseProof('proof-replayed') : unavailable('replay-memory-full', 10);
        return caller;
      },
    );
  };
}
/** The thumbprint to which `cnf` binds the token (RFC 9449 §6.1). */
function confirmedThumbprint(cnf: unknown): string {
  if (cnf === undefined) throw refuseToken('not-bound');
  const { jkt, ...others } = asJsonObject(cnf) ?? {};
  // Stricter: RFC 7800 §3.1 lets a recipient ignore what it does not understand beside `jkt`.
  if (typeof jkt !== 'string' || Object.keys(others).length > 0) throw refuseToken('confirmation-refused');
  return jkt;
}
/** Runs the next step at once when the value is there, and later only when it has to be awaited. */
export const after = <Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> => (value instanceof Promise ? value.then(next) : next(value));
