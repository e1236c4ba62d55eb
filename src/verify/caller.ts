// Verified token × credentials × mode → Caller: entitled to be heard under this mode (RFC 9449 §7).
// Promises: the token was presented in the way that its binding demands, and one proof made one Caller (RFC
// 9449 §2). Does not check scopes or claims: gate/guards.ts does.
import { andThen, type MaybePromise } from './base/clock.ts';
import { isFiniteNumber, isJsonObject, isTextArray } from './base/encoding.ts';
import type { Count } from './base/events.ts';
import { refuse, Refused, unavailable } from './base/refusal.ts';
import type { RequestFacts } from './request/uri.ts';
import { verifiedOf, type VerifiedToken } from './token/verify.ts';
import type { Credentials, DpopMode } from './credentials.ts';
import { createProofVerifier, type Proof, type ProofOptions } from './dpop/proof.ts';
import type { ReplayStore } from './dpop/replay.ts';

/** Stricter: read as they were judged (RFC 7519 §4.1); a namespace could say another `iss`. */
const REGISTERED = /^(?:iss|sub|aud|exp|nbf|iat|jti)$/;

class CheckedCaller {
  readonly #issuer;
  readonly #nowMillis;
  /** The claims of the token, as the provider wrote them. */
  readonly claims;
  /** A nonce that the answer shall carry (RFC 9449 §9). */
  readonly freshNonce;

  constructor(token: VerifiedToken, nowMillis: number, freshNonce?: string) {
    const { claims, issuer } = verifiedOf(token);
    this.claims = claims;
    this.#issuer = issuer;
    this.#nowMillis = nowMillis;
    this.freshNonce = freshNonce;
    Object.freeze(this);
  }

  static isGenuine(caller: CheckedCaller) {
    return #issuer in caller;
  }

  /** The `sub` claim: the principal's name, which is unique within the issuer only. */
  get subject() {
    return String(this.claims.sub);
  }

  /** The `iss` claim. */
  get issuer() {
    return this.#issuer.issuer;
  }

  /** As the settings call the issuer; `idp` is the first. */
  get issuerName() {
    return this.#issuer.name;
  }

  /**
   * The value of `<namespace>name` when the token has that claim, whatever its value; else of `name`, as of
   * every registered claim.
   */
  claim(name: string): unknown {
    const namespaced = REGISTERED.test(name) ? undefined : this.claims[this.#issuer.claimNamespace + name];
    return namespaced === undefined ? this.claims[name] : namespaced;
  }

  /**
   * The granted scopes: the words of a text (RFC 6749 §3.3) or an array of strings; none if it is anything
   * else.
   */
  get scopes(): readonly string[] {
    const granted = this.claims[this.#issuer.scopeClaim];
    if (typeof granted === 'string') return granted.split(' ').filter(Boolean);
    return isTextArray(granted) ? granted : [];
  }

  /** The granted scopes as one space-separated text, or `null` when the token has none to show. */
  get scopeText() {
    const granted = this.claims[this.#issuer.scopeClaim];
    return typeof granted === 'string' ? granted : this.scopes.join(' ') || null;
  }

  /**
   * Whether the login that `auth_time` tells of was at most so many seconds before the request, give or take
   * the clock tolerance (RFC 9470 §3); false without one, and for one that is yet to come.
   */
  hasLoggedInWithin(seconds: number) {
    const loginSeconds = this.claims.auth_time;
    if (!isFiniteNumber(loginSeconds)) return false;

    const { clockToleranceSeconds } = this.#issuer;
    const ageSeconds = this.#nowMillis / 1000 - loginSeconds;
    return ageSeconds >= -clockToleranceSeconds && ageSeconds <= seconds + clockToleranceSeconds;
  }
}

// Otherwise `new (caller.constructor)(…)` would make one.
Object.defineProperty(CheckedCaller.prototype, 'constructor', { value: Object });

/** Whoever presented a verified token as its binding and the mode demand. Only a `SenderCheck` makes one. */
export interface Caller extends CheckedCaller {}

/** False for anything that merely looks like a Caller. */
export const { isGenuine } = CheckedCaller;

/** What `createSenderCheck` gives: the only maker of a Caller. */
export type SenderCheck = ReturnType<typeof createSenderCheck>;

/** How a token must be presented; settings decide. */
export type SenderOptions = ProofOptions & Readonly<{ dpopMode: DpopMode }>;

/**
 * The checks on how a token is presented at `nowMillis` (since the epoch), in the order of docs/dpop.md.
 * They give a Caller, or why it is refused. `count`, if there is one, is told what became of every proof.
 */
export function createSenderCheck(
  options: SenderOptions,
  replayStore: Pick<ReplayStore, 'record'>,
  count?: Count,
) {
  const verifyProof = createProofVerifier(options);

  /** RFC 9449 §11.1: last, and as one step, so that of many uses at once one is the first. */
  function recordOnce({ thumbprint, jti, expiresAt }: Proof, nowMillis: number) {
    const verdict = replayStore.record(thumbprint, jti, expiresAt, Math.floor(nowMillis / 1000));
    return andThen(verdict, (recorded) => {
      count?.(`gatehouse_replay_proofs_total{result="${recorded}"}`);
      return recorded;
    });
  }

  return (
    token: VerifiedToken,
    credentials: Credentials,
    facts: RequestFacts,
    nowMillis: number,
  ): MaybePromise<Caller | Refused> => {
    const { cnf } = verifiedOf(token).claims;
    if (credentials.scheme === 'Bearer') {
      // RFC 9449 §7.2, RFC 8705 §3: whatever it is bound to, nothing here confirms it. Choice: an operator
      // who turns DPoP off takes bound tokens as if they were not.
      if (cnf !== undefined && options.dpopMode !== 'DISABLED') return refuse('bound-token');

      return new CheckedCaller(token, nowMillis);
    }

    const boundThumbprint = confirmedThumbprint(cnf);
    if (boundThumbprint instanceof Refused) return boundThumbprint;

    // RFC 9449 §7.1
    if (credentials.proof === undefined) return refuse('proof-missing');

    const proof = verifyProof(credentials.proof, credentials.token, facts, nowMillis);
    if (proof instanceof Refused) return proof;

    const { freshNonce } = proof;
    // RFC 9449 §4.3(12), second half; §6.1
    if (proof.thumbprint !== boundThumbprint) return refuse('key-mismatch').with({ freshNonce });

    return andThen(recordOnce(proof, nowMillis), (recorded) =>
      recorded === 'new'
        ? new CheckedCaller(token, nowMillis, freshNonce)
        : NOT_NEW[recorded].with({ freshNonce }),
    );
  };
}

/** What comes of a proof that cannot be recorded as a new one. */
const NOT_NEW = {
  seen: refuse('proof-replayed'),
  full: unavailable('replay-memory-full', 10),
  unavailable: unavailable('replay-store-unavailable'),
};

/**
 * Confirmation methods of RFC 7800 §3, RFC 8705 §3.1, RFC 9449 §6.1 and their registry that nothing here can
 * check.
 */
const OTHER_METHODS = ['jwk', 'jwe', 'jku', 'kid', 'x5t#S256', 'osc'];

/** The thumbprint to which `cnf`, if there is one, binds the token (RFC 9449 §6.1), or why it does not. */
function confirmedThumbprint(cnf: unknown = {}) {
  // Stricter: RFC 7800 §3.1 would let a second method be ignored; one that cannot be checked is refused.
  const isKnown = isJsonObject(cnf) && OTHER_METHODS.every((name) => cnf[name] === undefined);
  if (!isKnown) return refuse('confirmation-refused');

  const { jkt } = cnf;
  if (jkt === undefined) return refuse('not-bound');
  return typeof jkt === 'string' ? jkt : refuse('confirmation-refused');
}
