// The vocabulary of the tables: a row is a path, its access and its handler, and nothing else decides access.
// Promises: a handler runs only after its row's access has admitted the caller, and receives what the row's type says.
import type { Guard } from './guards.ts';
import { Refused } from '../base/refusal.ts';
import { isGenuine, type Caller } from '../sender/caller.ts';

/** Who may use a row. `Admitted` is what the handler then receives as `caller`. */
export type Access<Admitted> = Readonly<{
  name: string;
  credentials: 'ignored' | 'optional' | 'required';
  /** The caller as the handler receives it, or the refusal when a required caller or a guard is missing. */
  admit: (caller: Caller | undefined) => Admitted | Refused;
}>;
type Parameters = Readonly<Record<string, string>>;
/** What a handler receives. `nowMillis` is the time of the request in milliseconds since the epoch. */
export type RouteRequest<Admitted> = Readonly<{
  caller: Admitted;
  parameters: Parameters;
  nowMillis: number;
}>;
/** Gives the JSON body of the 200 answer, now or later. */
export type Handler<Admitted> = (request: RouteRequest<Admitted>) => object | Promise<object>;
/** A row with its access built in: `answer` admits the caller and runs the handler, or gives the refusal: thrown, it would cost more
 * than all the rest of the answer to a request without a token. */
export type Row = Readonly<{ pattern: string; access: Access<unknown>; answer: Answer }>;
type Answer = (
  caller: Caller | undefined,
  parameters: Parameters,
  nowMillis: number,
) => object | Promise<object>;
/** A rule for a prefix and everything under it, decided before the row is looked for. */
export type PrefixRule = Readonly<{ prefix: readonly string[]; access: Access<Caller> }>;
/** Everyone; credentials are ignored. */
export const open: Access<undefined> = { name: 'open', credentials: 'ignored', admit: () => undefined };
/** Everyone; credentials that are present must be good, and then name the caller. */
export const optional: Access<Caller | undefined> = {
  name: 'optional',
  credentials: 'optional',
  admit: (caller) => caller && requireCaller(caller),
};
/** Callers with a valid access token. */
export const authenticated: Access<Caller> = {
  name: 'authenticated',
  credentials: 'required',
  admit: requireCaller,
};
/** Callers with a valid access token that passes every guard. */
export const needs = (...guards: readonly [Guard, ...Guard[]]): Access<Caller> => ({
  name: guards.map((guard) => guard.name).join(', '),
  credentials: 'required',
  admit: (caller) => {
    const present = requireCaller(caller);
    if (present instanceof Refused) return present;
    return guards.find((guard) => !guard.passes(present))?.refused ?? present;
  },
});
/** A row for GET (and so HEAD) on a pattern such as `/api/org/{orgId}`. */
export const get = <Admitted>(
  pattern: string,
  access: Access<Admitted>,
  handler: Handler<NoInfer<Admitted>>,
): Row => ({
  pattern,
  access,
  answer: (caller, parameters, nowMillis) => {
    const admitted = access.admit(caller);
    return admitted instanceof Refused ? admitted : handler({ caller: admitted, parameters, nowMillis });
  },
});
function requireCaller(caller: Caller | undefined): Caller | Refused {
  if (caller === undefined) return new Refused({ kind: 'unauthorized', reason: 'no-credentials' });
  if (!isGenuine(caller)) throw new TypeError('a caller that no sender made');
  return caller;
}
