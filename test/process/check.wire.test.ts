/* `--check`: what the service would run with, or every problem; and unknown arguments. */
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { text } from 'node:stream/consumers';
import { after, before, describe, test, type TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startProxy } from '../idp/proxy.ts';
import { startRawServer } from '../idp/raw-server.ts';
import { fetchKeys, sourceOf } from '../verify/keys/fetch-fixture.ts';
import { afterGreeting, startFakeStore } from '../options/fake-store.ts';
import { json, startEndpoint } from '../options/introspection/endpoint-fixture.ts';
import { CLUSTER_AUTHORITY, directoryFor, startCluster } from '../options/key-access-fixture.ts';
import { except, storeWith } from '../options/redis/revocations-fixture.ts';
import { VERSION } from '../../src/verify/base/version.ts';
import { DOWN, providerSettings, runProcess } from '../support/process.ts';
import { runCommand, SERVER, type Outcome } from './commands.ts';
import { programOf } from './program.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

const check = (environment: Record<string, string> = {}, files?: Record<string, string>) =>
  runCommand(['--check'], { ...providerSettings(provider), ...environment }, files);

/** The report of a valid configuration. */
function reportOf({ code, output, errors }: Outcome): Record<string, any> {
  assert.deepEqual([code, errors], [0, []]);
  const report = JSON.parse(output);
  // For people, too.
  assert.equal(output, `${JSON.stringify(report, undefined, 2)}\n`);
  return report;
}

/** The output for an invalid one; there is nothing else. */
function problemsOf({ code, output, errors }: Outcome): readonly string[] {
  assert.deepEqual([code, output], [1, '']);
  return errors;
}

let usualOutcome: Promise<Outcome> | undefined;

/** The report without further settings, from one process for all tests. */
async function usualReport() {
  usualOutcome ??= check();
  return reportOf(await usualOutcome);
}

const eventIn = (report: Record<string, any>, name: string) =>
  report.events.find(({ event }: { event: string }) => event === name);

describe('--check', { concurrency: 4 }, () => {
  test('reports the issuers, audiences, keys, mode and sources of the service, and exits with 0', async () => {
    const report = reportOf(
      // Shells set `_`.
      await check(
        { IDP_DPOP_MODE: 'REQUIRED', _: '/usr/bin/node' },
        { '.env': 'PORT=0\n', 'application.yml': 'application:\n  name: orders\n  x: 1\n' },
      ),
    );
    const { profile, application, issuers, audiences, dpopMode, replayStore, files } = report;
    assert.deepEqual(
      [profile, application, issuers, audiences, dpopMode, replayStore],
      ['B', 'orders', [provider.issuer], [provider.audience], 'REQUIRED', 'process'],
    );
    assert.deepEqual(
      files.map((file: string) => basename(file)),
      ['.env', 'application.yml'],
    );
    assert.deepEqual(eventIn(report, 'signing keys loaded').kids, [provider.signingKey.kid]);
    assert.deepEqual(
      report.events.map(({ event }: { event: string }) => event),
      ['unknown setting ignored', 'signing keys loaded'],
    );
  });

  test('fails for names in the environment that may be misspelt settings, which a start only warns of [H2]', async () => {
    const strays = { IDP_DPOP_MOD: 'REQUIRED', METRICSPORT: '9', REVOCATION_STORES: 'x', CLIENT_CERT_X: '1' };
    const orchestrated = { IDP_SERVICE_HOST: '10.0.0.1', REVOCATION_STORE_SERVICE_HOST: '10.0.0.1' };
    const lines = problemsOf(await check({ ...strays, ...orchestrated }));
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+) \(environment\)/.exec(line)?.[1]).sort(),
      Object.keys(strays).sort(),
    );
    assert.match(lines.join('\n'), /METRICSPORT .*write METRICS_PORT/);
  });

  test('lists names in the environment that may be misspelt settings with every other problem', async () => {
    const strays = { IDP_DPOP_MOD: 'REQUIRED', METRICSPORT: '9' };
    const lines = problemsOf(await check({ ...strays, PORT: 'x' }, { '.env': 'Idp_Domain=x\n' }));
    assert.deepEqual(lines.map((line) => /^configuration: (\w+) /.exec(line)?.[1]).sort(), [
      'IDP_DPOP_MOD',
      'Idp_Domain',
      'METRICSPORT',
      'PORT',
    ]);
  });

  test('lists the parts in use by the paths that code would import them from', async () => {
    assert.deepEqual((await usualReport()).imports, ['gatehouse-http/log']);
    const settings = {
      IDP_AUDIENCE: 'https://api.test',
      RESOURCE_URL: 'https://api.test',
      CORS_ALLOWED_ORIGINS: 'https://app.test',
      METRICS_PORT: '0',
    };
    const { imports } = reportOf(await check(settings));
    const names = ['log', 'resource-metadata', 'cors', 'metrics'];
    assert.deepEqual(
      imports,
      names.map((name) => `gatehouse-http/${name}`),
    );
    const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    for (const name of names) assert.ok(`./${name}` in exports, name);
  });

  test('lists no part for a hook that is a function', async (t) => {
    const program = programOf(t, 'await runService({ routes: [] }, { log() {} });');
    const report = reportOf(await runCommand(['--check'], providerSettings(provider), {}, program));
    assert.deepEqual(report.imports, []);
  });

  test('names the proxy by its one setting for a further issuer, too', async () => {
    const lines = problemsOf(
      await check({
        IDP_PROXY: 'http://127.0.0.1:1',
        ISSUERS: 'partner',
        ISSUER_PARTNER_DOMAIN: 'partner.test',
        ISSUER_PARTNER_AUDIENCE: 'x',
      }),
    );
    const failed = 'proxy-failed (ECONNREFUSED); no connection to the proxy; check IDP_PROXY';
    assert.deepEqual(lines.toSorted(), [
      `signing keys could not be fetched: issuer idp, ${failed}`,
      `signing keys could not be fetched: issuer partner, ${failed}`,
    ]);
  });

  test('lists the parts that a further issuer alone has', async () => {
    const { imports, keyAccess } = reportOf(
      await check({
        ISSUERS: 'other, partner',
        ISSUER_OTHER_DOMAIN: provider.domain,
        ISSUER_OTHER_ISSUER: 'https://other.test',
        ISSUER_OTHER_JWKS_URI: `https://${provider.domain}/.well-known/jwks.json`,
        ISSUER_OTHER_AUDIENCE: 'x',
        ISSUER_PARTNER_DOMAIN: provider.domain,
        ISSUER_PARTNER_ISSUER: 'https://partner.test',
        ISSUER_PARTNER_JWKS_URI: `https://${provider.domain}/.well-known/jwks.json`,
        ISSUER_PARTNER_AUDIENCE: 'x',
        ISSUER_PARTNER_CA_FILE: provider.authorityFile,
      }),
    );
    assert.deepEqual(imports, ['gatehouse-http/log', 'gatehouse-http/key-access']);
    assert.deepEqual(keyAccess, { partner: ['authorities'] });
  });

  test('reports where client certificates come from, and the proxies that may send them', async () => {
    const { clientCertificates, certificateRequired, certificateProxies } = await usualReport();
    const none = [clientCertificates, certificateRequired, certificateProxies];
    assert.deepEqual(none, [undefined, undefined, undefined]);
    const settings = { CLIENT_CERT_SOURCE: 'pem', CLIENT_CERT_PROXIES: '10.0.0.0/8, ::1' };
    const report = reportOf(await check(settings));
    assert.deepEqual(
      [report.clientCertificates, report.certificateRequired, report.certificateProxies],
      ['pem X-Client-Cert', false, ['10.0.0.0/8', '::1']],
    );
    assert.deepEqual(report.imports, ['gatehouse-http/log', 'gatehouse-http/certificates']);
    const own = { CLIENT_CERT_SOURCE: 'xfcc', CLIENT_CERT_PROXIES: 'any', CLIENT_CERT_FIELD: 'X-Mesh' };
    const required = reportOf(await check({ ...own, CLIENT_CERT_REQUIRED: 'true' }));
    assert.deepEqual(
      [required.clientCertificates, required.certificateRequired, required.certificateProxies],
      ['xfcc X-Mesh', true, 'any'],
    );
  });

  test('reports the number of tenants, and names each whose keys fail [§23]', async (t) => {
    const keys = await fetchKeys(sourceOf(provider));
    const list = Array.from({ length: 25 }, (_, index) => `t${index}`);
    const broken = ['t7', 't19'];
    const documents = list.map((tenant) => [`/${tenant}/keys`, broken.includes(tenant) ? {} : keys] as const);
    const server = await startCluster(t, () => Object.fromEntries(documents), undefined, 'provider');
    const base = `https://localhost:${server.port}`;
    const template = {
      IDP_ISSUER: `${base}/{tenant}`,
      IDP_JWKS_URI: `${base}/{tenant}/keys`,
      IDP_TENANTS: list.filter((tenant) => !broken.includes(tenant)).join(),
    };
    const report = reportOf(await check(template));
    assert.deepEqual([report.tenants, report.issuers], [{ idp: 23 }, [template.IDP_ISSUER]]);
    assert.deepEqual(report.imports, ['gatehouse-http/log', 'gatehouse-http/tenants']);
    assert.equal(server.asked.length, 23);
    assert.equal((await usualReport()).tenants, undefined);

    const shared = { ...template, IDP_TENANTS: '*', IDP_JWKS_URI: `${base}/t1/keys` };
    assert.deepEqual(reportOf(await check(shared)).tenants, { idp: '*' });

    const lines = problemsOf(await check({ ...template, IDP_TENANTS: list.join() }));
    assert.deepEqual(
      lines
        .map(
          (line) =>
            /^signing keys could not be fetched: issuer idp, tenant (\w+), not-a-key-set; /.exec(line)?.[1],
        )
        .sort(),
      ['t19', 't7'],
    );
  });

  test('asks about a random token, reports endpoint, client and kind of authentication, and fails unless it is inactive [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const opaque = {
      IDP_INTROSPECTION: 'opaque',
      IDP_INTROSPECTION_URI: endpoint.uri,
      IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
    };
    const withSecret = { ...opaque, IDP_INTROSPECTION_CLIENT_SECRET: 'sesame' };
    const outcome = await check(withSecret);
    const report = reportOf(outcome);
    assert.deepEqual(report.introspection, {
      idp: ['opaque', endpoint.uri, 'orders-api', 'client_secret_basic'],
    });
    assert.deepEqual(report.imports, ['gatehouse-http/log', 'gatehouse-http/introspection']);
    assert.doesNotMatch(outcome.output, /sesame/);
    assert.match(endpoint.questions[0]?.form.get('token') ?? '', /^[\w-]{22}$/);

    const keyFile = fileURLToPath(new URL('../idp/tls/client-key.pem', import.meta.url));
    const withKey = { ...opaque, IDP_INTROSPECTION: 'jwt', IDP_INTROSPECTION_KEY_FILE: keyFile };
    assert.deepEqual(reportOf(await check(withKey)).introspection, {
      idp: ['jwt', endpoint.uri, 'orders-api', 'private_key_jwt'],
    });
    assert.match(endpoint.questions[1]?.form.get('token') ?? '', /^[\w-]{22}\.[\w-]{22}\.[\w-]{22}$/);

    for (const [say, problem] of [
      [
        json({}, 401),
        'client-refused (401); the endpoint refused this client; check IDP_INTROSPECTION_CLIENT_ID and its secret or key',
      ],
      [
        json({ active: true }),
        'active; the response calls a random token active; check IDP_INTROSPECTION_URI, or your own introspect',
      ],
      [
        json({ active: 1 }),
        'no-verdict; the response does not say true or false (active); check IDP_INTROSPECTION_URI, or your own introspect',
      ],
      [
        json({}, 302),
        'status-refused (302); the endpoint did not respond with 200; check IDP_INTROSPECTION_URI',
      ],
    ] as const) {
      endpoint.say = say;
      assert.deepEqual(problemsOf(await check(withSecret)), [`introspection lost: issuer idp, ${problem}`]);
    }
    assert.equal((await usualReport()).introspection, undefined);
  });

  test('reports what each issuer is shown and checked against, but no token, and fails when a file is refused [J9]', async (t) => {
    const write = directoryFor(t);
    const token = 'sesame-sesame-sesame';
    const tokenFile = write('token', token);
    const files = { IDP_JWKS_TOKEN_FILE: tokenFile, IDP_CA_FILE: provider.authorityFile };
    const outcome = await check(files);
    const report = reportOf(outcome);
    assert.deepEqual(report.keyAccess, { idp: ['token', 'authorities'] });
    assert.deepEqual(report.imports, ['gatehouse-http/log', 'gatehouse-http/key-access']);
    assert.doesNotMatch(outcome.output, /sesame/);
    assert.equal((await usualReport()).keyAccess, undefined);

    const partner = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'x.test', ISSUER_PARTNER_AUDIENCE: 'x' };
    const bad = {
      ...partner,
      ISSUER_PARTNER_JWKS_TOKEN_FILE: write('bad', `${token} x`),
      IDP_CA_FILE: tokenFile,
    };
    const lines = problemsOf(await check(bad));
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+) \(environment\): must be a file with/.exec(line)?.[1]),
      ['IDP_CA_FILE', 'ISSUER_PARTNER_JWKS_TOKEN_FILE'],
    );
    assert.doesNotMatch(lines.join(), /sesame/);
  });

  test('names the authorities, and the clock, to check when they do not vouch for the provider', async () => {
    const [line = ''] = problemsOf(await check({ IDP_CA_FILE: CLUSTER_AUTHORITY }));
    assert.match(
      line,
      /issuer idp, certificate-refused \(\w+\); .*clock, or set IDP_CA_FILE to its authority$/,
    );
  });

  test('lists every setting of client certificates that contradicts another [J18]', async () => {
    const lines = problemsOf(
      await check({ CLIENT_CERT_FIELD: 'X', CLIENT_CERT_PROXIES: 'any', CLIENT_CERT_REQUIRED: 'true' }),
    );
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+) \(environment\)/.exec(line)?.[1]),
      ['CLIENT_CERT_FIELD', 'CLIENT_CERT_PROXIES', 'CLIENT_CERT_REQUIRED'],
    );
    const [line = ''] = problemsOf(await check({ CLIENT_CERT_SOURCE: 'tls' }));
    assert.match(line, /^configuration: CLIENT_CERT_SOURCE .*a service offers no TLS; .* such as rfc9440/);
  });

  test('lists the pairs of routes of which one takes paths from the other [docs/deploy.md]', async () => {
    const routes = `
      import { get, open, put, runService } from '${new URL('../../dist/gatehouse.js', import.meta.url).href}';
      const nothing = () => ({});
      runService({ routes: [
        get('/{all}/{users}', open, nothing),
        get('/users/me', open, nothing),
        put('/users/{id}', open, nothing),
        get('/users/{id}', open, nothing),
        get('/users/{id}/orders', open, nothing),
        get('/%7Ball%7D/x', open, nothing),
      ] });`;
    const program = [process.execPath, 'routes.mjs'];
    const report = reportOf(
      await runCommand(['--check'], providerSettings(provider), { 'routes.mjs': routes }, program),
    );
    assert.deepEqual(report.takenPaths, [
      'GET /users/me takes paths from /users/{id}',
      'GET /users/me takes paths from /{all}/{users}',
      'GET /users/{id} takes paths from /{all}/{users}',
      'GET /%7Ball%7D/x takes paths from /{all}/{users}',
    ]);
  });

  test('reports algorithms that are not the defaults', async () => {
    const usual = await usualReport();
    assert.deepEqual([usual.algorithms, usual.dpopAlgorithms], [undefined, undefined]);
    const own = reportOf(await check({ IDP_ALGORITHMS: 'ES256, RS256', IDP_DPOP_ALGORITHMS: 'ES256' }));
    assert.deepEqual([own.algorithms, own.dpopAlgorithms], [['ES256', 'RS256'], ['ES256']]);
  });

  test('warns of a resource that no issuer has as audience, since tokens for it would be refused [RFC 8707 §2.2]', async () => {
    const resources = [undefined, 'https://api.test/mcp', 'https://api.test'];
    const warned = resources.map(async (RESOURCE_URL) => {
      const audiences = 'https://api.test/mcp, other';
      const own = {
        PUBLIC_URL: 'https://api.test',
        IDP_AUDIENCE: audiences,
        ...(RESOURCE_URL && { RESOURCE_URL }),
      };
      return eventIn(reportOf(await check(own)), 'resource is not an audience')?.setting;
    });
    assert.deepEqual(await Promise.all(warned), [undefined, undefined, 'https://api.test']);
  });

  test('fetches the keys once, whatever the level of the log, and does not need its port', async (t) => {
    const own = await startProvider();
    t.after(() => own.stop());
    const taken = createServer().listen(0);
    t.after(() => taken.close());
    await once(taken, 'listening');
    const PORT = String((taken.address() as AddressInfo).port);
    const report = reportOf(
      await runCommand(['--check'], { ...providerSettings(own), PORT, LOG_LEVEL: 'silent' }),
    );
    assert.deepEqual(eventIn(report, 'signing keys loaded').kids, [own.signingKey.kid]);
    assert.equal(eventIn(report, 'signing key skipped'), undefined);
    assert.deepEqual([own.counts.discovery, own.counts.keySet], [1, 1]);
  });

  test('reports skipped keys, and succeeds while one key is usable', async (t) => {
    const own = await startProvider();
    t.after(() => own.stop());
    const { keys } = await fetchKeys(sourceOf(own));
    own.publish({ keys: [...(keys as object[]), { kty: 'EC', kid: 'other' }] });
    const report = reportOf(await runCommand(['--check'], providerSettings(own)));
    const { reason, kid } = eventIn(report, 'signing key skipped');
    assert.deepEqual([reason, kid], ['key-type', 'other']);
    own.publish({ keys: [{ kty: 'EC', kid: 'other' }] });
    const lines = problemsOf(await runCommand(['--check'], providerSettings(own)));
    assert.match(
      lines.join(),
      /^signing keys could not be fetched: issuer idp, no-usable-key \(key-type\); no key of the set can be used; check IDP_ALGORITHMS /,
    );
  });

  test('fetches the keys of every issuer, and waits for each of them', async (t) => {
    const partner = await startProvider({ host: '127.0.0.1' });
    t.after(() => partner.stop());
    const PARTNER = {
      ISSUERS: 'partner',
      ISSUER_PARTNER_DOMAIN: partner.domain,
      ISSUER_PARTNER_AUDIENCE: 'urn:partner',
    };
    const report = reportOf(await check(PARTNER));
    assert.deepEqual(report.issuers, [provider.issuer, partner.issuer]);
    const loaded = report.events.map(({ issuer, kids }: Record<string, unknown>) => [issuer, kids]).sort();
    assert.deepEqual(loaded, [
      ['idp', [provider.signingKey.kid]],
      ['partner', [partner.signingKey.kid]],
    ]);
    await partner.fault('all', 'hang-before-headers');
    const faulty = await startProvider();
    t.after(() => faulty.stop());
    await faulty.fault('discovery', { status: 500 });
    const lines = problemsOf(await check({ ...PARTNER, ...providerSettings(faulty) }));
    const named = lines.map((line) => /issuer (\w+), ([\w-]+)/.exec(line)?.slice(1));
    assert.deepEqual(named, [
      ['idp', 'status-refused'],
      ['partner', 'timeout'],
    ]);
    assert.match(
      lines[0] ?? '',
      /status-refused \(500\); .*check IDP_DOMAIN, IDP_ISSUER, IDP_JWKS_URI, IDP_JWKS_TOKEN_FILE$/,
    );
    // Even after a failure seconds before.
    assert.equal(faulty.counts.discovery, 1);
    await partner.fault('all', { status: 403 });
    const [line = ''] = problemsOf(await check(PARTNER));
    const fix =
      'check ISSUER_PARTNER_DOMAIN, ISSUER_PARTNER_ISSUER, ISSUER_PARTNER_JWKS_URI, ISSUER_PARTNER_JWKS_TOKEN_FILE';
    assert.ok(line.includes('issuer partner, status-refused (403); ') && line.endsWith(fix), line);
  });

  test('prints a whole report that is longer than a pipe takes at once', async () => {
    const routes = `
      import { get, open, runService } from '${new URL('../../dist/gatehouse.js', import.meta.url).href}';
      const pairOf = (name) => ['{id}', 'latest'].map((last) => get('/' + name + '/' + last, open, () => ({})));
      const names = Array.from({ length: 1_500 }, (_, index) => 'long-'.repeat(50) + index);
      runService({ routes: names.flatMap(pairOf) });`;
    const program = [process.execPath, 'routes.mjs'];
    const files = { 'routes.mjs': routes };
    const report = reportOf(await runCommand(['--check'], providerSettings(provider), files, program));
    assert.deepEqual([report.takenPaths].flat().length, 1_500);
  });

  test('works while a service runs with the same settings', async (t) => {
    const service = await runProcess(t, { environment: providerSettings(provider) });
    reportOf(await check({ PORT: String(service.port) }));
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('reports every configuration problem as a start would, one line each', async () => {
    const lines = problemsOf(await runCommand(['--check'], { IDP_DOMAIN: 'https://idp.test', PORT: 'x' }));
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT'],
    );
  });

  for (const words of [['--check'], []]) {
    test(`reports more problems than a pipe takes at once${words.map((word) => `, with ${word} too`)}`, async () => {
      const files = { '.env': 'no setting\n'.repeat(3_000) };
      const lines = problemsOf(await runCommand(words, DOWN, files));
      assert.equal(lines.length, 3_000);
    });
  }

  /** In place of waiting for ever. */
  const BOUNDED = { timeout: 60_000 };

  /** A process with more problems than a pipe takes, which nobody reads yet. */
  function startUnread(t: TestContext, words: readonly string[]) {
    const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-'));
    writeFileSync(join(cwd, '.env'), 'no setting\n'.repeat(3_000));
    const child = spawn(process.execPath, [SERVER, ...words], {
      cwd,
      env: { PATH: process.env.PATH, ...DOWN },
    });
    t.after(() => {
      child.kill('SIGKILL');
      rmSync(cwd, { recursive: true });
    });
    return child;
  }

  test(
    'a start ends although nothing reads its problems, a check waits for its reader',
    BOUNDED,
    async (t) => {
      const waiting = startUnread(t, ['--check']);
      await once(waiting.stderr, 'readable');
      const start = startUnread(t, []);
      assert.deepEqual(await once(start, 'exit'), [1, null]);
      start.stderr.destroy();
      assert.equal((await text(waiting.stderr)).split('\n').length, 3_001);
      assert.equal(waiting.exitCode ?? (await once(waiting, 'exit'))[0], 1);
    },
  );

  test('fails with 1 although a write of the program itself does not tell that it is done', async (t) => {
    const text = `
      for (const stream of [process.stdout, process.stderr]) {
        const { write } = stream;
        stream.write = (piece) => write.call(stream, piece);
      }
      void runService({ routes: [] });`;
    const program = programOf(t, text);
    const { code, errors } = await runCommand(['--check'], DOWN, {}, program);
    assert.equal(code, 1);
    assert.match(errors.join(), /^signing keys could not be fetched/);
    const wrong = await runCommand([], { ...DOWN, PORT: 'x' }, {}, program);
    assert.equal(wrong.code, 1);
    assert.match(wrong.errors.join(), /^configuration: PORT /);
  });

  test('reports keys and store together when neither is available, and shows no secret', async () => {
    const lines = problemsOf(
      await check({
        ...DOWN,
        IDP_PROXY: 'http://us:sesame@127.0.0.1:1',
        IDP_DPOP_MODE: 'ALLOWED',
        IDP_DPOP_REPLAY_STORE: 'redis://us:sesame@127.0.0.1:1',
        IDP_DPOP_NONCE_SECRET: 'sesame'.repeat(8),
      }),
    );
    assert.deepEqual(lines.map((line) => line.replace(/: .*/, '')).sort(), [
      'replay store lost',
      'signing keys could not be fetched',
    ]);
    assert.match(lines.join(), /proxy-failed \(ECONNREFUSED\); no connection to the proxy; check IDP_PROXY/);
    assert.match(lines.join(), /replay store lost: ECONNREFUSED; check address/);
    assert.doesNotMatch(lines.join(), /sesame/);
  });

  test('greets the store with its password, records nothing in it, and shows the password nowhere', async (t) => {
    const store = await startFakeStore(t, afterGreeting('+OK\r\n'));
    const environment = {
      IDP_DPOP_MODE: 'ALLOWED',
      IDP_DPOP_REPLAY_STORE: `redis://:sesame@127.0.0.1:${store.port}`,
    };
    const outcome = await check(environment);
    const report = reportOf(outcome);
    assert.deepEqual(
      [report.replayStore, report.imports],
      ['shared', ['gatehouse-http/log', 'gatehouse-http/redis']],
    );
    assert.ok(eventIn(report, 'replay store ready'));
    assert.deepEqual(
      store.commands.map(([command]) => command),
      ['AUTH', 'PING'],
    );
    assert.doesNotMatch(outcome.output, /sesame|redis:/);
  });

  test('greets the revocation store and asks it once, for an entry that no token has', async (t) => {
    const store = await startFakeStore(t, storeWith(new Map()));
    const outcome = await check({ REVOCATION_STORE: `redis://:sesame@127.0.0.1:${store.port}` });
    const report = reportOf(outcome);
    assert.deepEqual(
      [report.revocationStore, report.imports],
      ['redis', ['gatehouse-http/log', 'gatehouse-http/revocations']],
    );
    assert.ok(eventIn(report, 'revocation store ready'));
    assert.deepEqual(store.commands, [['AUTH', 'sesame'], ['PING'], ['MGET', 'gatehouse:revoked:{}']]);
    assert.doesNotMatch(outcome.output, /sesame|redis:/);
  });

  test('fails when the revocation store is not there, may not be read, or does not reply, even if the other store does', async (t) => {
    const store = await startFakeStore(t, except('MGET', '-NOPERM x\r\n'));
    const silent = await startFakeStore(t, () => undefined);
    const other = await startFakeStore(t, afterGreeting('+OK\r\n'));
    const environment = {
      IDP_DPOP_MODE: 'ALLOWED',
      IDP_DPOP_REPLAY_STORE: `redis://127.0.0.1:${other.port}`,
    };
    for (const [port, reason] of [
      [store.port, 'NOPERM'],
      [silent.port, 'timeout'],
      [1, 'ECONNREFUSED'],
    ] as const) {
      const address = `redis://:sesame@127.0.0.1:${port}`;
      const lines = problemsOf(await check({ ...environment, REVOCATION_STORE: address }));
      const losses = lines.filter((line) => line.startsWith('revocation store'));
      const advice = 'check address, user and rights in REVOCATION_STORE';
      assert.deepEqual(losses, [`revocation store lost: ${reason}; ${advice}`]);
      assert.doesNotMatch(lines.join(), /sesame/);
    }
  });

  test('refuses an address that is none of a store, which would leave every token counting [J18]', async () => {
    const lines = problemsOf(await check({ REVOCATION_STORE: 'tcp://10.0.0.1:6379' }));
    assert.match(lines.join(), /^configuration: REVOCATION_STORE \(environment\): must be redis:/);
  });

  test('fails when the store refuses the password, or does not reply in time', async (t) => {
    const refusing = await startFakeStore(t, ([command]) =>
      command === 'AUTH' ? '-WRONGPASS x\r\n' : '+OK\r\n',
    );
    const silent = await startFakeStore(t, () => undefined);
    for (const { port } of [refusing, silent]) {
      const address = `redis://:sesame@127.0.0.1:${port}`;
      const environment = { IDP_DPOP_MODE: 'ALLOWED', IDP_DPOP_REPLAY_STORE: address };
      // No other line is about the store.
      const lines = problemsOf(await check(environment));
      // On a busy machine the keys, or the refusal, may be late too.
      const losses = lines.filter((line) => line.startsWith('replay store'));
      const advice =
        /^replay store lost: (\w+); check address, user and rights in IDP_DPOP_REPLAY_STORE, or in the hook replayStore$/;
      const reason = advice.exec(losses.join())?.[1] ?? '';
      assert.ok(['timeout', port === refusing.port ? 'WRONGPASS' : ''].includes(reason), lines.join());
    }
  });

  test('fetches only through the configured proxy, and fails when the proxy refuses', async (t) => {
    const proxy = await startProxy();
    t.after(() => proxy.stop());
    const nowhere = 'http://127.0.0.1:9';
    const others = {
      // Some releases of Node warn about the next variable.
      NODE_NO_WARNINGS: '1',
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      http_proxy: nowhere,
    };
    const report = reportOf(
      await check({ ...others, IDP_PROXY: `http://us:sesame@127.0.0.1:${proxy.port}` }),
    );
    assert.deepEqual(
      [report.imports, proxy.asked.length],
      [['gatehouse-http/log', 'gatehouse-http/proxy'], 2],
    );
    const refusing = await startRawServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 407 X\r\n\r\n')),
    );
    t.after(() => refusing.stop());
    const lines = problemsOf(await check({ IDP_PROXY: `http://us:sesame@localhost:${refusing.port}` }));
    assert.equal(lines.length, 1);
    assert.match(
      lines[0] ?? '',
      /^signing keys could not be fetched: issuer idp, proxy-refused \(407\); the proxy refused/,
    );
    assert.doesNotMatch(lines.join(), /sesame/);
  });

  test('ends within the time of a fetch when the provider does not respond', async (t) => {
    const hanging = await startProvider();
    t.after(() => hanging.stop());
    await hanging.fault('all', 'hang-before-headers');
    const lines = problemsOf(await runCommand(['--check'], providerSettings(hanging)));
    assert.match(
      lines.join(),
      /^signing keys could not be fetched: issuer idp, timeout; the provider did not respond/,
    );
  });

  test('has not passed when a signal ends it before its report [§10]', async (t) => {
    const silent = createServer().listen(0, '127.0.0.1');
    t.after(() => silent.close());
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const domain = `127.0.0.1:${port}`;
    const env = { PATH: process.env.PATH, IDP_DOMAIN: domain, IDP_AUDIENCE: 'https://api.test' };
    const child = spawn(process.execPath, [SERVER, '--check'], { cwd: tmpdir(), env });
    t.after(() => child.kill('SIGKILL'));
    const output = text(child.stdout);
    await once(silent, 'connection');
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGTERM']);
    assert.equal(await output, '');
  });

  /** The last lines of a main file with its own routes. */
  function runOwnRoutes(
    routes: string,
    environment: Record<string, string>,
    word?: string,
    run = 'runService',
  ) {
    const door = JSON.stringify(new URL('../../dist/gatehouse.js', import.meta.url).href);
    const code = `import { get, needs, open, runForwardAuth, runService, scope, under } from ${door}; ${run}({ ${routes} });`;
    const program = [process.execPath, '--input-type=module', '--eval', code, ''];
    return runCommand(word === undefined ? [] : [word], environment, {}, program);
  }

  const SHADOW = "routes: [get('/healthz', open, () => ({}))]";

  test('reports invalid routes of runService', async () => {
    const problem =
      'configuration: GET /healthz: matches /healthz, which the service serves itself; change the pattern';
    assert.deepEqual(problemsOf(await runOwnRoutes(SHADOW, DOWN, '--check')), [problem]);
    assert.deepEqual(problemsOf(await runOwnRoutes(SHADOW, { ...DOWN, PORT: '0' })), [problem]);
  });

  test('reports unknown arguments together with invalid routes of runService', async () => {
    assert.deepEqual(problemsOf(await runOwnRoutes(SHADOW, DOWN, '--verbose')), [
      'configuration: arguments: must be none, or one of --check, --probe, --help and --version',
      'configuration: GET /healthz: matches /healthz, which the service serves itself; change the pattern',
    ]);
  });

  test('reports a route at the path of the metadata together with every problem of the settings [RFC 9728 §3.1]', async () => {
    const routes = `routes: [
      get('/.well-known/oauth-protected-resource', open, () => ({})),
      get('/.well-known/oauth%2Dprotected-resource/mcp', open, () => ({})),
      get('/.well-known/{x}/mcp', open, () => ({})),
    ]`;
    const resource = { ...DOWN, RESOURCE_URL: 'https://api.test/mcp' };

    const taken = (pattern: string, path: string) =>
      `configuration: GET ${pattern}: matches ${path}, which the service serves itself; change the pattern`;

    const problems = [
      taken('/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource'),
      taken('/.well-known/oauth%2Dprotected-resource/mcp', '/.well-known/oauth-protected-resource/mcp'),
    ];
    assert.deepEqual(problemsOf(await runOwnRoutes(routes, resource)), problems);
    assert.deepEqual(problemsOf(await runOwnRoutes(routes, { ...resource, PORT: 'x' }, '--check')), [
      ...problems,
      'configuration: PORT (environment): must be a whole number from 0 to 65535',
    ]);
    const withoutResource = await runOwnRoutes(routes, { ...DOWN, PORT: 'x' });
    assert.equal(problemsOf(withoutResource).length, 1);
  });

  test('ends when routes are invalid, even if the main file has started a timer', async () => {
    const busy = "routes: [setInterval(() => {}, 1_000) && get('/healthz', open, () => ({}))]";
    assert.equal(problemsOf(await runOwnRoutes(busy, DOWN)).length, 1);
  });

  test('reports "own table" as the profile of runService, and no paths that a route takes from another', async () => {
    const report = reportOf(await runOwnRoutes('routes: []', providerSettings(provider), '--check'));
    assert.deepEqual([report.profile, report.isPolicy, report.takenPaths], ['own table', false, []]);
  });

  test('reports forward-auth for a policy', async () => {
    const ran = await runOwnRoutes('routes: []', providerSettings(provider), '--check', 'runForwardAuth');
    assert.equal(reportOf(ran).isPolicy, true);
  });

  for (const [what, looks] of [
    ['the first time', 0],
    ['the second time', 1],
  ] as const) {
    test(`ends with 1 and the stack when reading the routes throws ${what}`, async () => {
      const counted = 'globalThis.looks = (globalThis.looks ?? 0) + 1';
      const thrown = `if (globalThis.looks > ${looks}) throw new RangeError('unforeseen')`;
      const strange = `get routes() { ${counted}; ${thrown}; return []; }`;
      const { code, output, errors } = await runOwnRoutes(strange, DOWN);
      assert.deepEqual([code, output], [1, '']);
      assert.match(errors.join('\n'), /^RangeError: unforeseen\n +at /m);
    });
  }

  for (const words of [['--check'], []]) {
    test(`reports problems of routes and of the settings together${words.map((word) => ` with ${word}`)}`, async () => {
      const handler = 'open, () => ({})';
      const routes = `routes: [get('/healthz', ${handler}), get('\u00fc', ${handler})], rules: [open]`;
      assert.deepEqual(
        problemsOf(await runOwnRoutes(routes, { ...DOWN, IDP_DOMAIN: 'a b', PORT: 'x' }, ...words)),
        [
          'GET /healthz: matches /healthz, which the service serves itself; change the pattern',
          'GET ?: is not a path pattern; write /?',
          'rules: must be a list of rules that under() makes, of the same copy of the package',
          'IDP_DOMAIN (environment): has white space; remove it',
          'PORT (environment): must be a whole number from 0 to 65535',
        ].map((problem) => `configuration: ${problem}`),
      );
    });
  }

  for (const words of [['--check'], []]) {
    test(`ends with 1 and a stack that names the line of a wrong rule${words.map((word) => `, with ${word} too`)}`, async () => {
      const routes = `${SHADOW},\nrules: [under('admin', needs(scope('x')))]`;
      const { code, output, errors } = await runOwnRoutes(routes, { ...DOWN, PORT: 'x' }, ...words);
      assert.deepEqual([code, output], [1, '']);
      const text = errors.join('\n');
      assert.match(
        text,
        /^TypeError: under admin: must be a path prefix without wildcard or parameter; write \/admin$/m,
      );
      assert.match(text, /^ +at .*\[eval1\]:2:\d+$/m);
      // The settings have not been read yet.
      assert.doesNotMatch(text, /^configuration: /m);
    });
  }

  test('exits with 0 when standard output is closed, which loses only its report', async () => {
    const program = ['sh', '-c', 'exec "$@" >&-', 'sh', process.execPath, SERVER];
    const { code, errors } = await runCommand(['--check'], providerSettings(provider), {}, program);
    assert.deepEqual([code, errors], [0, []]);
  });
});

describe('the arguments', { concurrency: 4 }, () => {
  const ARGUMENTS =
    'configuration: arguments: must be none, or one of --check, --probe, --help and --version';

  for (const words of [
    ['--check', '--probe'],
    ['--probe', '--check'],
    ['--check', '--check'],
    ['check'],
    ['-c'],
    ['--CHECK'],
    ['--check=1'],
    ['--help', '--check'],
    ['--version', ''],
    ['start'],
    ['toString'],
    ['--check', ''],
    [''],
  ]) {
    test(`${JSON.stringify(words)} are a configuration problem, which names --check and --probe`, async () => {
      assert.deepEqual(problemsOf(await runCommand(words, DOWN)), [ARGUMENTS]);
    });
  }

  test('--help and --version print and exit with 0, without any setting', async () => {
    const help = await runCommand(['--help'], { PORT: 'x' });
    assert.deepEqual([help.code, help.errors], [0, []]);
    for (const word of ['--check', '--probe', '--help', '--version']) assert.ok(help.output.includes(word));
    const version = await runCommand(['--version'], { PORT: 'x' });
    assert.deepEqual([version.code, version.output, version.errors], [0, `${VERSION}\n`, []]);
  });

  test('wrong arguments are reported together with every problem of the settings', async () => {
    const lines = problemsOf(await runCommand(['--verbose', 'sesame'], { PORT: 'x' }));
    assert.equal(lines[0], ARGUMENTS);
    assert.deepEqual(
      lines.slice(1).map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT'],
    );
    assert.doesNotMatch(lines.join(), /sesame/);
  });
});
