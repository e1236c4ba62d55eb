// The vocabulary of the tables: a row is a path, its access and its handler, and nothing else decides access.
// Promises: a handler runs only after its row's access has admitted the caller, and receives what the row's type says.
import type { Later } from '../base/clock.ts';
import type { Caller } from '../sender/caller.ts';
import type { Access } from './access.ts';

export type PathParameters = Readonly<Record<string, string>>;

/** What a handler receives. */
export interface RouteRequest<Admitted> {
  readonly caller: Admitted;
  readonly parameters: PathParameters;
  /** The time of the request, since the epoch. */
  readonly nowMillis: number;
}

/** Gives the JSON body of the 200 reply, now or later. */
export type Handler<Admitted> = (request: RouteRequest<Admitted>) => Later<object>;

/** A row with its access built in. */
export interface Row {
  readonly method: 'GET';
  readonly pattern: string;
  readonly access: Access<unknown>;
  /** Admits the caller and runs the handler. Throws `Refused`. */
  readonly run: (caller: Caller | undefined, parameters: PathParameters, nowMillis: number) => Later<object>;
}

/** A rule for a prefix and everything under it, decided before the row is looked for. */
export interface PrefixRule {
  readonly prefix: readonly string[];
  readonly access: Access<Caller>;
}

/** All that a service answers. */
export interface Table {
  readonly rows: readonly Row[];
  readonly rules?: readonly PrefixRule[];
}

/** A row for GET (and so HEAD) on a pattern such as `/api/org/{orgId}`. */
export function get<Admitted>(
  pattern: string,
  access: Access<Admitted>,
  handler: Handler<NoInfer<Admitted>>,
): Row {
  return {
    method: 'GET',
    pattern,
    access,
    run: (caller, parameters, nowMillis) => handler({ caller: access.admit(caller), parameters, nowMillis }),
  };
}
