/* What gatehouse says of a signature in a vector, by the parts that a token goes through. Most vectors sign bytes
   such as "foo": as tokens they are refused before the signature is looked at (docs/how-a-request-is-checked.md, the token, 1). So a text is
   judged as a token, and where only its payload stands in the way, by its header and signature alone. */
import { decodeBase64url, parseJsonObject, type JsonObject } from '../../src/verify/base/encoding.ts';
import { Refused } from '../../src/verify/base/refusal.ts';
import {
  ALGORITHM_NAMES,
  factsOf,
  importSigningKey,
  isOneOf,
  type Algorithm,
  type VerificationKey,
} from '../../src/verify/keys/jwk.ts';
import { KeySet } from '../../src/verify/keys/key-set.ts';
import { parseCompact, verifySignature, type UnverifiedJws } from '../../src/verify/jws/jws.ts';
import { TestClock } from '../support/clock.ts';

/** `holds`, or why not. */
export type Judgement = 'holds' | 'does not match' | `refused: ${string}`;

/** The parts of a compact JWS, whatever its payload is; or the reason to refuse the text. */
export function partsOf(text: string): UnverifiedJws | string {
  const jws = parseCompact(text);
  if (!(jws instanceof Refused)) return jws;
  if (jws.refusal.reason !== 'payload-malformed') return jws.refusal.reason;

  const [header = '', , signature = ''] = text.split('.');
  return {
    header: parseJsonObject(decodeBase64url(header)!)!,
    payload: {},
    signature: decodeBase64url(signature)!,
    signingInput: text.slice(0, text.lastIndexOf('.')),
  };
}

/** Judges a JWS: holds if its algorithm is the key's and the signature verifies. */
export function judgeJws(text: string, key: VerificationKey | string): Judgement {
  if (typeof key === 'string') return `refused: ${key}`;

  const parts = partsOf(text);
  if (typeof parts === 'string') return `refused: ${parts}`;
  if (parts.header.alg !== factsOf(key).algorithm) return 'refused: algorithm-refused';

  return verifySignature(parts, key) === undefined ? 'does not match' : 'holds';
}

/** Judges a bare signature over bytes, by a key that is imported for this algorithm. */
export function judgeSignature(
  jwk: JsonObject,
  algorithm: Algorithm,
  message: Buffer,
  signature: Buffer,
): Judgement {
  const key = importSigningKey({ ...jwk, alg: algorithm }, [algorithm]);
  if (typeof key === 'string') return `refused: ${key}`;

  const parts = { header: {}, payload: {}, signingInput: message.toString('latin1'), signature };
  return verifySignature(parts, key) === undefined ? 'does not match' : 'holds';
}

/** Judges a JWS under a whole key set that is published, by the key that its `kid` names. */
export async function judgeUnderKeySet(text: string, jwks: readonly JsonObject[]): Promise<Judgement> {
  const keys = new KeySet(
    'vectors',
    async () => ({ keys: [...jwks] }),
    { clock: new TestClock(), log: () => {}, count: undefined },
    (published) => importSigningKey(published, ALGORITHM_NAMES),
  );
  await keys.refresh();
  const parts = partsOf(text);
  if (typeof parts === 'string') return `refused: ${parts}`;

  const { alg, kid } = parts.header;
  if (!isOneOf(ALGORITHM_NAMES, alg)) return 'refused: algorithm-refused';

  const key = await keys.find(typeof kid === 'string' ? kid : undefined, alg);
  return key instanceof Refused ? `refused: ${key.refusal.reason}` : judgeJws(text, key);
}
