/* nginx and Caddy with the configurations of docs/forward-auth.md, in front of a server that shows what it gets. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { cors } from '../../src/cors.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { authenticated, needs, open } from '../../src/gate/rules/access.ts';
import { scope } from '../../src/gate/rules/guards.ts';
import { get, post, upstream } from '../../src/service/routes/route.ts';
import { openWire } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { withReason } from '../support/skipped.ts';
import { bearer, bound, startPolicy, type Fields, type Policy } from './forward-auth-fixture.ts';
import { PROXIES, startApi, type RunningProxy, type Seen } from './forward-auth-proxies.ts';
import { sendThrough, statusIn, walkTargets } from './forward-auth-walk.ts';

const HOST = 'api.example';
const PAGE = 'https://app.example';
const TARGETS = 300;

const routes = [
  get('/status', open, upstream),
  get('/me', authenticated, upstream),
  get('/orders/{id}', needs(scope('read:orders')), upstream),
  post('/orders', needs(scope('write:orders')), upstream),
];

/** Each policy needs parts of its own. */
const optionsOfPolicy = () => ({
  cors: cors({ origins: [PAGE] }),
  metadata: resourceMetadata({ url: 'https://api.test' }),
});

const IDENTITY = ['x-auth-subject', 'x-auth-issuer', 'x-auth-scope', 'x-auth-claims'];

/** What CGI, WSGI and PHP cannot tell apart. */
const cgiName = (name: string) => name.toLowerCase().replace(/[_.]/g, '-');

const valuesOf = ({ fields }: Seen, name: string) =>
  fields.filter(([each]) => cgiName(each) === name).map(([, value]) => value);

for (const proxy of PROXIES) {
  const { name, missing } = proxy;
  const skip = missing !== undefined;

  describe(withReason(`behind ${name}`, missing), { skip, timeout: 120_000 }, () => {
    let policy: Policy;
    let api: Awaited<ReturnType<typeof startApi>>;
    let running: RunningProxy;

    before(async () => {
      policy = await startPolicy({ routes }, optionsOfPolicy());
      api = await startApi();
      running = await proxy.start({ gatehouse: policy.port, api: api.port });
    });

    after(async () => {
      await running.stop();
      await api.stop();
      await policy.stop();
    });

    /** The response, its fields by name, and what the server behind got. */
    async function ask(line: string, fields: Fields = [], body = '') {
      const served = api.seen.length;
      const length = body === '' ? [] : [['Content-Length', String(body.length)] as const];
      const connection = fields.some(([each]) => each === 'Connection')
        ? []
        : [['Connection', 'close'] as const];
      const lines = [['Host', HOST] as const, ...connection, ...fields, ...length].map((one) =>
        one.join(': '),
      );
      const received = await sendThrough(
        running.port,
        `${line} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
      );
      const headers = new Headers();
      for (const [, each = '', value = ''] of received.matchAll(/^([\w-]+): (.*)\r$/gm)) {
        headers.append(each, value);
      }
      const challenges = [...received.matchAll(/^www-authenticate: (.*)\r$/gim)].map(([, value]) => value);
      return { status: statusIn(received), headers, challenges, seen: api.seen.slice(served) };
    }

    const URL = `http://${HOST}/orders/7`;
    const READ = { scope: 'read:orders' };

    test('a request that may pass reaches the server with its caller and without its token', async () => {
      const { status, seen } = await ask('GET /orders/7?page=2', bearer(READ));
      const [one] = seen;
      assert.ok(status === 200 && one !== undefined && seen.length === 1);
      assert.deepEqual([one.method, one.target], ['GET', '/orders/7?page=2']);
      assert.deepEqual(valuesOf(one, 'x-auth-subject'), ['test-user']);
      assert.deepEqual(valuesOf(one, 'x-auth-scope'), ['read:orders']);
      const [claims = ''] = valuesOf(one, 'x-auth-claims');
      assert.equal(JSON.parse(String(Buffer.from(claims, 'base64url'))).sub, 'test-user');
      for (const each of ['authorization', 'dpop']) assert.deepEqual(valuesOf(one, each), []);
    });

    test('a request that may not pass does not reach the server, and its client gets the challenge', async () => {
      const refused = [
        ['GET /me', [], 401],
        ['GET /me', bearer({ exp: 1 }), 401],
        ['GET /orders/7', bearer(), 403],
        ['DELETE /orders/7', bearer(READ), 403],
        ['GET /nothing', bearer(READ), 403],
        ['GET /orders/7', [...bearer(READ), ['DPoP', 'x']], 400],
      ] as const;
      for (const [line, fields, expected] of refused) {
        const { status, challenges, seen } = await ask(line, fields);
        assert.deepEqual([status, seen, challenges.length], [expected, [], 1], line);
        assert.match(challenges[0] ?? '', /^Bearer realm="api".+, DPoP .*algs="/);
      }
    });

    test('a proof is for the URL that the client requests, and is accepted once', async () => {
      const fields = bound('GET', URL, READ);
      assert.equal((await ask('GET /orders/7?page=2', fields)).status, 200);
      const again = await ask('GET /orders/7', fields);
      assert.deepEqual([again.status, again.seen], [401, []]);
      assert.match(again.challenges.join(), /error="invalid_dpop_proof"/);
      const other = await ask('GET /orders/7', bound('GET', `http://${HOST}/orders/8`, READ));
      assert.equal(other.status, 401);
      assert.equal(
        (await ask('POST /orders', bound('POST', `http://${HOST}/orders`, { scope: 'write:orders' }))).status,
        200,
      );
    });

    test('a nonce reaches the client', async () => {
      const own = await startPolicy({ routes }, { dpopNonceSecret: 'n'.repeat(32) });
      const second = await proxy.start({ gatehouse: own.port, api: api.port });
      const lines = bound('GET', URL, READ).map((field) => field.join(': '));
      const head = [`GET /orders/7 HTTP/1.1`, `Host: ${HOST}`, 'Connection: close', ...lines].join('\r\n');
      const received = await sendThrough(second.port, `${head}\r\n\r\n`);
      assert.equal(statusIn(received), 401);
      assert.match(received, /^dpop-nonce: [\w-]{43}\r$/im);
      assert.match(received, /error="use_dpop_nonce"/);
      await second.stop();
      await own.stop();
    });

    const forged = [
      ...IDENTITY,
      'x-forwarded-method',
      'x-forwarded-uri',
      'x-forwarded-host',
      'x-forwarded-proto',
    ];

    const spellings = (each: string) => [
      each,
      each.toUpperCase(),
      each.replaceAll('-', '_'),
      each.replace('-', '_'),
      each.replaceAll('-', '.'),
      each.replace('-', '.'),
    ];

    test('a client that sends our identity and forwarding fields itself, in any spelling, gains nothing [I1]', async () => {
      const value = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/status' } as Record<string, string>;
      const fields = forged.flatMap(spellings).map((each) => [each, value[cgiName(each)] ?? 'root'] as const);
      for (const own of [[], bearer(READ)]) {
        const open = await ask('GET /status', [...fields, ...own]);
        assert.equal(open.status, 200);
        for (const each of IDENTITY) {
          assert.deepEqual(valuesOf(open.seen[0]!, each).filter(Boolean), [], each);
        }
      }
      const me = await ask('GET /me', [...fields, ...bearer()]);
      assert.deepEqual(valuesOf(me.seen[0]!, 'x-auth-subject'), ['test-user']);
      for (const each of IDENTITY) assert.ok(!valuesOf(me.seen[0]!, each).includes('root'), each);
      const refused = await ask('GET /me', fields);
      assert.deepEqual([refused.status, refused.seen], [401, []]);
    });

    test('gatehouse is told the address of the client, not one that the client names', async () => {
      await ask('GET /status', [['X-Forwarded-For', '203.0.113.7']]);
      assert.equal(policy.questions.at(-1)?.headers['x-forwarded-for'], '127.0.0.1');
    });

    const overrides = [
      'x-http-method-override',
      'x-http-method',
      'x-method-override',
      'x-original-url',
      'x-rewrite-url',
      'x-forwarded-prefix',
      'forwarded',
    ];

    test('fields in which a client names another method, path or host do not reach the server [I2]', async () => {
      const fields = overrides.flatMap(spellings).map((each) => [each, '/orders/7'] as const);
      const { status, seen } = await ask('GET /status', fields);
      assert.equal(status, 200);
      for (const each of overrides) assert.deepEqual(valuesOf(seen[0]!, each), [], each);
    });

    test('a client that names our fields in Connection is refused', async () => {
      for (const each of [...forged, 'authorization', 'dpop', 'X_Auth_Subject', 'close, X-Auth-Subject']) {
        const { status, seen } = await ask('GET /me', [...bearer(), ['Connection', `close, ${each}`]]);
        assert.deepEqual([status, seen], [400, []], each);
      }
    });

    test('no upgrade except to WebSocket reaches the server', async () => {
      for (const other of ['h2c', 'TLS/1.0', 'websocket, h2c', 'h2c, websocket']) {
        const { seen } = await ask('GET /status', [
          ['Connection', 'Upgrade, HTTP2-Settings'],
          ['Upgrade', other],
          ['HTTP2-Settings', 'AAMAAABkAAQAAP__'],
        ]);
        const upgrades = seen.flatMap((one) => valuesOf(one, 'upgrade'));
        const connections = seen.flatMap((one) => valuesOf(one, 'connection'));
        assert.deepEqual(
          [upgrades, connections.filter((each) => /upgrade|http2/i.test(each))],
          [[], []],
          other,
        );
      }
      for (const several of [['h2c', 'websocket'], ['websocket', 'h2c'], ['', 'websocket'], ['websocket']]) {
        const { seen } = await ask('GET /status', [
          ['Connection', 'Upgrade, HTTP2-Settings'],
          ...several.map((each) => ['Upgrade', each] as const),
        ]);
        const upgrades = seen.flatMap((one) => valuesOf(one, 'upgrade'));
        assert.ok(several.length > 1 || upgrades.length === 1, 'a WebSocket passes');
        assert.deepEqual(
          upgrades.filter((each) => each !== 'websocket'),
          [],
          several.join(),
        );
      }
      const refused = await ask('GET /me', [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket'],
      ]);
      assert.deepEqual([refused.status, refused.seen], [401, []]);
    });

    test('a body goes only to the server, not to gatehouse', async () => {
      const before = policy.questions.length;
      const { status, seen } = await ask(
        'POST /orders',
        bearer({ scope: 'write:orders' }),
        'x'.repeat(200_000),
      );
      assert.deepEqual([status, seen.length], [200, 1]);
      const [question] = policy.questions.slice(before);
      assert.deepEqual(
        [question?.headers['content-length'] ?? '0', question?.headers['transfer-encoding']],
        ['0', undefined],
      );
    });

    test('a preflight that may pass reaches the server, and a page may read a refusal', async () => {
      const preflight = (origin: string): Fields => [
        ['Origin', origin],
        ['Access-Control-Request-Method', 'GET'],
      ];

      const { seen } = await ask('OPTIONS /orders/7', preflight(PAGE));
      assert.equal(seen.length, 1);
      for (const each of IDENTITY) assert.deepEqual(valuesOf(seen[0]!, each).filter(Boolean), [], each);
      const other = await ask('OPTIONS /orders/7', preflight('https://evil.example'));
      assert.deepEqual([other.status, other.seen], [403, []]);
      const { status, headers } = await ask('GET /me', [['Origin', PAGE]]);
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [401, PAGE]);
      assert.match(headers.get('access-control-expose-headers') ?? '', /WWW-Authenticate/);
      const passed = await ask('GET /status', [['Origin', PAGE]]);
      assert.equal(passed.headers.get('access-control-allow-origin'), null);
    });

    test('the metadata document is served without a token', async () => {
      const received = await sendThrough(
        running.port,
        `GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`,
        /\}$/,
      );
      assert.equal(statusIn(received), 200);
      assert.match(received, /"resource":"https:\/\/api\.test"/);
    });

    test('claims of 5 KB reach the server, and claims over 8 KiB do not', async () => {
      for (const [size, isThere] of [
        [5_000, true],
        [7_000, false],
      ] as const) {
        const own = await ask('GET /me', bearer({ pad: 'p'.repeat(size) }));
        assert.equal(own.status, size > 6_000 ? own.status : 200);
        const claims = own.seen.flatMap((one) => valuesOf(one, 'x-auth-claims')).join('');
        assert.equal(claims !== '', isThere);
      }
    });

    test('the requests of the proxy to gatehouse share connections', async () => {
      const before = policy.connections.size;
      const wire = await openWire(running.port);
      for (let count = 1; count <= 100; count += 1) {
        const line = count % 2 === 0 ? 'GET /me' : 'GET /nothing';
        wire.send(`${line} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
        await wire.until((text) => (text.match(/HTTP\/1\.1 \d{3} /g) ?? []).length === count);
      }
      wire.destroy();
      assert.ok(policy.connections.size - before <= 20, `${policy.connections.size - before} connections`);
    });

    test('a request gets 503 with Retry-After while gatehouse has no keys, and does not pass while gatehouse is down', async () => {
      const without = await startPolicy({ routes }, {}, async () => Promise.reject(new Error('no keys')));
      const second = await proxy.start({ gatehouse: without.port, api: api.port });
      const [authorization = ''] = bearer().map((each) => each.join(': '));

      const head = (path: string) =>
        [`GET ${path} HTTP/1.1`, `Host: ${HOST}`, 'Connection: close', authorization, '', ''].join('\r\n');

      const received = await sendThrough(second.port, head('/me'));
      assert.equal(statusIn(received), 503);
      assert.match(received, /^retry-after: \d+\r$/im);
      await without.stop();

      const served = api.seen.length;
      const gone = await sendThrough(second.port, head('/status'));
      assert.deepEqual([statusIn(gone), api.seen.length], [name === 'nginx' ? 503 : 502, served]);
      await second.stop();
    });

    test('with a slash too many in its address of gatehouse, no request passes', async (t) => {
      const own = await startPolicy({ routes: [...routes, get('/', open, upstream)] }, optionsOfPolicy());
      t.after(own.stop);
      const askedPath = '/forward-auth/';
      const second = await proxy.start({ gatehouse: own.port, api: api.port, askedPath });
      t.after(() => second.stop());
      const served = api.seen.length;
      for (const path of ['/me', '/status', '/orders/7']) {
        const request = `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`;
        assert.ok(statusIn(await sendThrough(second.port, request)) >= 400, path);
        assert.equal(own.logs.at(-1)?.reason, 'question-malformed');
      }
      assert.equal(api.seen.length, served);
    });

    test('with one of two replicas down, responses and refusals are the same as with both', async (context) => {
      const gone = await freePort();
      const second = await proxy.start({ gatehouse: policy.port, gone, api: api.port });
      context.after(() => second.stop());
      const lines = [`Host: ${HOST}`, `Origin: ${PAGE}`, 'Connection: close', '', ''].join('\r\n');
      const [basic = ''] = bearer().map((field) => field.join(': '));
      for (let index = 0; index < 2; index += 1) {
        const passed = await sendThrough(second.port, `GET /status HTTP/1.1\r\n${lines}`);
        assert.doesNotMatch(passed, /^access-control-allow-origin/im);
        const refused = await sendThrough(second.port, `GET /orders/7 HTTP/1.1\r\n${basic}\r\n${lines}`);
        assert.equal(statusIn(refused), 403);
        assert.match(refused, /^www-authenticate: Bearer /im);
        const bad = await sendThrough(second.port, `GET /me HTTP/1.1\r\nDPoP: x\r\n${basic}\r\n${lines}`);
        assert.equal(statusIn(bad), 400);
      }
    });

    test(`each of ${TARGETS} targets is served as gatehouse read it, or refused [I2]`, async () => {
      const { passed, refusedByGatehouse } = await walkTargets(proxy, TARGETS);
      assert.ok(passed > 20 && refusedByGatehouse > 20);
    });
  });
}
