/* Key sets: changed keys and documents, and whether a good token is taken under them. */
import { createLocalJWKSet, jwtVerify, errors, type CryptoKey, type JSONWebKeySet } from 'jose';
import { isJsonObject, type JsonObject } from '../../../src/verify/base/encoding.ts';
import { createKeySet } from '../../../src/verify/keys/key-set.ts';
import type { Log } from '../../../src/verify/base/events.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { verifiedOf, createTokenVerifier } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import { AUDIENCE, ISSUER, RULES } from '../../verify/token/issuer.ts';
import { CLIENTS, foreignKey, privateJwk, publicJwk, rsaKey, type Members } from './keys.ts';
import { mutateMembers, mutateText, mutateValue, NOW } from './mutations.ts';
import { accepted, judgedByOther, refused, spelled, type Outcome, type Verdict } from './outcome.ts';
import type { Random } from './random.ts';
import { compact, json, KID, right, SIGNING_JWK } from './tokens.ts';

const CLAIMS = { iss: ISSUER, sub: 'user', aud: AUDIENCE, exp: NOW + 60 };

/** Tokens that the right key signed, under every way to name it. */
const TOKENS = [{ kid: KID }, {}, { kid: 'other' }, { kid: '' }, { kid: '__proto__' }, { kid: 'key-2' }].map(
  (members) => compact(json({ alg: 'RS256', ...members }), json(CLAIMS), right),
);

const modulus = Buffer.from(SIGNING_JWK.n ?? '', 'base64url');

const MODULI = [
  Buffer.concat([Buffer.alloc(1), modulus]).toString('base64url'),
  modulus.toString('base64'),
  `${modulus.toString('base64url')}=`,
  modulus.subarray(1).toString('base64url'),
  modulus.subarray(128).toString('base64url'),
  `${SIGNING_JWK.n} `,
  '',
  'AQ',
  Buffer.concat([modulus, modulus, modulus, modulus, modulus]).toString('base64url'),
  `${SIGNING_JWK.n?.slice(0, -1)}x`,
];

const EXPONENTS = [
  'AQAB',
  'AAEAAQ',
  'Aw',
  'AQ',
  'Ag',
  '',
  'AA',
  'AQAB=',
  'AQAB ',
  SIGNING_JWK.n,
  'AQAC',
  65537,
];

const OPERATIONS = [
  ['verify'],
  ['verify', 'verify'],
  ['sign', 'verify'],
  [],
  'verify',
  ['verify', 1],
  ['Verify'],
];

const KEYS: readonly Members[] = [
  SIGNING_JWK,
  SIGNING_JWK,
  SIGNING_JWK,
  { ...publicJwk(rsaKey) },
  { ...publicJwk(foreignKey), kid: 'key-2', use: 'sig' },
  { ...publicJwk(foreignKey) },
  { ...privateJwk(rsaKey), kid: KID },
  { ...SIGNING_JWK, n: MODULI[4] },
  ...CLIENTS.map(({ jwk, alg }) => ({ ...jwk, alg, kid: KID })),
  { kty: 'oct', k: SIGNING_JWK.n, kid: KID, alg: 'HS256' },
  { kty: 'RSA' },
  {},
];

function keyFrom(random: Random): unknown {
  if (random.chance(0.03)) return random.pick([null, 'key', 1, [], [SIGNING_JWK], true]);
  const jwk = { ...random.pick(random.chance(0.5) ? KEYS.slice(0, 4) : KEYS) };
  if (random.chance(0.15)) jwk.n = random.pick(MODULI);
  if (random.chance(0.15)) jwk.e = random.pick(EXPONENTS);
  if (random.chance(0.1)) jwk.kid = random.pick(['other', '', '__proto__', 'key-2', 1, null, KID]);
  if (random.chance(0.1)) jwk.key_ops = random.pick(OPERATIONS);
  for (let changes = random.pick([0, 0, 1, 2]); changes > 0; changes -= 1) mutateMembers(random, jwk);
  return jwk;
}

function documentFrom(random: Random): unknown {
  const size = random.chance(0.005) ? 99 + random.below(4) : random.pick([1, 1, 1, 2, 2, 3, 4]);
  const document: Members = { keys: Array.from({ length: size }, () => keyFrom(random)) };
  if (random.chance(0.03)) document.keys = mutateValue(random, document.keys);
  if (random.chance(0.05)) mutateMembers(random, document);
  const text = JSON.stringify(document);
  try {
    return JSON.parse(random.chance(0.1) ? mutateText(random, text) : text);
  } catch {
    return document;
  }
}

/** What gatehouse says of the token when a fetch brings this document. */
async function judge(document: unknown, token: string): Promise<Verdict> {
  const reasons: string[] = [];

  const log: Log = (message, fields) => {
    if (message === 'signing keys could not be fetched') reasons.push(String((fields as Members).reason));
  };

  const keys = createKeySet('idp', async () => document as JsonObject, new TestClock(NOW * 1000), log);
  await keys.refresh();
  // A key set takes an error of its own for a failed fetch.
  if (reasons.includes('unforeseen')) throw new Error('the key set was not read for an unforeseen reason');
  const verify = createTokenVerifier([{ ...RULES, keys }], new TestClock(NOW * 1000), 0);
  const verified = await verify(token);
  return verified instanceof Refused
    ? refused(reasons[0] ?? verified.refusal.reason)
    : accepted(spelled(verifiedOf(verified).claims));
}

/** jose asks its caller to try every key that fits. */
async function verifyWithJose(document: Members, token: string): Promise<string> {
  // jose refuses a whole set for one member that is not an object; RFC 7517 §5 has a reader ignore keys that
  // it cannot use.
  const keys = Array.isArray(document.keys) ? document.keys.filter(isJsonObject) : document.keys;
  const options = {
    issuer: RULES.issuer,
    audience: RULES.audience.map(String),
    algorithms: ['RS256'],
    currentDate: new Date(NOW * 1000),
  };
  const candidates: CryptoKey[] = [];
  try {
    return spelled((await jwtVerify(token, createLocalJWKSet({ keys } as JSONWebKeySet), options)).payload);
  } catch (failure) {
    if (!(failure instanceof errors.JWKSMultipleMatchingKeys)) throw failure;
    for await (const key of failure) candidates.push(key);
  }
  for (const key of candidates) {
    const verdict = await judgedByOther(async () => spelled((await jwtVerify(token, key, options)).payload));
    if (verdict.accepted) return verdict.reading;
  }
  throw new Error('no key of several fits');
}

const RSA_MEMBERS = ['kty', 'kid', 'use', 'alg', 'n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/**
 * Only what docs/tokens.md, 3 looks at: of `key_ops` that it has `verify`, and no member that an RSA key does
 * not have. jose asks for more, and Node's WebCrypto below it fails on such a member when it cannot be made
 * text.
 */
function reduced(document: Members): Members {
  if (!Array.isArray(document.keys)) return document;
  return {
    ...document,
    keys: document.keys.map((jwk) => {
      if (!isJsonObject(jwk)) return jwk;
      const { key_ops: operations } = jwk;
      const kept = Object.fromEntries(Object.entries(jwk).filter(([name]) => RSA_MEMBERS.includes(name)));
      if (operations === undefined) return kept;
      return {
        ...kept,
        key_ops: Array.isArray(operations) && operations.includes('verify') ? ['verify'] : operations,
      };
    }),
  };
}

export async function fuzzKeySet(random: Random): Promise<Outcome> {
  const document = documentFrom(random);
  const token = random.pick(TOKENS);
  const input = { document, token };
  // verify/keys/fetch.ts hands over JSON objects only.
  if (!isJsonObject(document)) return { input, ours: refused('not-json'), others: {} };
  const ours = await judge(document, token);
  const jose = await judgedByOther(() => verifyWithJose(document as Members, token));
  if (!ours.accepted || jose.accepted) return { input, ours, others: { jose } };
  const again = await judgedByOther(() => verifyWithJose(reduced(document as Members), token));
  const leniency =
    'key_ops with more than verify, or members that play no part (docs/tokens.md, 3; RFC 7517 §4)';
  return { input, ours, others: { jose: again }, leniency };
}
