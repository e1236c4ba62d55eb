// Guards for delegated tokens (RFC 8693 §4.1): who acts for the subject. Promises: only the outermost `act`
// counts; earlier actors are history, not for decisions. Does not read `may_act`.
import { isJsonObject, isListOf } from '../verify/base/encoding.ts';
import { claimsOf, type Caller } from '../verify/caller.ts';
import { claimGuard, type Guard, type OneOrMore } from '../gate/rules/guards.ts';

/**
 * Passes when an actor on this list acts for the token's subject: `sub` of the outermost claim `act` (RFC
 * 8693 §4.1). Throws a `TypeError` without subjects, and for an empty one.
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
 * Passes when no one acts for the token's subject: the token has no claim `act`, whatever its value (RFC 8693
 * §4.1).
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
 * Who acts for the token's subject: `sub` of the outermost claim `act` (RFC 8693 §4.1), if it is text.
 * Throws a `TypeError` for anything but a caller or `undefined`.
 *
 * @example log.info({ subject: caller.subject, actor: actorOf(caller) })
 */
export function actorOf(caller: Caller<unknown> | undefined): string | undefined {
  if (caller === undefined) return undefined;

  const { act } = claimsOf(caller);
  const { sub } = isJsonObject(act) ? act : {};
  return typeof sub === 'string' && sub !== '' ? sub : undefined;
}
