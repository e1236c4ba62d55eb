/* Signed tokens, and callers made of them as the service makes them, for tests of what comes after the
   token. */
import { KeySet } from '../../src/keys/key-set.ts';
import type { Timing } from '../../src/routes/guards.ts';
import { createSenderCheck, type Caller, type SenderCheck } from '../../src/sender/caller.ts';
import { createTokenVerifier, type TokenVerifier } from '../../src/token/verify.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { signJws } from '../idp/tokens.ts';
import { atOnce, TestClock } from './clock.ts';
import { settingsFrom, type Environment } from './service.ts';

const REQUIRED: Environment = {
  IDP_DOMAIN: 'idp.example',
  IDP_AUDIENCE: 'https://api.example',
  LOG_LEVEL: 'debug',
};

const key = makeSigningKey();
/** The time at which tokens are good and callers call. */
export const clock = new TestClock();

/** What guards tell the age of a login by. */
export const timing: Timing = { clock, clockToleranceSeconds: 0 };

/** Settings of profile B unless told otherwise. */
export const settingsWith = (environment: Environment = {}) => settingsFrom({ ...REQUIRED, ...environment });

const keys = new KeySet(
  async () => ({ keys: [key.publicJwk] }),
  clock,
  () => {},
);

await keys.refresh();

/** Verifies the tokens of `tokenWith`. */
export const verifyToken: TokenVerifier = createTokenVerifier(settingsWith(), keys, clock, 0);

/** The same, which remembers them. */
export const rememberToken: TokenVerifier = createTokenVerifier(settingsWith(), keys, clock, 10);

/** Judges how tokens are presented; for Bearer only, since no proof is ever good. */
export const senderWith = (environment: Environment = {}): SenderCheck => {
  const verifyProof = () => {
    throw new Error('there are no proofs here');
  };

  return createSenderCheck(settingsWith(environment), verifyProof, { record: () => 'full' });
};

/** A good token with these claims beside the required ones; `undefined` leaves a claim out. */
export function tokenWith(claims: Record<string, unknown> = {}): string {
  const { issuer: iss, audience: aud } = settingsWith();
  const exp = Math.floor(clock.now() / 1000) + 600;
  return signJws(
    { alg: 'RS256', kid: key.kid },
    { iss, aud, sub: 'auth0|user', exp, ...claims },
    key.privateKey,
  );
}

/** Whoever presents such a token as Bearer under these settings. Throws `Refused`. */
export function callerWith(claims: Record<string, unknown>, environment: Environment = {}): Caller {
  const token = tokenWith(claims);
  const presentation = {
    method: 'GET',
    host: 'api.example',
    path: '/',
    rawHeaders: ['Host', 'api.example'],
  };
  const caller = senderWith(environment)(
    atOnce(verifyToken(token)),
    { scheme: 'Bearer', token, proof: undefined },
    presentation,
    clock.now(),
  );
  if (caller instanceof Promise) throw new Error('only a proof needs time');
  return caller;
}
