/* Services embedded in another process: their URL, their end, and what they log at once. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import dns from 'node:dns';
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import {
  authenticated,
  createGate,
  createService,
  del,
  fail,
  get,
  needs,
  open,
  post,
  put,
  scope,
  under,
  type ServiceOptions,
} from '../../src/gatehouse.ts';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { createListeningService, OWN_ROUTES } from '../../src/service/create-service.ts';
import { readServiceOptions } from '../../src/service/options.ts';
import { cors } from '../../src/options/cors.ts';
import { makeMetrics } from '../../src/options/metrics/metrics-listener.ts';
import { redisReplayStore } from '../../src/options/redis/replay.ts';
import { resourceMetadata } from '../../src/options/resource-metadata.ts';
import { makeIssuer } from '../support/issuer.ts';
import { startFakeStore } from '../options/fake-store.ts';
import { ask, openWire } from '../support/client.ts';
import { TestClock } from '../support/clock.ts';
import { statusesIn } from '../support/raw-responses.ts';
import { withReason } from '../support/skipped.ts';
import { runCommand } from '../process/commands.ts';

const issuer = makeIssuer();

const routes = [get('/a', open, () => ({}))];

const make = (settings: Partial<ServiceOptions> = {}) =>
  createService({ routes }, { ...issuer.options, host: '127.0.0.1', port: 0, ...settings });

const ADDRESSES = Object.values(networkInterfaces()).flatMap((some = []) =>
  some.map(({ address }) => address),
);

const statusAt = async (url: string) =>
  (await fetch(`${url}/a`, { headers: { connection: 'close' } })).status;

for (const [host, name] of [
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
  [undefined, 'localhost'],
] as const) {
  const what = `a service on ${host ?? 'all addresses'} returns a URL that answers requests [RFC 3986 §3.2.2]`;
  const isThere = host === undefined || ADDRESSES.includes(host);
  const missing = isThere ? undefined : 'the system has no such address';

  test(withReason(what, missing), { skip: !isThere }, async (t) => {
    const service = make({ host });
    t.after(() => service.stop());
    const url = await service.listen();
    assert.equal(new URL(url).hostname, name);
    assert.equal(await statusAt(url), 200);
  });
}

test('several services can live in one process, and stop independently', async (t) => {
  const services = [make(), make()];
  const urls = await Promise.all(services.map((service) => service.listen()));
  t.after(() => services[1]?.stop());
  assert.equal(await services[0]?.stop(), 'drained');
  await assert.rejects(statusAt(urls[0] ?? ''));
  assert.equal(await statusAt(urls[1] ?? ''), 200);
});

test('any number of services can live in one process without a warning from Node', async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  await Promise.all(Array.from({ length: 30 }, () => make().stop()));
  await new Promise(setImmediate);
  assert.deepEqual(warnings, []);
});

test('a service that stops sends Connection: close with the response to an in-flight request [RFC 9112 §9.6]', async () => {
  const calls = new EventEmitter();
  const held = () => new Promise<object>((resolve) => calls.emit('call', () => resolve({})));
  const settings = { ...issuer.options, host: '127.0.0.1', port: 0 };
  const service = createService({ routes: [get('/held', open, held)] }, settings);
  const url = await service.listen();
  const called = once(calls, 'call');
  const asked = fetch(`${url}/held`);
  const [answer] = await called;
  const stopped = service.stop();
  answer();
  assert.equal((await asked).headers.get('connection'), 'close');
  assert.equal(await stopped, 'drained');
});

for (const [which, set, methods] of [
  ['of its routes', {}, 'POST, PUT'],
  ['of its option methods, even if it names only one', { methods: ['PUT'] }, 'PUT'],
] as const) {
  test(`a service lets other origins use the methods ${which} [docs/how-a-request-is-checked.md]`, async (t) => {
    const settings = {
      ...issuer.options,
      host: '127.0.0.1',
      port: 0,
      cors: cors({ origins: ['https://a.test'], ...set }),
    };
    const served = {
      routes: [post('/a', open, () => {}), post('/b', open, () => {}), put('/a', open, () => {})],
    };
    const service = createService(served, settings);
    t.after(() => service.stop());
    const { port } = new URL(await service.listen());
    const headers = { Origin: 'https://a.test', 'Access-Control-Request-Method': 'GET' };
    const answer = await ask(Number(port), '/a', { method: 'OPTIONS', headers });
    assert.equal(answer.headers['access-control-allow-methods'], methods);
  });
}

test('a service fetches keys when it listens, and a gate when it is created, before the first request', async (t) => {
  const fetched: string[] = [];

  const options = (name: string) => ({
    fetchKeys: () => {
      fetched.push(name);
      return issuer.options.fetchKeys();
    },
  });

  const settings = { ...issuer.options, host: '127.0.0.1', port: 0 };
  const service = createService({ routes }, { ...settings, ...options('service') });
  t.after(() => service.stop());
  assert.deepEqual(fetched, []);
  await service.listen();
  const gate = createGate({ ...issuer.options, ...options('gate') });
  gate.close();
  assert.deepEqual(fetched, ['service', 'gate']);
});

test('a service that stops disconnects from the shared replay store after its last response, which may need it [§10, §15]', async (t) => {
  const store = await startFakeStore(t);
  const calls = new EventEmitter();
  const held = () => new Promise<object>((resolve) => calls.emit('call', () => resolve({})));
  const replayStore = redisReplayStore(`redis://127.0.0.1:${store.port}`);
  const settings = { ...issuer.options, host: '127.0.0.1', port: 0, replayStore };
  const service = createService({ routes: [get('/held', open, held)] }, settings);
  const { port, origin } = new URL(await service.listen());
  const socket = await store.connected(1);
  let isConnected = true;

  const left = once(socket, 'close').then(() => {
    isConnected = false;
  });

  const called = once(calls, 'call');
  const asked = fetch(`${origin}/held`);
  const [answer] = await called;
  const stopped = service.stop();
  await untilRefused(Number(port));
  assert.ok(isConnected);
  answer();
  assert.equal((await asked).status, 200);
  assert.equal(await stopped, 'drained');
  await left;
});

test('a service can be stopped before it listens, and twice', async () => {
  const service = make();
  assert.equal(await service.stop(), 'drained');
  assert.equal(await service.stop(), 'drained');
});

test('a service that is stopped twice drains once: it loses no request that came before the second time, and both end with the last response [§10]', async () => {
  const calls = new EventEmitter();
  const held = () => new Promise<object>((resolve) => calls.emit('call', () => resolve({})));
  const service = createService(
    { routes: [get('/held', open, held), ...routes] },
    { ...issuer.options, host: '127.0.0.1', port: 0 },
  );
  const { port, origin } = new URL(await service.listen());
  const wire = await openWire(Number(port));
  wire.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await wire.until((text) => text.endsWith('{}'));
  const called = once(calls, 'call');
  const asked = fetch(`${origin}/held`);
  const [answer] = await called;

  let ends = 0;

  const note = (outcome: string) => {
    ends += 1;
    return outcome;
  };

  const first = service.stop().then(note);
  wire.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  // It has arrived, and waits until the port is closed.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  const second = service.stop().then(note);
  assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200]);
  assert.equal(ends, 0);
  answer();
  assert.equal((await asked).status, 200);
  assert.deepEqual(await Promise.all([first, second]), ['drained', 'drained']);
});

test('a service that has been stopped does not listen again: it would serve without ever being ready', async () => {
  const used = make();
  await used.listen();
  const unused = make();
  for (const service of [used, unused]) {
    await service.stop();
    await assert.rejects(service.listen(), new Error('the service has been stopped; create another'));
  }
});

test('a service does not listen in the turn in which it is stopped either', async () => {
  const service = make();
  const stopped = service.stop();
  await assert.rejects(service.listen(), new Error('the service has been stopped; create another'));
  assert.equal(await stopped, 'drained');
});

for (const [what, settings] of [
  ['', {}],
  [' on both ports', { metrics: makeMetrics(0, '127.0.0.1') }],
] as const) {
  test(`a service that is stopped while it begins to listen${what} does not listen afterwards`, async () => {
    const service = make(settings);
    const listening = service.listen();
    assert.equal(await service.stop(), 'drained');
    await assert.rejects(statusAt(await listening));
  });
}

test('a service that is stopped while the name of its host is looked up does not listen afterwards', async (t) => {
  const lookups = new EventEmitter();
  t.mock.method(dns, 'lookup', (_name: string, ...rest: unknown[]) => {
    const found = rest.at(-1) as (error: null, address: string, family: number) => void;
    lookups.emit('begin', () => found(null, '127.0.0.1', 4));
  });
  const service = make({ host: 'api.test' });
  const lookup = once(lookups, 'begin');
  const listening = service.listen();
  const [finish] = await lookup;
  const stopped = service.stop();
  // More turns than a listener without connections takes to close.
  for (let turn = 0; turn < 1_100; turn += 1) await new Promise(setImmediate);
  finish();
  const { port } = new URL(await listening);
  assert.equal(await stopped, 'drained');
  await assert.rejects(statusAt(`http://127.0.0.1:${port}`));
});

test('a service that stops is not ready any more', async () => {
  const service = make();
  const { port } = new URL(await service.listen());
  const wire = await openWire(Number(port));
  const request = 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n';
  wire.send(request);
  await wire.until((text) => text.endsWith('{"status":"ready"}'));
  const stopped = service.stop();
  wire.send(request);
  const text = await wire.untilClosed();
  assert.deepEqual(statusesIn(text), [200, 503]);
  assert.ok(text.includes(REFUSALS.temporarily_unavailable['shutting-down']));
  assert.equal(await stopped, 'drained');
});

test('a service closes a connection that it accepted just before its port closed, after one response [RFC 9112 §9.6]', async () => {
  const service = make();
  const { port } = new URL(await service.listen());
  const stopped = service.stop();
  const wire = await openWire(Number(port));
  await untilRefused(Number(port));
  wire.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.match(await wire.untilClosed(), /^HTTP\/1\.1 200 OK[^]*\r\nConnection: close\r\n/);
  assert.equal(await stopped, 'drained');
});

async function untilRefused(port: number): Promise<void> {
  for (;;) {
    const wire = await openWire(port).catch(() => undefined);
    if (wire === undefined) return;

    wire.destroy();
  }
}

test('a service whose port is taken rejects, and can be stopped', async (t) => {
  const first = make();
  t.after(() => first.stop());
  const { port } = new URL(await first.listen());
  const second = make({ port: Number(port) });
  await assert.rejects(second.listen(), { code: 'EADDRINUSE' });
  assert.equal(await second.stop(), 'drained');
});

const RESOURCE = 'https://api.test/v1';
const METADATA = '/.well-known/oauth-protected-resource';

test('no rule applies to the probes and the metadata, whatever its prefix [docs/how-a-request-is-checked.md]', async (t) => {
  const rules = ['/', '/healthz', '/readyz', METADATA].map((prefix) => under(prefix, needs(scope('none'))));
  const service = createService(
    { routes, rules },
    { ...issuer.options, metadata: resourceMetadata({ url: RESOURCE }), host: '127.0.0.1', port: 0 },
  );
  t.after(() => service.stop());
  const url = await service.listen();
  for (const [path, method, status] of [
    ['/healthz', 'GET', 200],
    ['/healthz', 'HEAD', 200],
    ['/healthz', 'POST', 405],
    ['/%72eadyz', 'GET', 200],
    [`${METADATA}/v1`, 'GET', 200],
    ['/healthz/', 'GET', 404],
    ['/healthz/x', 'GET', 401],
    ['/a', 'GET', 401],
  ] as const) {
    const response = await fetch(url + path, { method, headers: { connection: 'close' } });
    await response.arrayBuffer();
    assert.equal(response.status, status, `${method} ${path}`);
  }
});

test('a route of any method at a path of the service itself stops startup [RFC 9728 §3.1]', () => {
  const served = {
    routes: [
      post('/healthz', open, () => {}),
      del('/{x}', open, () => {}),
      put(`${METADATA}/v1`, open, () => {}),
      get('/.well-known/{x}', open, () => ({})),
      get(`${METADATA}/v2`, open, () => ({})),
    ],
  };

  const why = (route: string, path: string) =>
    `${route}: matches ${path}, which the service serves itself; change the pattern`;

  // A more general route does not get such a path.
  const always = [why('POST /healthz', '/healthz')];
  const { options } = issuer;
  assert.throws(() => createService(served, options), { name: 'TypeError', message: always.join('\n') });

  const ofMetadata = [why(`PUT ${METADATA}/v1`, `${METADATA}/v1`)];
  const metadata = resourceMetadata({ url: RESOURCE });
  assert.throws(() => createService(served, { ...options, metadata }), {
    message: [...always, ...ofMetadata].join('\n'),
  });

  // Two of its three paths are one.
  const root = { ...options, metadata: resourceMetadata({ url: 'https://api.test' }) };
  assert.throws(() => createService({ routes: [get(METADATA, open, () => ({}))] }, root), {
    message: why(`GET ${METADATA}`, METADATA),
  });
});

test('createService throws for an invalid route, and opens no connection to the replay store', async (t) => {
  const store = createServer().listen(0, '127.0.0.1');
  t.after(() => store.close());
  await once(store, 'listening');
  const { port } = store.address() as AddressInfo;
  const replayStore = redisReplayStore(`redis://127.0.0.1:${port}`);
  const settings = { ...issuer.options, replayStore };
  assert.throws(() => createService({ routes: [get('no path', open, () => ({})), ...routes] }, settings), {
    name: 'TypeError',
    message: 'GET no path: is not a path pattern; write /no path',
  });

  // Connections arrive in the order in which they were opened, and this is the first.
  const own = connect(port, '127.0.0.1');
  const [first] = await once(store, 'connection');
  assert.equal(first.remotePort, own.localPort);
  own.destroy();
});

for (const [what, first] of [
  ['', ''],
  [
    ', even if other code writes to that output',
    "new (await import('node:stream')).PassThrough().pipe(process.stdout);",
  ],
] as const) {
  test(`a closed standard output ends the log, but not the service${what}`, async (t) => {
    const door = JSON.stringify(new URL('../../dist/gatehouse.js', import.meta.url).href);
    const logDoor = JSON.stringify(new URL('../../dist/log.js', import.meta.url).href);
    const settings = { domain: 'localhost:1', audience: 'x', host: '127.0.0.1', port: 0 };
    const options = `{ ...${JSON.stringify(settings)}, log: jsonLog({ level: 'debug' }) }`;
    const imports = `import { createService } from ${door}; import { jsonLog } from ${logDoor};`;
    const listening = `createService({ routes: [] }, ${options}).listen()`;
    const code = `${imports} ${first} console.error(await ${listening});`;
    const words = ['--input-type=module', '--eval', code];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    const [url] = await once(createInterface(child.stderr), 'line');
    child.stdout.destroy();
    await once(child.stdout, 'close');
    for (let count = 0; count < 5; count += 1) assert.equal(await statusAt(url), 404);
  });
}

const PAST = Date.UTC(2020, 0, 1);

/** Like the fake timers of test runners. */
function replaceDate(t: TestContext) {
  const { Date: real } = globalThis;
  globalThis.Date = class extends real {
    static override now = () => PAST;
  } as DateConstructor;
  t.after(() => {
    globalThis.Date = real;
  });
}

for (const [how, setDate] of [
  ['another Date', replaceDate],
  ['a Date.now of its own', ({ mock }: TestContext) => mock.method(Date, 'now', () => PAST)],
] as const) {
  test(`a test that sets the date by ${how} sets it for services and gates`, async (t) => {
    setDate(t);
    const guarded = get('/a', authenticated, () => ({}));
    const settings = { ...issuer.options, host: '127.0.0.1', port: 0 };
    const service = createService({ routes: [guarded] }, settings);
    t.after(() => service.stop());
    const gate = createGate(issuer.options);
    t.after(() => gate.close());
    const url = `${await service.listen()}/a`;

    const statusesOf = async (token: string) => {
      const rawHeaders = ['Host', 'a', 'Authorization', `Bearer ${token}`];
      const verdict = await gate.check({ method: 'GET', url: '/a', rawHeaders }, authenticated);
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      return [(await fetch(url, { headers })).status, verdict.refusal === undefined];
    };

    assert.deepEqual(await statusesOf(issuer.token()), [200, true]);
    assert.deepEqual(await statusesOf(issuer.token({ exp: PAST / 1000 - 1 })), [401, false]);
  });
}

/** The output of a program, one JSON text a line. `gatehouse` is the package. */
async function linesOf(program: string): Promise<Record<string, any>[]> {
  const urlOf = (file: string) => new URL(file, import.meta.url).href;
  const code = `import { jsonLog } from '${urlOf('../../dist/log.js')}';
    import { Part } from '${urlOf('../../dist/verify/base/option.js')}';
    import * as gatehouse from '${urlOf('../../dist/gatehouse.js')}';
    ${program}`;
  const command = [process.execPath, '--enable-source-maps', '--input-type=module', '--eval', code];
  const { output } = await runCommand([], {}, {}, command);
  return output
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

test('log lines of one turn beyond the bound are dropped and counted [H3]', async () => {
  const told = await linesOf(`const { log } = Part.contentOf(jsonLog());
    for (let line = 0; line < 20_000; line += 1) log('listening', {});
    setImmediate(() => process.stdout.write('', () => log('stopped', {})));`);
  const [dropped, stopped] = told.slice(-2);
  assert.ok(told.length < 20_000, `${told.length} lines`);
  assert.deepEqual([told.length - 2 + dropped?.lines, stopped?.message], [20_000, 'stopped']);
});

test('a gate writes no access log, since it sees no response', async () => {
  const told = await linesOf(`const { createGate, needs, scope } = gatehouse;
    const gate = createGate({ domain: 'localhost:1', audience: 'x', log: jsonLog({ access: true }) });
    await gate.check({ method: 'GET', url: '/', rawHeaders: ['Host', 'a'] }, needs(scope('x')));
    gate.close();`);
  const messages = told.map(({ message }) => message);
  assert.deepEqual(
    messages.filter((message) => message.startsWith('request')),
    ['requests refused'],
  );
});

test('a gate whose keys are not from its provider logs a warning at the start', async () => {
  const told = await linesOf(`const log = jsonLog({ level: 'warn' });
    const gate = gatehouse.createGate({ domain: 'localhost:1', audience: 'x', log, fetchKeys: () => new Promise(() => {}) });`);
  assert.deepEqual(
    told.map(({ level, message }) => [level, message]),
    [['warn', 'signing keys not from the provider']],
  );
});

for (const [how, failing] of [
  ['throws', "fetchKeys() { throw new RangeError('secret'); }"],
  ['rejects', "fetchKeys: async () => { throw new RangeError('secret'); }"],
] as const) {
  test(`an option fetchKeys that ${how} is logged as a bug, with its issuer, error name and frames [docs/keys.md]`, async () => {
    const told = await linesOf(`const log = jsonLog({ level: 'warn' });
    const gate = gatehouse.createGate({ domain: 'localhost:1', audience: 'x', log, ${failing} });
    setImmediate(gate.close);`);
    const { message, issuer: whose, reason, error, frames } = told[1] ?? {};
    assert.deepEqual([message, whose, reason], ['signing keys could not be fetched', 'idp', 'unforeseen']);
    assert.equal(error, 'RangeError');
    assert.match(String(frames), /\/src\/verify\/keys\/key-set\.[jt]s:\d+:\d+/);
    assert.doesNotMatch(JSON.stringify(told), /secret/);
  });
}

test('an option fetchKeys that gives no document is logged as one without a key set [docs/keys.md]', async () => {
  const told = await linesOf(`const log = jsonLog({ level: 'warn' });
    const fetchKeys = async () => undefined;
    const gate = gatehouse.createGate({ domain: 'localhost:1', audience: 'x', log, fetchKeys });
    setImmediate(gate.close);`);
  const { message, issuer: whose, reason, error } = told[1] ?? {};
  assert.deepEqual([message, whose, reason], ['signing keys could not be fetched', 'idp', 'not-a-key-set']);
  assert.equal(error, undefined);
});

test('onError is called once with each error that becomes a 500 [§11]', async (t) => {
  const told: unknown[] = [];
  const bug = new TypeError('a bug');

  const onError = (error: unknown) => {
    told.push(error);
    throw new Error('in onError');
  };

  const throwing = () => {
    throw bug;
  };

  const all = [
    get('/throws', open, throwing),
    get('/rejects', open, async () => throwing()),
    get('/wrong', open, () => new Map()),
    get('/fails', open, () => fail(503, 'busy', 'Busy')),
    get('/good', open, () => ({})),
  ];
  const settings = { ...issuer.options, host: '127.0.0.1', port: 0, log: undefined };
  const service = createService({ routes: all }, { ...settings, onError });
  t.after(() => service.stop());
  const url = await service.listen();
  for (const [path, status] of [
    ['/throws', 500],
    ['/rejects', 500],
    ['/wrong', 500],
    ['/fails', 503],
    ['/good', 200],
    ['/nowhere', 404],
  ] as const) {
    const response = await fetch(url + path, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    assert.equal(response.status, status, path);
  }
  assert.deepEqual([told.length, told[0], told[1]], [3, bug, bug]);
  assert.match(String(told[2]), /^TypeError: a body must be a plain object, an array or/);
});

test('a process that only waits for a service to stop lives until then, whatever connections it has', async () => {
  const door = JSON.stringify(new URL('../../dist/gatehouse.js', import.meta.url).href);
  const script = `
    import { connect } from 'node:net';
    import { createService, open, post, json } from ${door};
    const settings = { domain: 'a.test', audience: 'a', host: '127.0.0.1', port: 0 };
    const fetchKeys = () => new Promise(() => {});
    const route = post('/a', open, json(undefined, { limitBytes: 1 }), () => {});
    const service = createService({ routes: [route] }, { ...settings, fetchKeys });
    const { port } = new URL(await service.listen());
    const socket = connect(port, '127.0.0.1');
    socket.write('POST /a HTTP/1.1\\r\\nHost: a\\r\\nContent-Type: application/json\\r\\nContent-Length: 3000000\\r\\n\\r\\n' + 'x'.repeat(3e6));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.unref();
    console.log(await service.stop());
  `;
  const words = ['--input-type=module', '--eval', script];
  const { stdout, status } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 });
  assert.deepEqual([stdout, status], ['drained\n', 0]);
});

test('a service that stops is not ready, but serves for the delay that its options set, as a process does [§28]', async (t) => {
  const clock = new TestClock();
  const values = readServiceOptions({
    ...issuer.options,
    host: '127.0.0.1',
    port: 0,
    shutdownDelaySeconds: 5,
  });
  const service = createListeningService({ routes }, values, { ...OWN_ROUTES, clock });
  const { port } = await service.listen();
  let outcome = 'none';
  const stopped = service.stop().then((how) => {
    outcome = how;
  });
  t.after(() => stopped);
  clock.advance(4_999);
  assert.equal((await ask(port, '/readyz')).status, 503);
  assert.deepEqual([(await ask(port, '/a')).status, outcome], [200, 'none']);
  clock.advance(1);
  while (outcome === 'none') await new Promise(setImmediate);
  assert.equal(outcome, 'drained');
  await assert.rejects(ask(port, '/a'));
});
