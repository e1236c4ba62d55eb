/* The built service with its own provider, and requests for it, for tests of faults. */
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
import { providerSettings, startProcess, type OutOfProcess, type TestProcess } from '../support/process.ts';

export interface ProcessFixture {
  readonly provider: Provider;
  readonly service: TestProcess;
  readonly pid: number;
}

export interface FixturePlan extends OutOfProcess {
  /** Default: a new one. Making its key blocks the process, and with it every load. */
  readonly provider?: Provider;
  /** The provider is down at first. */
  readonly isDown?: boolean;
}

/** Starts provider and service, with keys unless the provider is down. Both end with the test. */
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

/** Publishes the current key under another kid, the cheapest rotation, and returns a token with it. */
export function addKey(provider: Provider, kid: string): string {
  const { publicJwk } = provider.signingKey;
  provider.publish({ keys: [publicJwk, { ...publicJwk, kid }] });
  return provider.issue({}, { kid });
}

const PRIVATE = '/api/private';

/** A request with a valid token of the current key. */
export const validShot = (provider: Provider, kind = 'valid'): Shot => ({
  kind,
  bytes: getBytes(PRIVATE, provider.issue({ sub: randomUUID() })),
});

/** Valid requests with fifty tokens in turn. */
export const validShots = (provider: Provider) =>
  inTurn(Array.from({ length: 50 }, () => validShot(provider)));

const claims = { iss: 'https://localhost/', aud: 'https://api.test', sub: 'auth0|user', exp: 4_102_444_800 };

/** A token without a valid signature; by default with a new `kid` each time. */
export const unsignedToken = (kid: string = randomUUID(), more: Record<string, unknown> = {}) =>
  rawJws(JSON.stringify({ alg: 'RS256', typ: 'JWT', kid }), JSON.stringify({ ...claims, ...more }), () =>
    randomBytes(256),
  );

/** A request with a token that nobody signed. */
export const unsignedShot = (kind: string, kid?: string, more?: Record<string, unknown>): Shot => ({
  kind,
  bytes: getBytes(PRIVATE, unsignedToken(kid, more)),
});

/** Valid requests on a few connections, for as long as the test needs. */
export function startGoodLoad({ provider, service }: ProcessFixture, plan: Partial<LoadPlan> = {}): Load {
  return startLoad({
    port: service.port,
    connections: 4,
    pauseMillis: 2,
    next: validShots(provider),
    ...plan,
  });
}

/** Asserts that every request of a valid load got a 200. */
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
