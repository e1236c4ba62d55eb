// What a gate and a service share, made of their options: issuers and keys, the checks of tokens and proofs,
// the decision, replies, and the observer of requests.
import { ignoreErrors, type Clock } from '../verify/base/clock.ts';
import { EVENTS, type Log } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import { createSenderCheck, type SenderCheck } from '../verify/caller.ts';
import { createOwnStore, createReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { createIssuers, haveKeys } from '../verify/issuers.ts';
import { createTokenVerifier, type Issuer, type TokenVerifier } from '../verify/token/verify.ts';
import { createDecide, type Decide } from './decide.ts';
import { createExpect, type Expect } from './expect.ts';
import { createObserver, type Observer } from './observe.ts';
import type { Cors, GateValues, LogSink, Watched } from './options.ts';
import { firstOf, type Early, type MatchedRoute } from './record.ts';
import { createReplies, SAME_ORIGIN, type Replies } from './replies/refusal-replies.ts';

/** What serves: a gate, or the routes of a service. */
export interface Serving {
  readonly clock: Clock;
  /** For metrics. */
  readonly name: string;
  readonly routes: readonly MatchedRoute[];
  /** Such as the probes. */
  readonly ownRoutes: readonly MatchedRoute[];
  /** Whether it answers preflights, and counts requests. */
  readonly isService: boolean;
  /** Forward-auth: all challenges in one field. */
  readonly joinsChallenges?: boolean;
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
  const { clock } = serving;
  const { log = NO_LOG, level: logLevel } = sinkOf(values);
  const metrics = values.metrics && Part.contentOf(values.metrics);
  const count = metrics?.count;

  const issuers = createIssuers(values, { clock, log, count });
  const replayStore = createStore(values, clock, log);
  const verification = {
    verifyToken: createTokenVerifier(issuers, clock, values.tokenCacheEntries, count),
    checkSender: createSenderCheck(values, replayStore, count),
    expect: createExpect(issuers, { ...values, logLevel }),
  };

  const answers = createAnswers(values, serving, verification);
  const unwatch = metrics?.watch(watchedOf(serving, issuers, replayStore));

  function close() {
    for (const { keys } of issuers) keys.close();
    replayStore.close?.();
    answers.observer.summarize();
    unwatch?.();
  }

  const fetchKeys = () => issuers.map(({ keys }) => keys.refresh());
  return { ...answers, issuers, replayStore, log, fetchKeys, isReady: () => haveKeys(issuers), close };
}

const watchedOf = (
  { name, routes, ownRoutes }: Serving,
  issuers: readonly Issuer[],
  replayStore: ReplayStore,
): Watched => ({ name, issuers, replayStore, routes: [...ownRoutes, ...routes] });

/** What decides on tokens and proofs, and tells what they were compared with. */
export interface Verification {
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly expect: Expect | undefined;
}

export function createAnswers(values: GateValues, serving: Serving, verification: Verification): Answers {
  const { clock, isService, joinsChallenges = false } = serving;
  const metadata = values.metadata && Part.contentOf(values.metadata);
  const cors = createCrossOrigin(values, serving);
  const observer = createObserverOf(values, serving, verification.expect);

  const early: Early[] = [];
  if (metadata) early.push(metadata.createEarly({ ...values, log: sinkOf(values).log ?? NO_LOG }));
  // Preflights are for the server behind a gate.
  if (cors !== undefined && isService) early.push(cors.preflight);

  const { metadataUrl, nameScopes } = metadata ?? {};
  const challenges = { ...values, metadataUrl, nameScopes, joinsChallenges };

  return {
    decide: createDecide({ ...verification, dpopMode: values.dpopMode, clock }),
    early: firstOf(early),
    replies: createReplies(challenges, cors ?? SAME_ORIGIN, observer.observe, values.onError),
    observer,
  };
}

function createCrossOrigin({ cors, dpopMode }: GateValues, { routes }: Serving): Cors | undefined {
  const methods = [...new Set(routes.map(({ method }) => method))];
  return cors && Part.contentOf(cors)({ dpopMode, methods });
}

/** A gate sees no response, so it neither logs nor measures requests. */
function createObserverOf(
  values: GateValues,
  { clock, isService }: Serving,
  expect: Expect | undefined,
): Observer {
  const { log, isAccessLogged } = sinkOf(values);
  const { count, meter } = (values.metrics && Part.contentOf(values.metrics)) ?? {};

  return createObserver({
    clock,
    log,
    isAccessLogged: isAccessLogged && isService,
    count,
    meter: isService ? meter : undefined,
    expect,
  });
}

const NO_LOG: Log = () => {};

type Sink = LogSink | { readonly log: undefined; readonly level: undefined; readonly isAccessLogged: false };

/** What a function of the user throws or rejects with is ignored. */
function sinkOf({ log }: GateValues): Sink {
  if (Part.is(log)) return Part.contentOf(log);
  if (log === undefined) return { log, level: undefined, isAccessLogged: false };

  const write: Log = (event, fields) => void ignoreErrors(() => log(EVENTS[event], event, fields));
  return { log: write, level: 'debug', isAccessLogged: false };
}

function createStore(values: GateValues, clock: Clock, log: Log): ReplayStore {
  const { replayStore, dpopIatOffsetSeconds, dpopIatLeewaySeconds } = values;
  if (Part.is(replayStore)) return Part.contentOf(replayStore)(clock, log);
  if (replayStore !== undefined) return createOwnStore(replayStore, clock);

  const windowSeconds = dpopIatOffsetSeconds + dpopIatLeewaySeconds;
  return createReplayStore(windowSeconds, undefined, () => log('replay store full', {}));
}
