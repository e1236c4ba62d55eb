// A further access for the caller of a request, such as what its body asks for: guards and challenge alone.
// Checks neither token nor proof again.
import { decideAccess } from '../../gate/decide.ts';
import type { Authorization } from '../../gate/foreign/gate.ts';
import type { Replied, Replies } from '../../gate/replies/refusal-replies.ts';
import { pairsOf } from '../../gate/replies/reply.ts';
import { isAccess, type Access } from '../../gate/rules/access.ts';
import type { Clock } from '../../verify/base/clock.ts';
import { callerAt, isGenuine, type Caller } from '../../verify/caller.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import { HandlerReply } from '../routes/handler-result.ts';

/** Test `refusal`, and return it. Throws a `TypeError` for `open`, and for anything but an access. */
export type Authorize = <Admitted>(access: Access<Admitted>) => Authorization<Admitted>;

const NO_ACCESS = 'authorize needs an access that is not open, such as needs()';

/** What the service sends if the handler returns it. */
class Refusal extends HandlerReply {
  readonly status;
  readonly headers;
  readonly body;

  constructor({ reply, freshNonce: _, ...turnedAway }: Replied) {
    super(reply, turnedAway);
    this.status = reply.status;
    this.headers = pairsOf(reply.fields);
    this.body = String(reply.content) || null;
  }
}

export type AuthorizeRequest = <Admitted>(
  request: RawRequest,
  caller: unknown,
  access: Access<Admitted>,
) => Authorization<Admitted>;

export function createAuthorize(replies: Replies, clock: Clock): AuthorizeRequest {
  return function authorize(request, caller, access) {
    if (!isAccess(access) || access.credentials === 'ignored') throw new TypeError(NO_ACCESS);

    const known: Caller | undefined = isGenuine(caller) ? caller : undefined;
    const now = known && callerAt(known, clock.now());
    const record = decideAccess({ demands: [access], isServed: true }, now);
    if (record.reason === undefined) return { caller: access.admit(known) };

    return { refusal: new Refusal(replies.complete(record, request)) };
  };
}
