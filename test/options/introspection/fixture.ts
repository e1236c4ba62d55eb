/* A verifier whose issuer is asked about its tokens, with a clock that the test moves and with answers that
   the test gives. */
import { EventEmitter, once } from 'node:events';
import { introspection, type IntrospectionOptions } from '../../../src/introspection.ts';
import { createLog } from '../../../src/options/log.ts';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { issuerOf, type IntrospectToken, type IssuersValues } from '../../../src/verify/options.ts';
import {
  createTokenVerifier,
  verifiedOf,
  type Introspect,
  type Issuer,
} from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import {
  AUDIENCE,
  DOMAIN,
  ISSUER,
  keySetOf,
  NOW,
  RULES,
  type Members,
  type Rules,
} from '../../verify/token/issuer.ts';

/** Has a form that no JWT has. */
export const OPAQUE = 'secret-opaque_token.~+/==';

/** What an issuer says of a good token. */
export const ACTIVE: Members = { active: true, iss: ISSUER, sub: 'auth0|user', aud: AUDIENCE, exp: NOW + 60 };

export interface Plan {
  readonly options?: Partial<IntrospectionOptions>;
  readonly rules?: Partial<Rules>;
  /** Of all issuers. */
  readonly values?: Partial<IssuersValues>;
  /** What the issuer says, at first. Default: `ACTIVE`. */
  readonly say?: (token: string) => unknown;
}

export interface Stand {
  readonly clock: TestClock;
  /** The token of each question so far. */
  readonly asked: readonly string[];
  readonly logs: readonly Record<string, unknown>[];
  readonly counts: readonly string[];
  readonly introspect: Introspect;
  /** What the issuer says from now on. */
  say: (token: string) => unknown;
  /** `accepted`, or the reason of the refusal. */
  verdict(token?: string): Promise<string>;
  /** The claims, frozen. */
  claims(token?: string): Promise<JsonObject>;
  /** The refusal. */
  refused(token?: string): Promise<Refused>;
  /** Resolves once so many questions were asked. */
  askedTimes(count: number): Promise<void>;
}

const CLIENT = { clientId: 'orders-api', clientSecret: 'secret-word' };

/** Around what `introspection` makes. */
export async function openStand({ options, rules = {}, values, say }: Plan = {}): Promise<Stand> {
  const clock = new TestClock(NOW * 1000);
  const asked: string[] = [];
  const logs: Record<string, unknown>[] = [];
  const counts: string[] = [];
  const changes = new EventEmitter().setMaxListeners(0);

  const introspectToken: IntrospectToken = async (token) => {
    asked.push(token);
    changes.emit('asked');
    return (await stand.say(token)) as JsonObject;
  };

  const surroundings = {
    clock,
    log: createLog('debug', (line) => void logs.push(JSON.parse(line)), clock.now),
    count: (event: string, word: string, issuer = '') =>
      void counts.push([event, word, issuer].filter(Boolean).join(' ')),
  };
  const part = introspection({ tokens: ['opaque'], ...CLIENT, ...options });
  const issuer = { ...issuerOf({ domain: DOMAIN, audience: AUDIENCE }), ...rules };
  const all = {
    issuers: { idp: issuer },
    tokenCacheEntries: 100,
    dpopMode: 'ALLOWED',
    introspect: introspectToken,
    ...values,
  } as IssuersValues;
  const introspect = Part.contentOf(part).create(issuer, 'idp', all, surroundings);

  const keys = new KeySet('idp', async () => keySetOf(), { clock, log: () => {}, count: undefined });
  await keys.refresh();
  const served: Issuer = { ...RULES, ...rules, keys, introspect };
  const verify = createTokenVerifier([served], clock, 100, surroundings.count);

  const stand: Stand = {
    clock,
    asked,
    logs,
    counts,
    introspect,
    say: say ?? (() => ACTIVE),

    async verdict(token = OPAQUE) {
      const verified = await verify(token);
      return verified instanceof Refused ? verified.refusal.reason : 'accepted';
    },

    async claims(token = OPAQUE) {
      const verified = await verify(token);
      if (verified instanceof Refused) throw new Error(verified.refusal.reason);
      return verifiedOf(verified).claims;
    },

    async refused(token = OPAQUE) {
      const verified = await verify(token);
      if (verified instanceof Refused) return verified;
      throw new Error('accepted');
    },

    async askedTimes(count) {
      while (asked.length < count) await once(changes, 'asked');
    },
  };
  return stand;
}

/** Lets everything that waits for nothing go on. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
