// A fetched document becomes the signing keys that can be used, by the names that they alone bear. Trusts
// nothing in it: what is no key set is a failed fetch, a key that cannot be used is skipped with the reason.
// Does not decide when to fetch, nor how long the keys are good: verify/keys/key-set.ts does.
import { isJsonObject, type JsonObject } from '../base/encoding.ts';
import { printable, type FetchFlaw, type KeyFlaw, type Printable } from '../base/events.ts';
import { factsOf, importSigningKey, type Algorithm, type VerificationKey } from './jwk.ts';

const MAX_KEYS = 100;

/** What a fetch of the key set rejects with; `code` is Node's, the HTTP status, or why a key was skipped. */
export class FetchFailure {
  readonly reason;
  readonly code;
  readonly #brand = true;

  constructor(reason: FetchFlaw, code: unknown = '') {
    this.reason = reason;
    this.code = String(code);
  }

  /** Whether what was thrown is one. Unlike `instanceof` it stands a revoked proxy. */
  static is(thrown: unknown): thrown is FetchFailure {
    return #brand in Object(thrown);
  }
}

type Skipped = Readonly<{ reason: KeyFlaw; kid: Printable }>;

/** What a document brought; `usable` is never empty. */
export type ImportedKeys = ReturnType<typeof importKeySet>;

/** Imports what is usable of a key set (RFC 7517 §5). Throws `FetchFailure`. */
export function importKeySet(document: JsonObject, algorithms?: readonly Algorithm[]) {
  if (!Array.isArray(document.keys)) throw new FetchFailure('not-a-key-set');
  if (document.keys.length > MAX_KEYS) throw new FetchFailure('too-many-keys');

  const usable: VerificationKey[] = [];
  const skipped: Skipped[] = [];
  const members: readonly unknown[] = document.keys;
  for (const member of members) {
    const key = isJsonObject(member) ? importSigningKey(member, algorithms) : 'not-an-object';
    if (typeof key === 'string') skipped.push({ reason: key, kid: kidOf(member) });
    else usable.push(key);
  }
  if (usable.length === 0) throw new FetchFailure('no-usable-key', skipped[0]?.reason);
  return { usable, skipped };
}

function kidOf(member: unknown) {
  const { kid } = Object(member);
  return printable(typeof kid === 'string' ? kid : '');
}

/** The one key that bears `kid`, or without `kid` the only one (RFC 7515 §4.1.4, RFC 7517 §4.5). */
export function keyNamed(kid: string | undefined, keys: readonly VerificationKey[]) {
  const named = keys.filter((key) => kid === undefined || factsOf(key).kid === kid);
  return named.length === 1 ? named[0] : undefined;
}
