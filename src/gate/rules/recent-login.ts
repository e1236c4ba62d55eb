// Step-up authentication (RFC 9470): a guard that demands a recent or strong login. Does not decide when it
// is checked: gate/rules/access.ts checks it last.
import { parametersText } from '../replies/reply.ts';
import { MadeGuard, WORD, type Guard, type OneOrMore } from './guards.ts';
import { isListOf } from '../../verify/base/encoding.ts';
import { refuse } from '../../verify/base/refusal.ts';
import type { Caller } from '../../verify/caller.ts';

/** Needs at least one of the two. */
export interface LoginDemands {
  /** Values of the claim `acr`, preferred first. */
  readonly acr?: OneOrMore | undefined;
  /** How long ago `auth_time` may be: an integer from 0. */
  readonly maxAgeSeconds?: number | undefined;
}

/**
 * Demands a recent login (`maxAgeSeconds`), one of the kinds in `acr`, or both (RFC 9470). Checked after all
 * other guards. Throws a `TypeError` for invalid demands.
 *
 * @example needs(scope('pay'), recentLogin({ acr: ['mfa'], maxAgeSeconds: 300 }))
 */
export function recentLogin(login: LoginDemands): Guard {
  const { acr, maxAgeSeconds, ...others }: LoginDemands = Object(login);
  const isAcr = acr === undefined || isListOf(WORD, acr);
  const isAge = maxAgeSeconds === undefined || isWholeNumber(maxAgeSeconds);
  const isNothing = acr === undefined && maxAgeSeconds === undefined;
  if (!isAcr || !isAge || isNothing || Object.keys(others).length > 0) {
    throw new TypeError(
      'recentLogin needs acr (a list of words), maxAgeSeconds (a whole number from 0) or both',
    );
  }

  const wanted = acr?.slice();
  // RFC 9470 §3
  const demands = { acr_values: wanted?.join(' '), max_age: maxAgeSeconds?.toString() };

  function passes(caller: Caller) {
    if (wanted?.every((word) => word !== caller.claims.acr)) return false;
    return maxAgeSeconds === undefined || caller.hasLoggedInWithin(maxAgeSeconds);
  }

  const refused = refuse('login-insufficient', { demands });
  return new MadeGuard(`login ${parametersText(demands)}`, passes, refused, undefined);
}

const isWholeNumber = (value: number) => Number.isInteger(value) && value >= 0 && value < 1e15;
