// The vocabulary of the tables: a row is a method, a path, its access, what it takes, and its handler;
// nothing else decides access. Promises: a handler runs only after its row's access has admitted the caller,
// and receives what the row's type says.
import type { Later } from '../base/clock.ts';
import type { Incoming } from '../request/incoming.ts';
import { pathSegments } from '../request/path.ts';
import type { Schema } from '../request/schema.ts';
import type { Caller } from '../sender/caller.ts';
import type { Access } from './access.ts';
import { takeBody, takeQuery, type BodyTaken, type QueryTaken } from './takes.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type ParameterName<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

/** The texts at a pattern's parameters: `/api/orders/{id}` gives `{ id: string }`. */
export type PathParameters<Pattern extends string = string> = string extends Pattern
  ? Readonly<Record<string, string>>
  : { readonly [Name in ParameterName<Pattern>]: string };

/** What a handler receives. */
export interface RouteRequest<
  Admitted,
  Parameters = PathParameters,
  Query = URLSearchParams,
  Body = undefined,
> {
  readonly caller: Admitted;
  readonly parameters: Parameters;
  /** The output of the row's query schema, or without one the query as it is. */
  readonly query: Query;
  readonly body: Body;
  /** Node's header fields, without `authorization` and `dpop`. */
  readonly headers: Incoming['headers'];
  readonly method: string;
  /** As it stands in the request, without the query. */
  readonly path: string;
  /** Aborts when the client has gone, when the handler has taken too long, and at the end of a drain. */
  readonly signal: AbortSignal;
  /** The caller's, when it is well-formed (W3C Trace Context §3.2): for requests of the handler's own. */
  readonly traceparent: string | undefined;
  /** The time of the request, since the epoch. */
  readonly nowMillis: number;
}

/** A row with its access built in. */
export interface Row {
  readonly method: Method;
  readonly pattern: string;
  readonly access: Access<unknown>;
  /** Throws `Refused`. */
  readonly admit: (caller: Caller | undefined, incoming: Incoming) => AdmittedRequest;
}

/** A request that its row has admitted. */
export interface AdmittedRequest {
  /**
   * Takes query and body. Throws `Refused`, or rejects with it or with `ClientGone`. `bodyLimitBytes`: of
   * rows without one.
   */
  readonly take: (bodyLimitBytes: number) => Later<void>;
  readonly handle: () => Later<unknown>;
}

/** A rule for a prefix and everything under it, decided before the row is looked for. */
export interface PrefixRule {
  readonly prefix: readonly string[];
  readonly access: Access<Caller>;
}

/**
 * A rule for a prefix such as `/api/admin` and everything under it: decided for every path there, before the
 * row is looked for, and beside the row's own access. Throws a `TypeError` for what is no prefix.
 */
export function under(prefix: string, access: Access<Caller>): PrefixRule {
  const segments = prefix === '/' ? [] : pathSegments(prefix);
  if (segments === undefined || prefix[0] !== '/') throw new TypeError(`${prefix} is no prefix of paths`);

  return { prefix: segments, access };
}

/** All that a service answers. */
export interface Table {
  readonly rows: readonly Row[];
  readonly rules?: readonly PrefixRule[];
}

type Taken = QueryTaken<unknown> | BodyTaken<unknown>;

/** The output of what is taken of this kind, or the default where nothing is. */
type OutputOf<All extends Taken, Kind extends Taken['takes'], Default> = [All & { takes: Kind }] extends [
  never,
]
  ? Default
  : (All & { takes: Kind })['schema'] extends Schema<infer Output> | undefined
    ? Output
    : never;

/**
 * Pattern, access, what the row takes (a query, a body), handler: whose request follows from the rest by
 * type.
 */
type RowMaker<Takes extends Taken, Result> = <Pattern extends string, Admitted, All extends readonly Takes[]>(
  pattern: Pattern,
  access: Access<Admitted>,
  ...rest: [
    ...taken: All,
    handler: (
      request: RouteRequest<
        Admitted,
        PathParameters<Pattern>,
        OutputOf<All[number], 'query', URLSearchParams>,
        OutputOf<All[number], 'body', undefined>
      >,
    ) => Later<Result>,
  ]
) => Row;

type AnyHandler = (request: never) => Later<unknown>;

function rowMaker(method: Method) {
  return (pattern: string, access: Access<unknown>, ...rest: readonly (Taken | AnyHandler)[]): Row => {
    const handler = rest.find((part) => typeof part === 'function');
    const query = rest.find((part) => 'takes' in part && part.takes === 'query');
    const body = rest.find((part) => 'takes' in part && part.takes === 'body');

    async function take(incoming: Incoming, bodyLimitBytes: number): Promise<void> {
      if (query !== undefined) incoming.query = await takeQuery(query, incoming);
      if (body !== undefined) incoming.body = await takeBody(body, incoming, bodyLimitBytes);
    }

    function admit(caller: Caller | undefined, incoming: Incoming): AdmittedRequest {
      incoming.caller = access.admit(caller);
      const takesNothing = query === undefined && body === undefined;
      return {
        take: (bodyLimitBytes) => (takesNothing ? undefined : take(incoming, bodyLimitBytes)),
        // The type of the maker is what promises a handler this very request.
        handle: () => handler?.(incoming as never),
      };
    }

    return { method, pattern, access, admit };
  };
}

/** What a handler gives: nothing is 204, which a GET cannot be. */
type WritingRow = RowMaker<Taken, object | void>;

/** A row for GET, and so for HEAD, on a pattern such as `/api/orders/{id}`. */
export const get: RowMaker<QueryTaken<unknown>, object> = rowMaker('GET');

/** A row for POST. */
export const post: WritingRow = rowMaker('POST');

/** A row for PUT. */
export const put: WritingRow = rowMaker('PUT');

/** A row for PATCH. */
export const patch: WritingRow = rowMaker('PATCH');

/** A row for DELETE. */
export const del: WritingRow = rowMaker('DELETE');
