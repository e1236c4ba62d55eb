// Verified token + its credentials → Caller (RFC 9449 §7). Trusts facts.ts for the schemes that the
// mode accepts. Promises: unless DPoP is off, a key-bound token came with a proof of its key (RFC 9449 §2);
// one proof makes one Caller (§11.1). Does not check certificates: a part does, before any proof. Does not
// check scopes or claims: gate/rules/guards.ts does.
import { andThen, type MaybePromise } from './base/clock.ts';
import { isFiniteNumber, isJsonObject, isTextArray, type JsonObject } from './base/encoding.ts';
import type { Count } from './base/events.ts';
import { refuse, Refused, unavailable } from './base/refusal.ts';
import type { RequestFacts, Credentials, DpopMode, Scheme } from './request/facts.ts';
import { verifiedOf, type VerifiedToken } from './token/verify.ts';
import { ProofVerifier, type ProofOptions } from './dpop/proof.ts';
import type { ReplayStore } from './dpop/replay.ts';

/** Stricter: never read from a namespace, which could hold another `iss` (RFC 7519 §4.1). */
const REGISTERED = /^(?:iss|sub|aud|exp|nbf|iat|jti)$/;

class CheckedCaller<Claims> {
  readonly #token;
  readonly #claims;
  readonly #issuer;
  readonly #scheme;
  readonly #nowMillis;
  /** The token's claims, or the output of the schema in the guard `claims`. */
  readonly claims;
  /** The `DPoP-Nonce` of the response, if a new one is due (RFC 9449 §9). */
  readonly freshNonce;

  constructor(token: VerifiedToken, claims: Claims, scheme: Scheme, nowMillis: number, freshNonce?: string) {
    const verified = verifiedOf(token);
    this.claims = claims;
    this.#token = token;
    this.#claims = verified.claims;
    this.#issuer = verified.issuer;
    this.#scheme = scheme;
    this.#nowMillis = nowMillis;
    this.freshNonce = freshNonce;
    Object.freeze(this);
  }

  static isGenuine(caller: unknown): caller is CheckedCaller<JsonObject> {
    return #issuer in Object(caller);
  }

  static schemeOf(caller: Caller) {
    return caller.#scheme;
  }

  static issuerOf(caller: Caller) {
    return caller.#issuer;
  }

  static foundOf(caller: Caller) {
    const { kid, issuerName } = verifiedOf(caller.#token).found;
    return { kid, issuerName, freshNonce: caller.freshNonce, caller };
  }

  /** Of the token, as the provider wrote them. */
  static claimsOf(caller: Caller<unknown>) {
    return caller.#claims;
  }

  static copyOf<Claims>(caller: Caller<unknown>, claims: Claims, nowMillis = caller.#nowMillis) {
    return new CheckedCaller(caller.#token, claims, caller.#scheme, nowMillis, caller.freshNonce);
  }

  /** The `sub` claim, unique only within its issuer. */
  get subject() {
    return String(this.#claims.sub);
  }

  /** The `iss` claim. */
  get issuer() {
    return this.#issuer.issuer;
  }

  /** The tenant of the token, if its issuer has tenants. */
  get tenant() {
    return this.#issuer.tenant;
  }

  /** The issuer's name in the options; the first is `idp`. */
  get issuerName() {
    return this.#issuer.name;
  }

  /** When the token expires, in milliseconds since the epoch. End its streams and WebSockets then. */
  get expiresAtMillis() {
    return Number(this.#claims.exp) * 1000;
  }

  /** The claim `<namespace>name`, else `name`, else `undefined`. Registered claims have no namespace. */
  claim(name: string): unknown {
    const namespaced = REGISTERED.test(name) ? undefined : this.#claims[this.#issuer.claimNamespace + name];
    return namespaced === undefined ? this.#claims[name] : namespaced;
  }

  /** The granted scopes, from a space-separated string (RFC 6749 §3.3) or an array; without them, none. */
  get scopes(): readonly string[] {
    const granted = this.#claims[this.#issuer.scopeClaim];
    if (typeof granted === 'string') return granted.split(' ').filter(Boolean);
    return isTextArray(granted) ? granted : [];
  }

  /** The granted scopes, space-separated, or `null`. */
  get scopeText() {
    const granted = this.#claims[this.#issuer.scopeClaim];
    return typeof granted === 'string' ? granted : this.scopes.join(' ') || null;
  }

  /**
   * Whether `auth_time` is at most `seconds` ago and not in the future, within the clock tolerance (RFC 9470
   * §3). False without `auth_time`.
   */
  hasLoggedInWithin(seconds: number) {
    const loginSeconds = this.#claims.auth_time;
    if (!isFiniteNumber(loginSeconds)) return false;

    const { clockToleranceSeconds } = this.#issuer;
    const ageSeconds = this.#nowMillis / 1000 - loginSeconds;
    return ageSeconds >= -clockToleranceSeconds && ageSeconds <= seconds + clockToleranceSeconds;
  }
}

/**
 * A client that presented a verified token in the way that its binding and the DPoP mode require. Made by
 * the checks alone.
 */
export interface Caller<Claims = JsonObject> extends CheckedCaller<Claims> {}

export const { isGenuine } = CheckedCaller;

/** Throw a `TypeError` for look-alikes. */
export const { schemeOf, issuerOf, foundOf, claimsOf, copyOf } = CheckedCaller;

export type SenderCheck = (
  token: VerifiedToken,
  credentials: Credentials,
  facts: RequestFacts,
  nowMillis: number,
) => MaybePromise<Caller | Refused>;

/**
 * Checks what a token names as its confirmation (`cnf`), as far as the scheme has no proof of it (RFC 8705
 * §3). Returns `undefined` if that is met.
 */
export type ConfirmCertificate = (cnf: unknown, scheme: Scheme, facts: RequestFacts) => Refused | undefined;

export interface SenderOptions extends ProofOptions {
  /** Whether the scheme DPoP is refused, allowed or required. Default: `ALLOWED`. */
  readonly dpopMode: DpopMode;
}

/** Creates the check on how a token is presented, in the order of docs/how-a-request-is-checked.md. */
export function createSenderCheck(
  options: SenderOptions,
  replayStore: Pick<ReplayStore, 'record'>,
  count?: Count,
  confirmCertificate?: ConfirmCertificate,
): SenderCheck {
  const proofs = new ProofVerifier(options);
  const knowsCertificates = confirmCertificate !== undefined;
  const takesAsUnbound = knowsCertificates || options.dpopMode === 'DISABLED';

  const checkProof: SenderCheck = (token, credentials, facts, nowMillis) => {
    const { claims } = verifiedOf(token);
    const boundThumbprint = confirmedThumbprint(claims.cnf, knowsCertificates);
    if (boundThumbprint instanceof Refused) return boundThumbprint;

    // RFC 9449 §7.1
    if (credentials.proof === undefined) return refuse('proof-missing');

    const nowSeconds = Math.floor(nowMillis / 1000);
    const proof = proofs.verify(credentials.proof, credentials.token, facts, nowSeconds);
    if (proof instanceof Refused) return proof;

    const { thumbprint, jti, expiresAtSeconds, freshNonce } = proof;
    // RFC 9449 §4.3(12), second half; §6.1
    if (thumbprint !== boundThumbprint) return refuse('key-mismatch').with({ freshNonce });

    // RFC 9449 §11.1. Last and atomic: of simultaneous uses, at most one is new.
    const recorded = replayStore.record(thumbprint, jti, expiresAtSeconds, nowSeconds);
    return andThen(recorded, (verdict) => {
      count?.('proof', verdict);
      return verdict === 'new'
        ? new CheckedCaller(token, claims, 'DPoP', nowMillis, freshNonce)
        : NOT_NEW[verdict].with({ freshNonce });
    });
  };

  return function checkSender(token, credentials, facts, nowMillis) {
    const { claims } = verifiedOf(token);
    const unconfirmed = confirmCertificate?.(claims.cnf, credentials.scheme, facts);
    if (unconfirmed !== undefined) return unconfirmed;

    if (credentials.scheme === 'DPoP') return checkProof(token, credentials, facts, nowMillis);

    // RFC 9449 §7.2, RFC 8705 §3: Bearer confirms no binding. Choice: with DPoP disabled, bound tokens pass
    // as if unbound.
    if (claims.cnf !== undefined && !takesAsUnbound) return refuse('bound-token');

    return new CheckedCaller(token, claims, 'Bearer', nowMillis);
  };
}

const NOT_NEW = {
  seen: refuse('proof-replayed'),
  full: unavailable('replay-store-full', 10),
  unavailable: unavailable('replay-store-unavailable'),
};

/** Registered (RFC 7800 §3, RFC 9203 §3.2.1) but unsupported. */
const OTHER_METHODS = ['jwk', 'jwe', 'jku', 'kid', 'osc'];

/** Stricter: RFC 7800 §3.1 has verifiers ignore what they do not understand. */
export const isConfirmable = (cnf: unknown): cnf is JsonObject =>
  isJsonObject(cnf) && OTHER_METHODS.every((name) => cnf[name] === undefined);

/** RFC 9449 §6.1, RFC 8705 §3.1 */
function confirmedThumbprint(cnf: unknown = {}, knowsCertificates: boolean) {
  const isKnown = isConfirmable(cnf) && (knowsCertificates || cnf['x5t#S256'] === undefined);
  if (!isKnown) return refuse('confirmation-refused');

  const { jkt } = cnf;
  if (jkt === undefined) return refuse('not-bound');
  return typeof jkt === 'string' ? jkt : refuse('confirmation-refused');
}
