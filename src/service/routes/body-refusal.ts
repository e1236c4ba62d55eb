// Why a body is not read to its end: it is invalid or late, or the client has left.
import type { IncomingMessage } from 'node:http';
import type { Refused } from '../../verify/base/refusal.ts';

export const CLIENT_GONE = Symbol('client gone');

const refusals = new WeakMap<IncomingMessage, Refused>();
const readers = new WeakMap<IncomingMessage, () => void>();

/** Why reading must stop, or not begin. */
export const refusalOf = (request: IncomingMessage) => refusals.get(request);

/** The reader's `stop` is called when the body is refused. */
export function onceRefused(request: IncomingMessage, stop: () => void) {
  readers.set(request, stop);
}

/** For the listener, which sees invalid and late bodies. */
export function refuseBody(request: IncomingMessage, refused: Refused) {
  refusals.set(request, refused);
  readers.get(request)?.();
}
