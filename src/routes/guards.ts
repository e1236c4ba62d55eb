// Guards: what an accepted token must also say before a row is run (RFC 6750 §3.1, docs/refusals.md). A guard
// is data, so that tables can be printed and checked. Promises: comparisons by type and value, never by
// substring or coercion.
import { Refused } from '../base/refusal.ts';
import type { Caller } from '../sender/caller.ts';

/** What a token must also say, for `needs`. */
export interface Guard {
  /** As it stands in printed tables, such as `scope read:messages`. */
  readonly name: string;
  readonly passes: (caller: Caller) => boolean;
  /** What is thrown when it does not pass (403). */
  readonly refused: Refused;
}

type OneOrMore = readonly [string, ...string[]];

/**
 * Passes when the token has every one of these scopes. Throws for what is no scope (RFC 6749 §3.3).
 *
 * @example needs(scope('read:orders', 'read:customers'))
 */
export function scope(...scopes: OneOrMore): Guard {
  const name = `scope ${scopes.join(' ')}`;
  return scopeGuard(name, 'the token lacks a required scope', scopes, (granted) =>
    scopes.every((word) => granted.includes(word)),
  );
}

/**
 * Passes when the token has at least one of these scopes. Throws for what is no scope (RFC 6749 §3.3).
 *
 * @example needs(anyScope('read:orders', 'admin'))
 */
export function anyScope(...scopes: OneOrMore): Guard {
  const name = `any scope of ${scopes.join(' ')}`;
  return scopeGuard(name, 'the token has none of the required scopes', scopes, (granted) =>
    scopes.some((word) => granted.includes(word)),
  );
}

/**
 * Passes when the claim is there and identical in type and value.
 *
 * @example needs(claimEquals('email_verified', true))
 */
export function claimEquals(claim: string, expected: string | number | boolean): Guard {
  const name = `claim ${claim} equals ${expected}`;
  const description = `the claim ${claim} is missing or has another value`;
  return claimGuard(name, description, (caller) => caller.claim(claim) === expected);
}

/**
 * Passes when the claim, an array or a space-separated text, has every one of these values.
 *
 * @example needs(claimIncludes('roles', ['editor', 'viewer']))
 */
export function claimIncludes(claim: string, values: OneOrMore): Guard {
  const name = `claim ${claim} includes ${values.join(' ')}`;
  const description = `the claim ${claim} is missing or lacks a required value`;
  return claimGuard(name, description, (caller) => {
    const value = caller.claim(claim);
    const members: unknown = typeof value === 'string' ? value.split(' ') : value;
    return Array.isArray(members) && values.every((required) => members.includes(required));
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
  return claimGuard(`claims ${what}`, description, (caller) => check((name) => caller.claim(name)) === true);
}

function scopeGuard(
  name: string,
  description: string,
  scopes: OneOrMore,
  isGranted: (granted: readonly string[]) => boolean,
): Guard {
  for (const word of scopes) {
    // RFC 6749 §3.3: scope-token
    if (!/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word)) throw new Error(`"${word}" is not a scope`);
  }

  const refused = new Refused({ kind: 'insufficient_scope', reason: 'scope-missing', description, scopes });
  return { name, refused, passes: (caller) => isGranted(caller.scopes) };
}

function claimGuard(name: string, description: string, passes: (caller: Caller) => boolean): Guard {
  // RFC 6750 §3: what an error_description may hold.
  if (!/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(description)) {
    throw new Error(`"${name}" cannot be named in a challenge`);
  }

  const refused = new Refused({ kind: 'insufficient_scope', reason: 'claim-missing', description });
  return { name, refused, passes };
}
