// A fetched document becomes the signing keys that can be used, by the names that they alone bear. Trusts
// nothing in it: what is no key set is a failed fetch, a key that cannot be used is skipped with the reason.
// Does not decide when to fetch, nor how long the keys are good: keys/key-set.ts does.
import { asJsonObject, type JsonObject } from '../base/encoding.ts';
import { printable, type FetchFlaw, type KeyFlaw } from '../base/events.ts';
import { factsOf, importSigningKey, type VerificationKey } from './jwk.ts';

const MAX_KEYS = 100;

/** What a fetch of the key set rejects with; `code` is Node's error code or the HTTP status. */
export class FetchFailure {
  readonly reason: FetchFlaw;
  readonly code: string;

  constructor(reason: FetchFlaw, code: unknown = '') {
    this.reason = reason;
    this.code = String(code);
  }
}

/** What a document brought; `usable` is never empty. */
export type ImportedKeys = ReturnType<typeof importKeySet>;

/** Imports what is usable of a key set (RFC 7517 §5). Throws `FetchFailure`. */
export function importKeySet(document: JsonObject) {
  if (!Array.isArray(document.keys)) throw new FetchFailure('not-a-key-set');
  if (document.keys.length > MAX_KEYS) throw new FetchFailure('too-many-keys');

  const usable: VerificationKey[] = [];
  const skipped: ReturnType<typeof skip>[] = [];
  for (const member of document.keys) {
    const jwk = asJsonObject(member);
    const key = jwk === undefined ? 'not-an-object' : importSigningKey(jwk);
    if (typeof key === 'string') skipped.push(skip(key, jwk?.kid));
    else usable.push(key);
  }
  if (usable.length === 0) throw new FetchFailure('no-usable-key', skipped[0]?.reason);
  return { usable, skipped: [...skipped, ...repetitionsIn(usable)] };
}

/** What bears a name again. It stays usable: two keys of one name are two, for a token that names none. */
function repetitionsIn(usable: readonly VerificationKey[]) {
  const kids = usable.flatMap((key) => factsOf(key).kid ?? []);
  const repeated = kids.filter((kid, index) => kids.indexOf(kid) < index);
  return repeated.map((kid) => skip('key-id-repeated', kid));
}

function skip(reason: KeyFlaw, kid: unknown) {
  return { reason, kid: printable(typeof kid === 'string' ? kid : '') };
}

/** The one key that bears `kid`, or without `kid` the only one (RFC 7515 §4.1.4, RFC 7517 §4.5). */
export function keyNamed(kid: string | undefined, keys: readonly VerificationKey[]) {
  const named = keys.filter((key) => kid === undefined || factsOf(key).kid === kid);
  return named.length === 1 ? named[0] : undefined;
}
