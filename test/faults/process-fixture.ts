/* The built service in front of a provider of its own, and requests for it, for tests of what goes wrong
   around it. */
import { strict as assert } from 'node:assert';
import { randomBytes, randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { rawJws } from '../idp/tokens.ts';
import type { Response } from '../support/client.ts';
import {
  getBytes,
  inTurn,
  startLoad,
  type Load,
  type LoadPlan,
  type Shot,
  type Tally,
} from '../support/load.ts';
import { providerSettings, startProcess, type OutOfProcess, type TestProcess } from '../support/service.ts';

export interface ProcessFixture {
  readonly provider: Provider;
  readonly service: TestProcess;
  readonly pid: number;
}

export interface FixturePlan extends OutOfProcess {
  /** Default: a new one. Making its key holds up the process, and with it every load. */
  readonly provider?: Provider;
  /** The provider is down at first. */
  readonly isDown?: boolean;
}

/** Provider and service, the service with its keys unless the provider is down; both end with the test. */
export async function openFixture(context: TestContext, plan: FixturePlan = {}): Promise<ProcessFixture> {
  const {
    provider = await startProvider({ host: '127.0.0.1' }),
    isDown = false,
    environment,
    ...others
  } = plan;
  context.after(() => provider.stop());
  if (isDown) await provider.fault('all', 'refuse');
  const service = await startProcess({
    ...others,
    environment: { ...providerSettings(provider), ...environment },
  });
  context.after(() => service.stop());
  if (!isDown) await service.logged('signing keys loaded');
  return { provider, service, pid: service.child.pid! };
}

/**
 * Publishes the current key under one more name, as cheap as a rotation can be; gives a token that uses it.
 */
export function addKey(provider: Provider, kid: string): string {
  const { publicJwk } = provider.signingKey;
  provider.publish({ keys: [publicJwk, { ...publicJwk, kid }] });
  return provider.issue({}, { kid });
}

const PRIVATE = '/api/private';

/** A request with a good token of the current key. */
export const validShot = (provider: Provider, kind = 'valid'): Shot => ({
  kind,
  bytes: getBytes(PRIVATE, provider.issue({ sub: randomUUID() })),
});

/** Good requests with fifty tokens in turn. */
export const validShots = (provider: Provider) =>
  inTurn(Array.from({ length: 50 }, () => validShot(provider)));

const claims = { iss: 'https://localhost/', aud: 'https://api.test', sub: 'auth0|user', exp: 4_102_444_800 };

/** A token that nobody signed; `kid` is new each time unless given. */
export const unsignedToken = (kid: string = randomUUID(), more: Record<string, unknown> = {}) =>
  rawJws(JSON.stringify({ alg: 'RS256', typ: 'JWT', kid }), JSON.stringify({ ...claims, ...more }), () =>
    randomBytes(256),
  );

/** A request whose token is signed by nobody. */
export const unsignedShot = (kind: string, kid?: string, more?: Record<string, unknown>): Shot => ({
  kind,
  bytes: getBytes(PRIVATE, unsignedToken(kid, more)),
});

/** Good requests on a few connections, for as long as the test says. */
export function startGoodLoad({ provider, service }: ProcessFixture, plan: Partial<LoadPlan> = {}): Load {
  return startLoad({
    port: service.port,
    connections: 4,
    pauseMillis: 2,
    next: validShots(provider),
    ...plan,
  });
}

/** That every request of a good load was answered, and with 200. */
export function assertUntroubled(tally: Tally): void {
  assert.deepEqual([tally.except('valid 200'), tally.lost, tally.refusedConnections], [{}, 0, 0]);
  assert.ok(tally.answered > 0 && tally.answered === tally.sent);
}

export const privately = ({ service }: ProcessFixture, token: string): Promise<Response> =>
  service.ask(PRIVATE, { token });

/** docs/refusals.md: 503 with Retry-After from 1 to 30, and no challenge, since the token may be good. */
export function assertUnavailable({ status, headers, challenges }: Response): void {
  assert.deepEqual([status, challenges], [503, []]);
  assert.match(headers['retry-after'] ?? '', /^([1-9]|[12]\d|30)$/);
}

/** The warnings about fetches so far, by their reason. */
export const warnings = ({ logs }: TestProcess) =>
  logs
    .filter(({ level }) => level === 'warn' || level === 'error')
    .map(({ message, reason }) => `${message}: ${reason}`);
