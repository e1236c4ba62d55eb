/* A prefix for a Fetch handler: which requests reach it, what it receives, how its body is read, and what it
   may return (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { after, before, describe, test, type TestContext } from 'node:test';
import { cors } from '../../../src/cors.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { claimCheck, scope } from '../../../src/gate/rules/guards.ts';
import {
  createListeningService,
  createService,
  OWN_ROUTES,
  type Service,
} from '../../../src/service/create-service.ts';
import { mount, type MountContext } from '../../../src/service/fetch/mount.ts';
import { readServiceOptions, type ServiceOptions } from '../../../src/service/options.ts';
import { fail, reply } from '../../../src/service/routes/handler-reply.ts';
import { HandlerRequest } from '../../../src/service/routes/handler-request.ts';
import { get, post, under, type Route } from '../../../src/service/routes/route.ts';
import { assertRouteMatrix } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { exchange, openWire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { responsesIn } from '../../support/raw-responses.ts';
import { parseHead } from './fixture.ts';
import { runCommand } from '../../process/commands.ts';
import { programOf } from '../../process/program.ts';

const issuer = makeIssuer();
const metrics = createMetrics();

interface Line {
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const logs: Line[] = [];

const errors: unknown[] = [];

/** What `onResponse` was told. */
const told: (readonly [status: number | null, reason: string | null])[] = [];

/** What the handlers have received. */
const asked: { readonly request: Request; readonly context: MountContext<unknown> }[] = [];

const name =
  (text: string) =>
  (request: Request, context: MountContext<unknown>): Response => {
    asked.push({ request, context });
    return new Response(`${text} ${request.method}`);
  };

const readers: Record<string, (request: Request) => Promise<unknown>> = {
  text: (request) => request.text(),
  json: (request) => request.json(),
  form: (request) => request.formData(),
  bytes: (request) => request.arrayBuffer(),
};

/** What a mount passes bodies on to. */
const upstreamServer = createServer((request, response) => {
  request.on('error', () => {}).pipe(response);
});

let released = () => {};

let isReading = false;

async function readAs(request: Request) {
  isReading = true;
  const { searchParams } = new URL(request.url);
  const reading = readers[searchParams.get('as') ?? 'text']!(request);
  reading.catch((reason: unknown) => {
    readFailure = reason;
  });
  const read = await reading;
  return new Response(typeof read === 'string' ? read : 'read');
}

/** Why a body could not be read. */
let readFailure: unknown;

async function* cancelIn({ body }: Request) {
  const reader = body!.getReader();
  await reader.read();
  const next = reader.read();
  yield Buffer.from('begun');
  await reader.cancel();
  await next;
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
  yield Buffer.from('ended');
}

/** The bytes of the first chunk of a body that has arrived before it is read, and of its memory. */
async function memoryOf({ body }: Request) {
  await new Promise(setImmediate);
  const { value } = await body!.getReader().read();
  return new Response(`${value!.length} of ${value!.buffer.byteLength}`);
}

async function* untilAborted(signal: AbortSignal) {
  yield Buffer.from('begun');
  await once(signal, 'abort');
  signal.throwIfAborted();
}

async function readAndCatch(request: Request) {
  await request.text().catch(() => {});
  return new Response('caught', { status: 400 });
}

/** Passes the body on. Fetch hides why it failed in an error of its own. */
function proxy({ method, body }: Request) {
  isReading = true;
  const url = `http://127.0.0.1:${(upstreamServer.address() as AddressInfo).port}`;
  return fetch(url, { method, body, duplex: 'half' });
}

/** Reads all bytes but not the end, and has a bug once the client has left. */
async function readAndBreak({ body }: Request, { signal }: MountContext<unknown>): Promise<Response> {
  await body!.getReader().read();
  isReading = true;
  await once(signal, 'abort');
  throw new TypeError('a bug');
}

/** What came after the first part of a body, read once the client had left. */
let lateRead: Promise<string> | undefined;

let isWhole = () => false;

async function readLate({ body }: Request, context: MountContext<unknown>) {
  const { request } = HandlerRequest.servedOf(context as HandlerRequest).source;
  isWhole = () => request.complete;
  const reader = body!.getReader();
  await reader.read();
  isReading = true;
  await once(context.signal, 'abort');
  lateRead = reader.read().then(
    ({ done }) => (done ? 'done' : 'more'),
    () => 'failed',
  );
  return new Response('late');
}

async function readAndFail(request: Request): Promise<Response> {
  await request.text().catch(() => {});
  throw fail(422, 'of_the_handler', 'This is meant');
}

async function readInTwoSteps({ body }: Request) {
  const reader = body!.getReader();
  await reader.read();
  await new Promise<void>((resolve) => {
    released = resolve;
  });
  let bytes = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.length;
  return new Response(`later ${bytes}`);
}

/** Two refusals, of which the first is returned, with a field more. */
async function askTwice(_: Request, { authorize }: MountContext<unknown>) {
  const first = authorize(needs(scope('write')));
  authorize(needs(scope('admin')));
  const { refusal } = first;
  const response = refusal ? new Response(refusal.body, refusal) : new Response('may');
  response.headers.set('X-More', '1');
  return response;
}

/** A refusal that the handler knows, and a response that is its own. */
async function refuseByItself(_: Request, { authorize }: MountContext<unknown>) {
  const { refusal } = authorize(needs(scope('write')));
  return new Response('own', { status: refusal?.status ?? 200 });
}

function askForMore(_: unknown, { authorize }: Pick<MountContext<unknown>, 'authorize'>) {
  const { refusal } = authorize(needs(scope('write')));
  return refusal ? new Response(refusal.body, refusal) : new Response('may');
}

const thrown = (value: unknown) => (): Response => {
  throw value;
};

/** As routers with a CORS option of their own send them. */
const SHARED = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' };

const routes: readonly Route[] = [
  get('/a/route', open, () => ({ route: true })),
  get('/a/{x}/deep', open, () => ({ deep: true })),
  get('/a', open, () => ({ own: true })),
  mount('/a', open, name('a')),
  mount('/a/b', open, name('a/b')),
  mount('/caf%C3%A9', open, name('café')),
  mount('/mine', needs(scope('read')), name('mine')),
  mount('/maybe', optional, name('maybe')),
  mount('/admin', open, name('admin')),
  mount('/read', open, readAs, { limitBytes: 20 }),
  mount('/usual', open, async (request) => new Response(await request.text())),
  mount('/caught', open, readAndCatch, { limitBytes: 20 }),
  mount('/proxies', open, proxy, { limitBytes: 20 }),
  mount('/fails', open, readAndFail, { limitBytes: 20 }),
  mount('/breaks', open, readAndBreak),
  mount('/late', open, readLate),
  mount('/echo', open, ({ body }) => new Response(body)),
  mount('/shares', open, () => new Response('x', { headers: SHARED })),
  get('/replies', open, () => reply(200, {}, { ...SHARED, 'X-Total': '2' })),
  mount('/slow', open, readInTwoSteps, { limitBytes: 1024 ** 3 }),
  mount('/aborts', open, ({ signal }) => new Response(untilAborted(signal))),
  mount('/cancels', open, (request) => new Response(cancelIn(request))),
  mount('/memory', open, memoryOf),
  mount('/unread', open, () => new Response('unread')),
  mount('/asks', optional, askForMore),
  mount('/asks/twice', authenticated, askTwice),
  mount('/asks/itself', authenticated, refuseByItself),
  get('/asks-too', authenticated, (request) => askForMore(undefined, request)),
  mount('/wrong/json', open, () => ({}) as never),
  mount('/wrong/nothing', open, () => undefined as never),
  mount('/wrong/fail', open, () => fail(404, 'a', 'b') as never),
  mount('/wrong/thrown', open, thrown(new Error('inside'))),
  mount('/throws-fail', open, thrown(fail(404, 'none', 'None'))),
];

const OPTIONS = {
  ...issuer.options,
  host: '127.0.0.1',
  port: 0,
  bodyLimitBytes: 50,
  metrics,
  log: (_: string, message: string, fields: object) => logs.push({ message, fields: { ...fields } }),
  onError: (error: unknown) => errors.push(error),
  onResponse: ({ status, reason }) => void told.push([status, reason]),
  cors: cors({ origins: ['https://app.test'] }),
  metadata: resourceMetadata({ url: 'https://api.test' }),
} satisfies ServiceOptions;

let service: Service;
let port = 0;

async function start(served: readonly Route[], options: ServiceOptions) {
  const started = createService({ routes: served, rules: [under('/admin', authenticated)] }, options);
  const url = await started.listen();
  return { started, port: Number(new URL(url).port) };
}

before(async () => {
  await once(upstreamServer.listen(0, '127.0.0.1'), 'listening');
  const { started, port: bound } = await start(routes, OPTIONS);
  service = started;
  port = bound;
});

after(async () => {
  await service.stop();
  upstreamServer.close();
  upstreamServer.closeAllConnections();
});

async function ask(line: string, fields: readonly string[] = [], body = '', at = port) {
  const head = [`${line} HTTP/1.1`, 'Host: api.test', 'Connection: close', ...fields].join('\r\n');
  return parseHead(await exchange(at, Buffer.from(`${head}\r\n\r\n${body}`, 'latin1')));
}

const bearer = (claims: object) => `Authorization: ${issuer.bearer({ ...claims }).authorization}`;

const CHUNKED = 'Transfer-Encoding: chunked';

describe('a mount', { timeout: 60_000 }, () => {
  for (const [origin, expected] of [
    ['https://app.test', ['https://app.test']],
    ['https://other.test', undefined],
  ] as const) {
    test(`leaves the fields that let origins read to the service, where that has them: ${origin} [§9]`, async () => {
      const { fields, status } = await ask('GET /shares', [`Origin: ${origin}`]);
      assert.equal(status, 200);
      assert.deepEqual(fields['access-control-allow-origin'], expected);
      assert.equal(fields['access-control-allow-headers'], undefined);
    });

    test(`so does a reply: ${origin} [§9]`, async () => {
      const { fields, status } = await ask('GET /replies', [`Origin: ${origin}`]);
      assert.equal(status, 200);
      assert.deepEqual(fields['access-control-allow-origin'], expected);
      assert.deepEqual([fields['access-control-allow-headers'], fields['x-total']], [undefined, ['2']]);
    });
  }

  test('sends its own fields for other origins, where the service has none [§27]', async (t) => {
    const { started, port: at } = await start(routes, { ...issuer.options, host: '127.0.0.1', port: 0 });
    t.after(() => started.stop());
    const { fields } = await ask('GET /shares', ['Origin: https://other.test'], '', at);
    assert.deepEqual(fields['access-control-allow-origin'], ['*']);
  });

  for (const method of [
    'GET',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'PROPFIND',
    'QUERY',
    'M-SEARCH',
  ]) {
    test(`serves ${method} at its prefix and below it`, async (t) => {
      for (const path of ['/a/b', '/a/b/c/d%2Fe?x=1']) {
        const { status, content } = await ask(`${method} ${path}`);
        // Node's older parsers know fewer methods.
        if (status === 400 && method === 'QUERY') return t.skip();
        assert.deepEqual([status, content], [200, `a/b ${method}`]);
      }
    });
  }

  test('serves HEAD without a body', async () => {
    asked.length = 0;
    const { status, content } = await ask('HEAD /a/b');
    assert.deepEqual([status, content, asked[0]?.request.method], [200, '', 'HEAD']);
  });

  test('serves no TRACE, and has no 405, even where a route has another method', async () => {
    for (const path of ['/a/b', '/a/route', '/a']) {
      assert.equal((await ask(`TRACE ${path}`)).status, 404, path);
    }
  });

  for (const [line, content] of [
    ['GET /a/route', '{"route":true}'],
    ['HEAD /a/route', ''],
    ['POST /a/route', 'a POST'],
    ['GET /a/x/deep', '{"deep":true}'],
    ['GET /a/b/deep', '{"deep":true}'],
    ['GET /a', '{"own":true}'],
    ['DELETE /a', 'a DELETE'],
    ['GET /a/bc', 'a GET'],
    ['GET /a/b/c', 'a/b GET'],
    ['GET /%61/b', 'a/b GET'],
    ['GET /caf%c3%a9/x', 'café GET'],
  ] as const) {
    test(`comes after the routes that match, and the longest prefix comes first: ${line}`, async () => {
      const { status, content: found } = await ask(line);
      assert.deepEqual([status, Buffer.from(found, 'latin1').toString()], [200, content]);
    });
  }

  for (const path of [
    '/b',
    '/ab',
    '/A',
    '/a/',
    '/a//b',
    '/a/../b',
    '/a/%2e%2e/b',
    '/a/%zz',
    '/a\\b',
    '/a/b\\c',
    '/a/b%',
    '/a/b#c',
    '/a#/../b',
  ]) {
    test(`has nothing at ${path}`, async () => {
      assert.equal((await ask(`GET ${path}`)).status, 404);
    });
  }

  test('lets a route keep a path with # or \\', async (t) => {
    const both = [
      get('/r/{x}', open, ({ parameters }) => ({ ...parameters })),
      mount('/', open, name('all')),
    ];
    const { metrics: _, cors: __, metadata: ___, ...options } = OPTIONS;
    const { started, port: at } = await start(both, options);
    t.after(() => started.stop());
    assert.equal((await ask('GET /r/a#b', [], '', at)).content, '{"x":"a#b"}');
    assert.equal((await ask('POST /r/a#b', [], '', at)).status, 404);
    assert.equal((await ask('POST /r/a', [], '', at)).content, 'all POST');
    assert.equal((await ask('GET /', [], '', at)).content, 'all GET');
    assert.equal((await ask('OPTIONS /any/thing', [], '', at)).content, 'all OPTIONS');
    assert.equal((await ask('POST /healthz', [], '', at)).status, 405);
    assert.equal((await ask('GET /healthz', [], '', at)).content, '{"status":"ok"}');
    assert.equal((await ask('GET /healthz/x', [], '', at)).content, 'all GET');
  });

  test('leaves probes, metadata and preflights to the service', async () => {
    assert.match((await ask('GET /.well-known/oauth-protected-resource')).content, /"resource"/);
    const preflight = ['Origin: https://app.test', 'Access-Control-Request-Method: PUT'];
    const { status, fields } = await ask('OPTIONS /a/b', preflight);
    assert.equal(status, 204);
    assert.match(fields['access-control-allow-methods']!.join(), /PUT.*PATCH.*DELETE/);
  });

  test('has none of the paths of the service, however they are spelled [J12]', async (t) => {
    const { metrics: _, cors: __, ...shared } = OPTIONS;
    const options = { ...shared, metadata: resourceMetadata({ url: 'https://api.test' }) };
    const { started, port: at } = await start([mount('/', open, name('all'))], options);
    t.after(() => started.stop());
    const own = '/.well-known/oauth-protected-resource';
    for (const path of [own.replace('oauth', '%6fauth'), own.replace('.', '%2E'), `${own}/`, '/%68ealthz/']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const { content, status } = await ask(`${method} ${path}`, [], '', at);
        assert.ok(
          !content.startsWith('all') && status >= (path === `${own}/` ? 200 : 404),
          `${method} ${path}`,
        );
      }
    }
    assert.equal((await ask('GET /%68ealthz', [], '', at)).content, '{"status":"ok"}');
    assert.equal((await ask('DELETE /%68ealthz', [], '', at)).status, 405);
    assert.equal((await ask('GET /.well-known/other', [], '', at)).content, 'all GET');
  });

  test('demands its access before the handler runs [J12]', async () => {
    asked.length = 0;
    assert.equal((await ask('GET /mine')).status, 401);
    assert.equal((await ask('GET /mine', [bearer({ scope: 'other' })])).status, 403);
    assert.equal(asked.length, 0);
    assert.equal((await ask('GET /mine', [bearer({ scope: 'read', sub: 'me' })])).status, 200);
    assert.equal((asked[0]!.context.caller as { subject: string }).subject, 'me');
    assert.equal((await ask('GET /maybe')).status, 200);
    assert.equal(asked[1]!.context.caller, undefined);
  });

  test('is below the rules of the service', async () => {
    for (const path of ['/admin', '/admin/x']) {
      assert.equal((await ask(`GET ${path}`)).status, 401);
      assert.equal((await ask(`TRACE ${path}`)).status, 401);
      assert.equal((await ask(`PUT ${path}`, [bearer({})])).status, 200);
    }
  });

  test('has its access checked after those of the rules, as a route has', async (t) => {
    const checked: string[] = [];
    const passes = (text: string) => needs(claimCheck(text, () => checked.push(text) > 0));
    const started = createService(
      { routes: [mount('/m', passes('own'), name('m'))], rules: [under('/m', passes('rule'))] },
      { ...issuer.options, host: '127.0.0.1', port: 0 },
    );
    const { port: at } = new URL(await started.listen());
    t.after(started.stop);
    assert.equal((await ask('GET /m/x', [bearer({})], '', Number(at))).status, 200);
    assert.deepEqual(checked, ['rule', 'own']);
  });

  test('gets other spellings of what a rule or a longer prefix guards, as letter case and %2F count [J12]', async (t) => {
    const served = [mount('/', open, name('all')), mount('/inner', authenticated, name('inner'))];
    const { started, port: at } = await start(served, { ...issuer.options, port: 0 });
    t.after(started.stop);
    for (const path of ['/admin', '/%61dmin', '/admin/x', '/inner', '/inn%65r']) {
      assert.equal((await ask(`GET ${path}`, [], '', at)).status, 401, path);
    }
    for (const path of ['/Admin', '/%41dmin', '/admin%2Fx', '/Inner']) {
      assert.equal((await ask(`GET ${path}`, [], '', at)).content, 'all GET', path);
    }
  });

  test('gives a Request with the target as it was sent, and without token and proof', async () => {
    asked.length = 0;
    const fields = [
      bearer({}),
      'DPOP: x',
      'X-A: 1',
      'x-a: 2',
      'Cookie: a=1',
      'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    ];
    const { status } = await ask('POST /a/b/%7e/c?x=%2F&y=1', fields);
    assert.equal(status, 200);
    const [{ request, context }] = asked as [(typeof asked)[0]];
    assert.ok(request instanceof Request);
    assert.deepEqual([request.method, request.url], ['POST', 'http://api.test/a/b/%7e/c?x=%2F&y=1']);
    assert.deepEqual(
      ['authorization', 'dpop', 'x-a', 'cookie', 'host'].map((field) => request.headers.get(field)),
      [null, null, '1, 2', 'a=1', 'api.test'],
    );
    assert.equal(request.body, null);
    assert.match(context.traceparent ?? '', /^00-0af/);
    assert.equal(context.clientAddress, '127.0.0.1');
    assert.ok(context.signal instanceof AbortSignal && context.nowMillis > 0);
    assert.equal(request.signal, context.signal);
  });

  for (const [what, options, fields, origin] of [
    [
      'PUBLIC_URL, without its path',
      { publicUrl: 'https://public.test:8443/v1' },
      [],
      'https://public.test:8443',
    ],
    ['Host', {}, ['X-Forwarded-Host: other.test'], 'http://api.test'],
    [
      'the proxy that is trusted',
      { trustProxy: true },
      ['X-Forwarded-Host: other.test', 'X-Forwarded-Proto: https'],
      'https://other.test',
    ],
    [
      'PUBLIC_URL before the proxy',
      { trustProxy: true, publicUrl: 'https://public.test' },
      ['X-Forwarded-Host: other.test'],
      'https://public.test',
    ],
  ] as const) {
    test(`has its origin from ${what}`, async (t) => {
      const { metrics: _, cors: __, metadata: ___, ...shared } = OPTIONS;
      const { started, port: at } = await start([mount('/', open, name('all'))], { ...shared, ...options });
      t.after(() => started.stop());
      asked.length = 0;
      assert.equal((await ask('GET /x?y', fields, '', at)).status, 200);
      assert.equal(asked[0]!.request.url, `${origin}/x?y`);
    });
  }

  test('has its origin from the proxy that is trusted, also for HTTP/1.0 without Host [RFC 9112 §3.2]', async (t) => {
    const { metrics: _, cors: __, metadata: ___, ...shared } = OPTIONS;
    const options = { ...shared, trustProxy: true };
    const { started, port: at } = await start([mount('/', open, name('all'))], options);
    t.after(() => started.stop());
    asked.length = 0;
    const text = await exchange(at, 'GET /x HTTP/1.0\r\nX-Forwarded-Host: other.test\r\n\r\n');
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.equal(asked[0]!.request.url, 'http://other.test/x');
  });

  test('is 400 if the forwarded origin is none, and for HTTP/1.0 without Host', async (t) => {
    const { metrics: _, cors: __, metadata: ___, ...shared } = OPTIONS;
    const { started, port: at } = await start([mount('/', open, name('all'))], {
      ...shared,
      trustProxy: true,
    });
    t.after(() => started.stop());
    told.length = 0;
    assert.equal((await ask('GET /', ['X-Forwarded-Proto: ftp'], '', at)).status, 400);
    assert.match(await exchange(port, 'GET /a/b HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.deepEqual(told, [
      [400, 'forwarded-refused'],
      [400, 'host-refused'],
    ]);
  });

  test('gets a body of one byte', async () => {
    const { status, content } = await ask('POST /read?as=text', ['Content-Length: 1'], 'x');
    assert.deepEqual([status, content], [200, 'x']);
  });

  test('gets chunks whose memory has nothing else in it: that of joined ones is of all requests', async () => {
    const { status, content } = await ask('POST /memory', [CHUNKED], '3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n');
    assert.deepEqual([status, content], [200, '5 of 5']);
  });

  test('may cancel its body, of which the rest is dropped without an error', async (t) => {
    const errors: unknown[] = [];
    const record = (error: unknown) => void errors.push(error);
    // The runner would only say that it happened, and blame no test.
    process.on('uncaughtException', record);
    t.after(() => process.off('uncaughtException', record));
    const wire = await openWire(port);
    wire.send('POST /cancels HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc');
    await wire.until((text) => text.includes('begun'));
    wire.send('def');
    const { status, content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([status, content, isWhole, errors], [200, 'begunended', true, []]);
  });

  test('gets a body that is read as it comes, and keeps the connection', async () => {
    const head = 'POST /read?as=text HTTP/1.1\r\nHost: a\r\n';
    const text = await exchange(
      port,
      `${head}Content-Length: 5\r\n\r\nhello${head}${CHUNKED}\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n` +
        'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    );
    assert.match(text, /\r\n\r\nhelloHTTP[^]*\r\n\r\nabcHTTP[^]*\{"own":true\}$/);
  });

  for (const method of ['GET', 'HEAD']) {
    test(`of ${method} gets no body, and a body sent ends the connection`, async () => {
      const { status, fields, content } = await ask(`${method} /read`, ['Content-Length: 3'], 'abc');
      assert.deepEqual([status, fields.connection, content], [200, ['close'], '']);
    });
  }

  for (const as of Object.keys(readers)) {
    test(`refuses a body over its limit with 413: read as ${as}`, async () => {
      const form = as === 'form' ? ['Content-Type: application/x-www-form-urlencoded'] : [];
      const path = `POST /read?as=${as}`;
      const over = `5\r\n"2345\r\n11\r\n12345678901234567\r\n0\r\n\r\n`;
      const large = await ask(path, [...form, 'Content-Length: 21'], '');
      const chunked = await ask(path, [...form, CHUNKED], over);
      for (const { status, content, fields } of [large, chunked]) {
        assert.deepEqual([status, JSON.parse(content).error], [413, 'content_too_large']);
        assert.deepEqual(fields.connection, ['close']);
      }
      const text = as === 'json' ? '"2345678901234567890"' : 'a=345678901234567890';
      assert.equal(
        (
          await ask(
            path,
            [...form, 'Content-Length: 20'],
            text.slice(0, as === 'json' ? 0 : 20) || '"234567890123456789"',
          )
        ).status,
        200,
      );
    });
  }

  test('has the limit of the service without one of its own', async () => {
    assert.equal((await ask('PUT /usual', ['Content-Length: 50'], 'x'.repeat(50))).status, 200);
    assert.equal((await ask('PUT /usual', ['Content-Length: 51'])).status, 413);
  });

  test('may answer itself after its body was refused, and the connection ends', async () => {
    const { status, content, fields } = await ask(
      'POST /caught',
      [CHUNKED],
      '15\r\n123456789012345678901\r\n',
    );
    assert.deepEqual([status, content, fields.connection], [400, 'caught', ['close']]);
  });

  test('may throw fail() after its body was refused', async () => {
    const { status, content } = await ask('POST /fails', [CHUNKED], '15\r\n123456789012345678901\r\n');
    assert.deepEqual([status, JSON.parse(content).error], [422, 'of_the_handler']);
  });

  for (const [what, body, status, reason] of [
    ['over its limit', '15\r\n123456789012345678901\r\n', 413, 'body-too-large'],
    ['with a broken chunk', '3\r\nabc\r\nzz\r\n', 400, 'malformed-http'],
    ['that is whole', '3\r\nabc\r\n0\r\n\r\n', 200, null],
  ] as const) {
    test(`may pass a body ${what} to fetch, which hides why one fails: ${status}, and no bug [§27]`, async () => {
      told.length = 0;
      errors.length = 0;
      assert.equal((await ask('POST /proxies', [CHUNKED], body)).status, status);
      assert.deepEqual([told, errors], [[[status, reason]], []]);
    });
  }

  for (const [what, path, length, expected] of [
    ['may pass a body to fetch whose client leaves, which is no bug [§27]', '/proxies', 9, [[null, null]]],
    ['has a bug of its own, though its client leaves after the whole body', '/breaks', 3, [[null, 'bug']]],
  ] as const) {
    test(what, async () => {
      told.length = 0;
      errors.length = 0;
      isReading = false;
      const wire = await openWire(port);
      wire.send(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\nabc`);
      while (!isReading) await new Promise(setImmediate);
      wire.socket.resetAndDestroy();
      while (told.length === 0) await new Promise(setImmediate);
      assert.deepEqual(told, expected);
      assert.equal(errors.length, path === '/breaks' ? 1 : 0);
    });
  }

  test('never takes a part of a body for all of it, though all has arrived when its client leaves', async () => {
    isReading = false;
    lateRead = undefined;
    const wire = await openWire(port);
    wire.send('POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc');
    while (!isReading) await new Promise(setImmediate);
    wire.send('def');
    while (!isWhole()) await new Promise(setImmediate);
    wire.socket.resetAndDestroy();
    while (lateRead === undefined) await new Promise(setImmediate);
    assert.notEqual(await lateRead, 'done');
  });

  test('may send back what it reads, while it is read', async () => {
    const wire = await openWire(port);
    wire.send(`POST /echo HTTP/1.1\r\nHost: a\r\n${CHUNKED}\r\n\r\n3\r\none\r\n`);
    assert.match(await wire.until((text) => text.includes('one')), /\r\nConnection: close\r\n/);
    wire.send('3\r\ntwo\r\n');
    await wire.until((text) => text.includes('two'));
    wire.send('0\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n');
    const { content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([content, isWhole], ['onetwo', true]);
  });

  test('that sends back a body which goes over its limit after the head is cut off, and the log says so [§27]', async () => {
    told.length = 0;
    errors.length = 0;
    const before = logs.length;
    const wire = await openWire(port);
    wire.send(`POST /echo HTTP/1.1\r\nHost: a\r\n${CHUNKED}\r\n\r\n3\r\none\r\n`);
    await wire.until((text) => text.includes('one'));
    wire.send(`30\r\n${'x'.repeat(48)}\r\n`);
    assert.equal(parseHead(await wire.untilClosed()).isWhole, false);
    assert.deepEqual([told, errors.length], [[[200, 'bug']], 1]);
    const { fields } = logs.slice(before).find(({ message }) => message === 'request failed')!;
    assert.match(String(fields.sentence), /after its head was sent: body-too-large$/);
  });

  test('reads no further than its handler', async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const size = 64 * 1024 * 1024;
    socket.write(`POST /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${size}\r\n\r\n`);
    const chunk = Buffer.alloc(1024 * 1024);
    for (let sent = 0; sent < size; sent += chunk.length) socket.write(chunk);
    let before = -1;
    const left = () => socket.writableLength;
    while (before !== left() || left() === size) {
      before = left();
      for (let turn = 0; turn < 1_000; turn += 1) await new Promise(setImmediate);
    }
    assert.ok(left() > size / 2, String(left()));
    released();
    const chunks: Buffer[] = [];
    for await (const piece of socket) chunks.push(piece as Buffer);
    const text = Buffer.concat(chunks).toString();
    assert.match(text, /later 670\d{5}/);
  });

  test('sends 100 Continue only when its handler reads [RFC 9110 §10.1.1]', async () => {
    const unread = await ask('POST /unread', ['Expect: 100-continue', 'Content-Length: 3']);
    assert.deepEqual([unread.status, unread.fields.connection], [200, ['close']]);
    const wire = await openWire(port);
    wire.send(
      'POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
    );
    assert.equal(await wire.until((text) => text.endsWith('\r\n\r\n')), 'HTTP/1.1 100 Continue\r\n\r\n');
    wire.send('abc');
    assert.match(await wire.untilClosed(), /abc/);
  });

  test('with an unread body ends the connection, and nothing after it runs', async () => {
    const { status, fields, content } = await ask('POST /unread', ['Content-Length: 3'], 'abc');
    assert.deepEqual([status, fields.connection, content], [200, ['close'], 'unread']);
  });

  test('learns from its body that the client has left, in words, which leaves no line above debug', async () => {
    const before = logs.length;
    isReading = false;
    readFailure = undefined;
    const wire = await openWire(port);
    wire.send('POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc');
    while (!isReading) await new Promise(setImmediate);
    wire.socket.resetAndDestroy();
    while (readFailure === undefined) await new Promise(setImmediate);
    const { name, message } = Object(readFailure);
    assert.deepEqual([name, message], ['AbortError', 'the client has left']);
    await ask('GET /a');
    assert.deepEqual(
      logs.slice(before).filter(({ message }) => message === 'request failed'),
      [],
    );
  });

  test('may pass on the abort of its signal once the client has left, which onError does not get', async () => {
    errors.length = 0;
    const before = logs.length;
    const wire = await openWire(port);
    wire.send('GET /aborts HTTP/1.1\r\nHost: a\r\n\r\n');
    await wire.until((text) => text.includes('begun'));
    wire.socket.end();
    assert.equal(parseHead(await wire.untilClosed()).isWhole, false);
    assert.deepEqual([errors, logs.length], [[], before]);
    assert.equal((await ask('GET /wrong/json')).status, 500);
    assert.equal(errors.length, 1);
  });

  test('is 400 for a body with a broken chunk', async () => {
    const { status, content } = await ask('POST /read', [CHUNKED], '3\r\nabc\r\nzz\r\n');
    assert.deepEqual([status, JSON.parse(content).error], [400, 'invalid_request']);
  });

  test('can ask for more, and send the refusal in a Response', async () => {
    const { status, fields } = await ask('GET /asks');
    assert.deepEqual([status, fields['www-authenticate']?.length], [401, 1]);
    assert.equal((await ask('GET /asks', [bearer({ scope: 'read' })])).status, 403);
    assert.equal((await ask('GET /asks', [bearer({ scope: 'write' })])).content, 'may');
  });

  for (const [path, scopes, status, reason] of [
    ['/asks', 'read', 403, 'scope-missing'],
    ['/asks', 'write', 200, null],
    ['/asks/twice', 'read', 403, 'scope-missing'],
    ['/asks/twice', 'write', 200, null],
    ['/asks/itself', 'read', 403, null],
    ['/asks-too', 'read', 403, 'scope-missing'],
  ] as const) {
    test(`counts as a refusal if its Response is one of authorize: ${path} with the scope ${scopes}`, async () => {
      const counted = () => Number(/reason="scope-missing"\} (\d+)/.exec(metrics.text())?.[1] ?? 0);
      told.length = 0;
      const lines = logs.length;
      const before = counted();
      const { status: sent, fields, content } = await ask(`GET ${path}`, [bearer({ scope: scopes })]);
      assert.equal(sent, status);
      assert.deepEqual(told, [[status, reason]]);
      assert.equal(counted() - before, reason === null ? 0 : 1);
      const [line, ...others] = logs.slice(lines).filter(({ message }) => message === 'request refused');
      assert.deepEqual([line?.fields.reason ?? null, others], [reason, []]);
      if (path === '/asks/itself') assert.equal(content, 'own');
      if (path === '/asks/twice') assert.deepEqual(fields['x-more'], ['1']);
    });
  }

  for (const path of ['/wrong/json', '/wrong/nothing', '/wrong/fail', '/wrong/thrown']) {
    test(`must return a Response: ${path}`, async () => {
      assert.equal((await ask(`PUT ${path}`)).status, 500);
      const { message, fields } = logs.at(-1)!;
      assert.deepEqual([message, fields.route, fields.method], ['request failed', `${path}/**`, 'PUT']);
      const sentence = path === '/wrong/thrown' ? undefined : 'the handler of a mount must return a Response';
      assert.equal(fields.sentence, sentence);
    });
  }

  test('may throw fail()', async () => {
    assert.equal((await ask('GET /throws-fail')).status, 404);
  });

  test('is its prefix and /** in the metrics, from the start', async () => {
    await ask('PUT /a/b/c');
    const text = metrics.text();
    assert.match(
      text,
      /_count\{http_route="\/a\/b\/\*\*",http_request_method="PUT",http_response_status_code="200"\} [1-9]/,
    );
    assert.match(
      text,
      /_count\{http_route="\/usual\/\*\*",http_request_method="PATCH",http_response_status_code="200"\} 0/,
    );
  });

  test('is followed by other requests on its connection', async () => {
    const text = await exchange(
      port,
      'GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    );
    assert.equal(responsesIn(text).length, 2);
  });
});

const TOO_LATE = 'the body of a Request must be read before its Response is sent';

/** What a mount does; `read` reads the body of its request. */
type Handle = (read: () => Promise<string>, request: Request) => Response | Promise<Response>;

const turn = () => new Promise<void>(setImmediate);

/** A service with one mount, a connection to it, and how reading the body ends. */
async function openReading(t: TestContext, handle: Handle, options: Partial<ServiceOptions> = {}) {
  const clock = new TestClock();
  const sentences: unknown[] = [];

  const log = (_: string, __: string, { sentence }: { sentence?: unknown }) => {
    if (sentence !== undefined) sentences.push(sentence);
  };

  let begin = (_: Promise<string>) => {};

  const outcome = new Promise<string>((resolve) => {
    begin = (reading) => {
      const ended = reading.then(
        (text) => `read ${text}`,
        (error: unknown) => String(Object(error).message ?? String(error)),
      );
      resolve(ended);
    };
  });

  const handler = (request: Request) =>
    handle(() => {
      const reading = request.text();
      begin(reading);
      return reading;
    }, request);

  const values = readServiceOptions({ ...issuer.options, host: '127.0.0.1', port: 0, log, ...options });
  const served = createListeningService({ routes: [mount('/m', open, handler)] }, values, {
    ...OWN_ROUTES,
    clock,
  });
  const wire = await openWire((await served.listen()).port);
  t.after(async () => {
    wire.destroy();
    const stopped = served.stop();
    while (!clock.pending.includes(10_000)) await turn();
    clock.advance(10_000);
    await stopped;
  });
  return { wire, outcome, clock, sentences };
}

const PART = 'POST /m HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello';
const WHOLE = 'POST /m HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello';

/** What is sent is read once it is asked for. */
const sendLazily =
  (type: string): Handle =>
  (read) => {
    const pull = async (controller: ReadableStreamDefaultController) => {
      controller.enqueue(Buffer.from(await read()));
      controller.close();
    };

    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    return new Response(body, { headers: { 'Content-Type': type } });
  };

const accept = () => new Response('accepted', { status: 202 });

describe('the body of the request of a mount', { timeout: 20_000 }, () => {
  test('that arrives slowly ends with an error when the handler has taken too long, so that it can clean up [§27, §10]', async (t) => {
    let cleanUps = 0;
    let isReading = false;

    const handle: Handle = async (read) => {
      isReading = true;
      try {
        return new Response(await read());
      } finally {
        cleanUps += 1;
      }
    };

    const { wire, outcome, clock } = await openReading(t, handle, {
      handlerTimeoutSeconds: 1,
      requestTimeoutSeconds: 60,
    });
    wire.send(PART);
    while (!isReading) await turn();
    clock.advance(1_000);
    assert.equal(parseHead(await wire.until((text) => text.includes('\r\n\r\n'))).status, 503);
    assert.equal(await outcome, TOO_LATE);
    assert.equal(cleanUps, 1);
  });

  test('that was refused leaves it a 503 that the handler then takes too long [§10]', async (t) => {
    let isRefused = false;

    const handle: Handle = async (read) => {
      await read().catch(() => {});
      isRefused = true;
      return new Promise(() => {});
    };

    const { wire, clock } = await openReading(t, handle, {
      handlerTimeoutSeconds: 1,
      requestTimeoutSeconds: 60,
    });
    wire.send(`POST /m HTTP/1.1\r\nHost: a\r\n${CHUNKED}\r\n\r\nzz\r\n`);
    while (!isRefused) await turn();
    clock.advance(1_000);
    assert.equal(parseHead(await wire.until((text) => text.includes('\r\n\r\n'))).status, 503);
  });

  for (const [what, bytes, expected] of [
    ['has arrived in part ends with an error', PART, TOO_LATE],
    ['has arrived is read', WHOLE, 'read hello'],
  ] as const) {
    test(`that ${what} if the handler returns its Response meanwhile [§27]`, async (t) => {
      const { wire, outcome } = await openReading(t, (read) => {
        read().catch(() => {});
        return accept();
      });
      wire.send(bytes);
      assert.equal(await outcome, expected);
      assert.equal(parseHead(await wire.untilClosed()).status, 202);
    });

    test(`that ${what} if the body of an event stream reads it after the head [§27]`, async (t) => {
      const { wire, outcome, sentences } = await openReading(t, sendLazily('text/event-stream'));
      wire.send(bytes);
      assert.equal(await outcome, expected);
      const isRead = expected !== TOO_LATE;
      assert.equal(parseHead(await wire.untilClosed()).isWhole, isRead);
      assert.deepEqual(sentences, isRead ? [] : [TOO_LATE]);
    });
  }

  for (const bytes of [PART, WHOLE]) {
    test(`ends with an error when a Response without a body is sent at once: ${bytes.length} bytes [§27]`, async (t) => {
      const { wire, outcome } = await openReading(t, (read) => {
        read().catch(() => {});
        return new Response(null, { status: 204 });
      });
      wire.send(bytes);
      assert.equal(await outcome, TOO_LATE);
      assert.equal(parseHead(await wire.untilClosed()).status, 204);
    });
  }

  test('that has arrived is read to its end, even if its reader goes on after the response [§27]', async (t) => {
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    const { wire } = await openReading(t, async (_, { body }) => {
      reader = body!.getReader();
      await reader.read();
      return accept();
    });
    wire.send(WHOLE);
    await wire.until((text) => text.endsWith('accepted'));
    for (let count = 0; count < 5; count += 1) await turn();
    assert.deepEqual(await reader!.read(), { done: true, value: undefined });
  });

  for (const [when, wait] of [
    ['a few ticks', () => new Promise<void>(process.nextTick)],
    ['a few turns', turn],
  ] as const) {
    test(`that is read ${when} after its Response is an error, and never an empty text [§27]`, async (t) => {
      for (const bytes of [WHOLE, PART]) {
        for (let count = 2; count < 6; count += 1) {
          const { wire, outcome } = await openReading(t, (read) => {
            void (async () => {
              for (let waited = 0; waited < count; waited += 1) await wait();
              await read().catch(() => {});
            })();
            return accept();
          });
          wire.send(bytes);
          assert.equal(await outcome, TOO_LATE, `${bytes} ${count}`);
        }
      }
    });
  }

  test('that was read before the last response is followed by nothing that hides that the client leaves [RFC 9112 §9.6]', async (t) => {
    const { wire } = await openReading(t, async (read, { signal }) => {
      await read();
      return new Response(untilAborted(signal));
    });
    wire.send(WHOLE.replace('Host', 'Connection: close\r\nHost'));
    await wire.until((text) => text.includes('begun'));
    wire.send('no request\r\n\r\n');
    wire.socket.end();
    assert.equal(parseHead(await wire.untilClosed()).isWhole, false);
  });

  test('that an event stream reads after the head is not asked for by 100 Continue [RFC 9110 §10.1.1]', async (t) => {
    const { wire, outcome } = await openReading(t, sendLazily('text/event-stream'));
    wire.send(WHOLE.replace('Host', 'Connection: close\r\nExpect: 100-continue\r\nHost'));
    assert.equal(await outcome, 'read hello');
    const { status, content, isWhole } = parseHead(await wire.untilClosed());
    assert.deepEqual([status, content, isWhole], [200, 'hello', true]);
  });

  test('of HTTP/1.0 is read on after the Response whose body it is [§27, RFC 9112 §6.3]', async (t) => {
    let isCalled = false;
    const { wire, outcome } = await openReading(t, (read, request) => {
      isCalled = true;
      return sendLazily('text/plain')(read, request);
    });
    wire.send('POST /m HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
    while (!isCalled) await turn();
    for (let count = 0; count < 5; count += 1) await turn();
    wire.send('hello');
    assert.equal(await outcome, 'read hello');
    assert.equal(parseHead(await wire.untilClosed()).content, 'hello');
  });
});

describe('mounts that cannot be', () => {
  const problemsOf = (served: readonly Route[], options: ServiceOptions = issuer.options) => {
    try {
      createService({ routes: served }, options);
      return [];
    } catch (error) {
      return (error as Error).message.split('\n');
    }
  };

  test('stop the start: two of one prefix, and the prefix of a path of the service', () => {
    const one = mount('/a', open, name('one'));
    assert.deepEqual(problemsOf([one, mount('/%61', open, name('two'))]), [
      'mount /%61/**: has the prefix of another mount; join their handlers',
    ]);
    const between = mount('/b', open, name('b'));
    assert.deepEqual(problemsOf([one, between, mount('/a', open, name('two'))]), [
      'mount /a/**: has the prefix of another mount; join their handlers',
    ]);
    assert.deepEqual(problemsOf([mount('/healthz', open, name('x'))]), [
      'mount /healthz/**: is a path that the service serves itself; choose another prefix',
    ]);
    assert.deepEqual(problemsOf([one, mount('/a/b', open, name('x')), post('/a', open, () => {})]), []);
  });

  test('are problems among those of routes', () => {
    const problems = problemsOf([
      mount('/a', open, name('x')),
      get('/:b', open, () => ({})),
      mount('/a', open, name('x')),
    ]);
    assert.deepEqual(
      [problems.length, problems.some((problem) => problem.startsWith('GET /:b: '))],
      [2, true],
    );
  });

  test('throw where they are written', () => {
    const handler = name('x');
    assert.throws(
      () => mount('/{a}', open, handler),
      /^TypeError: mount \/\{a\}: must be a path prefix without/,
    );
    assert.throws(() => mount('a', open, handler), /write \/a/);
    assert.throws(() => mount('/a/', open, handler), /^TypeError: mount/);
    assert.throws(() => mount('/a', {} as never, handler), /^TypeError: mount \/a: needs an access/);
    const noHandler = 'mount /a: needs a handler, such as (request) => app.fetch(request)';
    assert.throws(() => mount('/a', open, undefined as never), { name: 'TypeError', message: noHandler });
    const noOption =
      /^TypeError: mount \/a: (?:\w+: is no option; correct or remove it|must be a plain object)/;
    for (const none of [{ limit: 1 }, new Map(), 20, null, []] as never[]) {
      assert.throws(() => mount('/a', open, handler, none), noOption);
    }
    for (const limitBytes of [0, 1.5, 1024 ** 3 + 1, '5' as never]) {
      assert.throws(
        () => mount('/a', open, handler, { limitBytes }),
        /^TypeError: mount \/a: limitBytes: must be a whole number from 1 to 1073741824$/,
      );
    }
    mount('/', open, handler, { limitBytes: 1024 ** 3 });
  });

  test('do not belong to forward-auth', async (t) => {
    const routes = "[get('/a', open, upstream), gatehouse.mount('/a', open, () => {})]";
    const program = programOf(t, `await runForwardAuth({ routes: ${routes} });`);
    const { code, errors } = await runCommand([], {}, {}, program);
    assert.equal(code, 1);
    assert.ok(errors.some((line) => line.startsWith('configuration: mount /a/**: belongs to a service')));
  });
});

test('assertRouteMatrix asks each mount, and runs no handler', async () => {
  const never = (): Response => assert.fail();
  await assertRouteMatrix({
    routes: [
      get('/a/route', needs(scope('read')), () => ({})),
      mount('/a', needs(scope('read')), never),
      mount('/', optional, never),
      get('/b', authenticated, () => ({})),
    ],
    rules: [under('/a', authenticated)],
  });
  const wrong = assertRouteMatrix({
    routes: [mount('/a', needs(scope('read')), never), mount('/a', open, never)],
  });
  await assert.rejects(wrong, TypeError);
});
