// Decides on tokens by what their issuer says: on opaque ones alone, on JWTs after every other check. Trusts
// the issuer's own word. Promises: what has the form of a JWT is asked about only once it is verified; only
// `active: true` lets a token pass; each request checks the kept response again. Does not check binding or
// guards.
import { hash, randomBytes } from 'node:crypto';
import { andThen } from '../../verify/base/clock.ts';
import { isFiniteNumber, isPresent, withoutPrototype, type JsonObject } from '../../verify/base/encoding.ts';
import type { Surroundings } from '../../verify/base/events.ts';
import { refuse, Refused, type Found } from '../../verify/base/refusal.ts';
import type { DpopMode } from '../../verify/request/facts.ts';
import { checkTimes } from '../../verify/token/claims.ts';
import {
  sealResponse,
  verifiedOf,
  type Introspect,
  type Issuer,
  type TokenVerifier,
  type VerifiedToken,
} from '../../verify/token/verify.ts';
import type { Answer, Questions } from './questions.ts';

interface IntrospectOptions {
  readonly tokens: readonly string[];
  readonly audience: 'required' | 'provider';
  readonly cacheSeconds: number;
  readonly tokenCacheEntries: number;
  readonly dpopMode: DpopMode;
}

/** Of responses that refuse a token: unauthenticated clients choose those tokens. */
const MAX_REFUSED = 1_000;
const MAX_REFUSED_SECONDS = 10;

type Verdict = VerifiedToken | Refused;

type Accept = (response: JsonObject) => Verdict;

/** Decides on the tokens of one issuer. */
export class Introspector implements Introspect {
  readonly #options;
  readonly #questions;
  readonly #clock;
  readonly #count;
  readonly #accepted;
  readonly #refused = new Answers(MAX_REFUSED);
  readonly isAboutJwts;

  constructor(options: IntrospectOptions, questions: Questions, { clock, count }: Surroundings) {
    this.#options = options;
    this.#questions = questions;
    this.#clock = clock;
    this.#count = count;
    this.#accepted = new Answers(options.tokenCacheEntries);
    this.isAboutJwts = options.tokens.includes('jwt');
  }

  protect(verifyToken: TokenVerifier, issuer: Issuer): TokenVerifier {
    const found = { issuerName: issuer.name };

    return (token) => {
      if (this.#options.tokens.includes('opaque') && isOpaque(token)) {
        return this.#decide(token, found, (response) => this.#acceptOpaque(response, issuer));
      }

      const verified = verifyToken(token);
      if (!this.isAboutJwts) return verified;
      return andThen(verified, (one) => this.#confirmJwt(token, one, issuer));
    };
  }

  probe() {
    const { tokens } = this.#options;
    return this.#questions.probe(tokens.includes('opaque') ? randomText() : randomJwt());
  }

  async #decide(token: string, found: Found, accept: Accept, exp?: unknown) {
    const digest = hash('sha256', token, 'base64url');
    const kept = this.#find(digest);
    const answer = kept ?? (await this.#questions.answerTo(token, digest));
    if (answer instanceof Refused) return answer.with(found);

    const { response } = answer;
    // RFC 7662 §2.2
    const verdict = response.active === true ? accept(response) : refuse('token-inactive');
    const isRefused = verdict instanceof Refused;
    if (!kept) this.#keep(digest, answer, isRefused, exp);
    if (isRefused) return verdict.with(found);

    this.#count?.('token', kept ? 'remembered' : 'introspected');
    return verdict;
  }

  #find(digest: string) {
    const now = this.#clock.monotonic();
    return this.#accepted.find(digest, now) ?? this.#refused.find(digest, now);
  }

  /** RFC 7662 §4: never beyond the expiry of the response, or `exp` of a JWT. */
  #keep(digest: string, answer: Answer, isRefused: boolean, exp: unknown) {
    const { response, askedAtMillis } = answer;
    const { cacheSeconds } = this.#options;
    const seconds = isRefused ? Math.min(cacheSeconds, MAX_REFUSED_SECONDS) : cacheSeconds;
    // In monotonic time.
    const sinceEpochMillis = this.#clock.now() - this.#clock.monotonic();
    const expiries = [response.exp, exp].filter(isFiniteNumber);
    const untilMillis = Math.min(
      askedAtMillis + seconds * 1000,
      ...expiries.map((expiry) => expiry * 1000 - sinceEpochMillis),
    );
    (isRefused ? this.#refused : this.#accepted).keep(digest, answer, untilMillis);
  }

  /** RFC 7662 §2.2 */
  #acceptOpaque(response: JsonObject, issuer: Issuer) {
    const { audience, dpopMode } = this.#options;
    const members = membersOf(response, issuer, audience);
    const verdict = sealResponse(response, members, issuer, this.#clock.now() / 1000);
    return verdict instanceof Refused ? verdict : (checkResponse(response, issuer, dpopMode) ?? verdict);
  }

  #confirmJwt(token: string, verified: Verdict, issuer: Issuer) {
    if (verified instanceof Refused || verifiedOf(verified).issuer !== issuer) return verified;

    const { claims, found } = verifiedOf(verified);
    // RFC 7519 §4.1.4: asking may have taken long.
    return this.#decide(
      token,
      found,
      () => checkTimes(claims, issuer, this.#clock.now() / 1000) ?? verified,
      claims.exp,
    );
  }
}

const randomText = () => randomBytes(16).toString('base64url');

const randomJwt = () => [randomText(), randomText(), randomText()].join('.');

const MAX_LENGTH = 4_096;

/** RFC 6750 §2.1 */
const TOKEN = /^[\w.~+/-]+=*$/;

/** By form alone: three parts are those of a JWT (RFC 7515 §3.1), five those of a JWE (RFC 7516 §3.1). */
function isOpaque(token: string) {
  const { length } = token.split('.', 6);
  return length !== 3 && length !== 5 && token.length <= MAX_LENGTH && TOKEN.test(token);
}

const ACCESS_TYPES: readonly unknown[] = ['bearer', 'dpop', 'access_token'];

const inLowerCase = (type: unknown) => (typeof type === 'string' ? type.toLowerCase() : type);

/** In the words that the checks of a JWT know. */
function membersOf(response: JsonObject, { issuer, audience }: Issuer, from: IntrospectOptions['audience']) {
  const { iss = issuer, token_use: use, token_type: type } = response;
  // Stricter: RFC 7662 §2.2 has `aud` optional. Only the operator can say that the provider looks after it.
  const { aud = from === 'provider' ? audience : undefined } = response;
  // RFC 7662 §2.1: a hint does not keep a provider from answering for another kind of token.
  const isAccess = !isPresent(type) || ACCESS_TYPES.includes(inLowerCase(type));
  const word = use === 'access_token' ? 'access' : use;
  return withoutPrototype({ ...response, iss, aud, token_use: isAccess ? word : 'other' });
}

/** What is left to check of a response, after what it has in common with a JWT. */
function checkResponse(response: JsonObject, { requiredClaims }: Issuer, dpopMode: DpopMode) {
  if (requiredClaims.some((name) => !isPresent(response[name]))) return refuse('claim-required');

  // RFC 9449 §6.2: a provider that forgets `cnf` must not make a bearer token of a bound one.
  const isBound = dpopMode !== 'DISABLED' && inLowerCase(response.token_type) === 'dpop';
  const { jkt } = Object(response.cnf);
  return isBound && jkt === undefined ? refuse('not-bound') : undefined;
}

interface Kept {
  readonly answer: Answer;
  /** Monotonic. */
  readonly untilMillis: number;
}

/**
 * What an issuer said of tokens, kept for a while under the digest of each. Promises: a bounded number, of
 * which the oldest goes first.
 */
export class Answers {
  readonly #most;
  readonly #kept = new Map<string, Kept>();

  constructor(most: number) {
    this.#most = most;
  }

  find(digest: string, nowMillis: number): Answer | undefined {
    const kept = this.#kept.get(digest);
    if (!kept || nowMillis < kept.untilMillis) return kept?.answer;

    this.#kept.delete(digest);
    return undefined;
  }

  /** Nothing that is over already: it would drop an older one. */
  keep(digest: string, answer: Answer, untilMillis: number) {
    if (untilMillis <= answer.askedAtMillis) return;

    // Requests that share an introspection request keep its response once, as the latest.
    this.#kept.delete(digest);
    this.#kept.set(digest, { answer, untilMillis });
    const [oldest = ''] = this.#kept.keys();
    if (this.#kept.size > this.#most) this.#kept.delete(oldest);
  }
}
