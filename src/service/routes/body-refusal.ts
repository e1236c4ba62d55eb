// Why a body is not read to its end: the listener found it invalid, or the client has left.
import type { IncomingMessage } from 'node:http';
import type { Refused } from '../../verify/base/refusal.ts';

export const CLIENT_GONE = Symbol('client gone');

export const BODY_REFUSED = 'bodyRefused';

const refusals = new WeakMap<IncomingMessage, Refused>();

/** Why reading must stop, or not begin. */
export const refusalOf = (request: IncomingMessage) => refusals.get(request);

/** For the listener, which sees invalid bodies. */
export function refuseBody(request: IncomingMessage, refused: Refused) {
  refusals.set(request, refused);
  request.emit(BODY_REFUSED);
}
