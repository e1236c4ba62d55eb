// The front half of the way of a request, which the pipeline and the gate share: who calls, and what is told
// of a failure. Promises: a Caller comes from credentials, token and sender check in this order; what is
// neither a refusal nor a failure of a handler's own is a 500.
import { andThen, type Later } from '../base/clock.ts';
import { Refused, type Refusal } from '../base/refusal.ts';
import { factsOf } from '../keys/jwk.ts';
import { createRefusalReplies } from '../reply/challenge.ts';
import { createCors } from '../reply/cors.ts';
import { HandlerReply } from '../reply/handler-reply.ts';
import { jsonReply, type Reply } from '../reply/reply.ts';
import { createResourceMetadata } from '../reply/resource-metadata.ts';
import { createHostReader, fieldValues } from '../request/fields.ts';
import { targetPath } from '../request/path.ts';
import type { Presentation } from '../request/uri.ts';
import type { Caller, SenderCheck } from '../sender/caller.ts';
import { acceptedScheme, parseCredentials } from '../sender/credentials.ts';
import type { Settings } from '../settings/load.ts';
import { verifiedOf, type TokenVerifier } from '../token/verify.ts';
import type { Learnt } from './exchange.ts';
import { createObserver, type Dependencies } from './observe.ts';

/** It tells nothing of the inside. */
const BUG_REPLY = jsonReply(500, { error: 'server_error', message: 'Internal Server Error' });

/** What `createFront` gives. */
export type Front = ReturnType<typeof createFront>;

/** Puts the front half together; of what it gives only `isStopping` is for others to set. */
export function createFront(
  settings: Settings,
  dependencies: Dependencies,
  verifyToken: TokenVerifier,
  checkSender: SenderCheck,
) {
  const { clock } = dependencies;
  const timing = { clock, clockToleranceSeconds: settings.clockToleranceSeconds };
  const { metadataUrl, describe } = createResourceMetadata(settings);
  const replyToRefusal = createRefusalReplies({ ...settings, metadataUrl });
  const observer = createObserver(dependencies, settings.accessLog);
  const cors = createCors(settings);
  const readHost = createHostReader();

  /**
   * The request as the checks read it. Throws `Refused`; and the document that tells of the resource, since
   * nobody who asks for it has a token yet, and the gate answers with it too.
   */
  function present(learnt: Learnt): Presentation {
    const { method = '', url = '', originalUrl = url, rawHeaders } = learnt.request;
    const host = readHost(rawHeaders);
    const presentation = { method, host, path: targetPath(originalUrl), rawHeaders };
    const described = describe(learnt, presentation);
    if (described !== undefined) throw new HandlerReply(described, true);

    return presentation;
  }

  /** Nobody is identified when there are no credentials. Throws `Refused`, or rejects with it. */
  function identify(learnt: Learnt, presentation: Presentation): Later<Caller | undefined> {
    const credentials = parseCredentials(presentation.rawHeaders, settings.dpopMode);
    if (credentials === undefined) return undefined;

    const checked = andThen(verifyToken(credentials.token), (token) => {
      const { key, issuer } = verifiedOf(token);
      learnt.kid = factsOf(key).kid;
      learnt.issuerName = issuer.name;
      return checkSender(token, credentials, presentation, clock.now());
    });
    return andThen(checked, (caller) => {
      learnt.freshNonce = caller.freshNonce;
      return caller;
    });
  }

  /** The reply to a refusal, to a failure of a handler's own, or to a bug. */
  function replyToFailure(failure: unknown, learnt: Learnt) {
    if (failure instanceof HandlerReply && failure.isThrowable) {
      // The document of `present` is no failure.
      if (failure.reply.status >= 400) learnt.reason = 'handler';
      return failure.reply;
    }
    if (!(failure instanceof Refused)) {
      learnt.reason = 'bug';
      learnt.failure = failure;
      return BUG_REPLY;
    }

    const { refusal, findings } = failure;
    learnt.reason = refusal.reason;
    Object.assign(learnt, findings);
    const [authorization = ''] = fieldValues(learnt.request.rawHeaders, 'authorization');
    return replyToRefusal(
      refusal,
      acceptedScheme(authorization, settings.dpopMode),
      metadataUrl ? scopesFor(refusal, learnt) : undefined,
    );
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
    timing,
    cors,
    present,
    identify,
    replyToFailure,
    fieldsBeside,
    turnAway,
    /** Set when the end has begun: then every reply closes its connection. */
    isStopping: false,
  };
}

/** RFC 9449 §9 */
export const nonceFields = ({ freshNonce }: Learnt) =>
  freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];

/**
 * Every scope that is named where access is decided, when another token would mend the refusal (RFC 6750 §3).
 * Choice: those of `anyScope` and of guards that have passed too, since clients ask for what one challenge
 * names and no more, and the next guard would turn them away again.
 */
function scopesFor(refusal: Refusal, { rules = [], row }: Learnt) {
  const isOfToken = ['unauthorized', 'invalid_token'].includes(refusal.kind);
  if (!isOfToken && !('demands' in refusal) && !('scopes' in refusal)) return [];

  const guards = [...rules, row].flatMap((part) => part?.access.guards ?? []);
  return [...new Set(guards.flatMap(({ scopes = [] }) => scopes))];
}
