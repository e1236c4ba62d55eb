/* Which responses of the provider are accepted, and the reasons for the rest. Where it is asked:
   fetch.wire.test.ts. How a connection may end: fetch-endings.wire.test.ts. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import type { FetchErrorReason } from '../../../src/verify/base/events.ts';
import type { Fault, ListenerFault, NamedFault } from '../../idp/faults.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import {
  createKeyFetcher,
  closed,
  fetchKeys,
  reasonOf,
  keySetOf,
  restore,
  sourceAt,
  sourceOf,
  startServer,
} from './fetch-fixture.ts';

let provider: Provider;
let other: Provider;

before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
});

after(() => Promise.all([provider.stop(), other.stop()]));
afterEach(() => Promise.all([restore(provider), restore(other)]));

/** A test that waits for a deadline fails if the deadline does not pass. */
const BOUNDED = { timeout: 60_000 };

const configured = () => sourceOf(provider, { jwksUri: keySetOf(provider) });

/** The outcome of a fetch: an error, or the number of keys. */
type Outcome = [FetchErrorReason, string] | number;
const TIMEOUT: Outcome = ['timeout', ''];
const NOT_JSON: Outcome = ['not-a-json-object', ''];

/** The outcome for each fault of the key-set endpoint, and of the discovery endpoint if it differs. */
const FAULTS: Record<ListenerFault | NamedFault, { keySet: Outcome; discovery?: Outcome }> = {
  refuse: { keySet: ['connection-failed', 'ECONNREFUSED'] },
  'wrong-host-certificate': { keySet: ['certificate-refused', 'ERR_TLS_CERT_ALTNAME_INVALID'] },
  'expired-certificate': { keySet: ['certificate-refused', 'CERT_HAS_EXPIRED'] },
  'hang-before-headers': { keySet: TIMEOUT },
  'hang-after-headers': { keySet: TIMEOUT },
  drip: { keySet: TIMEOUT },
  reset: { keySet: ['connection-failed', 'ECONNRESET'] },
  'switch-protocols': { keySet: ['connection-failed', ''] },
  html: { keySet: NOT_JSON },
  'truncated-json': { keySet: NOT_JSON },
  // key-set.test.ts checks the set; discovery checks the document.
  'empty-object': { keySet: 0, discovery: ['issuer-mismatch', ''] },
  'empty-keys': { keySet: 0, discovery: ['issuer-mismatch', ''] },
  'too-large': { keySet: ['too-large', ''] },
  'many-keys': { keySet: 100_000, discovery: ['issuer-mismatch', ''] },
  'wrong-issuer': { keySet: 1, discovery: ['issuer-mismatch', 'https://wrong.test/'] },
  gzip: { keySet: NOT_JSON },
  'not-modified': { keySet: ['status-refused', '304'] },
};

const CASES = [
  ...Object.entries(FAULTS).map(([fault, { keySet, discovery = keySet }]) => ({
    fault: fault as Fault,
    keySet,
    discovery,
  })),
  // Only 200 is accepted.
  ...[201, 204, 300, 302, 401, 410, 500, 503].map((status) => {
    const outcome: Outcome = ['status-refused', String(status)];
    return { fault: { status } as Fault, keySet: outcome, discovery: outcome };
  }),
];

for (const { fault, ...outcomes } of CASES) {
  for (const place of ['keySet', 'discovery'] as const) {
    const outcome = outcomes[place];
    const end = typeof outcome === 'number' ? `takes ${outcome} keys` : `fails with ${outcome[0]}`;
    test(
      `${end} and leaves no connection when the fault of ${place} is ${JSON.stringify(fault)} [F6]`,
      BOUNDED,
      async () => {
        await provider.fault(place, fault);
        const from = place === 'keySet' ? configured() : sourceOf(provider);
        const timeoutMillis = outcome === TIMEOUT ? 120 : undefined;
        if (typeof outcome === 'number') {
          assert.equal((((await fetchKeys(from)).keys ?? []) as unknown[]).length, outcome);
        } else assert.deepEqual(await reasonOf(from, timeoutMillis), outcome);
        await closed(provider);
        assert.equal(provider.openSockets, 0);
      },
    );
  }
}

for (const place of ['keySet', 'discovery'] as const) {
  test(`follows no redirect of ${place}, to another host or the same [F5]`, async () => {
    for (const redirect of [
      keySetOf(other),
      `${provider.issuer}elsewhere`,
      'http://localhost/',
      '/elsewhere',
    ]) {
      await provider.fault(place, { redirect });
      assert.deepEqual(await reasonOf(sourceOf(provider)), ['status-refused', '302']);
    }
    assert.deepEqual([other.counts.connections, provider.counts.other], [0, 0]);
  });
}

for (const status of [201, 299, 300, 301, 303, 307, 308, 399, 400]) {
  test(`does not follow the Location of a ${status} [RFC 9110 §15.4]`, async (context) => {
    const { domain } = await startServer(context, (_, response) => {
      response.writeHead(status, { Location: keySetOf(other) }).end(JSON.stringify({ keys: [] }));
    });
    assert.deepEqual(await reasonOf(sourceAt(`https://${domain}/`)), ['status-refused', String(status)]);
    assert.equal(other.counts.connections, 0);
  });
}

test(
  'closes at once, long before the deadline, when a refused response never ends',
  BOUNDED,
  async (context) => {
    let gone: Promise<unknown> | undefined;
    const { domain } = await startServer(context, (_, response) => {
      gone = once(response, 'close');
      response.writeHead(500).write(' ');
    });
    assert.deepEqual(await reasonOf(sourceAt(`https://${domain}/`), 60_000), ['status-refused', '500']);
    await gone;
  },
);

test('has one deadline for discovery and key set together [F7]', BOUNDED, async () => {
  for (const place of ['discovery', 'keySet'] as const) await provider.fault(place, { delayMillis: 250 });
  assert.deepEqual(await reasonOf(sourceOf(provider), 400), ['timeout', '']);
});

test('has a deadline of 5 seconds by default', async (context) => {
  const deadlines: unknown[] = [];
  for (const [clock, name, position] of [
    [AbortSignal, 'timeout', 0],
    [globalThis, 'setTimeout', 1],
  ] as const) {
    const original = (clock as any)[name];
    context.mock.method(clock as any, name, function (this: unknown, ...args: unknown[]) {
      deadlines.push(args[position]);
      return original.apply(this, args);
    });
  }
  await createKeyFetcher(configured(), undefined)();
  assert.ok(deadlines.includes(5000), String(deadlines));
});

const mockLookup = (context: TestContext, error: Error | undefined) =>
  context.mock.method(dns, 'lookup', (...args: unknown[]) => {
    if (error !== undefined) process.nextTick(args.at(-1) as (error: Error) => void, error);
  });

const LOOKUPS: [condition: string, error: Error | undefined, outcome: [FetchErrorReason, string]][] = [
  ['does not exist', Object.assign(new Error(), { code: 'ENOTFOUND' }), ['connection-failed', 'ENOTFOUND']],
  [
    'cannot be looked up for now',
    Object.assign(new Error(), { code: 'EAI_AGAIN' }),
    ['connection-failed', 'EAI_AGAIN'],
  ],
  ['fails to resolve without a code', new Error('secret'), ['unforeseen', '']],
  ['is never resolved', undefined, ['timeout', '']],
];

for (const [condition, error, outcome] of LOOKUPS) {
  test(`fails with ${outcome[0]} when the name of the provider ${condition}`, BOUNDED, async (context) => {
    mockLookup(context, error);
    const name = condition.replaceAll(' ', '-');
    assert.deepEqual(await reasonOf(sourceAt(`https://${name}.test/keys`), 120), outcome);
  });
}

for (const code of [
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_TLS_INVALID_PROTOCOL_VERSION',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
]) {
  test(`fails with certificate-refused when Node reports ${code}`, BOUNDED, async (context) => {
    mockLookup(context, Object.assign(new Error(), { code }));
    assert.deepEqual(await reasonOf(sourceAt('https://idp.test/keys')), ['certificate-refused', code]);
  });
}
