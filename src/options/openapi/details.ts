// What is said of operations beside their routes. Promises: each operation has an id of its own; what is said
// of no route throws.
import type { Route } from '../../service/routes/route.ts';
import { requireSchema, type Schema } from '../../service/routes/schema.ts';
import { boolean, listOf, text } from '../../verify/base/option.ts';
import { requireMembers } from './info.ts';

/** What a route does not say. */
export interface OperationDetails {
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly operationId?: string | undefined;
  readonly deprecated?: boolean | undefined;
  /** Of the body of a response without error. */
  readonly response?: Schema | undefined;
}

/** By method and pattern, such as `GET /api/orders/{id}`. */
export type OpenApiDetails = Readonly<Record<string, OperationDetails>>;

const RULES = {
  summary: text,
  description: text,
  tags: listOf(text, 0),
  operationId: text,
  deprecated: boolean,
  /** `requireSchema` checks it. */
  response: () => undefined,
};

export const keyOf = ({ method, pattern }: Route) => `${method} ${pattern}`;

export function requireDetails(routes: readonly Route[], details: OpenApiDetails) {
  const keys = routes.map(keyOf);
  for (const [key, given] of Object.entries(details)) {
    if (!keys.includes(key)) {
      throw new TypeError(`details: ${key} is no route; write one of ${keys.join(', ')}`);
    }

    requireMembers(key, given, RULES);
    if (given.response !== undefined) requireSchema(given.response);
  }
}

/** Those of the details, and for other routes one from method and pattern. Each is unique. */
export function operationIds(routes: readonly Route[], details: OpenApiDetails) {
  const ids = new Map<Route, string>();
  const taken = new Set<string>();
  for (const route of routes) {
    const { operationId } = details[keyOf(route)] ?? {};
    if (operationId === undefined) continue;
    if (taken.has(operationId)) throw new TypeError(`${keyOf(route)}: the operationId is not unique`);

    ids.set(route, operationId);
    taken.add(operationId);
  }

  for (const route of routes) {
    if (ids.has(route)) continue;

    const id = unusedId(route, taken);
    ids.set(route, id);
    taken.add(id);
  }
  return ids;
}

function capitalized(word: string) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** `GET /api/orders/{id}` becomes `getApiOrdersById`. */
function unusedId({ method, pattern }: Route, taken: ReadonlySet<string>) {
  const words = pattern.replace(/\{(\w+)\}/g, 'by $1').match(/[A-Za-z0-9]+/g) ?? ['root'];
  const id = method.toLowerCase() + words.map(capitalized).join('');
  for (let number = 2; ; number += 1) {
    const next = taken.has(id) ? `${id}${number}` : id;
    if (!taken.has(next)) return next;
  }
}
