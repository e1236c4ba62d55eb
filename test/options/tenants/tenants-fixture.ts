/* Issuers with tenants, made of options as a gate makes them, with keys from the test and a clock that it moves. */
import { Part } from '../../../src/verify/base/option.ts';
import { readGateOptions, type GateOptions } from '../../../src/gate/options.ts';
import { createLog } from '../../../src/options/log.ts';
import { tenants, type TenantsOptions } from '../../../src/tenants.ts';
import type { LogLevel } from '../../../src/verify/base/events.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { createIssuers, haveKeys } from '../../../src/gate/checks.ts';
import type { FetchKeys } from '../../../src/verify/options.ts';
import { createTokenVerifier, verifiedOf, type Issuer } from '../../../src/verify/token/verify.ts';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { signJws } from '../../idp/tokens.ts';
import { TestClock } from '../../support/clock.ts';
import { AUDIENCE, signingKey, type Members } from '../../verify/token/issuer.ts';

export const TEMPLATE = 'https://login.test/{tenant}/v2.0';

/** Of a key set that all tenants share. */
export const SHARED = 'https://login.test/common/keys';

/** Of a key set for each. */
export const OWN = 'https://login.test/{tenant}/keys';

export const issuerFor = (tenant: string) => `https://login.test/${tenant}/v2.0`;

/** The time of every test, in seconds since the epoch. */
export const NOW = 1_800_000_000;

export interface TenantToken {
  readonly claims?: Members;
  readonly header?: Members;
  readonly key?: KeyObject;
}

/** A good token of a tenant, which expires in a day. */
export const tokenOf = (tenant: string, { claims, header, key = signingKey.privateKey }: TenantToken = {}) =>
  signJws(
    { alg: 'RS256', typ: 'JWT', kid: signingKey.kid, ...header },
    { iss: issuerFor(tenant), sub: 'user', aud: AUDIENCE, exp: NOW + 86_400, tid: tenant, ...claims },
    key,
    'RS256',
  );

/** As Entra publishes them: without `alg`, with the issuer for which they are. */
export function entraKey(key: { publicJwk: JsonWebKey; kid: string }, issuer?: unknown) {
  const { kty, n, e } = key.publicJwk;
  return { kty, use: 'sig', kid: key.kid, x5t: key.kid, n, e, x5c: ['MIIC/TCCAeWg'], issuer };
}

export const GOOD_KEYS = { keys: [entraKey(signingKey, 'https://login.test/{tenantid}/v2.0')] };

export interface TenantPlan {
  readonly list?: readonly string[];
  readonly part?: Partial<TenantsOptions>;
  readonly jwksUri?: string;
  readonly options?: Partial<GateOptions>;
  readonly fetchKeys?: FetchKeys;
  readonly cacheEntries?: number;
  readonly level?: LogLevel;
}

/** `accepted`, or the reason of the refusal. */
export type Verdict = string;

export interface TenantStand {
  readonly clock: TestClock;
  readonly issuers: readonly Issuer[];
  readonly logs: Record<string, any>[];
  /** What was counted. */
  readonly counts: string[];
  /** The issuer and tenant of each fetch. */
  readonly fetches: string[];
  verdict(token: string): Promise<Verdict>;
  /** What an accepted token was verified for. */
  issuerOf(token: string): Promise<Issuer>;
  isReady(): boolean;
}

/** Fetches nothing until somebody asks. */
export function openTenants(plan: TenantPlan = {}): TenantStand {
  const { list = ['a', 'b'], part, jwksUri = SHARED, options, cacheEntries = 100, level = 'info' } = plan;
  const { fetchKeys = async () => GOOD_KEYS } = plan;
  const fetches: string[] = [];
  const counts: string[] = [];
  const logs: Record<string, any>[] = [];
  const clock = new TestClock(NOW * 1000);
  // Not 0, since no clock starts with the process.
  clock.advance(12_345);

  const values = readGateOptions({
    domain: 'login.test',
    audience: AUDIENCE,
    jwksUri,
    tenants: tenants({ issuer: TEMPLATE, list, ...part }),
    fetchKeys: (issuer, name, tenant) => {
      fetches.push([name, tenant].filter((one) => one !== undefined).join(' '));
      return fetchKeys(issuer, name, tenant);
    },
    ...options,
  });
  const log = createLog(level, (line) => logs.push(JSON.parse(line)), clock.now);
  const surroundings = {
    clock,
    log,
    level,
    count: (event: string, word: string, issuer = '') =>
      void counts.push(`${event} ${word} ${issuer}`.trim()),
  };
  const issuers = createIssuers(values, surroundings);
  const verify = createTokenVerifier(issuers, clock, cacheEntries, surroundings.count);

  return {
    clock,
    issuers,
    logs,
    counts,
    fetches,
    isReady: () => haveKeys(issuers),

    async verdict(token) {
      const verified = await verify(token);
      return verified instanceof Refused ? verified.refusal.reason : 'accepted';
    },

    async issuerOf(token) {
      const verified = await verify(token);
      if (verified instanceof Refused) throw verified;
      return verifiedOf(verified).issuer;
    },
  };
}

/** The rules of a part alone. */
export const contentOf = (options: TenantsOptions) => Part.contentOf(tenants(options));
