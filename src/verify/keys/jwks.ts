// Imports the usable keys of a key set. Does not choose one, or decide when to fetch or how long keys last:
// verify/keys/key-set.ts does.
import { isJsonObject, type JsonObject } from '../base/encoding.ts';
import { printable, type FetchErrorReason, type KeyReason, type Printable } from '../base/events.ts';
import type { ImportKey, VerificationKey } from './jwk.ts';

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

/** Of a discovery document whose issuer is not the expected one (OpenID Connect Discovery §4.3). */
export const otherIssuer = ({ issuer }: JsonObject) =>
  new FetchError('issuer-mismatch', typeof issuer === 'string' ? issuer : '');

type Skipped = Readonly<{ reason: KeyReason; kid: Printable }>;

export interface ImportedKeys {
  /** Never empty. */
  readonly usable: readonly VerificationKey[];
  readonly skipped: readonly Skipped[];
}

/** RFC 7517 §5: skips unusable keys. Throws `FetchError`. */
export function importKeySet(document: JsonObject, importKey: ImportKey): ImportedKeys {
  // A function of the user's own may fetch nothing.
  const { keys } = Object(document);
  if (!Array.isArray(keys)) throw new FetchError('not-a-key-set');
  if (keys.length > MAX_KEYS) throw new FetchError('too-many-keys');

  const usable: VerificationKey[] = [];
  const skipped: Skipped[] = [];
  for (const member of keys as readonly unknown[]) {
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
