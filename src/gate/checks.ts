// What a gate and a service share, made of their options: issuers and keys, the checks of tokens and proofs,
// the decision, replies, and the observer of requests.
import { nothing, type Clock } from '../verify/base/clock.ts';
import type { Log, Surroundings } from '../verify/base/events.ts';
import { Part } from '../verify/base/option.ts';
import { createSenderCheck } from '../verify/caller.ts';
import { LocalReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { KeyFetch, withDeadline } from '../verify/keys/fetch.ts';
import { importSigningKey } from '../verify/keys/jwk.ts';
import { KeySet } from '../verify/keys/key-set.ts';
import type { FetchFrom, IssuersValues } from '../verify/options.ts';
import { createTokenVerifier, type Issuer } from '../verify/token/verify.ts';
import { createDecide, type Decide, type DecideOptions, type Early } from './decide.ts';
import { createExpect, Observer, type Expect } from './observe.ts';
import type { GateValues, Joined, Watched } from './options.ts';
import { createReplies, type Replies } from './replies/refusal-replies.ts';

/** What serves: a gate, or the routes of a service. */
interface Serving extends Pick<Watched, 'name' | 'routes' | 'ownRoutes'> {
  readonly clock: Clock;
  /** Whether it answers preflights, and counts requests. */
  readonly isService: boolean;
  /** Forward-auth: all challenges stand in one field. */
  readonly isPolicy?: boolean;
}

export interface Answers {
  readonly decide: Decide;
  /** None without an option that makes such replies. */
  readonly early: Early | undefined;
  readonly replies: Replies;
  readonly observer: Observer;
}

export interface Checks extends Answers {
  readonly issuers: readonly Issuer[];
  readonly replayStore: ReplayStore;
  readonly log: Log;
  /** For startup. Later, requests keep keys fresh. */
  readonly fetchKeys: () => readonly Promise<void>[];
  readonly isReady: () => boolean;
  /** Ends what runs in the background, and logs the last summary. */
  readonly close: () => void;
}

export function createChecks(values: GateValues, serving: Serving): Checks {
  const surroundings = surroundingsOf(values, serving);
  const { clock, log } = surroundings;
  const issuers = createIssuers(values, surroundings);
  const revocations = Part.contentOf(values.revocations);
  const joined = revocations?.join(issuers, surroundings);
  const replayStore = createStore(values, clock, log);

  const verification = createVerification(values, issuers, replayStore, surroundings, joined);
  const answers = createAnswers(values, serving, verification);
  const watched = { ...serving, issuers, replayStore, revocations };
  const unwatch = Part.contentOf(values.metrics)?.watch(watched);

  function close() {
    for (const { keys } of issuers) keys.close();
    replayStore.close?.();
    joined?.leave();
    answers.observer.summarize();
    unwatch?.();
  }

  const fetchKeys = () => issuers.map(refresh);
  return { ...answers, issuers, replayStore, log, fetchKeys, isReady: () => haveKeys(issuers), close };
}

const refresh = ({ keys }: Issuer) => keys.refresh();

function surroundingsOf(values: GateValues, { clock }: Serving): Surroundings {
  const { log = nothing, level } = values.log ?? {};
  return { clock, log, count: Part.contentOf(values.metrics)?.count, level };
}

/** The trusted issuers, each with its own keys (RFC 8725 §3.8). */
export function createIssuers(values: IssuersValues, surroundings: Surroundings): readonly Issuer[] {
  const { issuers, clockToleranceSeconds, connect, fetchKeys } = values;
  if (fetchKeys !== undefined) surroundings.log('signing keys not from the provider', {});

  return Object.entries(issuers).map(([name, own]) => {
    const { jwksUri, algorithms, tenants } = own;
    const introspect = Part.contentOf(own.introspection)?.create(own, name, values, surroundings);
    const issuer = { ...own, name, clockToleranceSeconds, introspect };

    const fetchFrom: FetchFrom = (address, tenant) =>
      fetchKeys
        ? () => fetchKeys(own, name, tenant)
        : new KeyFetch({ ...own, jwksUri: address }, Part.contentOf(connect)).fetch;

    if (tenants !== undefined) return Part.contentOf(tenants).createIssuer(issuer, fetchFrom, surroundings);

    const keys = new KeySet(name, withDeadline(fetchFrom(jwksUri)), surroundings, (published) =>
      importSigningKey(published, algorithms),
    );
    return { ...issuer, keys };
  });
}

/** Whether tokens can be verified. */
export function haveKeys(issuers: readonly Issuer[]): boolean {
  // Asks all: asking keeps keys fresh.
  const usable = issuers.filter(({ keys }) => keys.usable() > 0);
  // Choice: a rollout waits for the first keys of the first issuer only.
  return usable.length > 0 && issuers[0]?.keys.ageMillis() !== Infinity;
}

/** In this process, unless an option says where. */
function createStore(values: GateValues, clock: Clock, log: Log): ReplayStore {
  const windowSeconds = values.dpopIatOffsetSeconds + values.dpopIatLeewaySeconds;
  return values.replayStore?.(clock, log) ?? new LocalReplayStore(windowSeconds, undefined, log);
}

/** What decides on tokens and proofs, and tells what they were compared with. */
interface Verification extends DecideOptions {
  /** None where the log takes no lines about single refusals. */
  readonly expect: Expect | undefined;
}

function createVerification(
  values: GateValues,
  issuers: readonly Issuer[],
  replayStore: ReplayStore,
  surroundings: Surroundings,
  joined: Joined | undefined,
): Verification {
  const { clock, count, level } = surroundings;
  const { dpopMode } = values;
  const verifyToken = createTokenVerifier(issuers, clock, values.tokenCacheEntries, count);
  const confirm = Part.contentOf(values.clientCertificates)?.createConfirm(dpopMode);

  return {
    dpopMode,
    surroundings,
    verifyToken: joined?.protect(verifyToken) ?? verifyToken,
    checkSender: createSenderCheck(values, replayStore, count, confirm),
    expect: level === 'debug' ? createExpect(issuers, values) : undefined,
  };
}

export function createAnswers(values: GateValues, serving: Serving, verification: Verification): Answers {
  const { isService, isPolicy = false, routes } = serving;
  const methods = [...new Set(routes.map(({ method }) => method))];
  const cors = Part.contentOf(values.cors)?.({ dpopMode: values.dpopMode, methods });

  const metadata = Part.contentOf(values.metadata);
  const challenges = { ...values, ...metadata, joinsChallenges: isPolicy };
  const { log } = verification.surroundings;
  // Preflights are for the server behind a gate.
  const preflight = isService ? cors?.preflight : undefined;

  return {
    decide: createDecide(verification),
    early: metadata?.createEarly({ ...values, log, preflight }) ?? preflight,
    replies: createReplies(challenges, cors, values.onError),
    observer: createObserver(values, isService, verification),
  };
}

/** A gate sees no response, so it neither logs nor measures requests. */
function createObserver(values: GateValues, isService: boolean, { surroundings, expect }: Verification) {
  const { log, isAccessLogged = false } = values.log ?? {};
  const meter = isService ? Part.contentOf(values.metrics)?.meter : undefined;
  return new Observer({ ...surroundings, log, expect, meter, isAccessLogged: isService && isAccessLogged });
}
