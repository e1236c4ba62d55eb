// The entries of revoked tokens: what each is called, and which tokens it refuses (docs/revocation.md). Other
// languages write them too, so names and values never change. Does not ask the store.
import { hash } from 'node:crypto';
import { isFiniteNumber, type JsonObject } from '../../verify/base/encoding.ts';

export type Kind = 'jti' | 'sid' | 'sub' | 'client';

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
export function keyOf(kind: Kind, issuer: string, value: string): string {
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
