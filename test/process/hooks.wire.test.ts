/* The hooks of a process: at its start, at its end, and in place of settings (docs/your-own-api.md). */
import { strict as assert } from 'node:assert';
import { after, before, describe, test, type TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { openWire } from '../support/client.ts';
import { DOWN, providerSettings, runProcess } from '../support/process.ts';
import type { Environment } from '../support/settings.ts';
import { runCommand } from './commands.ts';
import { programOf, wholeProgramOf } from './program.ts';
import { samplesUnder } from '../docs/pages.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

const run = (t: TestContext, text: string, environment: Environment = {}) =>
  runProcess(t, { program: programOf(t, text), environment });

/** What a program prints with these words, until it ends. */
const command = (t: TestContext, words: readonly string[], text: string, environment: Environment = {}) =>
  runCommand(words, { ...DOWN, ...environment }, {}, programOf(t, text));

const messages = (logs: readonly Record<string, any>[]) => logs.map(({ message }) => message);

/** Routes with one that throws, and one that waits for another request. */
const ROUTES = `
let release;
const held = new Promise((resolve) => { release = resolve; });
const routes = [
  get('/orders/{id}', open, () => ({})),
  get('/broken', open, () => { throw new RangeError('secret'); }),
  get('/held', open, () => { tell('held'); return held.then(() => ({})); }),
  get('/release', open, () => { release(); return {}; }),
];
`;

describe('the hooks of a process', { concurrency: 4 }, () => {
  test('onStart is awaited before anything listens, with the options that the settings gave [§28]', async (t) => {
    const text = `await runService({ routes: [] }, {
      async onStart({ domain, audience, dpopMode, clockToleranceSeconds, shutdownDelaySeconds }) {
        await new Promise(setImmediate);
        tell('started', { domain, audience, dpopMode, clockToleranceSeconds, shutdownDelaySeconds });
      },
    });`;
    const environment = {
      IDP_CLOCK_TOLERANCE_SECONDS: '5',
      IDP_DPOP_MODE: 'REQUIRED',
      SHUTDOWN_DELAY_SECONDS: '3',
    };
    const { logs } = await run(t, text, environment);
    const [{ message, ...options } = {}, next] = logs;
    assert.deepEqual([message, next?.message], ['started', 'listening']);
    assert.deepEqual(options, {
      domain: DOWN.IDP_DOMAIN,
      audience: [DOWN.IDP_AUDIENCE],
      dpopMode: 'REQUIRED',
      clockToleranceSeconds: 5,
      shutdownDelaySeconds: 3,
    });
  });

  test('the options of onStart are frozen, and have no part that serves one service alone [§28]', async (t) => {
    const text = `await runService({ routes: [] }, {
      onError() {},
      onResponse() {},
      onStart(options) {
        const { issuers, audience } = options;
        const frozen = [options, issuers, issuers.partner, issuers.partner.audience, audience].map(Object.isFrozen);
        const { domain: partner, ...ofPartner } = issuers.partner;
        const ofTenants = Object.keys(issuers.metrics);
        tell('started', { frozen, names: Object.keys(options), partner, more: Object.keys(ofPartner), ofTenants });
        const { domain, log, replayStore } = options;
        createGate({ domain, audience, issuers, log, replayStore }).close();
        createGate({ domain, audience, issuers, log, replayStore }).close();
        tell('gates');
      },
    });`;
    const environment = {
      ISSUERS: 'partner, metrics',
      ISSUER_PARTNER_DOMAIN: 'partner.test',
      ISSUER_PARTNER_AUDIENCE: 'urn:partner',
      ISSUER_PARTNER_CA_FILE: provider.authorityFile,
      ISSUER_METRICS_DOMAIN: 'login.test',
      ISSUER_METRICS_AUDIENCE: 'urn:partner',
      ISSUER_METRICS_ISSUER: 'https://login.test/{tenant}/v2.0',
      ISSUER_METRICS_JWKS_URI: 'https://login.test/keys',
      ISSUER_METRICS_TENANTS: 'one',
      ISSUER_METRICS_AUTHORIZATION_SERVER: 'https://login.test',
      IDP_DPOP_REPLAY_STORE: 'redis://127.0.0.1:1',
      IDP_PROXY: 'http://127.0.0.1:1',
      RESOURCE_URL: 'https://api.test',
      CORS_ALLOWED_ORIGINS: 'https://app.test',
      METRICS_PORT: '0',
    };
    const service = await run(t, text, environment);
    const { frozen, names, partner, more, ofTenants } = await service.logged('started');
    assert.deepEqual([frozen, partner], [Array(5).fill(true), 'partner.test']);
    assert.deepEqual(
      [more, ofTenants],
      [
        ['audience', 'issuer'],
        ['domain', 'audience', 'jwksUri'],
      ],
    );
    for (const name of ['log', 'replayStore', 'domain', 'issuers']) assert.ok(names.includes(name), name);
    const own = [
      'connect',
      'metadata',
      'cors',
      'metrics',
      'onStart',
      'onError',
      'onResponse',
      'applicationName',
    ];
    for (const name of own) assert.ok(!names.includes(name), name);
    await service.logged('gates');
  });

  for (const word of ['--check', '--probe']) {
    test(`neither onStart nor onStop is called for ${word} [§28]`, async (t) => {
      const hook = (name: string) => `${name}() { tell('${name}'); }`;
      const text = `await runService({ routes: [] }, { ${hook('onStart')}, ${hook('onStop')} });`;
      const { output } = await command(t, [word], text, { ...providerSettings(provider), PORT: '1' });
      assert.doesNotMatch(output, /onSt/);
    });
  }

  test('onStart is not called when settings or routes have a problem [§28]', async (t) => {
    for (const [routes, environment, problem] of [
      ['', { PORT: 'x' }, /PORT/],
      [`get('/{x}', open, () => ({})), get('/{y}', open, () => ({}))`, {}, /GET/],
    ] as const) {
      const text = `await runService({ routes: [${routes}] }, { onStart: () => tell('started') });`;
      const { code, output, errors } = await command(t, [], text, environment);
      assert.deepEqual([code, output], [1, '']);
      assert.match(errors.join(), problem);
    }
  });

  for (const [how, hook] of [
    ['throws', `() => { throw new RangeError('secret'); }`],
    ['rejects', `async () => { throw new RangeError('secret'); }`],
  ] as const) {
    test(`an onStart that ${how} is logged as start failed with frames, and ends the process with 1 [§28]`, async (t) => {
      const text = `await runService({ routes: [] }, { onStart: ${hook}, onStop: () => tell('stopped too') });`;
      const { exited, logs, errors } = await run(t, text);
      assert.equal(await exited, 1);
      const [{ level, message, reason, error, frames, ...others } = {}, ...rest] = logs;
      assert.deepEqual(
        [level, message, reason, error, rest],
        ['error', 'start failed', 'bug', 'RangeError', []],
      );
      assert.match(frames.join(), /main\.mjs:\d+:\d+/);
      assert.doesNotMatch(JSON.stringify([others, errors()]), /secret/);
    });
  }

  test('LOG_ERROR_MESSAGES=true says at the start that messages are logged, and logs them [§28]', async (t) => {
    const failing = `await runService({ routes: [] }, { onStart() { throw new RangeError('no database'); } });`;
    const failed = await run(t, failing, { LOG_ERROR_MESSAGES: 'true' });
    assert.equal(await failed.exited, 1);
    assert.deepEqual(messages(failed.logs), ['error messages are logged', 'start failed']);
    assert.equal(failed.logs[1]?.errorMessage, 'no database');
    const service = await run(t, `${ROUTES} await runService({ routes });`, { LOG_ERROR_MESSAGES: 'true' });
    assert.deepEqual(messages(service.logs).slice(0, 2), ['error messages are logged', 'listening']);
    const { status, text } = await service.ask('/broken');
    const { errorName, errorMessage } = await service.logged('request failed');
    assert.deepEqual([status, errorName, errorMessage], [500, 'RangeError', 'secret']);
    assert.doesNotMatch(text, /secret/);
  });

  test('LOG_ERROR_MESSAGES=true logs the messages of errors that nobody catches, and of onStop, too [§28]', async (t) => {
    const late = `get('/late', open, () => { setTimeout(() => { throw new Error('late'); }); return {}; })`;
    const text = `await runService({ routes: [${late}] }, { onStop() { throw new Error('pool'); } });`;
    const service = await run(t, text, { LOG_ERROR_MESSAGES: 'true' });
    assert.equal((await service.ask('/late')).status, 200);
    assert.equal((await service.logged('unforeseen error')).errorMessage, 'late');
    service.child.kill('SIGTERM');
    assert.equal((await service.logged('stop failed')).errorMessage, 'pool');
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`onStart may take any time, and ${signal} meanwhile ends the process with 1, without onStop [§28]`, async (t) => {
      const text = `await runService({ routes: [] }, {
        onStart() {
          tell('starting');
          process.kill(process.pid, '${signal}');
          return new Promise(() => {});
        },
        onStop: () => tell('onStop'),
      });`;
      const { exited, logs } = await run(t, text);
      assert.equal(await exited, 1);
      assert.deepEqual(
        logs.map(({ message, reason }) => [message, reason]),
        [
          ['starting', undefined],
          ['stopped', signal],
        ],
      );
    });
  }

  for (const hook of [
    `() => process.kill(process.pid, 'SIGTERM')`,
    `async () => { await undefined; process.kill(process.pid, 'SIGTERM'); }`,
  ]) {
    test(`a signal that comes while onStart blocks the process is not lost, but ends it with 1: ${hook} [§28]`, async (t) => {
      const text = `await runService({ routes: [] }, { onStart: ${hook}, onStop: () => tell('onStop') });`;
      const { exited, logs } = await run(t, text);
      assert.deepEqual(
        logs.map(({ message, reason }) => [message, reason]),
        [['stopped', 'SIGTERM']],
      );
      assert.equal(await exited, 1);
    });
  }

  test('onStop is called after the last response of a drain, and awaited [§28]', async (t) => {
    const text = `${ROUTES} await runService({ routes }, {
      onResponse: ({ path }) => tell('responded', { path }),
      async onStop() {
        tell('onStop');
        await new Promise(setImmediate);
        tell('closed');
      },
    });`;
    const service = await run(t, text, { SHUTDOWN_DELAY_SECONDS: '1' });
    const wire = await openWire(service.port);
    wire.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
    await service.logged('held');
    service.child.kill('SIGTERM');
    await service.logged('shutting down');
    await service.ask('/release');
    assert.match(await wire.untilClosed(), /^HTTP\/1\.1 200 /);
    assert.equal(await service.exited, 0);
    const afterSignal = service.logs.slice(messages(service.logs).indexOf('shutting down') + 1);
    const last = afterSignal.filter(({ message }) => !message.startsWith('signing keys'));
    assert.deepEqual(
      last
        .map(({ message, path, reason }) => [message, path ?? reason])
        .filter(([, what]) => what !== '/release'),
      [
        ['responded', '/held'],
        ['onStop', undefined],
        ['closed', undefined],
        ['stopped', 'drained'],
      ],
    );
  });

  for (const [how, hook] of [
    ['throws', `() => { throw new RangeError('secret'); }`],
    ['rejects', `async () => { throw new RangeError('secret'); }`],
  ] as const) {
    test(`an onStop that ${how} is logged as stop failed, and ends the process with 1 [§28]`, async (t) => {
      const service = await run(t, `await runService({ routes: [] }, { onStop: ${hook} });`);
      service.child.kill('SIGTERM');
      assert.equal(await service.exited, 1);
      const [{ message, error, frames } = {}, last] = service.logs.slice(-2);
      assert.deepEqual([message, error, last?.reason], ['stop failed', 'RangeError', 'drained']);
      assert.match(frames.join(), /main\.mjs:\d+:\d+/);
      assert.doesNotMatch(JSON.stringify(service.logs), /secret/);
    });
  }

  test('a second signal ends the process with 1 while onStop waits', async (t) => {
    const text = `await runService({ routes: [] }, { onStop: () => { tell('onStop'); return new Promise(() => {}); } });`;
    const service = await run(t, text);
    service.child.kill('SIGTERM');
    await service.logged('onStop');
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 1);
    assert.equal(service.logs.at(-1)?.reason, 'second-signal');
  });

  test('onError and onResponse are hooks of the process [§28]', async (t) => {
    const text = `${ROUTES} await runService({ routes }, {
      onError: ({ message }, about) => tell('error', { text: message, about }),
      onResponse: (event) => tell('event', event),
    });`;
    const service = await run(t, text, { TRUST_PROXY: 'true' });
    await service.ask('/broken', { headers: { 'X-Forwarded-For': '198.51.100.1' } });
    const { about, text: said } = await service.logged('error');
    assert.deepEqual([said, about], ['secret', { method: 'GET', route: '/broken' }]);
    const { message, durationMillis, ...event } = await service.logged('event');
    assert.deepEqual(event, {
      method: 'GET',
      path: '/broken',
      reason: 'bug',
      caller: null,
      clientAddress: '198.51.100.1',
      traceparent: null,
      route: '/broken',
      status: 500,
    });
  });

  test('a policy has the same hooks, and tells of the request that the proxy asks about [§28]', async (t) => {
    const text = `await runForwardAuth({ routes: [get('/orders/{id}', needs(scope('read')), upstream)] }, {
      onStart: () => tell('onStart'),
      onStop: () => tell('onStop'),
      onResponse: ({ method, path, route, status, caller }) =>
        tell('event', { about: [method, path, route, status, caller?.subject ?? null] }),
    });`;
    const service = await run(t, text, providerSettings(provider));
    await service.logged('onStart');
    const asking = (uri: string) => ({ 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': uri });
    const token = provider.issue({ sub: 'ada', scope: 'read' });
    await service.ask('/forward-auth', { headers: asking('/orders/7?a=b'), token });
    await service.ask('/forward-auth', { headers: asking('/orders/7') });
    await service.ask('/forward-auth', { headers: asking('/a%2Fb') });
    await service.logged('event', 3);
    assert.deepEqual(
      service.logs.filter(({ message }) => message === 'event').map(({ about }) => about),
      [
        ['GET', '/orders/7', '/orders/{id}', 200, 'ada'],
        ['GET', '/orders/7', '/orders/{id}', 401, null],
        ['GET', '/a%2Fb', null, 403, null],
      ],
    );
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
    await service.logged('onStop');
  });

  test('log takes the place of the log that the settings describe [§28]', async (t) => {
    const text = `await runService({ routes: [] }, {
      log: (mine, message, fields) => tell(message, { mine, ...fields }),
    });`;
    const service = await run(t, text, { IDP_UNKNOWN: 'x', LOG_LEVEL: 'error', ACCESS_LOG: 'true' });
    await service.ask('/healthz');
    assert.deepEqual(
      service.logs.slice(0, 2).map(({ message, mine, level }) => [message, mine, level]),
      [
        ['unknown setting ignored', 'warn', undefined],
        ['listening', 'info', undefined],
      ],
    );
    assert.ok(!messages(service.logs).includes('request'));
  });

  test('fetchKeys takes the place of the provider, and the log warns of it [§28]', async (t) => {
    const text = `${ROUTES} await runService({ routes }, { fetchKeys: async (issuer, name) => { tell('asked', { name }); return { keys: [] }; } });`;
    const service = await run(t, text);
    assert.equal((await service.logged('asked')).name, 'idp');
    assert.equal((await service.logged('signing keys not from the provider')).level, 'warn');
  });

  test('replayStore takes the place of that of the process, and is no part that is imported [§28, §30]', async (t) => {
    const text = `await runService({ routes: [] }, { replayStore: () => true, log: () => {} });`;
    const { code, output } = await command(t, ['--check'], text, providerSettings(provider));
    const { replayStore, imports } = JSON.parse(output);
    assert.deepEqual([code, replayStore, imports], [0, 'shared', []]);
  });

  test('lists every wrong hook with the problems of the routes and of the settings [§28]', async (t) => {
    const text = `await runService({ routes: [get('/healthz', open, () => ({}))] }, {
      onStrat() {}, onstop() {}, port: 1, onVerdict() {}, onStop: 5, log: {}, onError: undefined,
    });`;
    for (const word of ['', '--check', '--probe']) {
      const { code, output, errors } = await command(t, word ? [word] : [], text, { PORT: 'x' });
      assert.deepEqual([code, output], [1, '']);
      assert.deepEqual(errors.map((line) => line.replace(/\(environment\).*/, '')).sort(), [
        'configuration: GET /healthz: matches /healthz, which the service serves itself; change the pattern',
        'configuration: PORT ',
        'configuration: hooks: log: must be a function, or a part that jsonLog() makes, of the same copy of the package',
        'configuration: hooks: onStop: must be a function',
        'configuration: hooks: onStrat: is no option; correct or remove it',
        'configuration: hooks: onVerdict: is an option of createGate alone; use onResponse',
        'configuration: hooks: onstop: is no option; write onStop or remove it',
        'configuration: hooks: port: is no hook; set it in the environment, .env or application.yml',
      ]);
    }
  });

  test('hooks that are no plain object, or hide a member, are a problem', async (t) => {
    const NO_PLAIN_OBJECT =
      'configuration: hooks: must be a plain object with a member for each option, not an instance of a class';
    for (const [hooks, problem] of [
      ['"text"', NO_PLAIN_OBJECT],
      ['null', NO_PLAIN_OBJECT],
      ['new Map([["onStop", () => {}]])', NO_PLAIN_OBJECT],
      ['Object.create({ onStart() {} })', NO_PLAIN_OBJECT],
      [
        'Object.defineProperty({}, "onStart", { value() {} })',
        'configuration: hooks: onStart: is inherited or not enumerable; write it as a member of the object itself',
      ],
    ] as const) {
      const { code, errors } = await command(t, [], `await runService({ routes: [] }, ${hooks});`);
      assert.equal(code, 1);
      assert.deepEqual(errors, [problem]);
    }
  });

  test('rejects replayStore with IDP_DPOP_REPLAY_STORE, and without DPoP [§28]', async (t) => {
    const text = `await runService({ routes: [] }, { replayStore: () => true });`;
    for (const [environment, problem] of [
      [
        { IDP_DPOP_REPLAY_STORE: 'redis://:sesame@127.0.0.1:1' },
        'takes the place of IDP_DPOP_REPLAY_STORE (idp.dpopReplayStore); remove one of the two',
      ],
      [
        { IDP_DPOP_MODE: 'DISABLED' },
        'has no effect while the DPoP mode is DISABLED; remove it, or set another mode',
      ],
    ] as const) {
      const { code, errors } = await command(t, [], text, environment);
      assert.deepEqual([code, errors], [1, [`configuration: hooks: replayStore: ${problem}`]]);
    }
  });

  test('the program of docs/your-own-api.md opens its pool, writes an audit log, and closes the pool', async (t) => {
    const [text = ''] = samplesUnder('docs/your-own-api.md', 'A process of your own', 'ts');
    const pg = `
      const tell = (message, more) => console.log(JSON.stringify({ message, ...more }));
      class Pool {
        constructor(options) { tell('opened', options); }
        async query(sql, values) { tell('query', { sql, values }); return { rows: sql.includes('orders') ? [{ id: '7' }] : [] }; }
        async end() { tell('closed'); }
      }
      export default { Pool };`;
    const environment = { ...providerSettings(provider), DATABASE_URL: 'postgres://db.test/orders' };
    const service = await runProcess(t, { program: wholeProgramOf(t, text, { pg }), environment });
    assert.deepEqual(messages(service.logs).slice(0, 3), ['opened', 'query', 'listening']);
    assert.equal(service.logs[0]?.connectionString, environment.DATABASE_URL);
    const token = provider.issue({ sub: 'ada', scope: 'read:orders' });
    assert.deepEqual((await service.ask('/api/orders/7', { token })).body, { id: '7' });
    const { sql, values } = await service.logged('query', 3);
    assert.match(sql, /^insert into audit/);
    assert.deepEqual(values, ['GET', '/api/orders/7', 200, 'ada', '127.0.0.1']);
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
    assert.deepEqual(messages(service.logs).slice(-2), ['closed', 'stopped']);
  });
});
