// The front half of the way of a request, which the pipeline and the gate share: who calls, and what a
// failure is told. Promises: a Caller comes from credentials, token and sender check in this order; what is
// no refusal is a 500.
import { andThen, type Later } from '../base/clock.ts';
import { Refused, type Refusal } from '../base/refusal.ts';
import { createRefusalReplies, type ChallengeOptions } from '../reply/challenge.ts';
import { HandlerReply } from '../reply/handler-reply.ts';
import { jsonReply, type Reply } from '../reply/reply.ts';
import { createResourceMetadata, type ResourceOptions } from '../reply/resource-metadata.ts';
import { createHostReader, fieldValues } from '../request/fields.ts';
import type { Timing } from '../routes/guards.ts';
import type { Caller, Presentation, SenderCheck } from '../sender/caller.ts';
import { acceptedScheme, parseCredentials } from '../sender/credentials.ts';
import { issuerOf, keyIdOf, type TokenVerifier } from '../token/verify.ts';
import type { Learnt, Observer } from './observe.ts';

/** What the front half is made of. */
export interface FrontParts {
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly options: ChallengeOptions & ResourceOptions;
  readonly observer: Observer;
  readonly timing: Timing;
}

/** It tells nothing of the inside. */
const BUG_REPLY = jsonReply(500, { error: 'server_error', message: 'Internal Server Error' });

export type Front = ReturnType<typeof createFront>;

export function createFront({ verifyToken, checkSender, options, observer, timing }: FrontParts) {
  const { metadataUrl, describe } = createResourceMetadata(options);
  const replyToRefusal = createRefusalReplies({ ...options, metadataUrl });

  /** Nobody is identified when there are no credentials. Throws `Refused`, or rejects with it. */
  function identify(learnt: Learnt, presentation: Presentation): Later<Caller | undefined> {
    const credentials = parseCredentials(presentation.rawHeaders, options.dpopMode);
    if (credentials === undefined) return undefined;

    const checked = andThen(verifyToken(credentials.token), (token) => {
      learnt.kid = keyIdOf(token);
      learnt.issuerName = issuerOf(token).name;
      return checkSender(token, credentials, presentation, timing.clock.now());
    });
    return andThen(checked, (caller) => {
      learnt.freshNonce = caller.freshNonce;
      return caller;
    });
  }

  /** The reply to a refusal, to a failure of a handler's own, or to a bug. */
  function replyToFailure(failure: unknown, learnt: Learnt, rawHeaders: readonly string[]): Reply {
    if (failure instanceof HandlerReply && failure.isFailure) {
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
    const authorization = fieldValues(rawHeaders, 'authorization')[0] ?? '';
    return replyToRefusal(
      refusal,
      acceptedScheme(authorization, options.dpopMode),
      metadataUrl ? scopesFor(refusal, learnt) : [],
    );
  }

  return { ...observer, readHost: createHostReader(), describe, identify, replyToFailure, timing };
}

/** Every scope that is named where access is decided, when another token would mend the refusal. */
function scopesFor(refusal: Refusal, { accesses = [] }: Learnt): readonly string[] {
  const isOfToken = ['unauthorized', 'invalid_token'].includes(refusal.kind);
  if (!isOfToken && !('demands' in refusal)) return [];

  const [ofRule = [], ofRow = []] = accesses.map((access) => access?.scopes);
  return ofRule.length === 0 ? ofRow : [...new Set([...ofRule, ...ofRow])];
}
