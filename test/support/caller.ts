/* Signed tokens, and callers made from them as the service does, for tests of what follows the token. */
import { KeySet } from '../../src/verify/keys/key-set.ts';
import { createSenderCheck, type Caller, type SenderCheck } from '../../src/verify/caller.ts';
import { createTokenVerifier, type TokenVerifier } from '../../src/verify/token/verify.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { signJws } from '../idp/tokens.ts';
import { atOnce, TestClock } from './clock.ts';
import { unlessRefused } from './refused.ts';
import { settingsFrom, type Environment } from './settings.ts';

const REQUIRED: Environment = {
  IDP_DOMAIN: 'idp.example',
  IDP_AUDIENCE: 'https://api.example',
  LOG_LEVEL: 'debug',
};

const key = makeSigningKey();
/** The time at which tokens are valid and callers call. */
export const clock = new TestClock();

/** Settings, of profile B by default. */
export const settingsWith = (environment: Environment = {}) => settingsFrom({ ...REQUIRED, ...environment });

const keys = new KeySet('idp', async () => ({ keys: [key.publicJwk] }), {
  clock,
  log: () => {},
  count: undefined,
});

await keys.refresh();

/** Verifies the tokens of `tokenWith`, for every issuer with the same key. */
export const verifierWith = (environment: Environment = {}, cacheEntries = 0): TokenVerifier => {
  const { issuers: all, clockToleranceSeconds } = settingsWith(environment);
  const issuers = Object.entries(all).map(([name, issuer]) => ({
    ...issuer,
    name,
    clockToleranceSeconds,
    keys,
  }));
  return createTokenVerifier(issuers, clock, cacheEntries);
};

export const verifyToken: TokenVerifier = verifierWith();

/** The same with a token cache. */
export const rememberToken: TokenVerifier = verifierWith({}, 10);

/** The sender check, for Bearer only: no proof is ever valid. */
export const senderWith = (environment: Environment = {}): SenderCheck =>
  createSenderCheck(settingsWith(environment), { record: () => 'full' });

/** A valid token with these claims besides the required ones; `undefined` omits a claim. */
export function tokenWith(claims: Record<string, unknown> = {}): string {
  const { issuer: iss, audience: aud } = settingsWith().issuers.idp!;
  const exp = Math.floor(clock.now() / 1000) + 600;
  return signJws(
    { alg: 'RS256', kid: key.kid },
    { iss, aud, sub: 'auth0|user', exp, ...claims },
    key.privateKey,
  );
}

/** The caller who presents such a token as Bearer, under these settings at this time. Throws `Refused`. */
export function callerWith(
  claims: Record<string, unknown>,
  environment: Environment = {},
  nowMillis = clock.now(),
): Caller {
  const token = tokenWith(claims);
  const facts = {
    method: 'GET',
    host: 'api.example',
    path: '/',
    rawHeaders: ['Host', 'api.example'],
  };
  const caller = senderWith(environment)(
    unlessRefused(atOnce(verifierWith(environment)(token))),
    { scheme: 'Bearer', token, proof: undefined },
    facts,
    nowMillis,
  );
  if (caller instanceof Promise) throw new Error('only a proof needs time');
  return unlessRefused(caller);
}
