/* Access tokens: made, changed and signed, or signed and changed; judged by gatehouse, jose and fast-jwt
   under the same rules. */
import { createHmac, createPublicKey, sign } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { createKeySet, type KeySet } from '../../../src/verify/keys/key-set.ts';
import { verifiedOf, createTokenVerifier, type TokenVerifier } from '../../../src/verify/token/verify.ts';
import { atOnce, TestClock } from '../../support/clock.ts';
import { unlessRefused } from '../../support/refused.ts';
import { AUDIENCE, ISSUER, RULES } from '../../verify/token/issuer.ts';
import { foreignKey, publicJwk, rsaKey, signPs256, signRs256, type Members, type Signer } from './keys.ts';
import { mutateMembers, mutateWhole, NOW, spell } from './mutations.ts';
import { judged, judgedByOther, spelled, type Outcome, type Verdict } from './outcome.ts';
import { Random } from './random.ts';

export const KID = 'key-1';
export const SIGNING_JWK = { ...publicJwk(rsaKey), kid: KID, use: 'sig', alg: 'RS256' };

const publicPem = createPublicKey(rsaKey).export({ format: 'pem', type: 'spki' }).toString();
export const right = signRs256(rsaKey);

const hs256 =
  (secret: string): Signer =>
  (input) =>
    createHmac('sha256', secret).update(input).digest();

const wrongSigners: readonly Signer[] = [
  hs256(publicPem),
  hs256(JSON.stringify(SIGNING_JWK)),
  hs256(''),
  hs256(SIGNING_JWK.n ?? ''),
  signRs256(foreignKey),
  signPs256(rsaKey),
  (input) => sign('sha512', input, rsaKey),
  (input) => sign('sha1', input, rsaKey),
  () => Buffer.alloc(0),
  () => Buffer.alloc(256),
];

const claimSets: readonly Members[] = [
  { iss: ISSUER, sub: 'auth0|user', aud: AUDIENCE, exp: NOW + 60 },
  {
    iss: ISSUER,
    sub: 'user',
    aud: [AUDIENCE, 'other'],
    exp: NOW + 60,
    iat: NOW,
    nbf: NOW,
    scope: 'read:messages admin:access',
  },
  {
    iss: ISSUER,
    sub: 'user',
    aud: AUDIENCE,
    exp: NOW + 1,
    token_use: 'access',
    typ: 'Bearer',
    roles: ['editor'],
    cnf: { jkt: 'x' },
  },
  {
    iss: ISSUER,
    sub: 'user',
    aud: [AUDIENCE],
    exp: NOW + 60,
    iat: NOW - 5,
    client_id: 'client',
    jti: 'id',
    nested: { a: [1] },
  },
];

const headers: readonly Members[] = [
  { alg: 'RS256', typ: 'JWT', kid: KID },
  { alg: 'RS256', kid: KID },
  { alg: 'RS256' },
  { alg: 'RS256', typ: 'at+jwt', kid: KID },
];

export const compact = (header: Buffer, payload: Buffer, signer: Signer): string => {
  const input = `${header.toString('base64url')}.${payload.toString('base64url')}`;
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`;
};

export const json = (members: Members) => Buffer.from(JSON.stringify(members));

/** Good tokens, signed once. */
export const GOOD_TOKENS = claimSets.flatMap((claims) =>
  headers.map((header) => compact(json(header), json(claims), right)),
);

/** A token that is made anew, with changes before and perhaps after it is signed. */
function freshToken(random: Random): string {
  const header = { ...random.pick(headers) };
  const claims = { ...random.pick(claimSets) };
  for (let changes = random.below(3); changes > 0; changes -= 1) {
    mutateMembers(random, random.chance(0.35) ? header : claims);
  }
  const signer = random.chance(0.9) ? right : random.pick(wrongSigners);
  if (signer !== right && random.chance(0.7)) {
    header.alg = random.pick(['HS256', 'none', 'None', 'PS256', 'RS512', 'RS256']);
  }
  const token = compact(spell(random, header), spell(random, claims), signer);
  return random.chance(0.1) ? mutateWhole(random, token) : token;
}

export const anyToken = (random: Random, fresh: number): string =>
  random.chance(fresh) ? freshToken(random) : mutateWhole(random, random.pick(GOOD_TOKENS));

/**
 * A key set that holds its keys and has used up its fetch for unknown `kid`s, so that no case depends on
 * another.
 */
async function openKeys(): Promise<KeySet> {
  const keys = createKeySet(
    'idp',
    async () => ({ keys: [SIGNING_JWK] }),
    new TestClock(NOW * 1000),
    () => {},
  );
  await keys.refresh();
  await keys.find('unknown');
  return keys;
}

const keys = await openKeys();

export const newVerifier = (): TokenVerifier =>
  createTokenVerifier([{ ...RULES, keys }], new TestClock(NOW * 1000), 4);

/** What a verifier says of the token, which must be the same when it sees the token again. */
export function judgeToken(token: string, verify = newVerifier()): Verdict {
  const judge = () => judged(() => spelled(verifiedOf(unlessRefused(atOnce(verify(token)))).claims));
  const first = judge();
  const again = judge();
  if (spelled(first) !== spelled(again)) throw new Error(`remembered: ${spelled([first, again])}`);
  return first;
}

const localKeys = createLocalJWKSet({ keys: [SIGNING_JWK] });

const JOSE_RULES = {
  issuer: ISSUER,
  audience: AUDIENCE,
  algorithms: ['RS256'],
  requiredClaims: ['exp', 'sub'],
  currentDate: new Date(NOW * 1000),
};

const verifyWithFastJwt = createVerifier({
  key: publicPem,
  algorithms: ['RS256'],
  allowedIss: ISSUER,
  allowedAud: AUDIENCE,
  requiredClaims: ['iss', 'aud', 'exp', 'sub'],
  clockTimestamp: NOW * 1000,
  cache: false,
});

/** The verdicts of the others on a token under the same rules. */
export const judgeByOthers = async (token: string): Promise<Record<string, Verdict>> => ({
  jose: await judgedByOther(async () => spelled((await jwtVerify(token, localKeys, JOSE_RULES)).payload)),
  'fast-jwt': await judgedByOther(() => spelled(verifyWithFastJwt(token))),
});

export async function fuzzToken(random: Random): Promise<Outcome> {
  const token = anyToken(random, 0.25);
  return { input: token, ours: judgeToken(token), others: await judgeByOthers(token) };
}
