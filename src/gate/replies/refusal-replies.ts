// The reply to a refusal or an error, with all its fields. Promises: anything but a refusal becomes a 500
// that reveals nothing.
import { ignoreErrors, nothing } from '../../verify/base/clock.ts';
import { describeBug, type Fields } from '../../verify/base/events.ts';
import { fieldValues, type RawRequest } from '../../verify/request/facts.ts';
import type { Found, Refusal } from '../../verify/base/refusal.ts';
import { acceptedScheme } from '../../verify/credentials.ts';
import { createRefusalReplies, type ChallengeOptions } from './challenge.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { OnError } from '../events.ts';
import { extendRecord, type RequestRecord } from '../decide.ts';

const BUG_REPLY = jsonReply(500, '{"error":"server_error","message":"Internal Server Error"}');

/** Lets pages of other origins read responses. Fields: alternating names and values (Fetch standard §3.2). */
export interface CrossOrigin {
  /** On every reply. */
  readonly vary: readonly string[];
  /** For a request with this `Origin`. */
  readonly forReading: (origin?: string) => readonly string[];
}

/** Adds the scopes that the challenge names (RFC 6750 §3). */
export type NameScopes = (refusal: Refusal, record: RequestRecord) => Refusal;

interface ReplyOptions extends ChallengeOptions {
  readonly nameScopes?: NameScopes | undefined;
}

/** A record whose reply is known. */
export type Replied = RequestRecord & { readonly reply: Reply };

export interface Replies {
  /** Whether other origins may read responses. */
  readonly hasCors: boolean;
  /** Makes the reply to a refusal or error. Never throws. */
  readonly complete: (record: RequestRecord, request: RawRequest) => Replied;
  /** Alternating names and values. */
  readonly extraFields: (record: RequestRecord, origin?: string) => string[];
  /** For replies that a service does not write: completes, and adds fields. */
  readonly finish: Replies['complete'];
}

export function createReplies(
  options: ReplyOptions,
  crossOrigin?: CrossOrigin,
  onError: OnError = nothing,
): Replies {
  const replyToRefusal = createRefusalReplies(options);
  const vary = crossOrigin?.vary ?? [];

  function complete(record: RequestRecord, { rawHeaders }: RawRequest): Replied {
    if (record.reply !== undefined) return record as Replied;

    const { refusal, thrown, facts, route } = record;
    // First: an error has frames only until its stack is read.
    const bug = refusal === undefined ? describeBug(thrown?.error) : undefined;
    if (thrown !== undefined) {
      const { error } = thrown;
      const about = { method: facts?.method || null, route: route?.pattern ?? null };
      void ignoreErrors(() => onError(error, about));
    }
    if (refusal === undefined) return withReply(record, BUG_REPLY, bug);

    const [authorization = ''] = fieldValues(rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, options.dpopMode);
    return withReply(record, replyToRefusal(options.nameScopes?.(refusal, record) ?? refusal, scheme));
  }

  function extraFields(record: RequestRecord, origin?: string) {
    const shared = record.crossOrigin ?? crossOrigin?.forReading(origin) ?? [];
    return [...vary, ...shared, ...nonceFields(record)];
  }

  function finish(record: RequestRecord, request: RawRequest): Replied {
    const replied = complete(record, request);
    const { status, content } = replied.reply;
    const origin = fieldValues(request.rawHeaders, 'origin').join();
    const fields = [...replied.reply.fields, ...extraFields(replied, origin)];
    return withReply(replied, { status, fields, content });
  }

  return { hasCors: crossOrigin !== undefined, complete, extraFields, finish };
}

const withReply = (record: RequestRecord, reply: Reply, bug?: Fields) =>
  extendRecord(record, { reply, bug }) as Replied;

/** RFC 9449 §9 */
export function nonceFields({ freshNonce }: Found) {
  return freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];
}
