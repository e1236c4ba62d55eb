// The reply to a refusal or an error, with all its fields. Promises: anything but a refusal becomes a 500
// that reveals nothing.
import { describeBug } from '../verify/base/events.ts';
import { fieldValues } from '../verify/request/fields.ts';
import { Refused, type Findings, type Refusal } from '../verify/base/refusal.ts';
import { acceptedScheme } from '../verify/credentials.ts';
import { createRefusalReplies, type ChallengeOptions } from './challenge.ts';
import type { CrossOrigin } from './early.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { Arrival, Known, Outcome, RawRequest, Settled } from './record.ts';

const BUG_REPLY = jsonReply(500, '{"error":"server_error","message":"Internal Server Error"}');

export type Observe = (arrival: Arrival, settled: Settled, status: number | null) => void;

/** Adds the scopes that the challenge names (RFC 6750 §3). */
export type NameScopes = (refusal: Refusal, known: Known) => Refusal;

interface ReplyOptions extends ChallengeOptions {
  readonly nameScopes?: NameScopes | undefined;
}

export type OnError = (error: unknown) => unknown;

export type Replies = ReturnType<typeof createReplies>;

export function createReplies(
  options: ReplyOptions,
  crossOrigin: CrossOrigin,
  observe: Observe,
  onError: OnError = () => {},
) {
  const replyToRefusal = createRefusalReplies(options);

  async function report(error: unknown) {
    try {
      await onError(error);
    } catch {}
  }

  /** Replaces a refusal or error by its reply. Never throws. */
  function settle(outcome: Outcome, { rawHeaders }: RawRequest): Settled & { readonly reply: Reply } {
    if (outcome.reply !== undefined) return outcome;

    const { known = {}, refused } = outcome;
    if (!Refused.isGenuine(refused)) {
      // First: the frames of an error are told only before its stack is read.
      const bug = describeBug(refused);
      void report(refused);
      return { known, reply: BUG_REPLY, reason: 'bug', bug };
    }

    const { refusal, findings } = refused;
    const [authorization = ''] = fieldValues(rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, options.dpopMode);
    const reply = replyToRefusal(options.nameScopes?.(refusal, known) ?? refusal, scheme);
    return { known, reply, reason: refusal.reason, findings };
  }

  /** Names and values in turn. */
  function fieldsBeside({ known = {}, findings }: Settled, origin?: string) {
    const shared = known.crossOrigin ?? crossOrigin.forReading(origin);
    return [...crossOrigin.vary, ...shared, ...nonceFields(known.caller ?? findings)];
  }

  /** For replies that `write` does not send: adds fields, and observes. */
  function finish(outcome: Outcome, request: RawRequest, arrivedAtMillis = 0): Reply {
    const settled = settle(outcome, request);
    const { reply } = settled;
    observe({ request, arrivedAtMillis }, settled, reply.status);
    const origin = fieldValues(request.rawHeaders, 'origin').join();
    return { ...reply, fields: [...reply.fields, ...fieldsBeside(settled, origin)] };
  }

  return { settle, fieldsBeside, finish, observe };
}

/** RFC 9449 §9 */
export function nonceFields({ freshNonce }: Findings = {}) {
  return freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];
}
