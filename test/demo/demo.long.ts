/* Runs the demo as a developer does, pastes every line that it prints into a shell, and ends it as a terminal
   does. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { policyRoutesA, routesA } from '../../src/profiles/a.ts';
import { routesB } from '../../src/profiles/b.ts';
import { authenticated } from '../../src/gate/access.ts';
import { type Route } from '../../src/service/routes/route.ts';
import { ask } from '../support/client.ts';
import { named, NO_STORE } from '../support/redis.ts';
import {
  assertGone,
  blocksOf,
  cutLike,
  interruptUntilGone,
  isOpen,
  isRunning,
  occupy,
  paste,
  portOf,
  processIdOf,
  run,
  signalGroup,
  startDemo,
  UP,
  type Demo,
} from './terminal.ts';

interface Case {
  readonly name: string;
  readonly words: readonly string[];
  readonly routes: readonly Route[];
  /** The one that it takes when it can. */
  readonly port: number;
  /** What ends it beside Ctrl-C. */
  readonly signal: NodeJS.Signals;
  /** What its log says beside the reasons of every profile. */
  readonly reasons: readonly string[];
}

/** What the demo shows when it must take another port than its own. */
const TAKEN = /^error: cannot listen address=127\.0\.0\.1 port=\d+ code=EADDRINUSE$/m;

const cases: readonly Case[] = [
  {
    name: 'A',
    words: ['A'],
    routes: [...routesA, ...policyRoutesA],
    port: 8080,
    signal: 'SIGTERM',
    reasons: ['proof-replayed', 'key-mismatch', 'bound-token'],
  },
  { name: 'B', words: [], routes: routesB('org_123456'), port: 3001, signal: 'SIGHUP', reasons: [] },
];

for (const { name, words, routes, port, signal, reasons } of cases) {
  describe(`the demo of profile ${name}`, { timeout: 120_000 }, () => {
    let demo: Demo;
    before(async () => {
      demo = startDemo(words);
      await demo.until(UP);
    });
    after(() => demo.end());

    test('runs the profile in a directory of its own when the developer has settings lying about', () => {
      assert.match(demo.output(), new RegExp(`^gatehouse, profile ${name}$`, 'm'));
      assert.equal(demo.directories().length, 1);
      assert.equal(demo.errors() === '', !TAKEN.test(demo.output()), demo.errors());
    });

    test('listens on the loopback address alone, and says so when its own port was taken', async () => {
      const bound = portOf(demo.output(), 'service');
      assert.equal(await isOpen(bound, '::1'), false);
      // It may be taken, by another run of these tests too.
      assert.equal(bound !== port, TAKEN.test(demo.output()));
    });

    test('prints an answer of each kind that a route can give', () => {
      const printed = blocksOf(demo.output());
      for (const { pattern, access } of routes) {
        const path = new RegExp(`^GET ${pattern.replace(/\{\w+\}/g, '[^/]+')}$`);
        const statuses = new Set(printed.filter(({ route }) => path.test(route)).map(({ status }) => status));
        const refusals = access.credentials === 'ignored' ? [] : [401];
        const guarded = access.credentials === 'required' && access !== authenticated ? [403] : [];
        assert.deepEqual([...statuses].sort(), [200, ...refusals, ...guarded], pattern);
      }
      const shown = printed.map(({ route, status }) => `${route} ${status}`);
      const others = [
        'GET /healthz 200',
        'GET /readyz 200',
        'GET /no/such/path 404',
        'POST /oauth/token 200',
      ];
      assert.deepEqual(
        others.filter((route) => !shown.includes(route)),
        [],
      );
    });

    test('prints lines that give what stands under them', async () => {
      await run('/bin/sh', ['-c', 'command -v curl']).catch(() =>
        assert.fail('curl is not installed: this test needs it'),
      );
      const printed = blocksOf(demo.output());
      const answers = await Promise.all(printed.map(({ line }) => paste(line)));
      const announced = printed.map(({ route, status, body }) => `${route} ${status} ${body}`);
      const got = answers.map(({ status, body }, index) => `${printed[index]?.route} ${status} ${body}`);
      assert.deepEqual(
        got.map((text, index) => cutLike(announced[index] ?? '', text)),
        announced,
      );
    });

    test('gives a token to whoever asks the provider as shown', async () => {
      const request = blocksOf(demo.output()).find(({ route }) => route === 'POST /oauth/token');
      const { body } = await paste(request?.line ?? '');
      const token: string = JSON.parse(body).access_token;
      assert.equal((await ask(portOf(demo.output(), 'service'), '/api/private', { token })).status, 200);
      const { exp } = JSON.parse(String(Buffer.from(token.split('.')[1] ?? '', 'base64url')));
      assert.ok(exp > Date.now() / 1000 + 11 * 3600, 'it lives for hours');
    });

    test('prints plain lines of at most 100 columns when nobody looks at a terminal', () => {
      const [shown = ''] = demo.output().split(UP);
      assert.doesNotMatch(shown, /[^\n\x20-\x7e]/);
      assert.deepEqual(
        shown.split('\n').filter((line) => line.length > 100 && !/^(curl|node) /.test(line)),
        [],
      );
    });

    test('shows the log of the service, which has the reasons that the headings give', async () => {
      const always = ['no-credentials', 'expired', 'audience-mismatch', 'scope-missing', 'not_found'];
      for (const reason of [...always, ...reasons]) await demo.until(` reason=${reason}`);
      const [before = '', log = ''] = demo.output().split(UP);
      assert.doesNotMatch(before, /reason=/);
      assert.match(log, /^debug: request refused .*reason=expired\b/m);
    });

    test('leaves nothing behind and exits with 0 however often Ctrl-C is pressed or passed on by npm', async () => {
      await interruptUntilGone(demo);
      assert.equal(await demo.exited, 0);
      assert.match(demo.output(), /^info: stopped reason=drained$/m);
      assertGone(demo);
    });

    test('listens on another port when its own is taken, and ends when the terminal or an operator says so', async (context) => {
      const holder = await occupy(port);
      const second = startDemo(words);
      context.after(() => {
        holder.close();
        return second.end();
      });
      await second.until(UP);
      const hasMoved = portOf(second.output(), 'service') !== port;
      assert.equal(TAKEN.test(second.output()), hasMoved);
      // Another run of these tests, which had the port before it could be held, may have left it by now.
      assert.equal(hasMoved || !holder.listening, true);
      signalGroup(second, signal);
      assert.equal(await second.exited, 0);
      assertGone(second);
    });
  });
}

test(
  named('the demo of replicas uses a proof at all three at once, which one of them takes [RFC 9449 §11.1]'),
  { timeout: 120_000, skip: NO_STORE !== undefined },
  async (context) => {
    const demo = startDemo(['replicas']);
    context.after(() => demo.end());
    await demo.until(UP);

    const statusesIn = (text: string) => [...text.matchAll(/^# (\d{3}) http:/gm)].map(([, status]) => status);

    assert.deepEqual(statusesIn(demo.output()).sort(), ['200', '401', '401']);
    const processes = [...demo.output().matchAll(/\(process (\d+)\)/g)].map(([, id]) => Number(id));
    assert.equal(new Set(processes).size, 4);
    const line = /^node .*$/m.exec(demo.output())?.[0] ?? '';
    const again = await run('/bin/sh', ['-c', line]);
    assert.deepEqual(statusesIn(again.stdout).sort(), ['200', '401', '401']);

    const store = Number(/store .*\(process (\d+)\)/.exec(demo.output())?.[1]);
    process.kill(store, 'SIGSTOP');
    const meanwhile = await run('/bin/sh', ['-c', line]);
    assert.deepEqual(statusesIn(meanwhile.stdout), ['503', '503', '503']);
    process.kill(store, 'SIGCONT');
    await interruptUntilGone(demo);
    assert.equal(await demo.exited, 0);
    assert.deepEqual(processes.filter(isRunning), []);
    assertGone(demo);
  },
);

test('the demo tells and fails when the service ends by itself', { timeout: 120_000 }, async (context) => {
  const demo = startDemo(['b']);
  context.after(() => demo.end());
  await demo.until(UP);
  process.kill(processIdOf(demo.output()), 'SIGKILL');
  assert.equal(await demo.exited, 1);
  assert.equal(demo.errors(), 'The service has ended by itself (SIGKILL).\n');
  assertGone(demo);
});

for (const words of [['C'], ['A', 'B'], ['replicas', 'A']]) {
  test(
    `the demo shows its usage when its arguments are ${JSON.stringify(words)}`,
    { timeout: 120_000 },
    async (context) => {
      const demo = startDemo(words);
      context.after(() => demo.end());
      assert.equal(await demo.exited, 1);
      assert.match(demo.errors(), /^usage: npm run demo \[-- A \| -- B \| -- replicas\]\n/);
      assert.equal(demo.output(), '');
    },
  );
}

test(
  'the program of the demo says how to call it when its arguments are wrong',
  { timeout: 120_000 },
  async () => {
    const program = fileURLToPath(new URL('dpop-call.mjs', import.meta.url));
    for (const words of [[], ['--steal', 'a', 'b', 'c', 'd', 'e', 'f'], ['a', 'b', 'c', 'd', 'e']]) {
      const failure = await run(process.execPath, [program, ...words]).catch((error) => error);
      assert.equal(failure.code, 1);
      assert.match(failure.stderr, /^usage: node dpop-call\.mjs /);
    }
  },
);
