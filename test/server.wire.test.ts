/* The process: exit codes, where it listens, its keys, its logs, and what it survives. */
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from './idp/provider.ts';
import { speakTls, startRawServer } from './idp/raw-server.ts';
import { CLUSTER_AUTHORITY } from './options/key-access-fixture.ts';
import { runCommand } from './process/commands.ts';
import { ask, exchange, openWire } from './support/client.ts';
import { DOWN, providerSettings, runProcess, type TestProcess } from './support/process.ts';
import type { Environment } from './support/settings.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

async function listen(context: TestContext): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** Runs this module before the service in its process. */
const preload = (code: string): Environment => ({
  NODE_OPTIONS: `--enable-source-maps --import=data:text/javascript;base64,${Buffer.from(code).toString('base64')}`,
});

/**
 * Only the built service can be measured: otherwise the loader has already started the threads. Only Linux
 * counts threads.
 */
const canCountThreads =
  process.platform === 'linux' && existsSync(new URL('../dist/package.json', import.meta.url));

const threadsOf = (pid: number | undefined) =>
  Number(/^Threads:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

for (const [what, own, isForEach] of [
  ['has a thread to look up the name of each issuer, so that no lookup waits for another [F13]', {}, true],
  ['adds no threads for the issuers when UV_THREADPOOL_SIZE is set', { UV_THREADPOOL_SIZE: '4' }, false],
] as const) {
  test(`${what} (on Linux, as built)`, { skip: !canCountThreads }, async (t) => {
    const names = [...'abcdefghijklmnopqrst'];
    const settings = names.flatMap((name, index) => [
      [`ISSUER_${name.toUpperCase()}_DOMAIN`, `localhost:${index + 2}`],
      [`ISSUER_${name.toUpperCase()}_AUDIENCE`, 'https://api.test'],
    ]);
    const issuers = { IDP_DOMAIN: 'localhost:1', ISSUERS: names.join(), ...Object.fromEntries(settings) };
    const service = await runProcess(t, { environment: { ...issuers, ...own } });
    await service.logged('signing keys could not be fetched');
    const threads = threadsOf(service.child.pid);
    assert.equal(threads > 46, isForEach, String(threads));
  });
}

test(
  'has a thread to look up the name of the store of revocations (on Linux, as built)',
  {
    skip: !canCountThreads,
  },
  async (t) => {
    const [without, withStore] = await Promise.all(
      [{}, { REVOCATION_STORE: 'redis://localhost:1' }].map(async (own) => {
        const service = await runProcess(t, { environment: { IDP_DOMAIN: 'localhost:1', ...own } });
        await service.logged('signing keys could not be fetched');
        return threadsOf(service.child.pid);
      }),
    );
    // For each name, libuv needs two threads.
    assert.equal(withStore! - without!, 2);
  },
);

test(
  'has threads to look up names for every fetch of the keys of tenants (on Linux, as built)',
  { skip: !canCountThreads },
  async (t) => {
    const base = 'https://localhost:1/';
    const shared = { IDP_ISSUER: `${base}{tenant}`, IDP_TENANTS: 'a', IDP_JWKS_URI: `${base}keys` };
    const [ofShared, ofOwn] = await Promise.all(
      [{}, { IDP_JWKS_URI: `${base}{tenant}/keys` }].map(async (own) => {
        const environment = { IDP_DOMAIN: 'localhost:1', ...shared, ...own };
        const service = await runProcess(t, { environment });
        await service.logged('signing keys could not be fetched');
        return threadsOf(service.child.pid);
      }),
    );
    // For each name, libuv needs two threads.
    assert.equal(ofOwn! - ofShared!, 40);
  },
);

const PARTNER = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'localhost:2', ISSUER_PARTNER_AUDIENCE: 'x' };

const ASKED = {
  ISSUER_PARTNER_INTROSPECTION: 'opaque',
  ISSUER_PARTNER_INTROSPECTION_CLIENT_ID: 'x',
  ISSUER_PARTNER_INTROSPECTION_CLIENT_SECRET: 'x',
};

const TENANTS = {
  ISSUER_PARTNER_ISSUER: 'https://localhost:2/{tenant}',
  ISSUER_PARTNER_JWKS_URI: 'https://localhost:2/{tenant}/keys',
  ISSUER_PARTNER_TENANTS: 'a',
};

const SENTINELS = 'redis-sentinel://localhost:1,localhost:2,localhost:3?master=main';

for (const [what, own, threads] of [
  ['one issuer, a proxy and a store of proofs', {}, 6],
  ['a store of revocations, too', { REVOCATION_STORE: 'redis://localhost:1' }, 8],
  [
    'a store of proofs with three sentinels',
    { IDP_DPOP_MODE: 'REQUIRED', IDP_DPOP_REPLAY_STORE: SENTINELS },
    10,
  ],
  [
    'a cluster and sentinels, with two hosts each',
    {
      IDP_DPOP_MODE: 'REQUIRED',
      IDP_DPOP_REPLAY_STORE: 'redis-cluster://localhost:1,localhost:2',
      REVOCATION_STORE: 'redis-sentinel://localhost:3,localhost:4?master=main',
    },
    12,
  ],
  ['a further issuer that is asked about tokens', { ...PARTNER, ...ASKED }, 10],
  ['a further issuer alone with tenants', { ...PARTNER, ...TENANTS }, 48],
] as const) {
  test(`demands two threads for each name to look up: of ${what} [F13]`, async () => {
    const program = preload('process.on("exit", () => console.error(process.env.UV_THREADPOOL_SIZE))');
    // Nothing is there.
    const environment = { ...DOWN, ...program, ...own, HOST: '127.0.0.1', PORT: '1' };
    const { errors } = await runCommand(['--probe'], environment);
    assert.equal(errors.at(-1), String(threads));
  });
}

for (const [what, own, options] of [
  ['gives each name server two tries of a second, since its exit waits', {}, 'timeout:1 attempts:2'],
  ['leaves the tries of name servers to RES_OPTIONS when it is set', { RES_OPTIONS: 'debug' }, 'debug'],
] as const) {
  for (const word of ['', '--check', '--probe']) {
    test(`${what}: ${word || 'a start'} [§10]`, async () => {
      // A start ends where the port is taken.
      const environment = {
        ...providerSettings(provider),
        ...preload('process.on("exit", () => console.error(process.env.RES_OPTIONS))'),
        PORT: String(provider.port),
        HOST: 'localhost',
        ...own,
      };
      const { errors } = await runCommand(word === '' ? [] : [word], environment);
      assert.equal(errors.at(-1), options);
    });
  }
}

test('refuses ambiguous framing even if NODE_OPTIONS asks for the insecure parser [RFC 9112 §6.1, G8]', async (t) => {
  const service = await runProcess(t, {
    environment: { NODE_OPTIONS: '--insecure-http-parser', METRICS_PORT: '0', HOST: '127.0.0.1' },
  });
  const { metricsPort } = await service.logged('listening');
  for (const port of [service.port, Number(metricsPort)]) {
    const responses = await exchange(
      port,
      'GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    assert.match(responses, /^HTTP\/1\.1 400 /);
  }
});

test('refuses a response of the provider with ambiguous framing, even if NODE_OPTIONS asks for the insecure parser [RFC 9112 §6.1]', async (t) => {
  const provider = await startRawServer((socket) =>
    speakTls(socket, (secure) =>
      secure.end(
        'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
      ),
    ),
  );
  t.after(() => provider.stop());
  const service = await runProcess(t, {
    environment: { NODE_OPTIONS: '--insecure-http-parser', IDP_DOMAIN: `localhost:${provider.port}` },
  });
  const { reason } = await service.logged('signing keys could not be fetched');
  assert.equal(reason, 'connection-failed');
});

describe('the process', { concurrency: 4 }, () => {
  test('exits with 1 and every configuration problem on standard error, before it listens', async (t) => {
    const service = await runProcess(t, {
      environment: { IDP_DOMAIN: 'https://idp.test', IDP_AUDIENCE: '', PORT: 'x' },
    });
    assert.equal(await service.exited, 1);
    const lines = service.errors().split('\n');
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT', undefined],
    );
    assert.deepEqual([lines.at(-1), service.logs], ['', []]);
  });

  for (const [level, host, address] of [
    ['silent', undefined, 'all addresses'],
    ['error', '127.0.0.1', '127.0.0.1'],
  ] as const) {
    test(`exits with 2 and names address and port when the port is taken, at LOG_LEVEL=${level}`, async (t) => {
      const port = portOf(await listen(t));
      const service = await runProcess(t, {
        environment: { PORT: String(port), LOG_LEVEL: level, ...(host !== undefined && { HOST: host }) },
      });
      assert.equal(await service.exited, 2);
      const message = 'cannot listen';
      const fix = 'set another HOST, PORT or METRICS_PORT, or end the process that uses the port';
      assert.equal(service.errors(), `${message}: ${address}, port ${port} (EADDRINUSE); ${fix}\n`);
      const line = { level: 'error', message, address, port, code: 'EADDRINUSE' };
      assert.deepEqual(
        service.logs.map(({ time, ...others }) => others),
        level === 'silent' ? [] : [line],
      );
    });
  }

  test('exits with 2 when its address is not available', async (t) => {
    const service = await runProcess(t, { environment: { HOST: '192.0.2.1' } });
    assert.equal(await service.exited, 2);
    assert.equal(service.logs[0]?.code, 'EADDRNOTAVAIL');
  });

  test('shows no control character of an address at which it cannot listen', async (t) => {
    const code = `import dns from 'node:dns';
      dns.lookup = (host, ...rest) => rest.at(-1)(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));`;
    const service = await runProcess(t, { environment: { ...preload(code), HOST: 'a\x1b[31mb' } });
    assert.equal(await service.exited, 2);
    assert.match(service.errors(), /^cannot listen: a\?\[31mb, port 0 \(ENOTFOUND\); set /);
  });

  for (const [what, code] of [
    ['an error without a code', "listen = () => { throw new Error('unforeseen'); }"],
    [
      'an error of Node that has no port',
      "address = () => { throw Object.assign(new Error('unforeseen'), { code: 'ERR_X' }); }",
    ],
  ] as const) {
    test(`exits with 1 and the stack when ${what} stops startup`, async (t) => {
      const program = `import { Server } from 'node:net'; Server.prototype.${code};`;
      const service = await runProcess(t, { environment: preload(program) });
      assert.deepEqual([await service.exited, service.logs], [1, []]);
      assert.match(service.errors(), /Error: unforeseen\n +at /);
    });
  }

  test('logs where it listens when PORT=0 picks the port, and the settings in force', async (t) => {
    const environment = {
      HOST: '127.0.0.1',
      PROFILE: 'a',
      IDP_ISSUER: `https://idp.test/${'tenant/'.repeat(20)}`,
      CORS_ALLOWED_ORIGINS: 'https://app.test',
      CLIENT_CERT_SOURCE: 'rfc9440',
      CLIENT_CERT_PROXIES: '127.0.0.1',
      CLIENT_CERT_REQUIRED: 'true',
      IDP_JWKS_TOKEN_FILE: fileURLToPath(new URL('settings/token-1.txt', import.meta.url)),
      IDP_CA_FILE: CLUSTER_AUTHORITY,
      ISSUERS: 'partner,other',
      ISSUER_PARTNER_DOMAIN: 'partner.test',
      ISSUER_PARTNER_AUDIENCE: 'x',
      ISSUER_OTHER_DOMAIN: 'other.test',
      ISSUER_OTHER_AUDIENCE: 'x',
      ISSUER_OTHER_CA_FILE: CLUSTER_AUTHORITY,
      ISSUER_OTHER_ISSUER: 'https://other.test/{tenant}',
      ISSUER_OTHER_JWKS_URI: 'https://other.test/{tenant}/keys',
      ISSUER_OTHER_TENANTS: 'secret-1,secret-2,secret-3',
    };
    const service = await runProcess(t, { environment });
    const { time, ...line } = await service.logged('listening');
    assert.deepEqual(line, {
      level: 'info',
      message: 'listening',
      port: service.port,
      address: '127.0.0.1',
      profile: 'A',
      application: 'gatehouse',
      issuers: [environment.IDP_ISSUER, 'https://partner.test/', 'https://other.test/{tenant}'],
      tenants: { other: 3 },
      audiences: [DOWN.IDP_AUDIENCE, 'x', 'x'],
      dpopMode: 'ALLOWED',
      replayStore: 'process',
      clientCertificates: 'rfc9440 Client-Cert',
      certificateRequired: true,
      keyAccess: { idp: ['token', 'authorities'], other: ['authorities'] },
      crossOrigin: true,
      files: [],
    });
    assert.ok(service.port > 0);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('listens on the configured port, on all addresses', async (t) => {
    const runOnFreePort = async (triesLeft: number): Promise<[number, TestProcess]> => {
      const other = createServer().listen(0);
      await once(other, 'listening');
      const port = portOf(other);
      await new Promise((resolve) => other.close(resolve));
      const service = await runProcess(t, { environment: { PORT: String(port) } });
      // Another process may have taken the port meanwhile.
      return service.port === 0 && triesLeft > 0 && (await service.exited) === 2
        ? runOnFreePort(triesLeft - 1)
        : [port, service];
    };

    const [port, service] = await runOnFreePort(4);
    assert.equal(service.port, port);
    const { address, dpopMode, crossOrigin } = await service.logged('listening');
    assert.match(address, /^(::|0\.0\.0\.0)$/);
    assert.deepEqual([dpopMode, crossOrigin], ['DISABLED', false]);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('logs JSON lines with time, level and message, at the configured level', async (t) => {
    const files = { 'application.yml': 'idp:\n  audience: https://api.test\ntracing:\n  on: yes\n' };
    const [loud, usual] = await Promise.all(
      ['debug', 'info'].map((level) => runProcess(t, { environment: { LOG_LEVEL: level }, files })),
    );
    for (const service of [loud!, usual!]) {
      await service.logged('signing keys could not be fetched');
      assert.equal((await service.ask('/nowhere')).status, 404);
      service.child.kill('SIGTERM');
      await service.exited;
      for (const line of service.logs) {
        assert.deepEqual(Object.keys(line).slice(0, 3), ['time', 'level', 'message']);
        assert.equal(new Date(line.time).toISOString(), line.time);
        assert.ok(Math.abs(Date.parse(line.time) - Date.now()) < 3_600_000);
      }
      assert.match(service.logs[0]?.setting, /^tracing\.on \(\S+, line 4\): is not a setting;/);
    }
    const messages = [
      'unknown setting ignored',
      'listening',
      'signing keys could not be fetched',
      'request refused',
      'shutting down',
      'requests refused',
      'stopped',
    ];
    // Under load the keys may be fetched a second time.
    const messagesOf = ({ logs }: TestProcess) => [...new Set(logs.map(({ message }) => message))];
    assert.deepEqual(messagesOf(loud!), messages);
    assert.deepEqual(
      messagesOf(usual!),
      messages.filter((message) => message !== 'request refused'),
    );
  });

  test('runs with nothing but the build', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
    t.after(() => rmSync(directory, { recursive: true }));
    cpSync(fileURLToPath(new URL('../dist', import.meta.url)), join(directory, 'dist'), { recursive: true });
    const surroundings = { cwd: directory, env: { ...DOWN, PORT: '0' } };
    const child = spawn(process.execPath, ['dist/server.js'], {
      ...surroundings,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const [line] = await once(createInterface(child.stdout), 'line');
    assert.equal((await ask(JSON.parse(line).port, '/api/public')).status, 200);
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  test('listens while the provider is down, is not ready, and refuses only callers with a token', async (t) => {
    const service = await runProcess(t);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'RS256', kid: 'a' })}.${part({})}.AAAA`;
    await service.logged('signing keys could not be fetched');
    const asked = [
      ['/healthz'],
      ['/api/public'],
      ['/readyz'],
      ['/api/private'],
      ['/api/private', token],
    ] as const;
    const responses = await Promise.all(
      asked.map(([path, held]) => service.ask(path, held === undefined ? {} : { token: held })),
    );
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 503, 401, 503],
    );
  });

  test('fetches the keys at the start, and again by itself after a failure', async (t) => {
    const late = await startProvider();
    t.after(() => late.stop());
    await late.fault('all', 'refuse');
    const [usual, delayed] = await Promise.all(
      [provider, late].map((from) => runProcess(t, { environment: providerSettings(from) })),
    );
    await delayed!.logged('signing keys could not be fetched');
    await late.fault('all', undefined);
    for (const [from, service] of [
      [provider, usual!],
      [late, delayed!],
    ] as const) {
      await service.logged('signing keys loaded');
      assert.equal((await service.ask('/readyz')).status, 200);
      assert.equal((await service.ask('/api/private', { token: from.issue() })).status, 200);
    }
  });

  test('loses its logs, not the service, when standard output is gone', async (t) => {
    const service = await runProcess(t, { environment: { LOG_LEVEL: 'debug' } });
    service.child.stdout!.destroy();
    await once(service.child.stdout!, 'close');
    for (let count = 0; count < 5; count += 1) assert.equal((await service.ask('/nowhere')).status, 404);
    assert.equal((await service.ask('/healthz')).status, 200);
    service.child.kill('SIGTERM');
    assert.deepEqual([await service.exited, service.errors()], [0, '']);
  });

  test('when the log is not read, drops and counts the lines above a bound, and keeps the others [H3]', async (t) => {
    const service = await runProcess(t, { environment: { LOG_LEVEL: 'debug' } });
    await service.logged('signing keys could not be fetched');
    service.child.stdout!.pause();
    const before = service.logs.length;
    const refusals = 16_000;
    for (let sent = 0; sent < refusals; sent += 1_000) {
      const wire = await openWire(service.port);
      wire.send('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000));
      await wire.until((text) => text.split('HTTP/1.1 404').length > 1_000);
      wire.destroy();
    }
    assert.equal((await service.ask('/healthz')).status, 200);

    const dropped = () => service.logs.filter(({ message }) => message === 'log lines dropped');
    service.child.stdout!.resume();
    let sent = refusals;
    for (; dropped().length === 0; sent += 1) await service.ask('/nowhere');

    const told = () =>
      service.logs.filter(({ message }) => message === 'request refused').length +
      dropped().reduce((sum, { lines }) => sum + lines, 0);

    while (told() < sent) await new Promise(setImmediate);
    assert.equal(told(), sent);
    const unread = service.logs.slice(before, service.logs.indexOf(dropped()[0]!));
    const bytes = unread.reduce((sum, line) => sum + JSON.stringify(line).length + 1, 0);
    assert.ok(bytes > 2 ** 20 && bytes < 2 * 2 ** 20, `${bytes} bytes waited, with those in the pipe`);
  });

  test('survives errors after a handler has returned, and logs their frames without their message [H4]', async (t) => {
    const leftBehind = [
      "setTimeout(() => { throw new RangeError('secret'); })",
      "Promise.reject(new TypeError('secret'))",
      "new EventEmitter().emit('error', new SyntaxError('secret'))",
      "Promise.reject('secret')",
      "server.emit('error', new URIError('secret'))",
    ];
    const code = [
      "import { EventEmitter } from 'node:events'; import { Server } from 'node:net';",
      'let server; const { listen } = Server.prototype;',
      'Server.prototype.listen = function (...all) { server = this; return listen.apply(this, all); };',
      `const faults = [${leftBehind.map((fault) => `() => { ${fault}; }`).join(', ')}];`,
      "process.on('SIGUSR2', () => faults.shift()());",
    ];
    const service = await runProcess(t, { environment: preload(code.join('\n')) });
    for (const [index, name] of ['RangeError', 'TypeError', 'SyntaxError', /Reject/, 'URIError'].entries()) {
      service.child.kill('SIGUSR2');
      const { level, reason, error, frames } = await service.logged('unforeseen error', index + 1);
      assert.deepEqual([level, reason], ['error', 'bug']);
      assert.match(error, new RegExp(name));
      assert.ok(Array.isArray(frames));
      assert.equal((await service.ask('/healthz')).status, 200);
    }
    service.child.kill('SIGTERM');
    assert.deepEqual([await service.exited, service.errors()], [0, '']);
    assert.doesNotMatch(JSON.stringify(service.logs), /secret/);
  });

  test('logs frames in the source for a 500 when source maps are on', async (t) => {
    const code = `const { stringify } = JSON;
      JSON.stringify = (value) => {
        if (value?.message?.includes('public endpoint')) throw new RangeError('secret');
        return stringify(value);
      };`;
    const service = await runProcess(t, { environment: preload(code) });
    assert.equal((await service.ask('/api/public')).status, 500);
    const { method, route, reason, error, frames } = await service.logged('request failed');
    assert.deepEqual([method, route, reason, error], ['GET', '/api/public', 'bug', 'RangeError']);
    const isInSource = (place: string) => place.includes('/src/service/routes/handler-result.ts');
    assert.ok(frames.some(isInSource), frames.join('\n'));
    assert.equal((await service.ask('/healthz')).status, 200);
    assert.doesNotMatch(JSON.stringify(service.logs), /secret/);
  });
});
