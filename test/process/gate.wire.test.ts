/* The options of a gate: each takes effect, and none is loaded unless it is set. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { authenticated, createGate } from '../../src/gate.ts';
import { createProof, createProofKey, createTestIssuer } from '../../src/testing.ts';
import { startProvider } from '../idp/provider.ts';
import { startProxy } from '../idp/proxy.ts';
import { startFakeStore } from '../options/fake-store.ts';

const BOUNDED = { timeout: 60_000 };

const requestWith = (...rawHeaders: string[]) => ({
  method: 'GET',
  url: '/orders',
  rawHeaders: ['Host', 'api.test', ...rawHeaders],
});

test('a gate with a proxy fetches keys through it', BOUNDED, async (t) => {
  const [provider, proxy] = await Promise.all([startProvider(), startProxy()]);
  t.after(() => Promise.all([provider.stop(), proxy.stop()]));
  const { domain, audience } = provider;
  const gate = await createGate({ domain, audience, proxy: `http://127.0.0.1:${proxy.port}` });
  t.after(gate.close);
  const verdict = await gate.check(requestWith('Authorization', `Bearer ${provider.issue()}`), authenticated);
  assert.equal(verdict.refusal, undefined);
  assert.deepEqual(new Set(proxy.asked.map(({ target }) => target)), new Set([`localhost:${provider.port}`]));
});

test('gates with a shared replay store accept a proof once [RFC 9449 §11.1]', BOUNDED, async (t) => {
  const issuer = createTestIssuer();
  const store = await startFakeStore(t);
  const dpopReplayStore = `redis://127.0.0.1:${store.port}`;
  const gates = await Promise.all(
    [1, 2].map(() => createGate({ ...issuer.settings, dpopMode: 'REQUIRED', dpopReplayStore }, issuer)),
  );
  t.after(() => gates.forEach((gate) => gate.close()));
  const key = createProofKey();
  const token = issuer.boundToken(key);
  const dpop = createProof(key, { method: 'GET', url: 'http://api.test/orders' }, token);
  const request = requestWith('Authorization', `DPoP ${token}`, 'DPoP', dpop);

  const statuses: unknown[] = [];
  for (const gate of gates) {
    let status: number | undefined = 503;
    // Until the store has greeted.
    while (status === 503) {
      await new Promise(setImmediate);
      status = (await gate.check(request, authenticated)).refusal?.status;
    }
    statuses.push(status);
  }
  assert.deepEqual(statuses, [undefined, 401]);
});

test(
  'a gate refuses with 503 after five seconds when a custom fetchKeys never settles',
  BOUNDED,
  async (t) => {
    const deadline = new AbortController();
    const { mock } = t.mock.method(AbortSignal, 'timeout', () => deadline.signal);
    const issuer = createTestIssuer();
    const gate = await createGate(issuer.settings, { fetchKeys: () => new Promise(() => {}) });
    t.after(gate.close);
    const verdict = gate.check(requestWith('Authorization', `Bearer ${issuer.token()}`), authenticated);

    deadline.abort();
    assert.equal((await verdict).refusal?.status, 503);
    assert.deepEqual(
      mock.calls.map((call) => call.arguments),
      [[5_000]],
    );
  },
);

test(
  "responds with 503, and leaves no rejection unhandled, when a fetchKeys of one's own throws",
  BOUNDED,
  async (t) => {
    const deadline = new AbortController();
    t.mock.method(AbortSignal, 'timeout', () => deadline.signal);
    const unhandled = t.mock.fn();
    process.on('unhandledRejection', unhandled);
    t.after(() => process.off('unhandledRejection', unhandled));
    const issuer = createTestIssuer();

    const fetchKeys = () => {
      throw new Error('no keys');
    };

    const gate = await createGate({ ...issuer.settings, logLevel: 'silent' }, { fetchKeys });
    t.after(gate.close);
    const request = requestWith('Authorization', `Bearer ${issuer.token()}`);
    assert.equal((await gate.check(request, authenticated)).refusal?.status, 503);

    deadline.abort();
    await new Promise(setImmediate);
    assert.equal(unhandled.mock.callCount(), 0);
  },
);

/** Writes the name of each option that is loaded to standard error. */
const HOOKS = `
  import { writeSync } from 'node:fs';
  export function resolve(name, context, next) {
    const option = name.match(/options[/](.+)[.]\\w+$/);
    if (option) writeSync(2, option[1] + ' ');
    return next(name, context);
  }
`;

test('a gate loads an option only if it is set [docs/settings.md]', BOUNDED, () => {
  const door = JSON.stringify(new URL('../../src/gate.ts', import.meta.url).href);
  const steps = [
    {},
    { dpopMode: 'ALLOWED', dpopReplayStore: 'redis://127.0.0.1:1' },
    { proxy: 'http://127.0.0.1:1' },
    { corsAllowedOrigins: ['https://a.test'] },
    { resourceUrl: 'https://api.test' },
  ];
  const script = `
    import { writeSync } from 'node:fs';
    import { register } from 'node:module';
    register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(HOOKS))});
    const { createGate } = await import(${door});
    for (const options of ${JSON.stringify(steps)}) {
      writeSync(2, '\\n');
      const settings = { domain: 'a.test', audience: 'a', logLevel: 'silent', ...options };
      const gate = await createGate(settings, { fetchKeys: () => new Promise(() => {}) });
      gate.close();
    }
  `;
  // Node 26 warns of `register`.
  const flags = ['--no-warnings', '--import', import.meta.resolve('tsx')];
  const words = [...flags, '--input-type=module', '--eval', script];
  const { stderr, status } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const loaded = stderr.split('\n').map((line) => line.trim().split(' '));
  const seen = new Set(['']);
  const firsts = loaded.map((names) => names.filter((name) => !seen.has(name) && seen.add(name)));
  assert.deepEqual(firsts, [
    [],
    [],
    ['settings', 'redis-replay'],
    ['proxy-tunnel'],
    ['cors'],
    ['resource-metadata'],
  ]);
});
