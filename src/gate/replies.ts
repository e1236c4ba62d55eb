// The reply to a refusal or an error, with all its fields. Promises: anything but a refusal becomes a 500
// that reveals nothing.
import { fieldValues } from '../verify/request/fields.ts';
import { Refused, type Refusal } from '../verify/base/refusal.ts';
import { acceptedScheme } from '../verify/credentials.ts';
import { createRefusalReplies, type ChallengeOptions } from './challenge.ts';
import type { CrossOrigin } from './early.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { RequestRecord } from './record.ts';

const BUG_REPLY = jsonReply(500, '{"error":"server_error","message":"Internal Server Error"}');

export type Observe = (record: RequestRecord, status: number | null) => void;

/** Adds the scopes that the challenge names (RFC 6750 §3). */
export type NameScopes = (refusal: Refusal, record: RequestRecord) => Refusal;

export interface ReplyOptions extends ChallengeOptions {
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

  /** Never throws. */
  function replyToError(error: unknown, record: RequestRecord): Reply {
    if (!Refused.isGenuine(error)) {
      record.reason = 'bug';
      record.error = error;
      void report(error);
      return BUG_REPLY;
    }

    const { refusal, findings } = error;
    record.reason = refusal.reason;
    record.findings = findings;
    const [authorization = ''] = fieldValues(record.request.rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, options.dpopMode);
    return replyToRefusal(options.nameScopes?.(refusal, record) ?? refusal, scheme);
  }

  /** Names and values in turn. */
  function fieldsBeside(record: RequestRecord, origin?: string) {
    const shared = record.crossOrigin ?? crossOrigin.forReading(origin);
    return [...crossOrigin.vary, ...shared, ...nonceFields(record)];
  }

  /** For replies that `write` does not send: adds fields, and observes. */
  function finish(reply: Reply, record: RequestRecord): Reply {
    observe(record, reply.status);
    const origin = fieldValues(record.request.rawHeaders, 'origin').join();
    return { ...reply, fields: [...reply.fields, ...fieldsBeside(record, origin)] };
  }

  return { replyToError, fieldsBeside, finish, observe };
}

/** RFC 9449 §9 */
export function nonceFields({ caller, findings }: RequestRecord) {
  const freshNonce = (caller ?? findings)?.freshNonce;
  return freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];
}
