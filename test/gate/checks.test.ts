/* What a gate and a service share: what each part of it gets, and that closing ends all of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChecks } from '../../src/gate/checks.ts';
import type { Early } from '../../src/gate/decide.ts';
import {
  readGateOptions,
  type Cors,
  type CorsContext,
  type GateOptions,
  type LogPart,
  type Metrics,
  type Resource,
  type Revocations,
  type Watched,
} from '../../src/gate/options.ts';
import { extraFields } from '../../src/gate/replies/reply.ts';
import { authenticated } from '../../src/gate/rules/access.ts';
import { createProof, createProofKey } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import type { Count, Log, LogLevel, Surroundings } from '../../src/verify/base/events.ts';
import { Part } from '../../src/verify/base/option.ts';
import { refuse } from '../../src/verify/base/refusal.ts';
import type { CreateReplayStore } from '../../src/verify/dpop/replay.ts';
import { TestClock } from '../support/clock.ts';

const issuer = makeIssuer();

const PARTNER = { domain: 'partner.test', audience: 'orders' };

const GET = { method: 'GET', pattern: '/orders' };

const REQUEST = { method: 'GET', url: '/orders', rawHeaders: [] };

const factsWith = (...rawHeaders: string[]) => ({
  method: 'GET',
  host: 'api.test',
  path: '/orders',
  rawHeaders,
});

interface Setup {
  readonly options?: Partial<GateOptions>;
  readonly level?: LogLevel;
  readonly serving?: { readonly isService?: boolean; readonly isPolicy?: boolean };
}

/** The checks of a service that logs each request, and what they log from then on. */
function openChecks({ options, level = 'info', serving }: Setup = {}) {
  const clock = new TestClock();
  const logged: unknown[] = [];
  const log: Log = (event) => void logged.push(event);
  const part: LogPart = Part.make('log', { log, level, isAccessLogged: true });
  const values = readGateOptions({ ...issuer.options, log: part, ...options });
  const server = { clock, name: 'orders', routes: [GET, GET], ownRoutes: [], isService: true, ...serving };
  const checks = createChecks(values, server);
  // That keys are not from the provider.
  logged.length = 0;
  return { checks, clock, log, logged };
}

/** Metrics, and what they were told. */
function listenToMetrics() {
  const counted: unknown[] = [];
  const ended: unknown[] = [];
  const watched = new Set<Watched>();
  const count: Count = (...line) => void counted.push(line);
  const content: Metrics = {
    count,
    meter: { requestBegan: () => {}, requestEnded: (...line) => void ended.push(line) },
    endpoint: undefined,

    watch(one) {
      watched.add(one);
      return () => watched.delete(one);
    },
  };
  const metrics: GateOptions['metrics'] = Part.make('metrics', content);
  return { metrics, count, counted, ended, watched };
}

/** Revocations that know every token as revoked, with what they were given. */
function joinRevocations() {
  const joined: unknown[] = [];
  const left: unknown[] = [];
  const content: Revocations = {
    kind: 'redis',
    isUp: () => true,
    firstOutcome: Promise.resolve(),

    join(issuers, surroundings) {
      joined.push([issuers, surroundings]);
      return { protect: () => async () => refuse('revoked'), leave: () => left.push('revocations') };
    },
  };
  const revocations: GateOptions['revocations'] = Part.make('revocations', content, true);
  return { revocations, content, joined, left };
}

/** A shared store that accepts every proof, with what it was given. */
function makeStore() {
  const given: unknown[] = [];
  const closed: unknown[] = [];

  const create: CreateReplayStore = (clock, log) => {
    given.push(clock, log);
    return { record: () => 'new', state: () => ({ isUp: true }), close: () => void closed.push('store') };
  };

  const replayStore: GateOptions['replayStore'] = Part.make('replayStore', create, true);
  return { replayStore, given, closed };
}

test('closing ends fetches of keys, the stores and metrics, and logs the last summary', async () => {
  const { metrics, watched } = listenToMetrics();
  const { revocations, left } = joinRevocations();
  const { replayStore, closed } = makeStore();
  const fetchKeys = async () => ({});
  const { checks, clock, logged } = openChecks({
    options: { metrics, revocations, replayStore, fetchKeys, issuers: { partner: PARTNER } },
  });
  await Promise.all(checks.fetchKeys());
  checks.observer.observe({ request: REQUEST, arrivedAtMillis: 0 }, { reason: 'not_found' }, 404);
  assert.deepEqual([clock.pending.length, watched.size, left, closed], [3, 1, [], []]);

  checks.close();
  assert.deepEqual([clock.pending, watched.size, left, closed], [[], 0, ['revocations'], ['store']]);
  assert.equal(logged.at(-1), 'requests refused');
});

test('closing ends checks that have no part', () => openChecks().checks.close());

/** The checks of two issuers, and whose keys were fetched. */
function openTwo() {
  const asked: string[] = [];
  const { fetchKeys = assert.fail } = issuer.options;
  const { checks } = openChecks({
    options: {
      issuers: { partner: PARTNER },
      fetchKeys: (own, name) => {
        asked.push(name);
        return fetchKeys(own, name);
      },
    },
  });
  return { checks, asked };
}

test('fetches the keys of each issuer, and is ready once it has them', async () => {
  const { checks, asked } = openTwo();
  const fetched = checks.fetchKeys();
  assert.deepEqual([asked, fetched.length], [['idp', 'partner'], 2]);
  assert.equal(checks.isReady(), false);
  await Promise.all(fetched);
  assert.deepEqual([asked, checks.isReady()], [['idp', 'partner'], true]);
});

test('looks at the keys of each issuer when it is asked whether it is ready, which keeps them fresh', () => {
  const { checks, asked } = openTwo();
  assert.equal(checks.isReady(), false);
  assert.deepEqual(asked, ['idp', 'partner']);
});

test('gives revocations and the replay store the clock, the log and the counter', () => {
  const { metrics, count } = listenToMetrics();
  const { revocations, joined } = joinRevocations();
  const { replayStore, given } = makeStore();
  const { checks, clock, log } = openChecks({ options: { metrics, revocations, replayStore } });
  assert.deepEqual(given, [clock, log]);
  const surroundings: Surroundings = { clock, log, count, level: 'info' };
  assert.deepEqual(joined, [[checks.issuers, surroundings]]);
});

test('shows metrics the issuers, the stores and the routes', () => {
  const { metrics, watched } = listenToMetrics();
  const { revocations, content } = joinRevocations();
  const { checks } = openChecks({ options: { metrics, revocations } });
  const [{ name, issuers, replayStore, revocations: seen, routes } = assert.fail()] = watched;
  assert.deepEqual([name, routes], ['orders', [GET, GET]]);
  assert.equal(issuers, checks.issuers);
  assert.equal(replayStore, checks.replayStore);
  assert.equal(seen, content);
});

/** Why a request with these fields is refused. */
async function reasonFor({ checks }: ReturnType<typeof openChecks>, ...rawHeaders: string[]) {
  await Promise.all(checks.fetchKeys());
  const facts = factsWith(...rawHeaders);
  return (await checks.decide({ facts, demands: [authenticated], isServed: true })).reason;
}

test('counts tokens and proofs, and refuses a proof that it has seen [RFC 9449 §11.1]', async () => {
  const { metrics, counted } = listenToMetrics();
  const opened = openChecks({ options: { metrics, dpopMode: 'REQUIRED' } });
  const key = createProofKey();
  const token = issuer.boundToken(key);
  const proof = createProof(key, { method: 'GET', url: 'http://api.test/orders' }, token);
  const fields = ['Authorization', `DPoP ${token}`, 'DPoP', proof];
  assert.equal(await reasonFor(opened, ...fields), undefined);
  assert.equal(await reasonFor(opened, ...fields), 'proof-replayed');
  const names = counted.map((line) => (line as string[]).slice(0, 2).join());
  assert.deepEqual(
    names.filter((name) => !name.startsWith('key fetch')),
    ['token,verified', 'proof,new', 'token,verified', 'proof,seen'],
  );
});

test('asks revocations about each token, if there are any', async () => {
  const { revocations } = joinRevocations();
  const bearer = ['Authorization', `Bearer ${issuer.token()}`];
  assert.equal(await reasonFor(openChecks(), ...bearer), undefined);
  assert.equal(await reasonFor(openChecks({ options: { revocations } }), ...bearer), 'revoked');
});

/** Cross-origin access that answers each preflight, with what it was given. */
function allowOrigins() {
  const contexts: CorsContext[] = [];

  const content = (context: CorsContext): Cors => {
    contexts.push(context);
    return { vary: ['Vary', 'Origin'], forReading: () => [], preflight: () => ({ kid: 'preflight' }) };
  };

  const cors: GateOptions['cors'] = Part.make('cors', content);
  return { cors, contexts };
}

/** Metadata that answer each request or none, with what they were given. */
function describeResource(isAnswering = true) {
  const resources: Resource[] = [];

  const createEarly = (resource: Resource): Early => {
    resources.push(resource);
    return (facts) => (isAnswering ? { kid: 'metadata' } : resource.preflight?.(facts));
  };

  const content = { url: 'https://api.test', paths: [], metadataUrl: 'https://api.test/m', createEarly };
  const nameScopes = <Given>(refusal: Given) => refusal;
  const metadata: GateOptions['metadata'] = Part.make('metadata', { ...content, nameScopes });
  return { metadata, resources };
}

test('tells cross-origin access the DPoP mode and each method once', () => {
  const { cors, contexts } = allowOrigins();
  const { checks } = openChecks({ options: { cors, dpopMode: 'REQUIRED' } });
  assert.deepEqual(contexts, [{ dpopMode: 'REQUIRED', methods: ['GET'] }]);
  assert.deepEqual(extraFields({}, checks.replies.crossOrigin), ['Vary', 'Origin']);
  assert.deepEqual(extraFields({}, openChecks().checks.replies.crossOrigin), []);
});

for (const isService of [true, false]) {
  test(`a ${isService ? 'service answers' : 'gate leaves'} preflights, and both answer readers of metadata first`, () => {
    const expected = isService ? 'preflight' : undefined;

    const answerOf = (options: Partial<GateOptions>) =>
      openChecks({ options, serving: { isService } }).checks.early?.(factsWith())?.kid;

    assert.equal(answerOf({}), undefined);
    assert.equal(answerOf({ cors: allowOrigins().cors }), expected);
    for (const isAnswering of [true, false]) {
      const { metadata } = describeResource(isAnswering);
      const { cors } = allowOrigins();
      assert.equal(answerOf({ cors, metadata }), isAnswering ? 'metadata' : expected);
    }
  });
}

test('gives metadata the log, or one that writes nothing', () => {
  const { metadata, resources } = describeResource();
  const { log } = openChecks({ options: { metadata } });
  assert.equal(resources[0]?.log, log);
  const silent = describeResource();
  openChecks({ options: { metadata: silent.metadata, log: undefined } });
  assert.doesNotThrow(() => silent.resources[0]?.log('resource is not an audience', {}));
});

for (const isPolicy of [true, false, undefined]) {
  test(`${isPolicy ? 'joins the challenges of' : 'has a challenge for each scheme of'} a refusal if isPolicy is ${isPolicy}`, () => {
    const serving = isPolicy === undefined ? {} : { isPolicy };
    const { checks } = openChecks({ options: { dpopMode: 'ALLOWED' }, serving });
    const refused = { reason: 'no-credentials', refusal: refuse('no-credentials').refusal } as const;
    const { fields } = checks.replies.complete(refused, REQUEST).reply;
    assert.equal(fields.filter((field) => field === 'WWW-Authenticate').length, isPolicy ? 1 : 2);
  });
}

for (const isService of [true, false]) {
  test(`a ${isService ? 'service logs and measures' : 'gate neither logs nor measures'} requests`, () => {
    const { metrics, ended, counted } = listenToMetrics();
    const { checks, logged } = openChecks({ options: { metrics }, serving: { isService } });
    const arrival = { request: REQUEST, arrivedAtMillis: 0 };
    checks.observer.observe(arrival, { route: GET }, 200);
    assert.deepEqual([logged, ended.length], isService ? [['request'], 1] : [[], 0]);
    checks.observer.observe(arrival, { reason: 'not_found' }, 404);
    assert.deepEqual(counted, [['refusal', 'not_found']]);
    assert.deepEqual(logged, isService ? ['request', 'request'] : []);
  });
}

for (const isService of [true, false]) {
  test(`a ${isService ? 'service' : 'gate'} logs single refusals only at the level debug`, () => {
    for (const level of ['info', 'debug'] as const) {
      const { checks, logged } = openChecks({ level, serving: { isService } });
      checks.observer.observe({ request: REQUEST, arrivedAtMillis: 0 }, { reason: 'not_found' }, 404);
      const refused = level === 'debug' ? ['request refused'] : [];
      assert.deepEqual(logged, isService ? ['request', ...refused] : refused);
    }
  });
}

test('watches no requests without a log and metrics', () => {
  const { observer } = openChecks({ options: { log: undefined } }).checks;
  assert.equal(observer.isWatching, false);
  assert.equal(openChecks().checks.observer.isWatching, true);
});
