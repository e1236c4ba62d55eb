// Guards: what an accepted token must also say before a route is run (RFC 6750 §3.1, docs/refusals.md). A
// guard is data, so that routes can be printed and checked. Promises: comparisons by type and value, never
// by substring or coercion.
import { isListOf } from '../verify/base/encoding.ts';
import { refuse, type Refused } from '../verify/base/refusal.ts';
import { parametersText } from './challenge.ts';
import type { Caller } from '../verify/caller.ts';

/** What a token must also say, for `needs`. */
export interface Guard {
  /** As it stands in printed lists, such as `scope read:messages`. */
  readonly name: string;
  readonly passes: (caller: Caller) => boolean;
  /** What the caller is told when it does not pass. */
  readonly refused: Refused;
  /** Why no service can have it. */
  readonly fault?: string | undefined;
}

type OneOrMore = readonly [string, ...string[]];

/**
 * Passes when the token has every one of these scopes. What is no scope (RFC 6749 §3.3) stops the start.
 *
 * @example needs(scope('read:orders', 'read:customers'))
 */
export function scope(...scopes: OneOrMore): Guard {
  return scopeGuard('scope', 'the token lacks a required scope', scopes, 'every');
}

/**
 * Passes when the token has at least one of these scopes. What is no scope (RFC 6749 §3.3) stops the start.
 *
 * @example needs(anyScope('read:orders', 'admin'))
 */
export function anyScope(...scopes: OneOrMore): Guard {
  return scopeGuard('any scope of', 'the token has none of the required scopes', scopes, 'some');
}

/**
 * Passes when the claim is there and identical in type and value.
 *
 * @example needs(claimEquals('email_verified', true))
 */
export function claimEquals(claim: string, expected: string | number | boolean): Guard {
  const name = `claim ${claim} equals ${expected}`;
  const description = `the claim ${claim} is missing or has another value`;
  const isDemand = (expected ?? undefined) !== undefined;
  return claimGuard(name, description, isDemand, (caller) => caller.claim(claim) === expected);
}

/**
 * Passes when the claim, an array or a space-separated text, has every one of these values.
 *
 * @example needs(claimIncludes('roles', ['editor', 'viewer']))
 */
export function claimIncludes(claim: string, values: OneOrMore): Guard {
  // A list that is changed afterwards would demand something else than it says.
  const wanted = values.slice();
  const name = `claim ${claim} includes ${wanted.join(' ')}`;
  const description = `the claim ${claim} is missing or lacks a required value`;
  // In a copy, since `every` passes over holes.
  const isDemand = wanted.length > 0 && [...wanted].every(Boolean);
  return claimGuard(name, description, isDemand, (caller) => {
    const value = caller.claim(claim);
    const members: unknown = typeof value === 'string' ? value.split(' ') : value;
    return Array.isArray(members) && wanted.every((required) => members.includes(required));
  });
}

/**
 * Passes when `check` returns `true`; `what` says in printable ASCII what it demands, and shows in the
 * challenge.
 *
 * @example needs(claimCheck('age is at least 18', (claim) => Number(claim('age')) >= 18))
 */
export function claimCheck(what: string, check: (claim: (name: string) => unknown) => unknown): Guard {
  const description = `the claims do not satisfy: ${what}`;
  const passes = (caller: Caller) => check((name) => caller.claim(name)) === true;
  return claimGuard(`claims ${what}`, description, typeof check === 'function', passes);
}

/** What a login must be; at least one of the two. */
export interface LoginDemands {
  /** The claim `acr` is one of these, the most wanted first. */
  readonly acr?: OneOrMore;
  /** So long ago the login may be, by the claim `auth_time`; an integer from 0. */
  readonly maxAgeSeconds?: number;
}

/**
 * Passes when the user has logged in so recently, or in such a way (RFC 9470); decided after all other
 * guards of its route, wherever it stands there. Throws a `TypeError` for demands that are none.
 *
 * @example needs(scope('pay'), recentLogin({ acr: ['mfa'], maxAgeSeconds: 300 }))
 */
export function recentLogin({ acr, maxAgeSeconds, ...others }: LoginDemands): Guard {
  const age = JSON.stringify(maxAgeSeconds) ?? '';
  const wanted = acr?.slice();
  const areGood = isListOf(WORD, wanted ?? [age]) && /^\d{0,15}$/.test(age);
  if (!areGood || Object.keys(others).length > 0) {
    throw new TypeError('recentLogin needs words for acr, whole maxAgeSeconds from 0, or both');
  }

  // RFC 9470 §3
  const demands = { acr_values: wanted?.join(' '), max_age: age };
  return {
    name: `login ${parametersText(demands)}`,
    refused: refuse('login-insufficient', { demands }),
    passes: (caller) => {
      if (wanted?.every((word) => word !== caller.claims.acr)) return false;
      return maxAgeSeconds === undefined || caller.hasLoggedInWithin(maxAgeSeconds);
    },
  };
}

/** RFC 6749 §3.3: a scope-token; an `acr` that fits a challenge is spelled alike. */
const WORD = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

function scopeGuard(what: string, description: string, scopes: OneOrMore, demanded: 'every' | 'some'): Guard {
  const name = `${what} ${scopes.join(' ')}`;
  const fault = isListOf(WORD, scopes) ? undefined : `${name}: not all are scopes`;
  const passes = (caller: Caller) => scopes[demanded]((word) => caller.scopes.includes(word));
  const refused = refuse('scope-missing', { description, scopes, demands: { scope: scopes.join(' ') } });
  return { name, refused, fault, passes };
}

function claimGuard(
  name: string,
  description: string,
  isDemand: boolean,
  passes: (caller: Caller) => boolean,
): Guard {
  // RFC 6750 §3: what an error_description may hold. Stricter: no `=`, after which clients look for values.
  const isShowable = /^[\x20-\x21\x23-\x3c\x3e-\x5b\x5d-\x7e]+$/.test(description);
  const showFault = isShowable ? undefined : `${name}: cannot be named in a challenge`;
  // JavaScript lets what is missing or empty stand here, and tokens would meet that by what they lack.
  const fault = isDemand ? showFault : `${name}: demands nothing`;
  return { name, refused: refuse('claim-missing', { description }), fault, passes };
}
