// What a request is told that is not served: a refusal, or a bug, as a reply with every field that it
// needs. Promises: what is not a refusal is a 500 that tells nothing; what is told depends on the method
// and the fields of the request alone.
import { fieldValues } from '../verify/request/fields.ts';
import { Refused, type Refusal } from '../verify/base/refusal.ts';
import { acceptedScheme } from '../verify/credentials.ts';
import { createRefusalReplies, type ChallengeOptions } from './challenge.ts';
import type { CrossOrigin } from './early.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { RequestRecord } from './record.ts';

/** It tells nothing of the inside. */
const BUG_REPLY = jsonReply(500, { error: 'server_error', message: 'Internal Server Error' });

/** What is told of a request at its end; no status when nobody was left to be told. */
export type Observe = (record: RequestRecord, status: number | null) => void;

/** Is told of what becomes a 500. */
export type OnError = (error: unknown) => unknown;

/** What `createReplies` gives. */
export type Replies = ReturnType<typeof createReplies>;

export function createReplies(
  options: ChallengeOptions,
  crossOrigin: CrossOrigin,
  observe: Observe,
  onError: OnError = () => {},
) {
  const replyToRefusal = createRefusalReplies(options);
  const nameScopes = createScopeNaming();

  /** Whoever is told of a bug can do nothing wrong: neither a throw nor a rejection counts. */
  async function report(error: unknown) {
    try {
      await onError(error);
    } catch {
      // What is wrong with it is not for this request.
    }
  }

  /** The reply to a refusal, or to a bug. Never throws. */
  function replyToFailure(failure: unknown, record: RequestRecord): Reply {
    if (!Refused.isGenuine(failure)) {
      record.reason = 'bug';
      record.failure = failure;
      void report(failure);
      return BUG_REPLY;
    }

    const { refusal, findings } = failure;
    record.reason = refusal.reason;
    Object.assign(record, findings);
    const [authorization = ''] = fieldValues(record.request.rawHeaders, 'authorization');
    const scheme = acceptedScheme(authorization, options.dpopMode);
    return replyToRefusal(options.metadataUrl ? nameScopes(refusal, record) : refusal, scheme);
  }

  /** The fields of a reply beside its own, names and values in turn. */
  function fieldsBeside(record: RequestRecord, origin?: string) {
    const shared = record.crossOrigin ?? crossOrigin.forReading(origin);
    return [...crossOrigin.vary, ...shared, ...nonceFields(record)];
  }

  /** The whole of a reply that is not written on a response of ours: it is told of at once. */
  function finish(reply: Reply, record: RequestRecord): Reply {
    observe(record, reply.status);
    const [origin] = fieldValues(record.request.rawHeaders, 'origin');
    return { ...reply, fields: [...reply.fields, ...fieldsBeside(record, origin)] };
  }

  return { replyToFailure, fieldsBeside, finish };
}

/** RFC 9449 §9 */
export const nonceFields = ({ freshNonce }: RequestRecord) =>
  freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];

/**
 * Gives what names in a refusal every scope that is named where access is decided, when another token would
 * mend it (RFC 6750 §3). Choice: those of `anyScope` and of guards that have passed too, since clients ask
 * for what one challenge names and no more, and the next guard would turn them away again. The same refusal
 * with the same scopes is the same value, so that its reply is made once.
 */
function createScopeNaming() {
  const named = new WeakMap<Refusal, Map<string, Refusal>>();

  return (refusal: Refusal, { rules = [], route }: RequestRecord) => {
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
