/* Tokens and a verifier without a network: one change at a time, verified with every size of cache. */
import assert from 'node:assert/strict';
import { sign, type JsonWebKey } from 'node:crypto';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { Refused, type Refusal } from '../../../src/verify/base/refusal.ts';
import type { Issuer } from '../../../src/verify/token/verify.ts';
import { createTokenVerifier, type VerifiedToken } from '../../../src/verify/token/verify.ts';
import { makeSigningKey } from '../../idp/keys.ts';
import { rawJws, signJws, type Algorithm } from '../../idp/tokens.ts';
import { andThen, type MaybePromise } from '../../../src/verify/base/clock.ts';
import { TestClock } from '../../support/clock.ts';
import { laterUnlessRefused } from '../../support/refused.ts';

export const DOMAIN = 'idp.test';
export const ISSUER = `https://${DOMAIN}/`;
export const AUDIENCE = 'https://api.test';
/** The time of every test, in seconds since the epoch. */
export const NOW = 1_800_000_000;

/** What an issuer has besides its keys. */
export type Rules = Omit<Issuer, 'keys'>;

export const RULES: Rules = {
  name: 'idp',
  issuer: ISSUER,
  audience: [AUDIENCE],
  claimNamespace: '',
  scopeClaim: 'scope',
  clockToleranceSeconds: 0,
  tokenType: 'any',
  algorithms: ['RS256'],
  requiredClaims: [],
};

/** The key that the issuer publishes, and another. */
export const signingKey = makeSigningKey();
export const foreignKey = makeSigningKey();

export type Members = Record<string, unknown>;
export const HEADER: Members = { alg: 'RS256', typ: 'JWT', kid: signingKey.kid };
export const CLAIMS: Members = { iss: ISSUER, sub: 'auth0|user', aud: AUDIENCE, exp: NOW + 60 };

/** A valid token except for these members. `undefined` leaves one out. */
export const issue = (
  claims: Members = {},
  header: Members = {},
  key = signingKey.privateKey,
  algorithm: Algorithm = 'RS256',
) => signJws({ ...HEADER, ...header }, { ...CLAIMS, ...claims }, key, algorithm);

/** A correctly signed token over exactly these texts or bytes. */
export const issueRaw = (header: string | Buffer, payload: string | Buffer) => rawJws(header, payload, rs256);

export const rs256 = (input: Buffer) => sign('sha256', input, signingKey.privateKey);

/**
 * The members as JSON, with exactly this JSON text for one of them, which `JSON.stringify` may be unable to
 * write.
 */
export function withText(members: Members, name: string, text: string): string {
  return `${JSON.stringify({ ...members, [name]: undefined }).slice(0, -1)},${JSON.stringify(name)}:${text}}`;
}

/** A token with this JSON text as a claim. */
export const issueClaim = (name: string, text: string, header: Members = {}) =>
  issueRaw(JSON.stringify({ ...HEADER, ...header }), withText(CLAIMS, name, text));

/** A token with this JSON text as a header member. */
export const issueHeader = (name: string, text: string) =>
  issueRaw(withText(HEADER, name, text), JSON.stringify(CLAIMS));

export type Verdict = 'accepted' | Refusal['reason'];

/** The capacity of the token cache: plenty, one, none. */
export const CAPACITIES = [10_000, 1, 0] as const;

export interface Circumstances {
  readonly rules?: Partial<Rules>;
  /** The keys of the set. Default: the signing key alone. */
  readonly jwks?: readonly unknown[];
  readonly nowMillis?: number;
}

export const keySetOf = (keys: readonly unknown[] = [signingKey.publicJwk]) => ({ keys });

/** Verifies at a time that the test chooses. */
export type TimedVerifier = (token: string, nowMillis?: number) => MaybePromise<VerifiedToken>;

/** A verifier with these keys. */
export function verifierOver(keys: KeySet, cacheEntries: number, rules: Partial<Rules> = {}): TimedVerifier {
  const clock = new TestClock(NOW * 1000);
  const verify = createTokenVerifier([{ ...RULES, ...rules, keys }], clock, cacheEntries);
  return (token, nowMillis = NOW * 1000) => {
    clock.set(nowMillis);
    return laterUnlessRefused(verify(token));
  };
}

/** A verifier with its keys fetched. */
export async function openVerifier(
  cacheEntries: number,
  { rules, jwks }: Circumstances = {},
): Promise<TimedVerifier> {
  const keys = new KeySet('idp', async () => keySetOf(jwks), {
    clock: new TestClock(NOW * 1000),
    log: () => {},
    count: undefined,
  });
  await keys.refresh();
  return verifierOver(keys, cacheEntries, rules);
}

/** Verifies often enough to be cached, if there is room. */
export function remember(
  verify: TimedVerifier,
  token: string,
  nowMillis?: number,
): MaybePromise<VerifiedToken> {
  return andThen(verify(token, nowMillis), () => verify(token, nowMillis));
}

/** The verdict on the token, after any fetches that it causes. */
export async function verdictOf(verify: TimedVerifier, token: string, nowMillis?: number): Promise<Verdict> {
  try {
    await remember(verify, token, nowMillis);
    return 'accepted';
  } catch (failure) {
    if (failure instanceof Refused) return failure.refusal.reason;
    throw failure;
  }
}

/** A token that every verifier with the usual settings accepts. */
export const GOOD = issue();

/** The verdict on the token with every size of cache: at first, after a valid token, and again. */
export async function verdict(token: string, circumstances: Circumstances = {}): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  for (const cacheEntries of CAPACITIES) {
    const verify = await openVerifier(cacheEntries, circumstances);
    verdicts.push(await verdictOf(verify, token, circumstances.nowMillis));
    await verdictOf(verify, GOOD, circumstances.nowMillis);
    verdicts.push(await verdictOf(verify, token, circumstances.nowMillis));
    verdicts.push(await verdictOf(verify, token, circumstances.nowMillis));
  }
  assert.equal(new Set(verdicts).size, 1, `verdicts differ: ${verdicts.join(', ')}`);
  return verdicts[0]!;
}

/** The JWK of this key with other members. */
export const published = (members: Members, key: JsonWebKey = signingKey.publicJwk): Members => ({
  ...key,
  ...members,
});
