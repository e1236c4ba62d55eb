// Guards on claims: who acts for the subject (RFC 8693 §4.1), and all claims by a schema, whose output the
// handler gets. Promises: only the outermost `act` counts; earlier actors are history, not for decisions; a
// schema is asked once for each cached token. Does not read `may_act`, and does not show a schema's issues:
// they are about the token.
import { ignoreErrors, isPromise } from '../verify/base/clock.ts';
import {
  isJsonObject,
  isListOf,
  isPlain,
  withoutPrototype,
  type JsonObject,
} from '../verify/base/encoding.ts';
import { UsageError } from '../verify/base/events.ts';
import { refuse } from '../verify/base/refusal.ts';
import { claimsOf, copyOf, isGenuine, type Caller } from '../verify/caller.ts';
import type { ClaimsGuard } from '../gate/rules/further.ts';
import { claimGuard, MadeGuard, type Guard, type OneOrMore } from '../gate/rules/guards.ts';
import { requireSchema, type Schema } from '../service/routes/schema.ts';

/**
 * Passes when a listed actor acts for the token's subject: `sub` of the outermost claim `act` is listed, and
 * its `iss`, if any, is the token's (RFC 8693 §4.1). Throws a `TypeError` without subjects, and for an empty
 * one.
 *
 * @example needs(scope('read:files'), actor('assistant-7'))
 */
export function actor(...subjects: OneOrMore): Guard {
  const isDemand = isListOf(/./s, subjects);
  const description = 'the claim act is missing or identifies another actor';
  return claimGuard(`actor ${subjects.join(' ')}`, 'act', description, isDemand, (caller) => {
    const { act } = caller.claims;
    if (!isJsonObject(act)) return false;

    const { iss = caller.issuer, sub } = act;
    return iss === caller.issuer && subjects.some((subject) => subject === sub);
  });
}

/**
 * Passes when no one acts for the token's subject: the token has no claim `act` (RFC 8693 §4.1). Any value of
 * `act`, even `null`, is refused.
 *
 * @example needs(scope('delete:account'), notDelegated)
 */
export const notDelegated: Guard = claimGuard(
  'not delegated',
  'act',
  'the token has the claim act: another party acts for its subject',
  true,
  ({ claims }) => claims.act === undefined,
);

/**
 * Who acts for the token's subject: `sub` of the outermost claim `act` (RFC 8693 §4.1), or `undefined` if
 * this is not a non-empty string. Returns `undefined` for `undefined`. Throws a `TypeError` for anything else
 * that is not a caller.
 *
 * @example log.info({ subject: caller.subject, actor: actorOf(caller) })
 */
export function actorOf(caller: Caller<unknown> | undefined): string | undefined {
  if (caller === undefined) return undefined;
  if (!isGenuine(caller)) throw new TypeError('actorOf needs a caller of the same copy of the package');

  const { act } = claimsOf(caller);
  const { sub } = isJsonObject(act) ? act : {};
  return typeof sub === 'string' && sub !== '' ? sub : undefined;
}

/**
 * Passes when the schema (Standard Schema, version 1) accepts the token's claims. The handler's
 * `caller.claims` are the schema's output. A route can have one `claims`. A schema that throws or returns a
 * promise causes a 500. Throws a `TypeError` for anything but a schema.
 *
 * @example get('/reports', needs(claims(Employee)), ({ caller }) => reports.of(caller.claims.department))
 */
export function claims<Output>(schema: Schema<Output>): ClaimsGuard<Output> {
  requireSchema(schema);
  const { passes, admit } = new SchemaCheck(schema);
  return new MadeGuard('claims of a form', passes, refuse('claims-refused'), { admit });
}

class SchemaCheck<Output> {
  readonly #schema;
  /** By the claims of the token: a cached one always has the same object. */
  readonly #results = new WeakMap<object, Result<Output>>();

  constructor(schema: Schema<Output>) {
    this.#schema = schema;
  }

  #resultFor(caller: Caller<unknown>) {
    const given = claimsOf(caller);
    const result = this.#results.get(given) ?? check(this.#schema, given);
    this.#results.set(given, result);
    return result;
  }

  readonly passes = (caller: Caller) => this.#resultFor(caller) !== REFUSED;

  readonly admit = (caller: Caller) => {
    const result = this.#resultFor(caller);
    // The access has passed.
    if (result === REFUSED) throw new TypeError('the claims were not checked');

    return copyOf(caller, result.value);
  };
}

const REFUSED = Symbol('refused');

type Result<Output> = Readonly<{ value: Output }> | typeof REFUSED;

function check<Output>(schema: Schema<Output>, given: JsonObject): Result<Output> {
  // Some schemas change what they are given.
  const result = schema['~standard'].validate(copied(given));
  if (isPromise(result)) {
    // A rejection without a handler is an error of the process.
    void ignoreErrors(() => result);
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

/**
 * Requests with the same token share it. Not recursive: claims may be nested deeper than the stack. A
 * set, since an output may contain itself.
 */
function freeze<Value>(value: Value): Value {
  const all = new Set<unknown>([value]);
  for (const each of all) {
    const isOwn = Array.isArray(each) || (typeof each === 'object' && each !== null && isPlain(each));
    if (!isOwn) continue;

    Object.freeze(each);
    for (const member of Object.values(each)) all.add(member);
  }
  return value;
}
