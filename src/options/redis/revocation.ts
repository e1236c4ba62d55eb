// What is revoked: the words for it, the issuers whose tokens it can be, and the entries of the store: what
// each is called, and which tokens it refuses (docs/revocation.md). Other languages write entries too, so
// names and values never change. Promises: nothing is revoked by a word that is misspelt, or for an issuer
// that is not configured. Does not ask the store.
import { hash } from 'node:crypto';
import { catching, isFiniteNumber, type JsonObject } from '../../verify/base/encoding.ts';
import {
  integer,
  readOptions,
  text,
  throwProblem,
  type Given,
  type Rule,
  type RulesOf,
} from '../../verify/base/option.ts';
import { EVERY, isTemplate, Template } from '../tenants/template.ts';

type Kind = 'jti' | 'sid' | 'sub' | 'client';

export interface Entry {
  readonly kind: Kind;
  readonly key: string;
}

/** Another clock may be this far ahead. */
const SPARE_SECONDS = 60;

const PREFIX = 'gatehouse:revoked:';

/** No token has this one. */
export const PROBE_KEY = `${PREFIX}{}`;

const digest = (text: string) => hash('sha256', text, 'base64url');

/** The braces keep the entries of an issuer in one slot of a cluster. */
function keyOf(kind: Kind, issuer: string, value: string): string {
  const what = digest([kind, issuer, value].join('\n'));
  return `${PREFIX}{${digest(issuer)}}:${what}`;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** Those that could refuse a token with these claims. */
export function entriesFor(claims: JsonObject, issuer: string): readonly Entry[] {
  const { jti, sid, sub, client_id: id, azp } = claims;
  const values = { jti, sid, sub, client: isText(id) ? id : azp };

  return Object.entries(values).flatMap(([name, value]) => {
    const kind = name as Kind;
    return isText(value) ? [{ kind, key: keyOf(kind, issuer, value) }] : [];
  });
}

/** Whether an entry, as the store replied it, refuses a token that was issued at `iat`. */
export function isRefusedBy(kind: Kind, entry: string, iat: unknown, latestSeconds: number): boolean {
  // Of one token or session: whatever the entry holds.
  if (kind === 'jti' || kind === 'sid') return true;

  const [, seconds] = /^\$(\d{1,15})$/.exec(entry) ?? [];
  if (seconds === undefined || !isFiniteNumber(iat)) return true;

  // An issuer with a wrong clock must not make its tokens immune.
  return iat <= Number(seconds) || iat > latestSeconds + SPARE_SECONDS;
}

/** What was revoked: exactly one of the first four. */
interface Named {
  /** The `jti` of a token. */
  readonly tokenId: string;
  /** The `sid` of a session. */
  readonly session: string;
  /** The `sub` of a user or service. */
  readonly subject: string;
  /** The `client_id`, or `azp`, of a client. */
  readonly client: string;
  /** The `iss` of the tokens. Default: that of the first issuer. */
  readonly issuer: string;
}

interface Lasting {
  /** Only for a subject or client: revokes tokens issued up to this time. Default: now. */
  readonly before: Date;
  /** 60 to 31,536,000, at least a token's lifetime plus the clock tolerance. Default: 86,400. */
  readonly keepSeconds: number;
}

/** What to restore: exactly one of `tokenId`, `session`, `subject` and `client`. */
export interface Restoration extends Given<Named> {}

/** What to revoke: exactly one of `tokenId`, `session`, `subject` and `client`. */
export interface Revocation extends Given<Named & Lasting> {}

/** Of a date of any realm. */
function millisOf(given: unknown) {
  return catching('TypeError', () => Date.prototype.getTime.call(given));
}

const date: Rule = (value) =>
  Number(millisOf(value)) >= 0 ? undefined : 'must be a Date, and no earlier than 1970';

const NAMED_RULES: RulesOf<Named> = {
  tokenId: text,
  session: text,
  subject: text,
  client: text,
  issuer: text,
};

const REVOCATION_RULES = { ...NAMED_RULES, before: date, keepSeconds: integer(60, 31_536_000) };

const KINDS: readonly (readonly [name: 'tokenId' | 'session' | 'subject' | 'client', kind: Kind])[] = [
  ['tokenId', 'jti'],
  ['session', 'sid'],
  ['subject', 'sub'],
  ['client', 'client'],
];

const ONLY_TIMED = 'is for a subject or a client alone; remove it';

export const NO_DOMAIN = 'is required to know the issuer; pass it to createRevocations';

/** The key of the entry. Throws a `TypeError` for anything that is wrong. */
export function readRestoration(what: Restoration, issuers: KnownIssuers): string {
  const values = readOptions<Restoration>(what, NAMED_RULES, {}, {}, 'restore');
  const [kind, value] = kindIn(values, 'restore');
  return keyOf(kind, issuers.named(values.issuer, 'restore'), value);
}

/** The same, and what it holds, and for how long. */
export function readRevocation(what: Revocation, issuers: KnownIssuers, nowMillis: number) {
  const values = readOptions<Revocation>(what, REVOCATION_RULES, {}, {}, 'revoke');
  const { before, keepSeconds = 86_400 } = values;
  const [kind, value] = kindIn(values, 'revoke');
  const isTimed = kind === 'sub' || kind === 'client';
  if (before !== undefined && !isTimed) throwProblem('revoke: before', ONLY_TIMED);

  const key = keyOf(kind, issuers.named(values.issuer, 'revoke'), value);
  const seconds = Math.ceil(Number(millisOf(before) ?? nowMillis) / 1000);
  return { key, seconds, keepSeconds };
}

/** Throws a `TypeError` unless there is exactly one. */
function kindIn(values: Restoration, owner: string): readonly [kind: Kind, value: string] {
  const named = KINDS.flatMap(([name, kind]) => {
    const value = values[name];
    return value === undefined ? [] : [[kind, value] as const];
  });
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;

  return throwProblem(owner, 'must have exactly one of tokenId, session, subject and client');
}

/** The issuers whose tokens can be revoked; some are templates for tenants. */
export class KnownIssuers {
  #names: readonly string[] | undefined;

  constructor(given: readonly string[] | undefined) {
    this.#names = given;
  }

  /** Throws a `TypeError` if it lacks one. The first gate or service makes its own known. */
  mustHave(served: readonly { readonly issuer: string }[]) {
    const names = served.map(({ issuer }) => issuer);
    this.#names ??= names;
    const isLacking = names.some((name) => !this.#names?.includes(name));
    if (isLacking) throwProblem('revocations', 'lack an issuer; pass every one to createRevocations');
  }

  /** The issuer that is meant. Throws a `TypeError` if it is not known. */
  named(given: string | undefined, owner: string): string {
    const names = this.#names ?? throwProblem(`${owner}: domain`, NO_DOMAIN);
    const issuer = given ?? String(names[0]);
    if (names.some((name) => isOf(name, issuer))) return issuer;

    return throwProblem(`${owner}: issuer`, 'must be the issuer (iss) of the tokens, as in the options');
  }
}

const isOf = (name: string, issuer: string) =>
  isTemplate(name) ? new Template(name, [EVERY]).tenantIn(issuer) !== undefined : name === issuer;
