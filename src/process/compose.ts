// A deployment, put together: issuers and their keys, the check of tokens and proofs, what refused callers
// are told, and what the log and the metrics hear of it. Options stand in their places where they are set.
// Does not fetch or listen.
import type { Early, CrossOrigin } from '../gate/early.ts';
import { createIdentification } from '../gate/identify.ts';
import { createObserver, type Meter } from '../gate/observe.ts';
import { metadataUrlOf } from '../gate/path.ts';
import { createReplies, type OnError } from '../gate/replies.ts';
import type { Clock } from '../verify/base/clock.ts';
import type { JsonObject } from '../verify/base/encoding.ts';
import type { Log } from '../verify/base/events.ts';
import { createSenderCheck, type SenderCheck } from '../verify/caller.ts';
import { createReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { createKeyFetcher, type Connect } from '../verify/keys/fetch.ts';
import { createKeySet, type KeySet } from '../verify/keys/key-set.ts';
import { createTokenVerifier, type TokenVerifier } from '../verify/token/verify.ts';
import type { IssuerSettings, Settings } from './settings/load.ts';

/** What a service or a gate is given beside its settings; a test issuer will do. */
export interface CreateOptions {
  /** Instead of fetching the key set of an issuer from its provider: for tests. */
  readonly fetchKeys?: (issuer: IssuerSettings, name: string) => Promise<JsonObject>;
  /**
   * Called once with what was thrown, for everything that becomes a 500. What it throws itself is ignored.
   */
  readonly onError?: OnError;
}

/** What a process gives: its clocks, its log, and what counts. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  /** Absent where nothing is counted. */
  readonly metrics?: Meter | undefined;
}

/** What the options put in place of the usual parts, or beside them. */
export interface OptionalParts {
  /** The way to the provider, instead of a direct connection. */
  readonly connect: Connect | undefined;
  /** Instead of the memory of this process. */
  readonly replayStore: ReplayStore | undefined;
  readonly early: readonly Early[];
  readonly crossOrigin: CrossOrigin;
}

/** The checks that lead to a Caller, and who is told of what becomes a 500. */
export interface Checks extends Readonly<{ verifyToken: TokenVerifier; checkSender: SenderCheck }> {
  readonly onError?: OnError | undefined;
}

/** The way of a request: who makes it, what a refused one is told, and what is told of it. */
export function composeWay(
  settings: Settings,
  surroundings: Surroundings,
  { early, crossOrigin }: OptionalParts,
  { onError, ...checks }: Checks,
) {
  const { dpopMode, resourceUrl } = settings;
  const { clock } = surroundings;
  const observer = createObserver(surroundings, settings.accessLog);
  const metadataUrl = resourceUrl && metadataUrlOf(resourceUrl);

  return {
    identification: createIdentification({ dpopMode, clock, early, ...checks }),
    replies: createReplies({ ...settings, metadataUrl }, crossOrigin, observer.observe, onError),
    observer,
  };
}

/** The issuers that are trusted, the first one first, each with its own keys (RFC 8725 §3.8). */
function composeIssuers(
  { issuers, clockToleranceSeconds }: Settings,
  { clock, log, metrics }: Surroundings,
  connect: Connect | undefined,
  fetchInstead: CreateOptions['fetchKeys'],
) {
  return Object.entries(issuers).map(([name, issuer]) => {
    const fetch = fetchInstead ? () => fetchInstead(issuer, name) : createKeyFetcher(issuer, connect);
    const keys = createKeySet(name, fetch, clock, log, metrics?.add, issuer.algorithms);
    return { ...issuer, name, clockToleranceSeconds, keys };
  });
}

/** What a service and a gate are made of alike. */
export function composeChecks(
  settings: Settings,
  surroundings: Surroundings,
  parts: OptionalParts,
  { fetchKeys: fetchInstead, onError }: CreateOptions = {},
) {
  const { clock, log, metrics } = surroundings;
  const { connect, replayStore } = parts;
  if (fetchInstead !== undefined) log('signing keys not from the provider', {});

  const issuers = composeIssuers(settings, surroundings, connect, fetchInstead);
  const windowSeconds = settings.dpopIatOffsetSeconds + settings.dpopIatLeewaySeconds;
  const usedProofs =
    replayStore ?? createReplayStore(windowSeconds, undefined, () => log('replay store full', {}));
  const verifyToken = createTokenVerifier(issuers, clock, settings.tokenCacheEntries, metrics?.add);
  const checkSender = createSenderCheck(settings, usedProofs, metrics?.add);
  const way = composeWay(settings, surroundings, parts, { verifyToken, checkSender, onError });

  return {
    ...way,
    usedProofs,
    /** The first one first. */
    issuers,

    /** Call it once at the start; after that requests keep the keys fresh. */
    fetchKeys: () => issuers.map(({ keys }) => keys.refresh()),

    /** Whether there are keys to verify tokens with. */
    isReady: () => haveKeys(issuers.map(({ keys }) => keys)),

    /** Ends what is under way, and sums up what was refused. */
    close: () => {
      for (const { keys } of issuers) keys.close();
      usedProofs.close?.();
      way.observer.summarize();
    },
  };
}

function haveKeys(sets: readonly KeySet[]) {
  // All are asked, since asking keeps keys fresh.
  const usable = sets.filter((keys) => keys.usable() > 0);
  // Choice: only the first issuer's fault holds up a rollout, while it has never had keys.
  return usable.length > 0 && sets[0]?.ageMillis() !== Infinity;
}
