// Which issuer a token claims, with its rules and its keys. The one bend in the way of a token: `iss` is read
// before the signature is checked. It chooses among the configured issuers, by equality of text, and does
// nothing else: no address is made from it, no log line holds it. Does not believe it: token/claims.ts checks
// it again, once a key of that issuer has verified the signature.
import type { JsonObject } from '../base/encoding.ts';
import { refuse } from '../base/refusal.ts';
import type { KeySet } from '../keys/key-set.ts';
import type { TokenOptions } from './claims.ts';

/** An issuer that is trusted: what its tokens must say, how it names claims, and its keys. */
export interface Issuer extends TokenOptions {
  /** As the settings call it. */
  readonly name: string;
  readonly claimNamespace: string;
  readonly scopeClaim: string;
  /** RFC 8725 §3.8: they verify this issuer's tokens, and nobody else's. */
  readonly keys: KeySet;
}

/** The issuer that is to judge a token with this payload. Throws `Refused`. */
export function issuerFor({ iss }: JsonObject, issuers: readonly Issuer[]) {
  // The only one judges every token: what `iss` says is looked at in its turn.
  const claimed = issuers.find(({ issuer }) => issuer === iss || issuers.length === 1);
  if (claimed === undefined) throw refuse('issuer-mismatch');

  return claimed;
}
