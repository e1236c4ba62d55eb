// Tokens that are revoked before they expire. Promises: a token that the store names is refused on every
// replica from its next request on, and no token passes without the store's whole reply. Does not end
// in-flight responses. Loads no gate.
import { andThen, systemClock, type Clock } from '../../verify/base/clock.ts';
import type { Surroundings } from '../../verify/base/events.ts';
import {
  readOptions,
  throwProblem,
  Part,
  TAKEN,
  type Given,
  type Rule,
  type RulesOf,
} from '../../verify/base/option.ts';
import { refuse, Refused, unavailable } from '../../verify/base/refusal.ts';
import {
  issuerAt,
  ISSUER_NAME,
  ISSUER_RULES,
  ISSUERS_PROBLEM,
  REQUIRED,
  SAME_ISSUER,
  VERIFY_RULES,
  type IssuerOptions,
  type VerifyOptions,
} from '../../verify/options.ts';
import {
  verifiedOf,
  type Issuer,
  type TokenVerifier,
  type VerifiedToken,
} from '../../verify/token/verify.ts';
import type { Revocations, RevocationsPart } from '../../gate/options.ts';
import { NOT_BOTH, TEMPLATE_RULES } from '../tenants/template.ts';
import {
  entriesFor,
  isRefusedBy,
  KnownIssuers,
  NO_DOMAIN,
  readRestoration,
  readRevocation,
  type Entry,
  type Restoration,
  type Revocation,
} from './revocation.ts';
import { RevocationStore } from './revocation-store.ts';
import { storeUrl } from './target.ts';

interface Naming extends Pick<VerifyOptions, 'domain' | 'issuer'> {
  /** Further issuers by name, as in the options of the gates and services. */
  readonly issuers: Readonly<Record<string, Partial<IssuerOptions>>>;
}

/** The issuers are those of the first gate or service that uses the part, unless these options name them. */
export interface RevocationsOptions extends Given<Naming> {
  /** The address of a server, of a cluster or of sentinels (docs/dpop.md). */
  readonly store: string;
}

const RULES: RulesOf<RevocationsOptions> = {
  store: storeUrl,
  domain: ISSUER_RULES.domain,
  issuer: TEMPLATE_RULES.issuerOrTemplate,
  issuers: VERIFY_RULES.issuers,
};

/** Here a part serves nothing: the gate that it serves may have been made before. */
const orTaken = (rule: Rule): Rule =>
  function checkPart(value) {
    const problem = rule(value);
    return problem === TAKEN ? undefined : problem;
  };

const NAMING_RULES = {
  ...ISSUER_RULES,
  issuer: TEMPLATE_RULES.issuerOrTemplate,
  tenants: orTaken(ISSUER_RULES.tenants),
  keyAccess: orTaken(ISSUER_RULES.keyAccess),
  introspection: orTaken(ISSUER_RULES.introspection),
};

const NO_STORE = 'is missing; set the URL of the store, such as rediss://store.example.com';

/** Made by `createRevocations`. */
export interface RevocationsWithWriters extends RevocationsPart {
  /**
   * Resolves when the store has confirmed the change. Rejects with a `TypeError` for an invalid argument, and
   * with an `Error` if the store is unavailable. If the store refused, `cause` is its code, such as `NOPERM`.
   */
  readonly revoke: (what: Revocation) => Promise<void>;
  /** Undoes the revocation of the same token, session, subject or client. Settles as `revoke` does. */
  readonly restore: (what: Restoration) => Promise<void>;
  /** Closes the connections. From then on, requests with a token get 503. */
  readonly close: () => void;
}

/**
 * Refuses revoked tokens: for the option `revocations` of any number of gates and services, and to revoke
 * tokens. Throws a `TypeError` for an option that is wrong.
 *
 * @example const revocations = createRevocations({ store: 'rediss://store.example.com' });
 */
export function createRevocations(options: RevocationsOptions): RevocationsWithWriters {
  const { store, ...naming } = readOptions<RevocationsOptions>(
    options,
    RULES,
    {},
    { store: NO_STORE },
    'revocations',
  );
  return makeRevocations(store, issuersIn(naming), systemClock);
}

function issuersIn({ domain, issuer, issuers }: Given<Naming>): readonly string[] | undefined {
  const first = issuer ?? (domain && issuerAt(domain));
  if (first === undefined && issuers === undefined) return undefined;
  if (first === undefined) return throwProblem('revocations: domain', NO_DOMAIN);

  return withOthers(first, issuers ?? {});
}

/** Refuses what a gate refuses, but not more than 20: the part may serve several gates. */
function withOthers(first: string, others: Naming['issuers']) {
  const all = [first];
  for (const [name, given] of Object.entries(others)) {
    if (!ISSUER_NAME.test(name)) throwProblem('revocations: issuers', ISSUERS_PROBLEM);

    const owner = `revocations: issuers.${name}`;
    const read = readOptions<IssuerOptions>(given, NAMING_RULES, {}, { domain: REQUIRED.domain }, owner);
    const { template } = Part.contentOf(read.tenants) ?? {};
    const issuer = read.issuer ?? template ?? issuerAt(read.domain);
    if (template !== undefined && template !== issuer) throwProblem(`${owner}: issuer`, NOT_BOTH);
    if (all.includes(issuer)) throwProblem(`${owner}: issuer`, SAME_ISSUER);

    all.push(issuer);
  }
  return all;
}

export function makeRevocations(
  url: string,
  given: readonly string[] | undefined,
  clock: Clock,
): RevocationsWithWriters {
  const content = new StoredRevocations(url, given, clock);
  const { revoke, restore, close } = content;
  const part: RevocationsPart = Part.make('revocations', content, true);
  return Object.assign(part, { revoke, restore, close });
}

class StoredRevocations extends RevocationStore implements Revocations {
  readonly #issuers;
  readonly #clock;

  constructor(url: string, given: readonly string[] | undefined, clock: Clock) {
    super(url, clock);
    this.#issuers = new KnownIssuers(given);
    this.#clock = clock;
  }

  join(served: readonly Issuer[], around: Surroundings) {
    this.#issuers.mustHave(served);

    const protect =
      (verifyToken: TokenVerifier): TokenVerifier =>
      (token) =>
        andThen(verifyToken(token), (verified) => {
          return verified instanceof Refused ? verified : this.#check(verified, around);
        });

    return { protect, leave: this.watch(around) };
  }

  /** Asks the store about each token, also about one that is cached. */
  async #check(token: VerifiedToken, { clock, count }: Surroundings) {
    const result = await this.#resultFor(token, clock);
    count?.('revocation check', result);
    return result === 'clear' ? token : REFUSED[result].with(verifiedOf(token).found);
  }

  async #resultFor(token: VerifiedToken, clock: Clock) {
    const { claims, issuer } = verifiedOf(token);
    const entries = known.get(token) ?? entriesFor(claims, issuer.issuer);
    known.set(token, entries);
    const replies = await this.ask(entries.map(({ key }) => key));
    if (replies === undefined) return 'unavailable';

    const latestSeconds = clock.now() / 1000 + issuer.clockToleranceSeconds;
    const isRevoked = entries.some(({ kind }, index) => {
      const reply = replies[index];
      return typeof reply === 'string' && isRefusedBy(kind, reply, claims.iat, latestSeconds);
    });
    return isRevoked ? 'revoked' : 'clear';
  }

  readonly revoke = async (what: Revocation) => {
    const { key, seconds, keepSeconds } = readRevocation(what, this.#issuers, this.#clock.now());
    await this.write(['SET', key, String(seconds), 'EX', String(keepSeconds)]);
  };

  readonly restore = async (what: Restoration) => {
    const key = readRestoration(what, this.#issuers);
    await this.write(['DEL', key]);
  };
}

const REFUSED = { revoked: refuse('revoked'), unavailable: unavailable('revocation-store-unavailable') };

/** A cached token is always the same object. */
const known = new WeakMap<VerifiedToken, readonly Entry[]>();
