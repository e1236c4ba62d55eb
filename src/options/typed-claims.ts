// A guard that checks all claims of a token by a schema, and gives the handler the schema's output. Promises:
// a schema is asked once for each cached token. Does not show its issues: they are about the token.
import { isPromise } from '../verify/base/clock.ts';
import { isPlain, withoutPrototype, type JsonObject } from '../verify/base/encoding.ts';
import { UsageError } from '../verify/base/events.ts';
import { refuse } from '../verify/base/refusal.ts';
import { claimsOf, copyOf, type Caller } from '../verify/caller.ts';
import type { ClaimsGuard } from '../gate/rules/further.ts';
import { MadeGuard } from '../gate/rules/guards.ts';
import { requireSchema, type Schema } from '../service/routes/schema.ts';

/**
 * Passes when the schema (Standard Schema, version 1) accepts the token's claims. The handler's
 * `caller.claims` are the schema's output. Stands once in a route. A schema that throws or returns a promise
 * is a 500. Throws a `TypeError` for anything but a schema.
 *
 * @example get('/reports', needs(claims(Employee)), ({ caller }) => reports.of(caller.claims.department))
 */
export function claims<Output>(schema: Schema<Output>): ClaimsGuard<Output> {
  requireSchema(schema);
  /** By the claims of the token: a cached one always has the same object. */
  const results = new WeakMap<object, Result<Output>>();

  function resultFor(caller: Caller<unknown>) {
    const given = claimsOf(caller);
    const result = results.get(given) ?? check(schema, given);
    results.set(given, result);
    return result;
  }

  const passes = (caller: Caller) => resultFor(caller) !== REFUSED;

  function admit(caller: Caller) {
    const result = resultFor(caller);
    // The access has passed.
    if (result === REFUSED) throw new TypeError('the claims were not checked');

    return copyOf(caller, result.value);
  }

  return new MadeGuard('claims of a form', passes, refuse('claims-refused'), { admit });
}

const REFUSED = Symbol('refused');

type Result<Output> = Readonly<{ value: Output }> | typeof REFUSED;

function check<Output>(schema: Schema<Output>, given: JsonObject): Result<Output> {
  // Some schemas change what they are given.
  const result = schema['~standard'].validate(copied(given));
  if (isPromise(result)) {
    // A rejection without a handler is an error of the process.
    Promise.resolve(result).catch(() => {});
    throw new UsageError('claims needs a schema that does not return a promise');
  }

  if (result.issues) return REFUSED;
  if ('value' in result) return { value: freeze(result.value) };

  throw new UsageError('a schema gave neither a value nor issues');
}

/** Not frozen; inherits nothing, like the claims. */
function copied(claims: JsonObject): JsonObject {
  const copy = withoutPrototype(claims);
  const all: object[] = [copy];
  for (const each of all) {
    for (const [name, member] of Object.entries(each)) {
      if (typeof member !== 'object' || member === null) continue;

      const own = Array.isArray(member) ? [...member] : { ...member };
      Reflect.set(each, name, own);
      all.push(own);
    }
  }
  return copy;
}

/** Requests with the same token share it. Not recursive: claims may be nested deeper than the stack. */
function freeze<Value>(value: Value): Value {
  const all: unknown[] = [value];
  for (const each of all) {
    const isOwn = Array.isArray(each) || (typeof each === 'object' && each !== null && isPlain(each));
    if (!isOwn || Object.isFrozen(each)) continue;

    Object.freeze(each);
    for (const member of Object.values(each)) all.push(member);
  }
  return value;
}
