/* Key sets: changed keys and documents, and whether a valid token is accepted with them. */
import { createLocalJWKSet, jwtVerify, errors, type CryptoKey, type JSONWebKeySet } from 'jose';
import { isJsonObject, type JsonObject } from '../../../src/verify/base/encoding.ts';
import { ALGORITHM_NAMES, type Algorithm } from '../../../src/verify/keys/jwk.ts';
import { importSigningKey } from '../../../src/verify/keys/jwk.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import type { Log } from '../../../src/verify/base/events.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { verifiedOf, createTokenVerifier } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import { AUDIENCE, ISSUER, RULES } from '../../verify/token/issuer.ts';
import { BASE, DEPLOYMENTS, KID, type UsableKey } from './deployments.ts';
import { CLIENTS, foreignKey, OWN_MEMBERS, privateJwk, publicJwk, rsaKey, type Members } from './keys.ts';
import { mutateMembers, mutateText, mutateValue, NOW } from './mutations.ts';
import { accepted, judgedByOther, refused, spelled, type Outcome, type Verdict } from './outcome.ts';
import type { Random } from './random.ts';
import { compact, json, signerOf, SIGNING_JWK } from './tokens.ts';

const CLAIMS = { iss: ISSUER, sub: 'user', aud: AUDIENCE, exp: NOW + 60 };

/** A key of the issuer, and tokens that it signed, under every way to name it. */
interface Subject {
  readonly algorithm: Algorithm;
  readonly jwk: Members;
  readonly tokens: readonly string[];
}

const KIDS = [{ kid: KID }, {}, { kid: 'other' }, { kid: '' }, { kid: '__proto__' }, { kid: 'key-2' }];

function subjectOf(key: UsableKey): Subject {
  const { algorithm, pair } = key;
  const jwk = { ...pair.jwk, kid: KID, use: 'sig', alg: algorithm };
  const tokens = KIDS.map((members) =>
    compact(json({ alg: algorithm, ...members }), json(CLAIMS), signerOf(key)),
  );
  return { algorithm, jwk, tokens };
}

/** One for each algorithm; the first is that of a deployment without settings. */
const SUBJECTS = [
  BASE,
  ...ALGORITHM_NAMES.map((name) => DEPLOYMENTS.find((one) => one.algorithms.join() === name)!),
].map(({ keys }) => subjectOf(keys[0]!));

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

const CURVES = ['P-256', 'P-384', 'P-521', 'secp256k1', 'Ed25519', 'Ed448', 'X25519', 'p-256', '', null];

const padded = (bytes: Buffer) => Buffer.concat([Buffer.alloc(1), bytes]);

/** Other spellings of a coordinate, and other coordinates. */
const inCoordinate: readonly ((text: string) => unknown)[] = [
  (text) => padded(Buffer.from(text, 'base64url')).toString('base64url'),
  (text) => Buffer.from(text, 'base64url').subarray(1).toString('base64url'),
  (text) => Buffer.from(text, 'base64url').subarray(0, -1).toString('base64url'),
  (text) => Buffer.from(text, 'base64url').toString('base64'),
  (text) => `${text}=`,
  (text) => `${text} `,
  (text) => `${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`,
  (text) => Buffer.from(text, 'base64url').reverse().toString('base64url'),
  (text) => Buffer.alloc(Buffer.from(text, 'base64url').length).toString('base64url'),
  (text) => Buffer.alloc(Buffer.from(text, 'base64url').length, 0xff).toString('base64url'),
  (text) => Buffer.from(text, 'base64url').toString('hex'),
  () => '',
  () => 'AQ',
  () => 1,
];

/** Changes the point of an EC or OKP key. */
function mutatePoint(random: Random, jwk: Members): void {
  const changes = [
    () => ({ x: jwk.y, y: jwk.x }),
    () => ({ y: jwk.x }),
    () => ({ y: undefined }),
    () => ({ crv: random.pick(CURVES) }),
    () => ({ kty: random.pick(['EC', 'OKP', 'RSA', 'oct', 'ec', null]) }),
    () => ({ x: random.pick(inCoordinate)(String(jwk.x)) }),
    () => ({ x: random.pick(inCoordinate)(String(jwk.x)) }),
    () => ({ y: random.pick(inCoordinate)(String(jwk.y ?? jwk.x)) }),
    () => ({ x: random.pick(SUBJECTS).jwk.x, y: random.pick(SUBJECTS).jwk.y }),
  ];
  Object.assign(jwk, random.pick(changes)());
}

const OPERATIONS = [
  ['verify'],
  ['verify', 'verify'],
  ['sign', 'verify'],
  [],
  'verify',
  ['verify', 1],
  ['Verify'],
];

const OTHERS: readonly Members[] = [
  { ...publicJwk(foreignKey), kid: 'key-2', use: 'sig' },
  { ...publicJwk(foreignKey) },
  { ...privateJwk(rsaKey), kid: KID },
  { ...SIGNING_JWK, n: MODULI[4] },
  ...SUBJECTS.map(({ jwk }) => jwk),
  ...SUBJECTS.map(({ jwk }) => ({ ...jwk, kid: 'key-2' })),
  ...CLIENTS.map(({ jwk, alg }) => ({ ...jwk, alg, kid: KID })),
  { kty: 'oct', k: SIGNING_JWK.n, kid: KID, alg: 'HS256' },
  { kty: 'RSA' },
  { kty: 'EC', crv: 'P-256' },
  { kty: 'OKP', crv: 'Ed25519' },
  {},
];

function keyFrom(random: Random, { jwk: own }: Subject): unknown {
  if (random.chance(0.03)) return random.pick([null, 'key', 1, [], [own], true]);

  const bare = { ...own, alg: undefined, kid: random.pick([KID, undefined]) };
  const jwk: Members = { ...random.pick(random.chance(0.6) ? [own, own, own, bare] : OTHERS) };
  if (jwk.kty === 'RSA' && random.chance(0.15)) jwk.n = random.pick(MODULI);
  if (jwk.kty === 'RSA' && random.chance(0.15)) jwk.e = random.pick(EXPONENTS);
  if (jwk.kty !== 'RSA' && random.chance(0.3)) mutatePoint(random, jwk);
  if (random.chance(0.1)) jwk.alg = random.pick([...ALGORITHM_NAMES, 'Ed25519', 'HS256', 'none', undefined]);
  if (random.chance(0.1)) jwk.kid = random.pick(['other', '', '__proto__', 'key-2', 1, null, KID]);
  if (random.chance(0.1)) jwk.key_ops = random.pick(OPERATIONS);
  for (let changes = random.pick([0, 0, 1, 2]); changes > 0; changes -= 1) mutateMembers(random, jwk);
  return jwk;
}

function documentFrom(random: Random, subject: Subject): unknown {
  const size = random.chance(0.005) ? 99 + random.below(4) : random.pick([1, 1, 1, 2, 2, 3, 4]);
  const document: Members = { keys: Array.from({ length: size }, () => keyFrom(random, subject)) };
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
async function judge(document: unknown, token: string, algorithms: readonly Algorithm[]): Promise<Verdict> {
  const reasons: string[] = [];

  const log: Log = (message, fields) => {
    if (message === 'signing keys could not be fetched') reasons.push(String((fields as Members).reason));
  };

  const clock = new TestClock(NOW * 1000);
  const importKey: typeof importSigningKey = (jwk) => importSigningKey(jwk, algorithms);
  const keys = new KeySet(
    'idp',
    async () => document as JsonObject,
    { clock, log, count: undefined },
    importKey,
  );
  await keys.refresh();
  // A bug in the key set would also count as a failed fetch, so it must fail the run.
  if (reasons.includes('unforeseen')) throw new Error('the key set was not read for an unforeseen reason');
  const verify = createTokenVerifier([{ ...RULES, algorithms, keys }], clock, 0);
  const verified = await verify(token);
  return verified instanceof Refused
    ? refused(reasons[0] ?? verified.refusal.reason)
    : accepted(spelled(verifiedOf(verified).claims));
}

/** jose asks its caller to try every key that fits. */
async function verifyWithJose(
  document: Members,
  token: string,
  algorithms: readonly Algorithm[],
): Promise<string> {
  // jose refuses a whole set for one member that is not an object; RFC 7517 §5 has a reader ignore keys that
  // it cannot use.
  const keys = Array.isArray(document.keys) ? document.keys.filter(isJsonObject) : document.keys;
  const options = {
    issuer: RULES.issuer,
    audience: RULES.audience.map(String),
    algorithms: [...algorithms],
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

const COMMON_MEMBERS = ['kty', 'kid', 'use', 'alg', 'd', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/**
 * Keeps what docs/how-a-request-is-checked.md, the token, 3 checks: that `key_ops` has `verify`, and the members that a key of this type
 * has and that are not null. jose asks for more, and Node's WebCrypto below it fails on another member that cannot be made text.
 */
function reduced(document: Members): Members {
  if (!Array.isArray(document.keys)) return document;
  return {
    ...document,
    keys: document.keys.map((jwk) => {
      if (!isJsonObject(jwk)) return jwk;
      const { key_ops: operations } = jwk;
      const names = [...COMMON_MEMBERS, ...(OWN_MEMBERS[String(jwk.kty)] ?? [])];
      const kept = Object.fromEntries(
        Object.entries(jwk).filter(([name, value]) => names.includes(name) && value !== null),
      );
      if (operations === undefined || operations === null) return kept;
      return {
        ...kept,
        key_ops: Array.isArray(operations) && operations.includes('verify') ? ['verify'] : operations,
      };
    }),
  };
}

/** The lists of algorithms to try: this one alone, and all of them in both orders. */
const listsFor = ({ algorithm }: Subject): readonly (readonly Algorithm[])[] => [
  [algorithm],
  [algorithm],
  ALGORITHM_NAMES,
  [...ALGORITHM_NAMES].reverse(),
];

export async function fuzzKeySet(random: Random): Promise<Outcome> {
  const subject = random.pick(SUBJECTS);
  const algorithms = random.pick(listsFor(subject));
  const document = documentFrom(random, subject);
  const token = random.pick(subject.tokens);
  const input = { document, token, algorithms };
  // verify/keys/fetch.ts hands over JSON objects only.
  if (!isJsonObject(document)) return { input, ours: refused('not-json'), others: {} };
  const ours = await judge(document, token, algorithms);
  const jose = await judgedByOther(() => verifyWithJose(document as Members, token, algorithms));
  if (!ours.accepted || jose.accepted) return { input, ours, others: { jose } };
  const again = await judgedByOther(() => verifyWithJose(reduced(document as Members), token, algorithms));
  const leniency =
    'key_ops with more than verify, or members that are null or play no part (docs/how-a-request-is-checked.md, the token, 3; RFC 7517 §4)';
  return { input, ours, others: { jose: again }, leniency };
}
