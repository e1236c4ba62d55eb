/* What a handler receives, what it may return, and how its response is sent (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { authenticated, open, optional } from '../../../src/gate/rules/access.ts';
import { del, get, patch, post, put, type RouteRequest } from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import { created, fail, noContent, reply } from '../../../src/service/routes/handler-reply.ts';
import { clock, tokenWith } from '../../support/caller.ts';
import { exchange } from '../../support/client.ts';
import { responsesIn } from '../../support/raw-responses.ts';
import { schemaOf } from '../../support/schemas.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';
import { askRaw } from '../../support/wire-response.ts';

const SECRET = 'a-secret-of-the-inside';

const bug = () => new TypeError(SECRET);

const thrown = (value: unknown) => (): object => {
  throw value;
};

/** A value that throws when read. */
function strange(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** A promise of another class, like those of query builders. */
const thenable = <Value>(value: Value): PromiseLike<Value> => ({
  then: (resolve, reject) => Promise.resolve(value).then(resolve, reject),
});

/** What the handlers have received. */
const received: RouteRequest<unknown, unknown, unknown, unknown>[] = [];

function note(request: RouteRequest<unknown, unknown, unknown, unknown>): object {
  received.push(request);
  return {};
}

/** A reply whose bytes are transferred before it is written. */
function givenAway() {
  const bytes = Uint8Array.of(1, 2, 3);
  const made = reply(200, bytes, { 'Content-Type': 'image/png' });
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return made;
}

/** A reply that Node refuses to write. */
function spoilt() {
  const made = reply(200, {});
  return Object.assign(made, { reply: { ...made.reply, status: 99 } });
}

const circular: { self?: object } = {};
circular.self = circular;

/** A bug within `toJSON`. */
function toJSON(): object {
  throw new TypeError(`no ${SECRET}`);
}

const ALL = schemaOf((value) => ({ value: { all: value } }));

let service: RunningRoutes;

before(async () => {
  service = await startRoutes({
    routes: [
      get('/note/{name}', optional, note),
      post('/note/{other}', authenticated, query(ALL), json(ALL), note),
      put('/note/{name}', open, note),
      get('/given-away', open, givenAway),
      get('/spoilt', open, spoilt),
      get('/text', open, () => 'text' as never),
      get('/null', open, () => null as never),
      get('/date', open, () => new Date() as never),
      post('/date', open, async () => new Date() as never),
      get('/map', open, () => new Map([[SECRET, 1]])),
      get('/big', open, () => ({ amounts: [{ [SECRET]: 1n }] })),
      get('/circular', open, () => circular),
      get('/own-json', open, () => ({ toJSON })),
      get('/error', open, async () => Object.assign(bug(), { code: SECRET })),
      get('/buffer', open, () => Buffer.from(SECRET)),
      get('/stream', open, () => Readable.from([SECRET])),
      get('/buffer-in-reply', open, () => reply(200, new ArrayBuffer(3), { 'Content-Type': 'image/png' })),
      get('/set-in-reply', open, () => reply(200, new Set([SECRET]))),
      get('/nothing', open, (() => {}) as never),
      get('/nothing-later', open, (async () => {}) as never),
      post('/nothing', open, () => {}),
      post('/nothing-later', open, async () => {}),
      get('/list', open, () => [1, 2]),
      get('/thenable', open, () => thenable({ a: 1 })),
      get('/thenable-reply', open, () => thenable(reply(202))),
      get('/reply', open, () => reply(203, { a: 1 }, { 'X-A': 'b', 'Cache-Control': 'max-age=5' })),
      get('/bytes', open, () => reply(200, Buffer.from('"\xe9"', 'latin1'), { 'Content-Type': 'image/x' })),
      get('/not-modified', open, () => reply(304)),
      post('/created', open, async () => created('/created/1', { id: 1 })),
      post('/reset', open, () => reply(205)),
      del('/gone', open, () => noContent()),
      get('/fails', open, () => fail(404, 'not_found', 'None')),
      get('/fails-later', open, async () => fail(409, 'conflict', 'Twice')),
      get('/throws-fail', open, thrown(fail(400, 'bad', 'Bad'))),
      get('/rejects-with-fail', open, () => Promise.reject(fail(422, 'odd', 'Odd'))),
      get('/throws-reply', open, thrown(reply(404, {}))),
      post('/throws', open, thrown(bug())),
      patch('/rejects/{id}', open, () => Promise.reject(bug())),
      get('/throws-nothing', open, thrown(undefined)),
      get('/throws-strange', open, thrown(strange())),
      get('/rejects-strange', open, () => Promise.reject(strange())),
      get('/gives-strange', open, () => strange()),
      get('/gives-strange-later', open, async () => [strange()]),
      get('/changed', open, () => {
        try {
          return fail(200, 'a', 'b');
        } catch (error) {
          throw Object.assign(error as Error, { message: SECRET });
        }
      }),
      get('/throws', open, thrown(bug())),
      get('/refused-field', open, () => reply(200, {}, { 'Set-Cookie': SECRET })),
      post('/schema-throws', open, json(schemaOf(thrown(bug()) as never)), note),
      post('/schema-rejects', open, json(schemaOf(() => Promise.reject(bug()))), note),
      post('/schema-says-nothing', open, json(schemaOf((() => ({})) as never)), note),
      get('/query-throws', open, query(schemaOf(thrown(bug()) as never)), note),
      post('/later', open, json(schemaOf(async (value) => ({ value: [value] }))), ({ body }) => ({ body })),
      post('/refuses-later', open, json(schemaOf(async () => ({ issues: [{ message: 'no' }] }))), note),
      get('/query-later', open, query(schemaOf(async () => ({ value: 'later' }))), ({ query }) => ({
        query,
      })),
    ],
  });
});

after(() => service.stop());

const JSON_TYPE = { 'Content-Type': 'application/json' };

async function receivedOf(path: string, ...lines: readonly string[]) {
  received.length = 0;
  await askRaw(service.port, `GET ${path} HTTP/1.1`, 'Host: a', ...lines);
  return received[0]!;
}

describe('a handler', { timeout: 30_000 }, () => {
  test('receives the output of its schemas, and the parameters of its own pattern', async () => {
    received.length = 0;
    const token = tokenWith({ sub: 'someone' });
    const request = { method: 'POST', token, headers: JSON_TYPE, body: '{"a":1}' };
    await service.ask('/note/x%2Fy?b=1&b=2&c=', request);
    const [{ caller, parameters, query, body, method, path, nowMillis }] = received as never as [any];
    assert.deepEqual(
      [caller.subject, parameters, { ...query.all }, body, method, path, nowMillis],
      [
        'someone',
        { other: 'x/y' },
        { b: ['1', '2'], c: '' },
        { all: { a: 1 } },
        'POST',
        '/note/x%2Fy',
        clock.now(),
      ],
    );
  });

  test('receives the query unchanged and no body without schemas', async () => {
    const { query, body, caller, parameters, path } = await receivedOf(
      '/note/%C3%A9?a=1&a=2&b=%zz&c=x+y?&d=%E4',
    );
    assert.ok(query instanceof URLSearchParams);
    assert.deepEqual(
      [[...query], body, caller, parameters, path],
      [
        [
          ['a', '1'],
          ['a', '2'],
          ['b', '%zz'],
          ['c', 'x y?'],
          ['d', '\ufffd'],
        ],
        undefined,
        undefined,
        { name: 'é' },
        '/note/%C3%A9',
      ],
    );
    assert.deepEqual([...((await receivedOf('/note/a')).query as URLSearchParams)], []);
    assert.deepEqual([...((await receivedOf('/note/a?')).query as URLSearchParams)], []);
  });

  test('receives header fields without the token and the proof [RFC 9449 §11.1]', async () => {
    const token = tokenWith();
    const fields = [`Authorization: Bearer ${token}`, 'DPoP: x.y.z', 'X-A: b', 'Cookie: c=d'];
    const { headers } = await receivedOf('/note/a', ...fields);
    assert.deepEqual({ ...headers }, { host: 'a', 'x-a': 'b', cookie: 'c=d' });
    assert.ok(!JSON.stringify(received).includes(token));
  });

  test('receives HEAD as the method of a HEAD request', async () => {
    received.length = 0;
    await service.ask('/note/a', { method: 'HEAD' });
    assert.equal(received[0]?.method, 'HEAD');
  });

  const ID = '4bf92f3577b34da6a3ce929d0e0e4736';
  const SPAN = '00f067aa0ba902b7';
  for (const value of [
    `00-${ID}-${SPAN}-01`,
    `00-${ID}-${SPAN}-ff`,
    `01-${ID}-${SPAN}-00`,
    `cc-${ID}-${SPAN}-01-what.ever`,
    `fe-${ID}-${SPAN}-01-`,
  ]) {
    test(`receives the traceparent ${value} [W3C Trace Context §3.2.2, §3.2.4]`, async () => {
      assert.equal((await receivedOf('/note/a', `traceparent: ${value}`)).traceparent, value);
    });
  }

  for (const [what, ...values] of [
    ['no traceparent'],
    ['two traceparent fields', `00-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`],
    ['an empty traceparent', ''],
    ['version ff', `ff-${ID}-${SPAN}-01`],
    ['version 00 with another part', `00-${ID}-${SPAN}-01-more`],
    ['version 00 with a dash at its end', `00-${ID}-${SPAN}-01-`],
    ['a later version that goes on without a dash', `01-${ID}-${SPAN}-011`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a parent of zeros', `00-${ID}-${'0'.repeat(16)}-01`],
    ['capital letters', `00-${ID.toUpperCase()}-${SPAN}-01`],
    ['a short trace', `00-${ID.slice(1)}-${SPAN}-01`],
    ['a long parent', `00-${ID}-${SPAN}0-01`],
    ['no flags', `00-${ID}-${SPAN}`],
    ['flags that are no number', `00-${ID}-${SPAN}-0g`],
    ['two values in one field', `00-${ID}-${SPAN}-01, 00-${ID}-${SPAN}-01`],
  ] as const) {
    test(`receives no traceparent for ${what} [W3C Trace Context §3.2.2]`, async () => {
      const lines = values.map((value) => `traceparent: ${value}`);
      assert.equal((await receivedOf('/note/a', ...lines)).traceparent, undefined);
    });
  }
});

describe('the response of a handler', { timeout: 30_000 }, () => {
  const asked = async (method: string, path: string, body?: string) => {
    const { status, text, headers } = await service.ask(path, {
      method,
      ...(body !== undefined && { body, headers: JSON_TYPE }),
    });
    return { status, text, headers };
  };

  for (const [method, path, status, text] of [
    ['GET', '/list', 200, '[1,2]'],
    ['GET', '/thenable', 200, '{"a":1}'],
    ['GET', '/thenable-reply', 202, ''],
    ['POST', '/nothing', 204, ''],
    ['POST', '/nothing-later', 204, ''],
    ['DELETE', '/gone', 204, ''],
    ['POST', '/reset', 205, ''],
    ['GET', '/not-modified', 304, ''],
    ['POST', '/created', 201, '{"id":1}'],
    ['GET', '/fails', 404, '{"error":"not_found","message":"None"}'],
    ['GET', '/fails-later', 409, '{"error":"conflict","message":"Twice"}'],
    ['GET', '/throws-fail', 400, '{"error":"bad","message":"Bad"}'],
    ['GET', '/rejects-with-fail', 422, '{"error":"odd","message":"Odd"}'],
    ['GET', '/query-later', 200, '{"query":"later"}'],
  ] as const) {
    test(`is ${status} at ${method} ${path}, and only a failure is logged, at debug`, async () => {
      const before = service.logs.length;
      const response = await asked(method, path);
      assert.deepEqual([response.status, response.text], [status, text]);
      const told = service.logs.slice(before);
      assert.deepEqual(
        told.map(({ level, message, status: logged, reason }) => [level, message, logged, reason]),
        status < 400 ? [] : [['debug', 'request refused', status, 'handler']],
      );
    });
  }

  test('has the fields that the handler sets, and the Location of what was created', async () => {
    const { headers } = await asked('GET', '/reply');
    assert.deepEqual(
      [headers['x-a'], headers['cache-control'], headers['x-content-type-options']],
      ['b', 'max-age=5', 'nosniff'],
    );
    assert.equal((await asked('POST', '/created')).headers.location, '/created/1');
  });

  test('sends bytes unchanged', async () => {
    const received = await exchange(
      service.port,
      'GET /bytes HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    );
    const [response] = responsesIn(received);
    assert.deepEqual([response?.fields.get('content-type'), response?.text], ['image/x', '"\xe9"']);
  });

  for (const path of ['/reply', '/bytes', '/fails', '/list', '/not-modified']) {
    test(`has the same fields without the body for HEAD at ${path} [RFC 9110 §9.3.2]`, async () => {
      const full = await asked('GET', path);
      const head = await asked('HEAD', path);
      const { date: _, ...fields } = full.headers;
      const { date: __, ...headFields } = head.headers;
      assert.deepEqual([headFields, head.text], [fields, '']);
    });
  }

  test('is always framed: 205 has a length, 204 and 304 have none [RFC 9110 §15.3.6, §8.6]', async () => {
    for (const [method, path, length] of [
      ['POST', '/reset', '0'],
      ['DELETE', '/gone', undefined],
      ['GET', '/not-modified', undefined],
    ] as const) {
      const { headers } = await asked(method, path);
      assert.deepEqual([headers['content-length'], headers['transfer-encoding']], [length, undefined]);
    }
  });

  test('may be asynchronous, and so may schemas', async () => {
    assert.equal((await asked('POST', '/later', '1')).text, '{"body":[1]}');
    const refused = await asked('POST', '/refuses-later', '1');
    assert.deepEqual([refused.status, JSON.parse(refused.text).issues], [422, [{ path: [], message: 'no' }]]);
  });

  for (const [method, path, pattern = path] of [
    ['GET', '/text'],
    ['GET', '/null'],
    ['GET', '/date'],
    ['POST', '/date'],
    ['GET', '/map'],
    ['GET', '/error'],
    ['GET', '/buffer'],
    ['GET', '/stream'],
    ['GET', '/buffer-in-reply'],
    ['GET', '/set-in-reply'],
    ['GET', '/nothing'],
    ['GET', '/nothing-later'],
    ['HEAD', '/nothing'],
    ['GET', '/throws-reply'],
    ['GET', '/throws-nothing'],
    ['POST', '/throws'],
    ['PATCH', '/rejects/7', '/rejects/{id}'],
    ['GET', '/refused-field'],
    ['POST', '/schema-throws'],
    ['POST', '/schema-rejects'],
    ['POST', '/schema-says-nothing'],
    ['GET', '/query-throws'],
  ] as const) {
    test(`is 500 at ${method} ${path} for a bug, with its route but not its message in the log`, async () => {
      const before = service.logs.length;
      const { status, text } = await asked(method, path, method === 'POST' ? '{"a":1}' : undefined);
      assert.equal(status, 500);
      if (method !== 'HEAD') assert.equal(text, '{"error":"server_error","message":"Internal Server Error"}');
      const lines = service.logs.slice(before);
      assert.deepEqual(
        lines.map(({ level, message, reason, method: logged, route }) => [
          level,
          message,
          reason,
          logged,
          route,
        ]),
        [['error', 'request failed', 'bug', method === 'HEAD' ? 'GET' : method, pattern]],
      );
      assert.doesNotMatch(JSON.stringify(lines), new RegExp(SECRET));
    });
  }
});

test('a reply that cannot be written ends its connection, and loses no other response of its turn', async () => {
  const request = Buffer.from('GET /note/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const lost = Buffer.from('GET /spoilt HTTP/1.1\r\nHost: a\r\n\r\n');
  const before = service.logs.length;
  const sent = [lost, request, lost, request].map((bytes) => exchange(service.port, bytes));
  const received = await Promise.all(sent);
  assert.deepEqual(
    received.map((text) => responsesIn(text).map(({ status }) => status)),
    [[], [200], [], [200]],
  );
  // The author of the handler gets the line.
  const told = service.logs.slice(before).map(({ message, route }) => [message, route]);
  assert.deepEqual(told, Array(2).fill(['request failed', '/spoilt']));
});

test('a reply sends the bytes that it was made with, even if its handler transfers them before they are written', async () => {
  const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  // The second response waits for the first one.
  const both = request('/nothing-later') + request('/given-away', 'Connection: close\r\n');
  const responses = responsesIn(await exchange(service.port, Buffer.from(both)));
  assert.deepEqual(
    responses.map(({ status }) => status),
    [500, 200],
  );
  assert.equal(responses[1]?.text, '\x01\x02\x03');
});

test('a thrown value that throws when read becomes a 500 with a log line', async () => {
  for (const path of ['/throws-strange', '/rejects-strange', '/gives-strange', '/gives-strange-later']) {
    const before = service.logs.length;
    const { status, body } = await service.ask(path);
    assert.deepEqual([status, body.error], [500, 'server_error'], path);
    const told = service.logs.slice(before).map(({ message, route, reason }) => [message, route, reason]);
    assert.deepEqual(told, [['request failed', path, 'bug']]);
  }
});

test('a UsageError is logged with its fixed sentence, and no other error with its message', async () => {
  for (const [path, sentence] of [
    [
      '/refused-field',
      'set-cookie must not be set by a reply; a Response may set set-cookie and www-authenticate',
    ],
    [
      '/map',
      'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes',
    ],
    ['/big', 'a body must not have a BigInt or itself in it; convert it'],
    ['/circular', 'a body must not have a BigInt or itself in it; convert it'],
    ['/own-json', undefined],
    ['/changed', 'fail needs a status from 400 to 599'],
    ['/throws', undefined],
  ] as const) {
    await service.ask(path);
    assert.equal(service.logs.at(-1)?.sentence, sentence, path);
  }
});

describe('the methods of a path', { timeout: 30_000 }, () => {
  test('are those of its routes: any other method gets 405 with Allow [RFC 9110 §15.5.6]', async (t) => {
    const ok = () => ({});
    const app = await startRoutes({
      routes: [
        get('/a/{id}', authenticated, ok),
        put('/a/{name}', authenticated, ok),
        del('/a/special', authenticated, ok),
        post('/b', open, ok),
      ],
    });
    t.after(() => app.stop());
    for (const [path, method, allowed] of [
      ['/a/1', 'POST', 'GET, HEAD, PUT'],
      ['/a/1', 'DELETE', 'GET, HEAD, PUT'],
      ['/a/special', 'PATCH', 'DELETE, GET, HEAD, PUT'],
      ['/b', 'GET', 'POST'],
      ['/b', 'HEAD', 'POST'],
      ['/b', 'OPTIONS', 'POST'],
    ] as const) {
      const { status, headers, challenges } = await app.ask(path, { method });
      assert.deepEqual([status, headers.allow, challenges], [405, allowed, []]);
      assert.equal(app.logs.at(-1)?.reason, 'method_not_allowed');
    }
    assert.equal((await app.ask('/a/special', { method: 'DELETE', token: tokenWith() })).status, 200);
  });

  test('each get the parameter names of the pattern of their own route', async (t) => {
    const give = ({ parameters }: { readonly parameters: object }) => ({ parameters });
    const app = await startRoutes({
      routes: [get('/a/{id}', open, give), put('/a/{name}', open, give), post('/a/x', open, give)],
    });
    t.after(() => app.stop());
    const asked = await Promise.all(['GET', 'PUT', 'POST'].map((method) => app.ask('/a/x', { method })));
    assert.deepEqual(
      asked.map(({ body }) => body.parameters),
      [{ id: 'x' }, { name: 'x' }, {}],
    );
  });
});
