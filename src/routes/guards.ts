// Guards: what an accepted token must also say before a row answers (contract §5, RFC 6750 §3.1). A guard is data, so that the
// tables can be printed and checked. Promises: comparisons by type and value, never by substring or coercion.
import { Refused } from '../base/refusal.ts';
import type { Caller } from '../sender/caller.ts';

/** Its name in the tables, such as `scope read:messages`; its predicate; the refusal when it does not pass (403). */
export type Guard = Readonly<{ name: string; passes: (caller: Caller) => boolean; refused: Refused }>;
type Several = readonly [string, ...string[]];
/** Passes when the token has every one of these scopes. */
export const scope = (...scopes: Several): Guard =>
  scopeGuard(`scope ${scopes.join(' ')}`, 'the token lacks a required scope', scopes, (granted) =>
    scopes.every((name) => granted.includes(name)),
  );
/** Passes when the token has at least one of these scopes. */
export const anyScope = (...scopes: Several): Guard =>
  scopeGuard(
    `any scope of ${scopes.join(' ')}`,
    'the token has none of the required scopes',
    scopes,
    (granted) => scopes.some((name) => granted.includes(name)),
  );
/** Passes when the claim is there and identical in type and value. */
export const claimEquals = (name: string, expected: string | number | boolean): Guard =>
  claimGuard(
    `claim ${name} equals ${expected}`,
    `the claim ${name} is missing or has another value`,
    (caller) => caller.claim(name) === expected,
  );
/** Passes when the claim, an array or a space-separated text, has every one of these values. */
export const claimIncludes = (name: string, values: Several): Guard =>
  claimGuard(
    `claim ${name} includes ${values.join(' ')}`,
    `the claim ${name} is missing or lacks a required value`,
    (caller) => {
      const claim = caller.claim(name);
      const members: unknown = typeof claim === 'string' ? claim.split(' ') : claim;
      return Array.isArray(members) && values.every((value) => members.includes(value));
    },
  );
/** Passes when `check` returns `true`; `what` says in printable ASCII what it demands, and shows in the challenge. */
export const claimCheck = (what: string, check: (claim: (name: string) => unknown) => unknown): Guard =>
  claimGuard(
    `claims ${what}`,
    `the claims do not satisfy: ${what}`,
    (caller) => check((name) => caller.claim(name)) === true,
  );
function scopeGuard(
  name: string,
  description: string,
  scopes: Several,
  passes: (granted: readonly string[]) => boolean,
): Guard {
  // RFC 6749 §3.3: scope-token
  for (const word of scopes)
    if (!/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word)) throw new Error(`"${word}" is not a scope`);
  return {
    name,
    refused: new Refused({ kind: 'insufficient_scope', reason: 'scope-missing', description, scopes }),
    passes: (caller) => passes(caller.scopes),
  };
}
function claimGuard(name: string, description: string, passes: (caller: Caller) => boolean): Guard {
  // RFC 6750 §3: what an error_description may hold.
  if (!/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(description))
    throw new Error(`"${name}" cannot be named in a challenge`);
  return {
    name,
    refused: new Refused({ kind: 'insufficient_scope', reason: 'claim-missing', description }),
    passes,
  };
}
