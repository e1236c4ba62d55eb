// What a gate and a service share, made of their options: issuers and keys, the checks of tokens and proofs,
// the decision, replies, and the observer of requests.
import type { Clock } from '../verify/base/clock.ts';
import type { Log, Surroundings } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import { createSenderCheck, type SenderCheck } from '../verify/caller.ts';
import { createReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { createIssuers, haveKeys } from '../verify/issuers.ts';
import { createTokenVerifier, type Issuer, type TokenVerifier } from '../verify/token/verify.ts';
import { createDecide, type Decide } from './decide.ts';
import { createExpect, type Expect } from './expect.ts';
import { Observer } from './observe.ts';
import type { Cors, GateValues, Joined } from './options.ts';
import type { Early, MatchedRoute } from './record.ts';
import { createReplies, SAME_ORIGIN, type Replies } from './replies/refusal-replies.ts';

/** What serves: a gate, or the routes of a service. */
interface Serving {
  readonly clock: Clock;
  /** For metrics. */
  readonly name: string;
  readonly routes: readonly MatchedRoute[];
  /** Such as the probes. */
  readonly ownRoutes: readonly MatchedRoute[];
  /** Whether it answers preflights, and counts requests. */
  readonly isService: boolean;
  /** Forward-auth: all challenges stand in one field. */
  readonly isPolicy?: boolean;
}

export interface Answers {
  readonly decide: Decide;
  readonly early: Early;
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

const NO_LOG: Log = () => {};

function surroundingsOf({ log, metrics }: GateValues, { clock }: Serving): Surroundings {
  const { count } = Part.contentOf(metrics) ?? {};
  return { clock, log: log?.log ?? NO_LOG, count, level: log?.level };
}

/** In this process, unless an option says where. */
function createStore(values: GateValues, clock: Clock, log: Log): ReplayStore {
  const windowSeconds = values.dpopIatOffsetSeconds + values.dpopIatLeewaySeconds;
  const onFull = () => log('replay store full', {});
  return values.replayStore?.(clock, log) ?? createReplayStore(windowSeconds, undefined, onFull);
}

/** What decides on tokens and proofs, and tells what they were compared with. */
interface Verification {
  readonly surroundings: Surroundings;
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
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
  const verifyToken = createTokenVerifier(issuers, clock, values.tokenCacheEntries, count);
  const confirm = Part.contentOf(values.clientCertificates)?.createConfirm(values.dpopMode);

  return {
    surroundings,
    verifyToken: joined?.protect(verifyToken) ?? verifyToken,
    checkSender: createSenderCheck(values, replayStore, count, confirm),
    expect: level === 'debug' ? createExpect(issuers, values) : undefined,
  };
}

export function createAnswers(values: GateValues, serving: Serving, verification: Verification): Answers {
  const { isService, isPolicy = false } = serving;
  const observer = createObserverOf(values, serving, verification.expect);
  const cors = createCors(values, serving);

  const metadata = Part.contentOf(values.metadata);
  const challenges = { ...values, ...metadata, joinsChallenges: isPolicy };
  const replyToReader = metadata?.createEarly({ ...values, log: values.log?.log ?? NO_LOG });
  // Preflights are for the server behind a gate.
  const replyToPreflight = isService ? cors?.preflight : undefined;

  return {
    decide: createDecide({ ...verification, dpopMode: values.dpopMode }),
    early: (facts) => replyToReader?.(facts) ?? replyToPreflight?.(facts),
    replies: createReplies(challenges, cors ?? SAME_ORIGIN, values.onError),
    observer,
  };
}

function createCors({ cors, dpopMode }: GateValues, { routes }: Serving): Cors | undefined {
  const methods = [...new Set(routes.map(({ method }) => method))];
  return Part.contentOf(cors)?.({ dpopMode, methods });
}

/** A gate sees no response, so it neither logs nor measures requests. */
function createObserverOf(
  values: GateValues,
  { clock, isService }: Serving,
  expect: Expect | undefined,
): Observer {
  const { log, isAccessLogged = false } = values.log ?? {};
  const { count, meter } = Part.contentOf(values.metrics) ?? {};
  const ofRequests = isService ? { isAccessLogged, meter } : { isAccessLogged: false, meter: undefined };
  return new Observer({ clock, log, count, expect, ...ofRequests });
}
