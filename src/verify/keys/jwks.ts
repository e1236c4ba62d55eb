// Imports the usable keys of a key set and chooses one by `kid`. Does not decide when to fetch or how long
// keys last: verify/keys/key-set.ts does.
import { isJsonObject, type JsonObject } from '../base/encoding.ts';
import { printable, type FetchErrorReason, type KeyReason, type Printable } from '../base/events.ts';
import { factsOf, type Algorithm, type ImportKey, type VerificationKey } from './jwk.ts';

const MAX_KEYS = 100;

/** `code` is Node's error code, the HTTP status, or why a key was skipped. */
export class FetchError {
  readonly reason;
  readonly code;
  readonly #brand = true;

  constructor(reason: FetchErrorReason, code: unknown = '') {
    this.reason = reason;
    this.code = String(code);
  }

  static is(thrown: unknown): thrown is FetchError {
    return #brand in Object(thrown);
  }
}

type Skipped = Readonly<{ reason: KeyReason; kid: Printable }>;

export interface ImportedKeys {
  /** Never empty. */
  readonly usable: readonly VerificationKey[];
  readonly skipped: readonly Skipped[];
}

/** RFC 7517 §5: skips unusable keys. Throws `FetchError`. */
export function importKeySet(document: JsonObject, importKey: ImportKey): ImportedKeys {
  if (!Array.isArray(document.keys)) throw new FetchError('not-a-key-set');
  if (document.keys.length > MAX_KEYS) throw new FetchError('too-many-keys');

  const usable: VerificationKey[] = [];
  const skipped: Skipped[] = [];
  const members: readonly unknown[] = document.keys;
  for (const member of members) {
    const key = isJsonObject(member) ? importKey(member) : 'not-an-object';
    if (typeof key === 'string') skipped.push({ reason: key, kid: kidOf(member) });
    else usable.push(key);
  }
  if (usable.length === 0) throw new FetchError('no-usable-key', skipped[0]?.reason);
  return { usable, skipped };
}

function kidOf(member: unknown) {
  const { kid } = Object(member);
  return printable(typeof kid === 'string' ? kid : '');
}

export type NoKeyReason = 'key-unknown' | 'algorithm-refused';

/** The one key of this algorithm with this `kid`, or without `kid` the only key. Or why there is none. */
export function keyNamed(
  kid: string | undefined,
  algorithm: Algorithm,
  keys: readonly VerificationKey[],
): VerificationKey | NoKeyReason {
  // RFC 7515 §4.1.4
  const named = keys.filter((key) => kid === undefined || factsOf(key).kid === kid);
  if (named.length === 0 || (kid === undefined && named.length > 1)) return 'key-unknown';

  // RFC 8725 §3.1: no header chooses how a key is used.
  const fitting = named.filter((one) => factsOf(one).algorithm === algorithm);
  const key = fitting[0];
  if (key === undefined) return 'algorithm-refused';

  // RFC 7517 §4.5: keys of different algorithms may share a `kid`.
  return fitting.length === 1 ? key : 'key-unknown';
}
