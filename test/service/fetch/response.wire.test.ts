/* A Fetch `Response` as a handler's result: how it is recognized, and which status, fields and body are sent
   (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { authenticated, open } from '../../../src/gate/rules/access.ts';
import { reply } from '../../../src/service/routes/handler-reply.ts';
import { del, get, post } from '../../../src/service/routes/route.ts';
import { tokenWith } from '../../support/caller.ts';
import { exchange } from '../../support/client.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';
import { parseHead, type Head } from './fixture.ts';

const SECRET = 'a-secret-of-the-inside';

/** A class of one's own, as polyfills have. */
class OwnResponse {
  readonly status: unknown;
  readonly headers: unknown;
  readonly body: unknown;
  readonly bodyUsed = false;

  constructor(body: unknown, status: unknown = 200, headers: unknown = new Headers()) {
    this.body = body;
    this.status = status;
    this.headers = headers;
  }
}

const streamOf = (...chunks: readonly unknown[]) =>
  new ReadableStream<any>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

/** Fails in the turn in which its first chunk is read. */
function failingAfter(chunk: Uint8Array) {
  const chunks = [chunk];
  return new ReadableStream<any>({
    async pull(controller) {
      const next = chunks.shift();
      if (next === undefined) throw new Error(SECRET);
      controller.enqueue(next);
    },
  });
}

/** Bodies that were cancelled, by name. */
const cancelled: string[] = [];

const cancellable = (name: string) => new ReadableStream<any>({ cancel: () => void cancelled.push(name) });

function used() {
  const response = new Response(SECRET);
  void response.text();
  return response;
}

function locked() {
  const response = new Response(SECRET);
  response.body!.getReader();
  return response;
}

function cookies() {
  const headers = new Headers({ 'X-A': '1' });
  headers.append('Set-Cookie', 'a=1; Path=/');
  headers.append('Set-Cookie', 'b=2; Expires=Wed, 21 Oct 2030 07:28:00 GMT');
  return new Response('ok', { headers });
}

/** Connection names none of the others, which would go for that alone. */
const HOPS = {
  Connection: 'x-none',
  'Keep-Alive': 'timeout=5',
  'Proxy-Authenticate': 'Basic',
  'Proxy-Authentication-Info': 'a=1',
  'Proxy-Authorization': 'Basic YTpi',
  'Proxy-Connection': 'keep-alive',
  TE: 'trailers',
  Trailer: 'X-T',
  'Transfer-Encoding': 'gzip',
  Upgrade: 'h2c',
};

/** Their names have one of those in them, or are unusual. */
const OTHERS = { Tenant: '1', 'X-Trailer': '2', 'Upgrade-Insecure-Requests': '3', '~': '4' };

/** Named by the Response itself. */
const NAMED = new Headers({
  Connection: 'close, X-Hop ,\tcache-control',
  'X-Hop': '1',
  'X-End': '2',
  'Cache-Control': 'public',
});

const entriesOf = (...pairs: readonly (readonly [string, string])[]) => ({ entries: () => pairs });

let service: RunningRoutes;

before(async () => {
  service = await startRoutes({
    environment: { CORS_ALLOWED_ORIGINS: 'https://app.test' },
    routes: [
      get('/text', open, () => new Response('héllo', { status: 203, headers: { 'X-A': 'b' } })),
      get('/later', open, async () => Response.json({ a: 1 })),
      post('/created', open, () => new Response('x', { status: 201 })),
      get('/own', open, () => new OwnResponse(streamOf(Buffer.from('own')), 202)),
      get('/plain', open, () => ({ status: 202, headers: new Headers(), body: null })),
      get('/entries', open, () => new OwnResponse(null, 200, entriesOf(['X-Own', 'yes']))),
      get('/json/list', open, () => ({ status: 1, headers: ['a'], body: null })),
      get('/json/text', open, () => ({ status: 1, headers: new Headers(), body: 'b' })),
      get('/json/status', open, () => ({ status: '1', headers: new Headers(), body: null })),
      get('/cookies', open, cookies),
      get('/hops', open, () => new Response('ok', { headers: HOPS })),
      get('/others', open, () => new Response('ok', { status: 599, headers: OTHERS })),
      get('/named', open, () => new Response('ok', { headers: NAMED })),
      get(
        '/named-cookies',
        open,
        () => new OwnResponse(null, 200, entriesOf(['Set-Cookie', 'a=1'], ['Connection', 'set-cookie'])),
      ),
      get(
        '/repeated',
        open,
        () =>
          new OwnResponse(
            null,
            200,
            entriesOf(['Vary', 'A'], ['vary', 'B'], ['Cache-Control', 'a'], ['cache-control', 'b']),
          ),
      ),
      get('/length', open, () => new Response('four', { headers: { 'Content-Length': '4' } })),
      get('/cached', open, () =>
        Response.json({}, { headers: { 'Cache-Control': 'max-age=60', 'X-Content-Type-Options': 'other' } }),
      ),
      get(
        '/challenge',
        open,
        () => new Response(null, { status: 401, headers: { 'WWW-Authenticate': 'X' } }),
      ),
      get('/typeless', open, () => new Response(streamOf(Buffer.from('ab')))),
      get('/latin', open, () => new Response(null, { headers: { 'X-Name': '\x85caf\xe9' } })),
      get('/null', open, () => new Response(null)),
      get('/zero-length', open, () => new Response(null, { headers: { 'Content-Length': '0' } })),
      get('/null-length', open, () => new Response(null, { headers: { 'Content-Length': '1' } })),
      get('/redirect', open, () => Response.redirect('https://a.test/', 303)),
      get('/204', open, () => new Response(null, { status: 204, headers: { 'Content-Length': '5' } })),
      get('/204-body', open, () => new OwnResponse(cancellable('204'), 204)),
      get('/205-body', open, () => new OwnResponse(cancellable('205'), 205)),
      get('/304-body', open, () => new OwnResponse(cancellable('304'), 304)),
      get('/head', open, () => new Response(cancellable('head'), { headers: { 'Content-Length': '9' } })),
      del(
        '/empty-chunks',
        open,
        () => new Response(streamOf(new Uint8Array(), Buffer.from('a'), new Uint8Array())),
      ),
      get('/mine', authenticated, ({ caller }) => new Response(caller.subject)),
      get('/after', open, () => ({ after: true })),
      get('/error', open, () => Response.error()),
      get('/600-body', open, () => new OwnResponse(cancellable('600'), 600)),
      get(
        '/length-body',
        open,
        () => new OwnResponse(cancellable('length'), 200, entriesOf(['Content-Length', 'x'])),
      ),
      get('/199', open, () => new OwnResponse(null, 199)),
      get('/600', open, () => new OwnResponse(null, 600)),
      get('/200.5', open, () => new OwnResponse(null, 200.5)),
      get('/used', open, used),
      get('/read', open, () => Object.assign(new OwnResponse(streamOf()), { bodyUsed: true })),
      get('/locked', open, locked),
      get('/texts', open, () => new Response(streamOf(SECRET))),
      get('/buffers', open, () => new Response(streamOf(new ArrayBuffer(3)))),
      get('/numbers', open, () => new Response(streamOf(new Uint16Array(3)))),
      get(
        '/fails',
        open,
        () => new Response(new ReadableStream({ pull: () => Promise.reject(new Error(SECRET)) })),
      ),
      get(
        '/other-lengths',
        open,
        () => new OwnResponse(null, 200, entriesOf(['Content-Length', '0'], ['content-length', '1'])),
      ),
      get('/unreadable', open, () => {
        const getReader = () => {
          throw new Error(SECRET);
        };
        return new OwnResponse({ getReader, cancel() {} } as unknown as ReadableStream);
      }),
      get('/short', open, () => new Response('abc', { headers: { 'Content-Length': '5' } })),
      get('/fails-short', open, () => {
        const headers = { 'Content-Length': '99' };
        return new Response(failingAfter(Buffer.from(SECRET)), { headers });
      }),
      get('/fails-soon', open, () => new Response(failingAfter(Buffer.from(SECRET)))),
      get('/texts-later', open, () => new Response(streamOf(Buffer.from('a'), SECRET))),
      get('/two-lengths', open, () => new OwnResponse(null, 200, entriesOf(['Content-Length', '1, 1']))),
      get('/bad-name', open, () => new OwnResponse(null, 200, entriesOf(['X A', '1']))),
      get('/no-text', open, () => new OwnResponse(null, 200, entriesOf(['X-A', undefined as never]))),
      get('/bad-value', open, () => new OwnResponse(null, 200, entriesOf(['X-A', `a\r\n${SECRET}: b`]))),
      get('/in-reply', open, () => reply(200, new OwnResponse(null))),
      get('/real-in-reply', open, () => reply(200, new Response(SECRET))),
      get('/thrown', open, () => {
        throw new Response(SECRET, { status: 404 });
      }),
    ],
  });
});

after(() => service.stop());

const NEXT = 'GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** The response, which keeps the connection for one more. */
async function ask(path: string, method = 'GET', fields = ''): Promise<Head> {
  const text = await exchange(service.port, `${method} ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n${NEXT}`);
  const cut = text.lastIndexOf('HTTP/1.1 200 OK\r\n');
  assert.ok(cut > 0 && text.endsWith('{"after":true}'), text);
  return parseHead(text.slice(0, cut));
}

describe('a Response', { timeout: 30_000 }, () => {
  test('is sent with its status, its fields and its bytes', async () => {
    const { status, fields, content } = await ask('/text');
    assert.deepEqual([status, content], [203, Buffer.from('héllo').toString('latin1')]);
    assert.deepEqual(fields['content-type'], ['text/plain;charset=UTF-8']);
    assert.deepEqual(fields['x-a'], ['b']);
  });

  test('may come as a promise, and from a route of any method', async () => {
    assert.equal((await ask('/later')).content, '{"a":1}');
    assert.equal((await ask('/created', 'POST')).status, 201);
  });

  for (const path of ['/own', '/plain', '/entries']) {
    test(`is recognized by its form, not by its class: ${path}`, async () => {
      const { status, content } = await ask(path);
      assert.deepEqual([status, content], [path === '/entries' ? 200 : 202, path === '/own' ? 'own' : '']);
    });
  }

  for (const path of ['/json/list', '/json/text', '/json/status']) {
    test(`is not what only resembles one, which stays JSON: ${path}`, async () => {
      const { fields, content } = await ask(path);
      assert.deepEqual(fields['content-type'], ['application/json; charset=utf-8']);
      assert.deepEqual(Object.keys(JSON.parse(content)), ['status', 'headers', 'body']);
    });
  }

  test('has each Set-Cookie in a field of its own [RFC 6265 §3]', async () => {
    const { fields } = await ask('/cookies');
    assert.deepEqual(fields['set-cookie'], ['a=1; Path=/', 'b=2; Expires=Wed, 21 Oct 2030 07:28:00 GMT']);
  });

  test('is sent without fields that frame the message or are for one hop [RFC 9110 §7.6.1]', async () => {
    const { fields, content } = await ask('/hops');
    const found = Object.keys(HOPS).map((name) => fields[name.toLowerCase()]?.join('; '));
    const ofNode = ['keep-alive', 'timeout=72', ...Array<undefined>(found.length - 2).fill(undefined)];
    assert.deepEqual([found, content], [ofNode, 'ok']);
  });

  test('is sent with fields whose names only resemble those for one hop, and with the highest status', async () => {
    const { status, fields } = await ask('/others');
    const found = Object.keys(OTHERS).map((name) => fields[name.toLowerCase()]);
    assert.deepEqual([status, ...found], [599, ['1'], ['2'], ['3'], ['4']]);
  });

  test('is sent without the fields that its own Connection names [RFC 9110 §7.6.1]', async () => {
    const { fields } = await ask('/named');
    assert.deepEqual(
      [fields.connection, fields['x-hop'], fields['x-end'], fields['cache-control']],
      [['keep-alive'], undefined, ['2'], ['no-store']],
    );
    assert.equal((await ask('/named-cookies')).fields['set-cookie'], undefined);
  });

  test('has the values of a field that it repeats in one [RFC 9110 §5.3]', async () => {
    const { fields } = await ask('/repeated');
    assert.deepEqual([fields.vary?.[0], fields['cache-control']], ['A, B', ['a, b']]);
  });

  test('keeps its Content-Length, and then has no transfer coding', async () => {
    const { fields, content } = await ask('/length');
    assert.deepEqual(
      [fields['content-length'], fields['transfer-encoding'], content],
      [['4'], undefined, 'four'],
    );
  });

  test('gets no-store and nosniff, unless it has these fields', async () => {
    const added = await ask('/text');
    assert.deepEqual(added.fields['cache-control'], ['no-store']);
    assert.deepEqual(added.fields['x-content-type-options'], ['nosniff']);
    const { fields } = await ask('/cached');
    assert.deepEqual(fields['cache-control'], ['max-age=60']);
    assert.deepEqual(fields['x-content-type-options'], ['other']);
  });

  test('gets no Content-Type', async () => {
    assert.equal((await ask('/typeless')).fields['content-type'], undefined);
  });

  test('gets the cross-origin fields of the service', async () => {
    const { fields } = await ask('/text', 'GET', 'Origin: https://app.test\r\n');
    assert.deepEqual(
      [fields.vary, fields['access-control-allow-origin']],
      [['Origin'], ['https://app.test']],
    );
  });

  test('may have a challenge, and a field outside ASCII', async () => {
    assert.deepEqual((await ask('/challenge')).fields['www-authenticate'], ['X']);
    assert.deepEqual((await ask('/latin')).fields['x-name'], ['\x85caf\xe9']);
  });

  test('without a body has a Content-Length of 0, and may name it itself [RFC 9110 §8.6]', async () => {
    for (const path of ['/null', '/redirect', '/zero-length']) {
      assert.deepEqual((await ask(path)).fields['content-length'], ['0']);
    }
  });

  test('to 204 has neither body nor Content-Length [RFC 9110 §8.6]', async () => {
    const { status, fields, content } = await ask('/204');
    assert.deepEqual([status, fields['content-length'], content], [204, undefined, '']);
  });

  for (const status of [204, 205, 304]) {
    test(`cancels the body of a ${status} and sends none [RFC 9110 §15]`, async () => {
      cancelled.length = 0;
      const response = await ask(`/${status}-body`);
      assert.deepEqual([response.status, response.content, cancelled], [status, '', [String(status)]]);
      // Without a length, Node would send an empty chunk after 205.
      const { fields } = response;
      assert.deepEqual(
        [fields['content-length'], fields['transfer-encoding']],
        [status === 205 ? ['0'] : undefined, undefined],
      );
    });
  }

  test('cancels the body for HEAD, and sends the fields of GET [RFC 9110 §9.3.2]', async () => {
    cancelled.length = 0;
    const { status, fields, content } = await ask('/head', 'HEAD');
    assert.deepEqual([status, fields['content-length'], content, cancelled], [200, ['9'], '', ['head']]);
    assert.equal((await ask('/null', 'HEAD')).fields['content-length'], undefined);
  });

  for (const name of ['600', 'length']) {
    test(`cancels the body of a Response that is a bug: ${name} [§27]`, async () => {
      cancelled.length = 0;
      assert.deepEqual([(await ask(`/${name}-body`)).status, cancelled], [500, [name]]);
    });
  }

  test('is not ended by an empty chunk [RFC 9112 §7.1]', async () => {
    assert.equal((await ask('/empty-chunks', 'DELETE')).content, 'a');
  });

  test('may come from a route with a caller', async () => {
    const fields = `Authorization: Bearer ${tokenWith({ sub: 'someone' })}\r\n`;
    assert.equal((await ask('/mine', 'GET', fields)).content, 'someone');
    assert.equal((await ask('/mine')).status, 401);
  });

  for (const [path, sentence] of Object.entries({
    '/error': 'a Response needs a status from 200 to 599',
    '/199': 'a Response needs a status from 200 to 599',
    '/600': 'a Response needs a status from 200 to 599',
    '/200.5': 'a Response needs a status from 200 to 599',
    '/used': 'the body of a Response was used or is locked; return an unread one',
    '/read': 'the body of a Response was used or is locked; return an unread one',
    '/locked': 'the body of a Response was used or is locked; return an unread one',
    '/texts': 'a chunk of the body of a Response is not a Uint8Array',
    '/buffers': 'a chunk of the body of a Response is not a Uint8Array',
    '/numbers': 'a chunk of the body of a Response is not a Uint8Array',
    '/other-lengths': 'the Content-Length of a Response must be one number',
    '/two-lengths': 'the Content-Length of a Response must be one number',
    '/null-length': 'the body of a Response is shorter or longer than its Content-Length',
    '/bad-name': 'a header field of a Response cannot be sent',
    '/no-text': 'a header field of a Response cannot be sent',
    '/bad-value': 'a header field of a Response cannot be sent',
    '/in-reply':
      'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes',
    '/real-in-reply':
      'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes',
    '/fails': undefined,
    '/unreadable': undefined,
    '/short': 'the body of a Response is shorter or longer than its Content-Length',
    '/fails-short': undefined,
    '/fails-soon': undefined,
    '/texts-later': 'a chunk of the body of a Response is not a Uint8Array',
    '/thrown': undefined,
  })) {
    test(`is a 500 with its sentence in the log, and keeps the connection: ${path}`, async () => {
      const before = service.logs.length;
      const { status, content } = await ask(path);
      assert.deepEqual([status, content.includes('server_error')], [500, true]);
      const [line, ...others] = service.logs.slice(before);
      assert.deepEqual([line?.message, line?.route, line?.sentence], ['request failed', path, sentence]);
      assert.deepEqual(others, []);
      assert.ok(!JSON.stringify(line).includes(SECRET) && !content.includes(SECRET));
    });
  }
});
