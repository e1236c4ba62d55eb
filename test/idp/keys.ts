/**
 * The provider's signing keys: the current one, and the published ones. Uses pre-made keys first, because
 * making an RSA key takes 100 ms. No two providers in a process share a key.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

/** An RSA key pair of 2048 bits. `publicJwk` is what the key set publishes (RFC 7517 §4). */
export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: JsonWebKey;
}

let takenFromPool = 0;

function nextPrivateKey(): KeyObject {
  takenFromPool += 1;
  const file = new URL(`keys-pool/${takenFromPool}.pem`, import.meta.url);
  if (existsSync(file)) return createPrivateKey(readFileSync(file));
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}

/** A key that no other provider in this process has, with a new `kid`. */
export function makeSigningKey(): SigningKey {
  const privateKey = nextPrivateKey();
  const kid = randomUUID();
  const members = createPublicKey(privateKey).export({ format: 'jwk' });
  return { kid, privateKey, publicJwk: { ...members, kid, use: 'sig', alg: 'RS256' } };
}

/** The keys of one provider. */
export class KeyRing {
  #current = makeSigningKey();
  #published: SigningKey[] = [this.#current];

  get current(): SigningKey {
    return this.#current;
  }

  /** Makes a new key current and publishes it. The old one stays published if `keepOld`. */
  rotate(keepOld: boolean): SigningKey {
    if (!keepOld) this.withdraw(this.#current.kid);
    this.#current = makeSigningKey();
    this.#published.push(this.#current);
    return this.#current;
  }

  /** Removes a key from the key set. The current key keeps signing. */
  withdraw(kid: string): void {
    this.#published = this.#published.filter((key) => key.kid !== kid);
  }

  /** The key set document (RFC 7517 §5). */
  document(): { keys: JsonWebKey[] } {
    return { keys: this.#published.map((key) => key.publicJwk) };
  }
}
