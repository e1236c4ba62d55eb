/* Access tokens: made, changed and signed, or signed and changed; judged by gatehouse, jose and fast-jwt
   under the same rules, with every algorithm and with lists of several. */
import { verifiedOf } from '../../../src/verify/token/verify.ts';
import { atOnce } from '../../support/clock.ts';
import { unlessRefused } from '../../support/refused.ts';
import { AUDIENCE, ISSUER } from '../../verify/token/issuer.ts';
import { otherUse, publicSecret, transcoded } from './confusions.ts';
import { BASE, DEPLOYMENTS, KID, type Deployment, type UsableKey } from './deployments.ts';
import { publicJwk, rsaKey, signingKeys, signPs256, type Members, type Signer } from './keys.ts';
import { mutateMembers, mutateWhole, NOW, spell } from './mutations.ts';
import { judged, refused, spelled, type Outcome, type Verdict } from './outcome.ts';
import type { Random } from './random.ts';

export const SIGNING_JWK = { ...publicJwk(rsaKey), kid: KID, use: 'sig', alg: 'RS256' };

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

/** What a header has besides `alg` and `kid`. */
const TYPES: readonly Members[] = [{ typ: 'JWT' }, {}, { typ: 'at+jwt' }];

export const compact = (header: Buffer, payload: Buffer, signer: Signer): string => {
  const input = `${header.toString('base64url')}.${payload.toString('base64url')}`;
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`;
};

export const json = (members: Members) => Buffer.from(JSON.stringify(members));

/** How a key signs for its algorithm; an RSA key can do so for two. */
export function signerOf({ pair, algorithm }: UsableKey): Signer {
  if (pair !== signingKeys.rsa || algorithm === 'RS256') return pair.sign;

  return signPs256(rsaKey);
}

const headersFor = ({ kid, algorithm }: UsableKey, isAlone: boolean): readonly Members[] => [
  ...TYPES.map((more) => ({ alg: algorithm, ...more, ...(kid !== undefined && { kid }) })),
  ...(isAlone ? [{ alg: algorithm }] : []),
];

const goodTokensOf = ({ keys }: Deployment): readonly string[] =>
  keys.flatMap((key) =>
    claimSets.flatMap((claims) =>
      headersFor(key, keys.length === 1).map((header) => compact(json(header), json(claims), signerOf(key))),
    ),
  );

const GOOD = new Map(DEPLOYMENTS.map((deployment) => [deployment, goodTokensOf(deployment)]));

/** Good tokens of the deployment without settings, signed once. */
export const GOOD_TOKENS = GOOD.get(BASE)!;

const ALGORITHMS = [
  ...['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'],
  ...['Ed25519', 'HS256', 'none', 'None', 'RS384', 'RS512', 'PS384', 'PS512', 'ES256K', 'es256', ''],
];

/** Makes a token that does not fit its key: changes the header, and returns how to sign. */
function confuse(random: Random, deployment: Deployment, key: UsableKey, header: Members): Signer {
  const good = signerOf(key);
  const confusions = [
    () => {
      header.alg = random.pick(ALGORITHMS);
      return good;
    },
    () => {
      header.kid = random.pick(deployment.keys).kid ?? 'none';
      return good;
    },
    () => {
      const other = random.pick(deployment.keys);
      header.alg = random.chance(0.5) ? other.algorithm : key.algorithm;
      return signerOf(other);
    },
    () => {
      const { alg, signer } = publicSecret(random, key);
      if (random.chance(0.8)) header.alg = alg;
      return signer;
    },
    () => {
      if (random.chance(0.5)) header.alg = random.pick(ALGORITHMS);
      return otherUse(random, key);
    },
    () => (input: Buffer) => transcoded(random, key.algorithm, good(input)),
    () => (input: Buffer) => transcoded(random, key.algorithm, good(input)),
    () => {
      header.alg = random.pick(['none', 'None', 'NONE', 'nOnE', '', null]);
      return random.chance(0.5) ? good : () => Buffer.alloc(0);
    },
    () => {
      header.alg = random.pick(ALGORITHMS);
      return random.pick(Object.values(signingKeys)).sign;
    },
  ];
  return random.pick(confusions)();
}

/** A token that is made anew, with changes before and perhaps after it is signed. */
function freshToken(random: Random, deployment: Deployment): string {
  const key = random.pick(deployment.keys);
  const header = { ...random.pick(headersFor(key, deployment.keys.length === 1)) };
  const claims = { ...random.pick(claimSets) };
  for (let changes = random.below(3); changes > 0; changes -= 1) {
    mutateMembers(random, random.chance(0.35) ? header : claims);
  }
  const signer = random.chance(0.6) ? signerOf(key) : confuse(random, deployment, key, header);
  const token = compact(spell(random, header), spell(random, claims), signer);
  return random.chance(0.1) ? mutateWhole(random, token) : token;
}

/** A token whose claims are good, so that its signature and its header alone decide. */
function confusedToken(random: Random, deployment: Deployment): string {
  const key = random.pick(deployment.keys);
  const header = { ...random.pick(headersFor(key, deployment.keys.length === 1)) };
  const signer = confuse(random, deployment, key, header);
  return compact(json(header), json(random.pick(claimSets)), signer);
}

export const anyToken = (random: Random, fresh: number, deployment = BASE): string =>
  random.chance(fresh)
    ? freshToken(random, deployment)
    : mutateWhole(random, random.pick(GOOD.get(deployment)!));

export const { newVerifier, judgeByOthers } = BASE;

/** What a verifier says of the token, which must be the same when it sees the token again. */
function judgeToken(token: string, { newVerifier: create }: Deployment): Verdict {
  const verify = create();
  const judge = () => judged(() => spelled(verifiedOf(unlessRefused(atOnce(verify(token)))).claims));
  const first = judge();
  const again = judge();
  if (spelled(first) !== spelled(again)) throw new Error(`remembered: ${spelled([first, again])}`);
  return first;
}

/** Of a token or a proof whose header was read. */
export const headerOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as Members;

/**
 * Which rule of docs/how-a-request-is-checked.md refused an algorithm (the list, the name of RFC 9864, or the key), so that
 * each is explained on its own in reasons.ts.
 */
function refined(verdict: Verdict, token: string, { algorithms }: Deployment): Verdict {
  if (verdict.accepted || verdict.reason !== 'algorithm-refused') return verdict;

  const { alg } = headerOf(token);
  if (alg === 'Ed25519') return refused('algorithm-refused: Ed25519');
  return refused(`algorithm-refused: ${algorithms.some((name) => name === alg) ? 'key' : 'list'}`);
}

export async function fuzzToken(random: Random): Promise<Outcome> {
  const deployment = random.chance(0.2) ? BASE : random.pick(DEPLOYMENTS);
  const token = random.chance(0.35) ? confusedToken(random, deployment) : anyToken(random, 0.4, deployment);
  const { algorithms, jwks } = deployment;
  const ours = refined(judgeToken(token, deployment), token, deployment);
  return {
    input: { token, algorithms, jwks },
    ours,
    others: await deployment.judgeByOthers(token),
    ...(ours.accepted && { algorithm: String(headerOf(token).alg) }),
  };
}
