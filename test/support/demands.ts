/* What guards demand, as claims: read from the text of a guard, and tried where the text is ambiguous. */
import { parametersText } from '../../src/gate/replies/reply.ts';
import type { AnyGuard } from '../../src/gate/rules/further.ts';
import { callerWith, clock } from './caller.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** Claims that pass a guard, and sets of claims that do not. */
export interface Demand {
  readonly held: Claims;
  readonly missing: readonly Claims[];
}

/** The most claims that are searched for in a guard of free form. */
const MOST_CLAIMS = 4;

export const passes = (guard: AnyGuard, claims: Claims) => guard.passes(callerWith(claims));

const lackingOne = (values: readonly string[]) =>
  values.map((value) => values.filter((other) => other !== value));

/** The values that have this text. */
const valuesOf = (text: string): readonly unknown[] => {
  const number = Number(text);
  return [
    text,
    ...(text === 'true' || text === 'false' ? [text === 'true'] : []),
    ...(text === String(number) ? [number] : []),
  ];
};

function scopeDemand(scopes: readonly string[], isAny: boolean): Demand {
  if (isAny) {
    return {
      held: { scope: scopes[0] },
      missing: [{}, { scope: 'other' }, { scope: scopes.map((word) => `x${word}`).join('\t') }],
    };
  }
  const lacking = lackingOne(scopes).map((some) => ({ scope: some.join(' ') }));
  return { held: { scope: scopes.join(' ') }, missing: [{}, ...lacking, { scope: `x${scopes.join(' ')}` }] };
}

function equalDemand(guard: AnyGuard, claim: string, text: string): Demand | undefined {
  const held = valuesOf(text)
    .map((value) => ({ [claim]: value }))
    .find((claims) => passes(guard, claims));
  const others = [`${text}x`, null, [text], ...valuesOf(text).filter((value) => value !== held?.[claim])];
  return held && { held, missing: [{}, ...others.map((value) => ({ [claim]: value }))] };
}

function includingDemand(guard: AnyGuard, claim: string, text: string): Demand | undefined {
  const lists = [text.split(' '), [text]];
  const values = lists.find((list) => passes(guard, { [claim]: list }));
  if (values === undefined) return undefined;

  const lacking = lackingOne(values).map((some) => ({ [claim]: some }));
  return {
    held: { [claim]: values },
    missing: [{}, ...lacking, { [claim]: values.map((value) => `x${value}`) }],
  };
}

/** Claims that pass a guard of free form: those that it reads, with values that its text names. */
function claimsFor(guard: AnyGuard, values: readonly unknown[], found: Claims = {}): Claims | undefined {
  const asked: string[] = [];
  const caller = callerWith(found);
  const watched = new Proxy(caller, {
    get: (target, name) =>
      name === 'claim'
        ? (claim: string) => {
            asked.push(claim);
            return target.claim(claim);
          }
        : Reflect.get(target, name, target),
  });
  if (guard.passes(watched)) return found;

  const next = asked.find((name) => !Object.hasOwn(found, name));
  if (next === undefined || Object.keys(found).length === MOST_CLAIMS) return undefined;
  for (const value of values) {
    const claims = claimsFor(guard, values, { ...found, [next]: value });
    if (claims !== undefined) return claims;
  }
  return undefined;
}

function freeDemand(guard: AnyGuard): Demand | undefined {
  const words = guard.name.split(/[\s,;"']+/);
  const held = claimsFor(guard, [...new Set([...words.flatMap(valuesOf), true])]);
  if (held === undefined) return undefined;

  const changed = Object.keys(held).flatMap((name) => {
    const { [name]: value, ...rest } = held;
    return [rest, { ...held, [name]: typeof value === 'string' ? `${value}x` : String(value) }];
  });
  return { held, missing: [{}, ...changed].filter((claims) => !passes(guard, claims)) };
}

/** From the words of its challenge. */
function loginDemand(words: string): Demand {
  const [, acrs = ''] = /acr_values="(.+?)"/.exec(words) ?? [];
  const [, seconds] = /max_age="(\d+)"/.exec(words) ?? [];
  const nowSeconds = clock.now() / 1000;
  const kinds = acrs.split(' ').filter(Boolean);
  const held = {
    ...(kinds.length > 0 && { acr: kinds.at(-1) }),
    ...(seconds !== undefined && { auth_time: nowSeconds }),
  };
  const strangers = kinds.length > 0 ? [{ ...held, acr: kinds.map((kind) => `x${kind}`).join('') }] : [];
  const tooOld = nowSeconds - Number(seconds) - 1;
  const late = seconds === undefined ? [] : [tooOld, nowSeconds + 1, String(nowSeconds)];
  return { held, missing: [{}, ...strangers, ...late.map((time) => ({ ...held, auth_time: time }))] };
}

const demands = new Map<AnyGuard, Demand | undefined>();

/**
 * `undefined` for a guard of free form that none of the tried claims pass. The claims for a recent login are
 * valid only now, so call this in the test that sends them.
 */
export function demandOf(guard: AnyGuard): Demand | undefined {
  const { scopes, demands: login } = guard.refused.refusal;
  if (scopes === undefined && login !== undefined) return loginDemand(parametersText(login));
  if (!demands.has(guard)) demands.set(guard, readDemand(guard));
  return demands.get(guard);
}

function readDemand(guard: AnyGuard): Demand | undefined {
  const { refusal } = guard.refused;
  if (refusal.scopes !== undefined) return scopeDemand(refusal.scopes, guard.name.startsWith('any '));
  const [, claim = '', kind, text = ''] = /^claim (\S+) (equals|includes) (.+)$/.exec(guard.name) ?? [];
  if (kind === 'equals') return equalDemand(guard, claim, text);
  if (kind === 'includes') return includingDemand(guard, claim, text);
  return freeDemand(guard);
}

/**
 * Claims that pass all of these guards, as far as known. Joins what several demand of one list, or of the
 * scopes.
 */
export function claimsForAll(guards: readonly AnyGuard[]): Claims {
  const all: Record<string, unknown> = {};
  for (const held of guards.map((guard) => demandOf(guard)?.held ?? {})) {
    for (const [name, value] of Object.entries(held)) {
      const before = all[name];
      if (name === 'scope' && typeof before === 'string') all[name] = `${before} ${value}`;
      else if (Array.isArray(before) && Array.isArray(value)) all[name] = [...before, ...value];
      else all[name] = value;
    }
  }
  return all;
}
