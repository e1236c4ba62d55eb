// What a gate and a service share, made of their options: issuers and keys, the checks of tokens and proofs, the
// decision, replies, and the observer of requests.
import { ignoreErrors, type Clock } from '../verify/base/clock.ts';
import { LEVELS, type Log } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import { createSenderCheck, type SenderCheck } from '../verify/caller.ts';
import { createOwnStore, createReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { createIssuers, haveKeys, type Surroundings } from '../verify/issuers.ts';
import { createTokenVerifier, type Issuer, type TokenVerifier } from '../verify/token/verify.ts';
import { createDecide, type Decide } from './decide.ts';
import { createExpect, type Expect } from './expect.ts';
import { createObserver, type Observer } from './observe.ts';
import type { Cors, GateValues, LogSink, Metrics } from './options.ts';
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
  const { clock, name, routes, ownRoutes } = serving;
  const { log = NO_LOG } = sinkOf(values);
  const metrics = values.metrics && Part.contentOf(values.metrics);
  const surroundings = { clock, log, count: metrics?.count };

  const issuers = createIssuers(values, surroundings);
  const replayStore = createStore(values, surroundings);
  const verifyToken = createTokenVerifier(issuers, clock, values.tokenCacheEntries, metrics?.count);
  const checkSender = createSenderCheck(values, replayStore, metrics?.count);
  const expect = createExpect(issuers, { ...values, logLevel: sinkOf(values).level });
  const answers = createAnswers(values, serving, { verifyToken, checkSender, expect });
  const unwatch = metrics?.watch({ name, issuers, replayStore, routes: [...ownRoutes, ...routes] });

  return {
    ...answers,
    issuers,
    replayStore,
    log,
    fetchKeys: () => issuers.map(({ keys }) => keys.refresh()),
    isReady: () => haveKeys(issuers),

    close() {
      for (const { keys } of issuers) keys.close();
      replayStore.close?.();
      answers.observer.summarize();
      unwatch?.();
    },
  };
}

/** What decides on tokens and proofs, and tells what they were compared with. */
export interface Verification {
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly expect: Expect | undefined;
}

export function createAnswers(
  values: GateValues,
  serving: Serving,
  { verifyToken, checkSender, expect }: Verification,
): Answers {
  const { clock, isService, joinsChallenges = false } = serving;
  const metrics = values.metrics && Part.contentOf(values.metrics);
  const metadata = values.metadata && Part.contentOf(values.metadata);
  const cors = createCrossOrigin(values, serving);
  const sink = sinkOf(values);
  const observer = createObserver({
    clock,
    log: sink.log,
    // A gate sees no response.
    isAccessLogged: sink.isAccessLogged && isService,
    ...countsOf(metrics, isService),
    expect,
  });

  const early = metadata ? [metadata.createEarly({ ...values, log: sink.log ?? NO_LOG })] : [];
  if (cors !== undefined && isService) early.push(cors.preflight);
  const { metadataUrl, nameScopes } = metadata ?? {};
  const challenges = { ...values, metadataUrl, nameScopes, joinsChallenges };

  return {
    decide: createDecide({ dpopMode: values.dpopMode, clock, verifyToken, checkSender }),
    early: firstOf(early),
    replies: createReplies(challenges, cors ?? SAME_ORIGIN, observer.observe, values.onError),
    observer,
  };
}

function createCrossOrigin({ cors, dpopMode }: GateValues, { routes }: Serving): Cors | undefined {
  const methods = [...new Set(routes.map(({ method }) => method))];
  return cors && Part.contentOf(cors)({ dpopMode, methods });
}

const countsOf = (metrics: Metrics | undefined, isService: boolean) => ({
  count: metrics?.count,
  meter: isService ? metrics?.meter : undefined,
});

const NO_LOG: Log = () => {};

type Sink = LogSink | { readonly log: undefined; readonly level: undefined; readonly isAccessLogged: false };

/** What a function of the user throws or rejects with is ignored. */
function sinkOf({ log }: GateValues): Sink {
  if (Part.is(log)) return Part.contentOf(log);
  if (log === undefined) return { log, level: undefined, isAccessLogged: false };

  const write: Log = (event, fields) => void ignoreErrors(() => log(LEVELS[event], event, fields));
  return { log: write, level: 'debug', isAccessLogged: false };
}

function createStore(values: GateValues, { clock, log }: Surroundings): ReplayStore {
  const { replayStore, dpopIatOffsetSeconds, dpopIatLeewaySeconds } = values;
  if (Part.is(replayStore)) return Part.contentOf(replayStore)(clock, log);
  if (replayStore !== undefined) return createOwnStore(replayStore, clock);

  const windowSeconds = dpopIatOffsetSeconds + dpopIatLeewaySeconds;
  return createReplayStore(windowSeconds, undefined, () => log('replay store full', {}));
}
