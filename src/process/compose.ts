// Composes a deployment from its settings: issuers and keys, the checks of tokens and proofs, replies, and
// the observer of requests.
import type { CrossOrigin, Early } from '../gate/early.ts';
import { createExpect, type Expect } from '../gate/expect.ts';
import { createIdentification } from '../gate/identify.ts';
import { createObserver, type Dependencies } from '../gate/observe.ts';
import { createReplies, type NameScopes, type OnError } from '../gate/replies.ts';
import type { JsonObject } from '../verify/base/encoding.ts';
import { createSenderCheck, type SenderCheck } from '../verify/caller.ts';
import { createReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import { createKeyFetcher, withDeadline, type Connect } from '../verify/keys/fetch.ts';
import { createKeySet } from '../verify/keys/key-set.ts';
import { createTokenVerifier, type TokenVerifier } from '../verify/token/verify.ts';
import type { BasicSettings, IssuerSettings } from './settings/load.ts';

/** Options of a service or gate besides its settings. A test issuer can be passed here. */
export interface CreateOptions {
  /** For tests: resolves with an issuer's key set, within five seconds, instead of asking the provider. */
  readonly fetchKeys?: (issuer: IssuerSettings, name: string) => Promise<JsonObject>;
  /** Called with each error that becomes a 500. What it throws is ignored. */
  readonly onError?: OnError;
}

export interface OptionalParts {
  /** Replaces the direct connection to the provider. */
  readonly connect?: Connect | undefined;
  /** Replaces the store in this process. */
  readonly replayStore?: ReplayStore | undefined;
  readonly early: readonly Early[];
  /** RFC 9728 §5.1 */
  readonly metadataUrl?: string | undefined;
  readonly nameScopes?: NameScopes | undefined;
  readonly crossOrigin: CrossOrigin;
  /** Forward-auth: all challenges in one field. */
  readonly joinsChallenges?: boolean;
}

export interface Checks {
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly onError?: OnError | undefined;
  readonly expect?: Expect | undefined;
}

export function composeChecks(
  settings: BasicSettings,
  dependencies: Dependencies,
  parts: OptionalParts,
  { fetchKeys, onError }: CreateOptions = {},
) {
  const { clock, metrics } = dependencies;
  const issuers = composeIssuers(settings, dependencies, parts.connect, fetchKeys);
  const replayStore = parts.replayStore ?? composeReplayStore(settings, dependencies);
  const verifyToken = createTokenVerifier(issuers, clock, settings.tokenCacheEntries, metrics?.count);
  const checkSender = createSenderCheck(settings, replayStore, metrics?.count);
  const expect = createExpect(issuers, settings);
  const checks = { verifyToken, checkSender, onError, expect };
  const requestParts = composeRequestParts(settings, dependencies, parts, checks);

  return {
    ...requestParts,
    issuers,
    replayStore,
    /** For startup. Later, requests keep keys fresh. */
    fetchKeys: () => issuers.map(({ keys }) => keys.refresh()),
    isReady: () => haveKeys(issuers),

    /** Ends what runs in the background and logs the last summary. */
    close() {
      for (const { keys } of issuers) keys.close();
      replayStore.close?.();
      requestParts.observer.summarize();
    },
  };
}

type Issuers = ReturnType<typeof composeIssuers>;

/** RFC 8725 §3.8: each issuer has its own keys. */
function composeIssuers(
  { issuers, clockToleranceSeconds }: BasicSettings,
  { clock, log, metrics }: Dependencies,
  connect: Connect | undefined,
  fetchInstead: CreateOptions['fetchKeys'],
) {
  if (fetchInstead !== undefined) log('signing keys not from the provider', {});

  return Object.entries(issuers).map(([name, issuer]) => {
    const fetch = fetchInstead
      ? withDeadline(() => fetchInstead(issuer, name))
      : createKeyFetcher(issuer, connect);
    const keys = createKeySet(name, fetch, clock, log, metrics?.count, issuer.algorithms);
    return { ...issuer, name, clockToleranceSeconds, keys };
  });
}

function composeReplayStore(settings: BasicSettings, { log }: Dependencies) {
  const windowSeconds = settings.dpopIatOffsetSeconds + settings.dpopIatLeewaySeconds;
  return createReplayStore(windowSeconds, undefined, () => log('replay store full', {}));
}

export function composeRequestParts(
  settings: BasicSettings,
  dependencies: Dependencies,
  { early, crossOrigin, ...challenges }: OptionalParts,
  { onError, expect, ...checks }: Checks,
) {
  const { dpopMode, accessLog } = settings;
  const observer = createObserver(dependencies, accessLog, expect);

  return {
    identification: createIdentification({ ...checks, dpopMode, clock: dependencies.clock, early }),
    replies: createReplies({ ...settings, ...challenges }, crossOrigin, observer.observe, onError),
    observer,
  };
}

function haveKeys(issuers: Issuers) {
  // Asks all: asking keeps keys fresh.
  const usable = issuers.filter(({ keys }) => keys.usable() > 0);
  // Choice: a rollout waits for the first keys of the first issuer only.
  return usable.length > 0 && issuers[0]?.keys.ageMillis() !== Infinity;
}
