/* Runs the demo as a developer does, pastes every line that it prints into a shell, sends what its page would
   send, and ends it as a terminal does. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { policyRoutesA, routesA } from '../../src/profiles/a.ts';
import { routesB } from '../../src/profiles/b.ts';
import { authenticated } from '../../src/gate/rules/access.ts';
import { type Route } from '../../src/service/routes/route.ts';
import { samplesUnder } from '../docs/pages.ts';
import { ask } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { examplesOf, type Example, type Group } from './examples.ts';
import { MISSING } from './forward.ts';
import { named, NO_STORE } from '../support/redis.ts';
import {
  assertGone,
  interruptUntilGone,
  isOpen,
  isRunning,
  linesOf,
  occupy,
  paste,
  portOf,
  processIdOf,
  run,
  signalGroup,
  startDemo,
  UP,
  webOriginIn,
  type Demo,
} from './terminal.ts';

interface Case {
  readonly name: string;
  readonly words: readonly string[];
  readonly routes: readonly Route[];
  /** The one that it takes when it can. */
  readonly port: number;
  /** The signal that ends it, besides Ctrl-C. */
  readonly signal: NodeJS.Signals;
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
  },
  { name: 'B', words: [], routes: routesB('org_123456'), port: 3001, signal: 'SIGHUP' },
];

interface Described {
  readonly service: string;
  readonly tokenEndpoint: string;
  readonly tokens: Readonly<Record<string, string>>;
  readonly groups: readonly Group[];
}

/** What the page is told. */
const descriptionOf = async (demo: Demo) =>
  (await (await fetch(`${webOriginIn(demo.output())}/demo.json`)).json()) as Described;

/** The fields that the page sends for an example, made by the page's own functions. */
async function fieldsOf(
  origin: string,
  { service, tokenEndpoint, tokens }: Described,
  { path, as, way }: Example,
): Promise<Record<string, string>> {
  if (as === undefined) return {};
  if (way === undefined) return { Authorization: `Bearer ${tokens[as]}` };

  const { makeKey, makeProof } = await import(new URL('web/dpop.js', import.meta.url).href);
  const key = await makeKey();
  const { proof: asking } = await makeProof(key, 'POST', tokenEndpoint);
  const granted = await fetch(`${origin}/token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', DPoP: asking },
    body: JSON.stringify({ client: as }),
  });
  const { access_token: token } = (await granted.json()) as { access_token: string };
  if (way === 'bearer') return { Authorization: `Bearer ${token}` };

  const signer = way === 'other-key' ? await makeKey() : key;
  const { proof } = await makeProof(signer, 'GET', service + path, token);
  return { Authorization: `DPoP ${token}`, DPoP: proof };
}

for (const { name, words, routes, port, signal } of cases) {
  describe(`the demo of profile ${name}`, { timeout: 120_000 }, () => {
    let demo: Demo;
    before(async () => {
      demo = startDemo(words);
      await demo.until(UP);
    });
    after(() => demo.end());

    test('runs the profile in a directory of its own and keeps tokens in another, whatever settings the developer has', () => {
      assert.match(demo.output(), new RegExp(`^gatehouse, profile ${name}: service http://`, 'm'));
      assert.equal(demo.directories().length, 2);
      assert.equal(demo.errors() === '', !TAKEN.test(demo.output()), demo.errors());
    });

    test('listens on the loopback address alone, and says when its own port was taken', async () => {
      const bound = portOf(demo.output(), 'service');
      assert.equal(await isOpen(bound, '::1'), false);
      // It may be taken, by another run of these tests too.
      assert.equal(bound !== port, TAKEN.test(demo.output()));
    });

    test('has a call for each status of each route, and prints all but those without a token', async () => {
      const examples = examplesOf((await descriptionOf(demo)).groups);
      const printed = linesOf(demo.output());
      for (const { pattern, access } of routes) {
        const path = new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`);
        const statusesIn = (calls: readonly { path: string; status: number }[]) =>
          [...new Set(calls.filter((call) => path.test(call.path)).map(({ status }) => status))].sort();
        const refusals = access.credentials === 'ignored' ? [] : [401];
        const guarded = access.credentials === 'required' && access !== authenticated ? [403] : [];
        assert.deepEqual(statusesIn(examples), [200, ...refusals, ...guarded], pattern);
        const isNoToken = (status: number) => status !== 401;
        assert.deepEqual(statusesIn(printed).filter(isNoToken), [200, ...guarded], pattern);
      }
      const shown = printed.map(({ path, status }) => `${path} ${status}`);
      const others = ['/healthz 200', '/readyz 200', '/no/such/path 404', 'TOKEN_ENDPOINT 200', 'ROTATE 200'];
      assert.deepEqual(
        others.filter((line) => !shown.includes(line)),
        [],
      );
    });

    test('prints commands that get the announced status when they are pasted into a shell', async () => {
      await run('/bin/sh', ['-c', 'command -v curl']).catch(() =>
        assert.fail('curl is not installed: this test needs it'),
      );
      const printed = linesOf(demo.output());
      const got = printed.map(async ({ command }) => {
        const { status } = await paste(demo.output(), command);
        return `${status} ${command}`;
      });
      assert.deepEqual(
        await Promise.all(got),
        printed.map(({ command, status }) => `${status} ${command}`),
      );
    });

    test('has a page whose calls return the announced status, readable from its origin', async () => {
      const origin = webOriginIn(demo.output());
      const described = await descriptionOf(demo);
      for (const example of examplesOf(described.groups)) {
        const headers = await fieldsOf(origin, described, example);
        const url = described.service + example.path;
        if (example.way === 'replay') await fetch(url, { headers });
        const response = await fetch(url, { headers: { ...headers, Origin: origin } });
        const readable = response.headers.get('access-control-allow-origin');
        assert.equal(response.status, example.status, JSON.stringify(example));
        assert.ok(readable === origin || readable === '*', JSON.stringify(example));
      }
    });

    test('has a page that may send other methods, and read the Allow field of a 405', async () => {
      const origin = webOriginIn(demo.output());
      const { service } = await descriptionOf(demo);
      const url = `${service}/api/public`;
      const asked = { Origin: origin, 'Access-Control-Request-Method': 'PATCH' };
      const preflight = await fetch(url, { method: 'OPTIONS', headers: asked });
      assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /\bPATCH\b/);
      const response = await fetch(url, { method: 'PATCH', headers: { Origin: origin } });
      assert.equal(response.status, 405);
      assert.match(response.headers.get('access-control-expose-headers') ?? '', /\bAllow\b/);
    });

    test('shows a command that gets a token from its provider, valid for at least eleven hours', async () => {
      const line = linesOf(demo.output()).find(({ path }) => path === 'TOKEN_ENDPOINT');
      const { body } = await paste(demo.output(), line?.command ?? '');
      const token: string = JSON.parse(body).access_token;
      assert.equal((await ask(portOf(demo.output(), 'service'), '/api/private', { token })).status, 200);
      const { exp } = JSON.parse(String(Buffer.from(token.split('.')[1] ?? '', 'base64url')));
      assert.ok(exp > Date.now() / 1000 + 11 * 3600, 'it lives for hours');
    });

    test('has a line that rotates the signing key: tokens from before and after it are valid', async () => {
      // It has been pasted above. Another rotation within 5 s would have to wait for the keys.
      const { visitor, alice = visitor } = (await descriptionOf(demo)).tokens;
      const line = linesOf(demo.output()).find(({ path }) => path === 'TOKEN_ENDPOINT');
      const { body } = await paste(demo.output(), line?.command ?? '');
      const tokens = [String(alice), String(JSON.parse(body).access_token)];

      const kidOf = (token: string) =>
        JSON.parse(String(Buffer.from(token.split('.')[0] ?? '', 'base64url'))).kid as string;

      assert.equal(new Set(tokens.map(kidOf)).size, 2);
      for (const token of tokens) {
        const { status } = await ask(portOf(demo.output(), 'service'), '/api/private', { token });
        assert.equal(status, 200);
      }
      const rotate =
        /ROTATE=(\S+)/.exec(readFileSync(/^\. (.*)$/m.exec(demo.output())?.[1] ?? '', 'utf8'))?.[1] ?? '';
      assert.equal((await fetch(rotate, { method: 'POST' })).status, 415);
      assert.equal((await fetch(rotate)).status, 405);
    });

    test('has a provider that the API of docs/your-own-api.md can use', async (context) => {
      const [example = ''] = samplesUnder('docs/your-own-api.md', 'Your own API', 'ts');
      const [start = ''] = samplesUnder('docs/your-own-api.md', 'Try it without a provider', 'sh');
      const calls = samplesUnder('docs/your-own-api.md', 'Try it without a provider', 'sh')
        .slice(1)
        .join('\n');
      const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
      const door = new URL('../../dist/gatehouse.js', import.meta.url).href;
      writeFileSync(join(directory, 'orders.mjs'), example.replace('gatehouse-http', door));
      const own = String(await freePort());
      const source = /^\. .*$/m.exec(demo.output())?.[0] ?? '';
      const line = `${source}; exec env ${start.trim().replace('4000', own)}`;
      const child = spawn('/bin/sh', ['-c', line], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
      context.after(async () => {
        if (child.kill('SIGKILL')) await once(child, 'close');
        rmSync(directory, { recursive: true });
      });
      for await (const text of createInterface(child.stdout)) {
        if (text.includes('"signing keys loaded"')) break;
      }

      const statuses = calls
        .split('\n')
        .filter((call) => call.trim() !== '')
        .map(async (call) => {
          return (await paste(demo.output(), call.replace('4000', own))).status;
        });
      assert.deepEqual(await Promise.all(statuses), [200, 403, 201, 200]);
    });

    test('prints plain lines that fit on a screen of 110 columns and 40 lines', () => {
      const [shown = ''] = demo.output().split(UP);
      assert.doesNotMatch(shown, /[^\n\x20-\x7e]/);
      const lines = shown.split('\n');
      assert.deepEqual(
        lines.filter((line) => line.length > 110),
        [],
      );
      assert.ok(lines.length <= 40, `${lines.length} lines`);
    });

    test('keeps the tokens in a file that only its owner can read', () => {
      const [, file = ''] = /^\. (.*)$/m.exec(demo.output()) ?? [];
      assert.equal(statSync(file).mode & 0o077, 0);
      assert.equal(statSync(dirname(file)).mode & 0o077, 0);
    });

    test('shows the log of the service, which has the reasons', async () => {
      const always = ['no-credentials', 'expired', 'audience-mismatch', 'scope-missing', 'not_found'];
      const proofs = ['proof-replayed', 'key-mismatch', 'bound-token'];
      for (const reason of [...always, ...proofs]) await demo.until(` reason=${reason}`);
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

    test(`listens on another port when its own is taken, and exits with 0 after ${signal}`, async (context) => {
      const holder = await occupy(port);
      const second = startDemo(words);
      context.after(() => {
        holder.close();
        return second.end();
      });
      await second.until(UP);
      const hasMoved = portOf(second.output(), 'service') !== port;
      assert.equal(TAKEN.test(second.output()), hasMoved);
      // Another run of these tests may have had the port first, and may have freed it since.
      assert.equal(hasMoved || !holder.listening, true);
      signalGroup(second, signal);
      assert.equal(await second.exited, 0);
      assertGone(second);
    });
  });
}

test(
  named(
    'in the demo of replicas, only one of three accepts a proof that is sent to all of them at once [RFC 9449 §11.1]',
  ),
  { timeout: 120_000, skip: NO_STORE !== undefined },
  async (context) => {
    const demo = startDemo(['replicas']);
    context.after(() => demo.end());
    await demo.until(UP);

    const statusesIn = (text: string) => [...text.matchAll(/^# (\d{3}) http:/gm)].map(([, status]) => status);

    assert.deepEqual(statusesIn(demo.output()).sort(), ['200', '401', '401']);
    const processes = [...demo.output().matchAll(/\(process (\d+)\)/g)].map(([, id]) => Number(id));
    assert.equal(new Set(processes).size, 4);
    const line = /^CA_FILE=.* node .*$/m.exec(demo.output())?.[0] ?? '';
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

test(
  named('the demo of forward-auth prints calls through nginx, each of which returns the status in its title'),
  { timeout: 120_000, skip: MISSING.length > 0 },
  async (context) => {
    const demo = startDemo(['forward']);
    context.after(() => demo.end());
    await demo.until(UP);
    const calls = [...demo.output().matchAll(/^.+: (\d{3}).*\n((?:curl|env) .+)$/gm)];
    assert.equal(calls.length, 8);
    for (const [, status = '', line = ''] of calls) {
      const { stdout } = await run('/bin/sh', ['-c', line]);
      assert.match(stdout, new RegExp(`^HTTP/1.1 ${status} `), line);
    }
    await interruptUntilGone(demo);
    assert.equal(await demo.exited, 0);
  },
);

test(
  'the demo exits with 1 and an error message when the service ends by itself',
  { timeout: 120_000 },
  async (context) => {
    const demo = startDemo(['b']);
    context.after(() => demo.end());
    await demo.until(UP);
    process.kill(processIdOf(demo.output()), 'SIGKILL');
    assert.equal(await demo.exited, 1);
    assert.equal(demo.errors(), 'The service has ended by itself (SIGKILL).\n');
    assertGone(demo);
  },
);

for (const words of [['C'], ['A', 'B'], ['replicas', 'A']]) {
  test(
    `the demo shows its usage when its arguments are ${JSON.stringify(words)}`,
    { timeout: 120_000 },
    async (context) => {
      const demo = startDemo(words);
      context.after(() => demo.end());
      assert.equal(await demo.exited, 1);
      assert.match(demo.errors(), /^usage: npm run demo \[-- A \| -- B \| -- replicas \| -- forward\]\n/);
      assert.equal(demo.output(), '');
    },
  );
}

test(
  'dpop-call.mjs of the demo shows its usage when its arguments are wrong',
  { timeout: 120_000 },
  async () => {
    const program = fileURLToPath(new URL('dpop-call.mjs', import.meta.url));
    for (const words of [
      [],
      ['--steal', 'http://a.test'],
      ['http://a.test', 'b'],
      ['--everywhere', 'http://a.test'],
    ]) {
      const failure = await run(process.execPath, [program, ...words]).catch((error) => error);
      assert.equal(failure.code, 1);
      assert.match(failure.stderr, /^usage: node dpop-call\.mjs /);
    }
  },
);
