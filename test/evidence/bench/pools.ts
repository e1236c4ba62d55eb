/* The tokens of the benchmark, in files of records of one width. Signing takes most of the time, so valid
   tokens stay in the system's temporary directory between runs, with their key, which signs nothing else. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { signJws } from '../../idp/tokens.ts';
import { makeProof, type ProofKey } from '../../support/proof.ts';

/** A slice of the records of a file. */
export interface Records {
  readonly file: string;
  readonly width: number;
  readonly first: number;
  readonly count: number;
}

export const ISSUER = 'https://issuer.bench.test/';
export const AUDIENCE = 'https://api.bench.test';
const DIRECTORY = join(tmpdir(), `gatehouse-bench-${userInfo().username}`);
const DAY_SECONDS = 86_400;

const FILES = {
  key: join(DIRECTORY, 'key.pem'),
  dates: join(DIRECTORY, 'dates.json'),
  good: join(DIRECTORY, 'good'),
  forged: join(DIRECTORY, `forged-${process.pid}`),
  proofs: join(DIRECTORY, `proofs-${process.pid}`),
};

// These two are of this run alone.
process.on('exit', () => {
  for (const file of [FILES.forged, FILES.proofs]) rmSync(file, { force: true });
});

/** The first tokens are for warm cases, the next ones warm the servers up. */
const WARM_TOKENS = 1_000;
const WARM_UP_TOKENS = 3_000;
/** The number of tokens that are not in the slices of the rounds. */
export const RESERVED = WARM_TOKENS + WARM_UP_TOKENS;

const width = { good: 0, forged: 0 };

const good = (first: number, count: number): Records => ({
  file: FILES.good,
  width: width.good,
  first,
  count,
});

const forged = (first: number, count: number): Records => ({
  file: FILES.forged,
  width: width.forged,
  first,
  count,
});

/** Assigns tokens to rounds. A negative round is the warm-up. */
export const SLICES = {
  warm: (count: number) => good(0, count),
  warmUp: () => good(WARM_TOKENS, WARM_UP_TOKENS),
  forgedWarmUp: () => forged(0, WARM_UP_TOKENS),
  cold: (round: number, count: number) => good(RESERVED + round * count, count),
  forged: (round: number, count: number) => forged(RESERVED + round * count, count),
  all: (count: number) => good(0, count),
};

interface Signer {
  readonly key: KeyObject;
  readonly issuedAt: number;
}

let signer: Signer | undefined;

function currentSigner(): Signer {
  if (signer === undefined) throw new Error('call preparePools first');
  return signer;
}

const publicKey = (): JsonWebKey => createPublicKey(currentSigner().key).export({ format: 'jwk' });

/** The key set that the servers must trust. */
export const keySet = () => ({ keys: [{ ...publicKey(), kid: 'bench', use: 'sig', alg: 'RS256' }] });

const HEADER = { alg: 'RS256', typ: 'JWT', kid: 'bench' };

const claims = (iss: string) => {
  const { issuedAt } = currentSigner();
  return {
    iss,
    sub: 'auth0|user',
    aud: AUDIENCE,
    iat: issuedAt,
    exp: issuedAt + 30 * DAY_SECONDS,
    scope: 'read:messages',
  };
};

/** A further valid token of this issuer with these claims. */
export const oneToken = (issuer = ISSUER, more = {}): string =>
  signJws(HEADER, { ...claims(issuer), ...more }, currentSigner().key);

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** All tokens are of one length and differ in `jti`. */
const signingInput = (jti: string): string => `${encode(HEADER)}.${encode({ ...claims(ISSUER), jti })}`;

const numbered = (letter: string, number: number): string => `${letter}${String(number).padStart(9, '0')}`;

/** Makes valid and forged tokens until there are `goodCount` and `forgedCount` of them. */
export async function preparePools(goodCount: number, forgedCount: number): Promise<void> {
  mkdirSync(DIRECTORY, { recursive: true, mode: 0o700 });
  signer = keptSigner() ?? freshSigner();
  width.good = oneToken(ISSUER, { jti: numbered('g', 0) }).length;
  await signMissing(goodCount);
  forge(forgedCount);
}

/** The key and date of an earlier run, if its tokens are valid for another day. */
function keptSigner(): Signer | undefined {
  if (!existsSync(FILES.key) || !existsSync(FILES.dates)) return undefined;
  const { issuedAt } = JSON.parse(readFileSync(FILES.dates, 'utf8'));
  if (issuedAt + 29 * DAY_SECONDS < Date.now() / 1000) return undefined;
  return { key: createPrivateKey(readFileSync(FILES.key)), issuedAt };
}

function freshSigner(): Signer {
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const issuedAt = Math.floor(Date.now() / 1000);
  rmSync(FILES.good, { force: true });
  writeFileSync(FILES.key, key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(FILES.dates, JSON.stringify({ issuedAt }));
  return { key, issuedAt };
}

const signLater = promisify(sign) as (algorithm: string, input: Buffer, key: KeyObject) => Promise<Buffer>;

/** Signs and writes in pieces, so that an interrupted run keeps them. */
async function signMissing(count: number): Promise<void> {
  let made = existsSync(FILES.good) ? statSync(FILES.good).size / width.good : 0;
  if (!Number.isInteger(made)) throw new Error(`${FILES.good} is damaged: remove it`);
  if (made < count) process.stderr.write(`signing ${count - made} tokens, to be kept in ${DIRECTORY}\n`);
  for (; made < count; made += 1_000) {
    const tokens = await Promise.all(
      Array.from({ length: 1_000 }, async (_, index) => {
        const input = signingInput(numbered('g', made + index));
        return `${input}.${(await signLater('sha256', Buffer.from(input), currentSigner().key)).toString('base64url')}`;
      }),
    );
    appendFileSync(FILES.good, tokens.join(''), 'latin1');
  }
}

/** New forged tokens, with signatures of the right length and below the modulus. */
function forge(count: number): void {
  const tokens = Array.from({ length: count }, (_, number) => {
    const signature = randomBytes(256);
    signature[0]! &= 0x3f;
    return `${signingInput(numbered('f', number))}.${signature.toString('base64url')}`;
  });
  width.forged = tokens[0]?.length ?? 0;
  writeFileSync(FILES.forged, tokens.join(''), 'latin1');
}

/** `count` new proofs, each with a token as the rest of an Authorization field and a DPoP field. */
export function makeProofs(key: ProofKey, uri: string, count: number, tokenOf: () => string): Records {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const records = Array.from({ length: count }, () => {
    const token = tokenOf();
    return `${token}\r\nDPoP: ${makeProof(key, { token, uri, nowSeconds })}`;
  });
  writeFileSync(FILES.proofs, records.join(''), 'latin1');
  return { file: FILES.proofs, width: records[0]!.length, first: 0, count };
}
