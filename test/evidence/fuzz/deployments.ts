/* Deployments: an issuer's list of algorithms with the keys that it publishes, of one kind or mixed. A token is
   judged by gatehouse, jose and fast-jwt under the same list and the same keys. */
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import { ALGORITHM_NAMES, importSigningKey, type Algorithm } from '../../../src/verify/keys/jwk.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { createTokenVerifier, type TokenVerifier } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import { AUDIENCE, ISSUER, RULES } from '../../verify/token/issuer.ts';
import { signingKeys, type Members, type SigningPair } from './keys.ts';
import { NOW } from './mutations.ts';
import { judgedByOther, spelled, type Verdict } from './outcome.ts';

export const KID = 'key-1';

/** A key as it is published. */
interface Published {
  readonly pair: SigningPair;
  readonly kid?: string;
  readonly alg?: Algorithm;
}

export interface Deployment {
  readonly algorithms: readonly Algorithm[];
  /** Those that verify an algorithm of the list. */
  readonly keys: readonly UsableKey[];
  readonly jwks: JSONWebKeySet;
  readonly newVerifier: () => TokenVerifier;
  /** The verdicts of the others on a token under the same rules. */
  readonly judgeByOthers: (token: string) => Promise<Record<string, Verdict>>;
}

export interface UsableKey {
  readonly pair: SigningPair;
  readonly kid: string | undefined;
  /** The only one that it verifies. */
  readonly algorithm: Algorithm;
  readonly pem: string;
}

const jwkOf = ({ pair, kid, alg }: Published): Members => ({
  ...pair.jwk,
  ...(kid !== undefined && { kid }),
  ...(alg !== undefined && { alg, use: 'sig' }),
});

/**
 * The rule of docs/keys.md, implemented independently: a key verifies its own algorithm, or else the first on
 * the list that its type supports.
 */
function usable(published: Published, algorithms: readonly Algorithm[]): readonly UsableKey[] {
  const { pair, kid, alg } = published;
  const algorithm = alg ?? algorithms.find((name) => pair.algorithms.includes(name));
  if (algorithm === undefined || !algorithms.includes(algorithm)) return [];

  const key = createPublicKey({ key: pair.jwk as JsonWebKey, format: 'jwk' });
  return [{ pair, kid, algorithm, pem: key.export({ format: 'pem', type: 'spki' }).toString() }];
}

/**
 * A key set that holds its keys and has used up its fetch for unknown `kid`s, so that no case depends on
 * another.
 */
async function openKeys(jwks: JSONWebKeySet, algorithms: readonly Algorithm[]): Promise<KeySet> {
  const keys = new KeySet(
    'idp',
    async () => ({ ...jwks }),
    { clock: new TestClock(NOW * 1000), log: () => {}, count: undefined },
    (published) => importSigningKey(published, algorithms),
  );
  await keys.refresh();
  await keys.find('unknown', 'RS256');
  return keys;
}

/** The `kid` of a header, however it is spelled; fast-jwt leaves the choice of the key to its caller. */
function kidOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
  } catch {
    return undefined;
  }
}

async function deploy(
  algorithms: readonly Algorithm[],
  published: readonly Published[],
): Promise<Deployment> {
  const jwks = { keys: published.map(jwkOf) } as unknown as JSONWebKeySet;
  const keySet = await openKeys(jwks, algorithms);
  const keys = published.flatMap((one) => usable(one, algorithms));
  const localKeys = createLocalJWKSet(jwks);

  const joseRules = {
    issuer: ISSUER,
    audience: AUDIENCE,
    // RFC 9864 gives EdDSA with Ed25519 a name of its own.
    algorithms: [...algorithms, ...(algorithms.includes('EdDSA') ? ['Ed25519'] : [])],
    requiredClaims: ['exp', 'sub'],
    currentDate: new Date(NOW * 1000),
  };

  const verifiers = keys.map(({ kid, pem }) => ({
    kid,
    verify: createVerifier({
      key: pem,
      algorithms: [...algorithms],
      allowedIss: ISSUER,
      allowedAud: AUDIENCE,
      requiredClaims: ['iss', 'aud', 'exp', 'sub'],
      clockTimestamp: NOW * 1000,
      cache: false,
    }),
  }));

  const verifyWithFastJwt = (token: string) => {
    const kid = kidOf(token);
    const { verify } = verifiers.find((one) => one.kid === kid) ?? verifiers[0]!;
    return spelled(verify(token));
  };

  return {
    algorithms,
    keys,
    jwks,
    newVerifier: () =>
      createTokenVerifier([{ ...RULES, algorithms, keys: keySet }], new TestClock(NOW * 1000), 4),
    judgeByOthers: async (token) => ({
      jose: await judgedByOther(async () => spelled((await jwtVerify(token, localKeys, joseRules)).payload)),
      'fast-jwt': await judgedByOther(() => verifyWithFastJwt(token)),
    }),
  };
}

const { rsa, pss, p256, otherP256, p384, p521, ed25519 } = signingKeys;

const NAMED: readonly Published[] = [
  { pair: rsa, kid: KID, alg: 'RS256' },
  { pair: pss, kid: 'pss', alg: 'PS256' },
  { pair: p256, kid: 'p-256', alg: 'ES256' },
  { pair: p384, kid: 'p-384', alg: 'ES384' },
  { pair: p521, kid: 'p-521', alg: 'ES512' },
  { pair: ed25519, kid: 'ed25519', alg: 'EdDSA' },
];

const UNNAMED = NAMED.map(({ pair, kid }) => ({ pair, kid: kid! }));

const named = (algorithm: Algorithm) => NAMED.filter(({ alg }) => alg === algorithm);

const BOTH_RSA: readonly Published[] = [
  { pair: rsa, kid: KID, alg: 'RS256' },
  { pair: rsa, kid: 'same-modulus', alg: 'PS256' },
];

/** RS256 with one key: what an operator gets who sets nothing. */
export const BASE = await deploy(['RS256'], named('RS256'));

export const DEPLOYMENTS: readonly Deployment[] = [
  BASE,
  ...(await Promise.all(ALGORITHM_NAMES.map((name) => deploy([name], named(name))))),
  // Every list meets keys that it does not allow.
  ...(await Promise.all(ALGORITHM_NAMES.map((name) => deploy([name], NAMED)))),
  await deploy(ALGORITHM_NAMES, NAMED),
  await deploy([...ALGORITHM_NAMES].reverse(), NAMED),
  // An RSA key without alg has the first on the list that it can.
  await deploy(ALGORITHM_NAMES, UNNAMED),
  await deploy(['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'], UNNAMED),
  await deploy(['RS256', 'PS256'], BOTH_RSA),
  await deploy(['PS256', 'RS256'], [{ pair: rsa, kid: KID }]),
  await deploy(['RS256', 'PS256'], [{ pair: rsa }]),
  await deploy(['PS256', 'ES256', 'EdDSA'], NAMED),
  await deploy(['RS256', 'ES256'], [...named('RS256'), ...named('ES256')]),
  await deploy(['RS256', 'EdDSA'], UNNAMED),
  await deploy(['ES384', 'ES512'], UNNAMED),
  await deploy(
    ['ES256'],
    [
      { pair: p256, kid: 'p-256', alg: 'ES256' },
      { pair: otherP256, kid: 'other', alg: 'ES256' },
    ],
  ),
  await deploy(['EdDSA'], [{ pair: ed25519 }]),
  await deploy(['ES512', 'EdDSA'], [{ pair: p521, alg: 'ES512' }]),
];
