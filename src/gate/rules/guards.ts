// Guards: what a valid access token must also say (RFC 6750 §3.1, docs/refusals.md). Promises: compares type
// and value; never converts, never looks for substrings.
import { ignoreErrors } from '../../verify/base/clock.ts';
import { isFiniteNumber, isListOf } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import { hideConstructor } from '../../verify/base/sealed.ts';
import type { Caller } from '../../verify/caller.ts';

/** For the functions of this package that make guards. */
export class MadeGuard<Further = undefined> {
  readonly #isGenuine = true;
  readonly name;
  readonly passes;
  readonly refused;
  readonly further: Further;

  constructor(name: string, passes: (caller: Caller) => boolean, refused: Refused, further: Further) {
    this.name = name;
    this.passes = passes;
    this.refused = refused;
    this.further = further;
    Object.freeze(this);
  }

  static is(guard: unknown): guard is MadeGuard<unknown> {
    return #isGenuine in Object(guard);
  }
}

hideConstructor(MadeGuard);

/** A demand on a token, for `needs`. Made by `scope` and the other functions of this package alone. */
export interface Guard extends MadeGuard {}

/** In JavaScript, a guard may be anything. */
export const isGuard = MadeGuard.is;

export type OneOrMore = readonly [string, ...string[]];

/**
 * Passes when the token has all of these scopes. Throws a `TypeError` for an invalid one (RFC 6749 §3.3).
 *
 * @example needs(scope('read:orders', 'read:customers'))
 */
export function scope(...scopes: OneOrMore): Guard {
  return scopeGuard('scope', 'the token lacks a required scope', scopes, 'every');
}

/**
 * Passes when the token has one of these scopes. Throws a `TypeError` for an invalid one (RFC 6749 §3.3).
 *
 * @example needs(anyScope('read:orders', 'admin'))
 */
export function anyScope(...scopes: OneOrMore): Guard {
  return scopeGuard('any scope of', 'the token has none of the required scopes', scopes, 'some');
}

/**
 * Passes when the claim has exactly this value, type included. Throws a `TypeError` for a value that is
 * missing, an object or not finite, and for a name of a claim that a challenge cannot show (`claimCheck`
 * says which).
 *
 * @example needs(claimEquals('email_verified', true))
 */
export function claimEquals(claim: string, expected: string | number | boolean): Guard {
  const name = `claim ${claim} equals ${expected}`;
  const description = `the claim ${claim} is missing or has another value`;
  return claimGuard(
    name,
    claim,
    description,
    isComparable(expected),
    (caller) => caller.claim(claim) === expected,
  );
}

/**
 * Passes when the claim, an array or space-separated text, has every one of these values. Throws a
 * `TypeError` without values, for an empty one, and for a name of a claim that a challenge cannot show.
 *
 * @example needs(claimIncludes('roles', ['editor', 'viewer']))
 */
export function claimIncludes(claim: string, values: OneOrMore): Guard {
  // A copy without holes, which `every` would skip.
  const wanted = Array.isArray(values) ? [...values] : [];
  const name = `claim ${claim} includes ${wanted.join(' ')}`;
  const description = `the claim ${claim} is missing or lacks a required value`;
  const isDemand = wanted.length > 0 && wanted.every((one) => one && isComparable(one));
  return claimGuard(name, claim, description, isDemand, (caller) => {
    const value = caller.claim(claim);
    const members: unknown = typeof value === 'string' ? value.split(' ') : value;
    return Array.isArray(members) && wanted.every((required) => members.includes(required));
  });
}

/**
 * Passes when `check` returns `true`, and refuses when it returns `false`. Anything else, such as a promise
 * or an error, is a 500. `check` gets the caller's `claim` method. The challenge shows `what`: 1 to 200
 * characters of printable ASCII without `"`, `\` and `=` (RFC 6750 §3). Throws a `TypeError` for another, and
 * for what is no function.
 *
 * @example needs(claimCheck('age is at least 18', (claim) => Number(claim('age')) >= 18))
 */
export function claimCheck(what: string, check: (claim: (name: string) => unknown) => boolean): Guard {
  const description = `the claims do not satisfy: ${what}`;
  const passes = (caller: Caller) => requireBoolean(check((name) => caller.claim(name)));
  return claimGuard(`claims ${what}`, what, description, typeof check === 'function', passes);
}

/** No claim equals an object, a promise or `NaN`: it would refuse everyone. */
const isComparable = (value: unknown) =>
  typeof value === 'string' || typeof value === 'boolean' || isFiniteNumber(value);

/** A promise would refuse everyone. */
function requireBoolean(verdict: unknown) {
  if (typeof verdict === 'boolean') return verdict;

  // A rejection without a handler is an error of the process.
  void ignoreErrors(() => verdict);
  throw new UsageError('claimCheck needs a function that returns true or false; to wait, write a decision');
}

/** RFC 6749 §3.3: scope-token. Also for `acr`, which a challenge shows. */
export const WORD = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

function scopeGuard(what: string, description: string, scopes: OneOrMore, demanded: 'every' | 'some'): Guard {
  const name = `${what} ${scopes.join(' ')}`;
  if (!isListOf(WORD, scopes)) throw new TypeError(`${name}: needs scopes, each as its own argument`);

  function passes({ scopes: granted }: Caller) {
    const isGranted = (word: string) => granted.includes(word);
    return scopes[demanded](isGranted);
  }

  const refused = refuse('scope-missing', { description, scopes, demands: { scope: scopes.join(' ') } });
  return new MadeGuard(name, passes, refused, undefined);
}

const NO_DEMAND =
  'needs a value: text, number or boolean (claimEquals), texts (claimIncludes, actor), function (claimCheck)';

/** `shown` is what the description has of the code's own; in JavaScript, it may be anything. */
export function claimGuard(
  name: string,
  shown: string,
  description: string,
  isDemand: boolean,
  passes: (caller: Caller) => boolean,
): Guard {
  // An expected `undefined` would match a missing claim.
  if (!isDemand) throw new TypeError(`${name}: ${NO_DEMAND}`);

  requireShowable(name, shown);
  return new MadeGuard(name, passes, refuse('claim-missing', { description }), undefined);
}

/** RFC 6750 §3: error_description. Stricter: no `=`, which looks like a parameter, and bounded. */
const SHOWABLE = /^[\x20-\x21\x23-\x3c\x3e-\x5b\x5d-\x7e]{1,200}$/;

export function requireShowable(name: string, shown: string) {
  const isShown = isListOf(SHOWABLE, [shown]);
  if (!isShown) throw new TypeError(`${name}: needs 1 to 200 printable ASCII characters except ", \\ and =`);
}
