// The front half of the way of a request, which the pipeline and the gate share: who calls, what is told of
// a failure, and where to get a token. Promises: a Caller comes from credentials, token and sender check in
// this order; what is neither a refusal nor a failure of a handler's own is a 500; nothing of a request but
// its method and fields decides what is told of where to get a token.
import { andThen, type MaybePromise } from '../verify/base/clock.ts';
import { Refused, type Refusal } from '../verify/base/refusal.ts';
import { factsOf } from '../verify/keys/jwk.ts';
import { createRefusalReplies } from './challenge.ts';
import { createCors } from '../options/cors.ts';
import { HandlerReply } from '../service/routes/handler-reply.ts';
import { jsonReply, type Reply } from './reply.ts';
import { createHostReader, fieldValues } from '../verify/request/fields.ts';
import { targetPath } from './path.ts';
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Caller, SenderCheck } from '../verify/caller.ts';
import { acceptedScheme, parseCredentials } from '../verify/credentials.ts';
import type { Settings } from '../process/settings/load.ts';
import { verifiedOf, type TokenVerifier } from '../verify/token/verify.ts';
import type { Learnt } from '../service/http/exchange.ts';
import { createObserver, type Dependencies } from '../service/http/observe.ts';
import { createResourceMetadata } from '../options/resource-metadata.ts';

/** It tells nothing of the inside. */
const BUG_REPLY = jsonReply(500, { error: 'server_error', message: 'Internal Server Error' });

/** What `createFront` gives. */
export type Front = ReturnType<typeof createFront>;

/**
 * Puts the front half together; of what it gives only `isStopping` and `isClosing` are for others to set.
 */
export function createFront(
  settings: Settings,
  dependencies: Dependencies,
  verifyToken: TokenVerifier,
  checkSender: SenderCheck,
) {
  const { clock } = dependencies;
  const { metadataUrl, describe } = createResourceMetadata(settings);
  const replyToRefusal = createRefusalReplies({ ...settings, metadataUrl });
  const observer = createObserver(dependencies, settings.accessLog);
  const cors = createCors(settings);
  const readHost = createHostReader();
  const nameScopes = createScopeNaming();

  /**
   * The request as the checks read it, or why it is refused; or the document that tells of the resource,
   * since nobody who asks for it has a token yet, and the gate answers with it too.
   */
  function present(learnt: Learnt): RequestFacts | Refused | HandlerReply {
    const { method = '', url = '', originalUrl = url, rawHeaders, httpVersion } = learnt.request;
    const host = readHost(rawHeaders, httpVersion);
    if (host instanceof Refused) return host;

    const path = targetPath(originalUrl);
    if (path instanceof Refused) return path;

    const facts = { method, host, path, rawHeaders };
    return describe(learnt, facts) ?? facts;
  }

  /** Nobody is identified when there are no credentials. */
  function identify(learnt: Learnt, facts: RequestFacts): MaybePromise<Caller | Refused | undefined> {
    const credentials = parseCredentials(facts.rawHeaders, settings.dpopMode);
    if (credentials === undefined || credentials instanceof Refused) return credentials;

    const checked = andThen(verifyToken(credentials.token), (token) => {
      if (token instanceof Refused) return token;

      const { key, issuer } = verifiedOf(token);
      learnt.kid = factsOf(key).kid;
      learnt.issuerName = issuer.name;
      return checkSender(token, credentials, facts, clock.now());
    });
    return andThen(checked, (caller) => {
      if (!(caller instanceof Refused)) learnt.freshNonce = caller.freshNonce;
      return caller;
    });
  }

  /** Told of a bug, who embeds the service can do nothing wrong: neither a throw nor a rejection counts. */
  async function report(failure: unknown) {
    try {
      await dependencies.onError?.(failure);
    } catch {
      // What is wrong with it is not for this request.
    }
  }

  /** The reply to a refusal, to a failure of a handler's own, or to a bug. Never throws. */
  function replyToFailure(failure: unknown, learnt: Learnt) {
    if (HandlerReply.isGenuine(failure) && failure.isThrowable) {
      // The document of `present` is no failure.
      if (failure.reply.status >= 400) learnt.reason = 'handler';
      return failure.reply;
    }
    if (!Refused.isGenuine(failure)) {
      learnt.reason = 'bug';
      learnt.failure = failure;
      void report(failure);
      return BUG_REPLY;
    }

    const { refusal, findings } = failure;
    learnt.reason = refusal.reason;
    Object.assign(learnt, findings);
    const [authorization = ''] = fieldValues(learnt.request.rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, settings.dpopMode);
    return replyToRefusal(metadataUrl ? nameScopes(refusal, learnt) : refusal, scheme);
  }

  /** What a reply to this origin holds beside its own fields, names and values in turn. */
  function fieldsBeside(learnt: Learnt, origin?: string) {
    const shared = learnt.crossOrigin ?? cors.forReading(origin);
    return [...cors.vary, ...shared, ...nonceFields(learnt)];
  }

  /** The whole reply to a failure, where nothing is written on a response; it is told of at once. */
  function turnAway(failure: unknown, learnt: Learnt): Reply {
    const reply = replyToFailure(failure, learnt);
    observer.observe(learnt, reply.status);
    const [origin] = fieldValues(learnt.request.rawHeaders, 'origin');
    return { ...reply, fields: [...reply.fields, ...fieldsBeside(learnt, origin)] };
  }

  return {
    ...observer,
    settings,
    clock,
    cors,
    present,
    identify,
    replyToFailure,
    fieldsBeside,
    turnAway,
    /** Set when the end has begun: from then on it is not ready. */
    isStopping: false,
    /** Set when no more connections are taken: from then on every reply closes its connection. */
    isClosing: false,
  };
}

/** RFC 9449 §9 */
export const nonceFields = ({ freshNonce }: Learnt) =>
  freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];

/**
 * Gives what names in a refusal every scope that is named where access is decided, when another token would
 * mend it (RFC 6750 §3). Choice: those of `anyScope` and of guards that have passed too, since clients ask
 * for what one challenge names and no more, and the next guard would turn them away again. The same refusal
 * with the same scopes is the same value, so that its reply is made once.
 */
function createScopeNaming() {
  const named = new WeakMap<Refusal, Map<string, Refusal>>();

  return (refusal: Refusal, { rules = [], route }: Learnt) => {
    const isMendable = 'demands' in refusal || MENDABLE.includes(refusal.kind);
    if (!isMendable) return refusal;

    const scopes = [...rules, route]
      .flatMap((part) => part?.access.guards ?? [])
      .flatMap(({ refused }) => refused.refusal.scopes ?? []);
    const scope = [...new Set(scopes)].join(' ');
    const byScope = named.get(refusal) ?? new Map<string, Refusal>();
    named.set(refusal, byScope);
    const kept = byScope.get(scope) ?? { ...refusal, demands: { ...refusal.demands, scope } };
    byScope.set(scope, kept);
    return kept;
  };
}

const MENDABLE: readonly string[] = ['unauthorized', 'invalid_token'];
