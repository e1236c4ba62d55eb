// A further access for the caller of a request, such as what its body asks for: guards and challenge alone.
// Checks neither token nor proof again.
import type { Asked, Decide } from '../../gate/decide.ts';
import type { Authorization } from '../../gate/foreign/verdict.ts';
import type { Replied, Replies } from '../../gate/replies/refusal-replies.ts';
import { pairsOf } from '../../gate/replies/reply.ts';
import { isAccess, mayWait, toBeAwaited, type Access, type DecidedAccess } from '../../gate/rules/access.ts';
import { andThen, type Clock, type MaybePromise } from '../../verify/base/clock.ts';
import { claimsOf, copyOf, isGenuine, type Caller } from '../../verify/caller.ts';
import { HandlerReply, isResponse } from '../routes/handler-result.ts';

/**
 * Test `refusal`, and return it. Returns a promise if the access has a `decision`; `await` fits both. Throws
 * a `TypeError` for `open`, and for anything but an access.
 */
export interface Authorize {
  <Admitted>(access: Access<Admitted>): Authorization<Admitted>;
  <Admitted>(access: DecidedAccess<Admitted>): Promise<Authorization<Admitted>>;
}

const NO_ACCESS = 'authorize needs an access that is not open, such as needs()';

/** What the service sends if the handler returns it. */
export class Refusal extends HandlerReply {
  readonly status;
  readonly headers;
  readonly body;

  /** Without the facts: they hold the token, which no handler gets. */
  constructor({ reply, freshNonce: _, facts: _facts, ...turnedAway }: Replied) {
    super(reply, turnedAway);
    this.status = reply.status;
    this.headers = pairsOf(reply.fields);
    this.body = String(reply.content) || null;
  }
}

/** Whether `new Response(refusal.body, refusal)` has made it. Others may have added fields since. */
export function isMadeOf(result: unknown, { status, headers }: Refusal) {
  if (!isResponse(result) || result.status !== status) return false;

  const sent = new Map(result.headers.entries());
  const made = [...new Headers(headers)];
  return made.every(([name, value]) => sent.get(name) === value);
}

/** Of the service. */
export interface AuthorizeOptions {
  readonly decide: Decide;
  readonly replies: Replies;
  readonly clock: Clock;
}

/** `before` is what was asked about the request. Calls `keep` for each refusal. */
export function authorizeCaller<Admitted>(
  access: DecidedAccess<Admitted>,
  before: Asked,
  caller: unknown,
  { decide, replies, clock }: AuthorizeOptions,
  keep: (refusal: Refusal) => void,
): MaybePromise<Authorization<Admitted>> {
  if (!isAccess(access) || access.credentials === 'ignored') throw new TypeError(NO_ACCESS);

  const known: Caller | undefined = isGenuine(caller) ? caller : undefined;
  const now = known && copyOf(known, claimsOf(known), clock.now());
  const asked = { ...before, demands: [access], known: { caller: now } };

  const authorized = andThen(decide(asked), (record) => {
    // The refusal would reach no client.
    if (record.isGone) throw new DOMException('the client has left', 'AbortError');
    if (record.reason === undefined) return { caller: access.admit(known) };

    const refusal = new Refusal(replies.complete(record, before.facts));
    keep(refusal);
    return { refusal };
  });
  return mayWait(access) ? toBeAwaited(authorized) : authorized;
}
