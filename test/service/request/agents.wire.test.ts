/* Headers that a program or a tracing agent sets on every response, before the service writes its own
   (docs/recipes.md). */
import { strict as assert } from 'node:assert';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { cors } from '../../../src/options/cors.ts';
import { authenticated, open } from '../../../src/gate/rules/access.ts';
import { createService } from '../../../src/service/create-service.ts';
import { mount } from '../../../src/service/fetch/mount.ts';
import { joinRepeated } from '../../../src/service/request/exchange.ts';
import { reply } from '../../../src/service/routes/handler-reply.ts';
import { bytes } from '../../../src/service/routes/inputs.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { ask, type Ask } from '../../support/client.ts';

const COOKIES = [
  ['Set-Cookie', 'a=1'],
  ['Set-Cookie', 'b=2'],
] as [string, string][];

const TYPE = 'text/event-stream';

const storage = new AsyncLocalStorage<string>();

/** What agents do with a response, by name. */
const AGENTS: Readonly<Record<string, (response: ServerResponse, id: string) => unknown>> = {
  'sets it': (response, id) => response.setHeader('X-Request-Id', id),

  'removes it again': (response, id) => {
    response.setHeader('X-Request-Id', id);
    response.removeHeader('X-Request-Id');
  },

  'sets it as the head is written': (response, id) => {
    const { writeHead } = response;
    response.writeHead = (...words: unknown[]) => {
      response.setHeader('X-Request-Id', id);
      return Reflect.apply(writeHead, response, words);
    };
  },
};

const mark = (message: any) => {
  const { 'x-request-id': id = 'none', 'x-agent': agent = 'sets it' } = message.request.headers;
  storage.enterWith(id);
  AGENTS[agent]?.(message.response, id);
};

function bug(): never {
  throw new Error();
}

const routes = [
  get('/id', open, () => ({ id: storage.getStore() })),
  get('/private', authenticated, () => ({})),
  get('/cookies', open, () => new Response('', { headers: COOKIES })),
  get('/events', open, () => new Response('1\n\n', { headers: { 'Content-Type': TYPE } })),
  get('/own', open, () => reply(200, {}, { 'X-Request-Id': 'its own' })),
  get('/bug', open, bug),
  post('/bytes', open, bytes({ limitBytes: 1 }), () => {}),
  get('/vary', open, () => new Response('', { headers: { Vary: 'Accept' } })),
  mount('/mount', open, () => new Response('', { headers: COOKIES })),
];

describe('a header that is set when the request arrives', { timeout: 60_000 }, () => {
  const failed: unknown[] = [];

  const service = createService(
    { routes },
    {
      ...makeIssuer().options,
      cors: cors({ origins: ['https://app.test'] }),
      log: () => {},
      host: '127.0.0.1',
      port: 0,
      onError: () => failed.push(storage.getStore()),
    },
  );

  let port = 0;

  before(async () => {
    subscribe('http.server.request.start', mark);
    port = Number(new URL(await service.listen()).port);
  });

  after(() => {
    unsubscribe('http.server.request.start', mark);
    return service.stop();
  });

  const send = (path: string, more: Ask = {}) =>
    ask(port, path, { ...more, headers: { 'X-Request-Id': 'one' } });

  for (const [path, status, more] of [
    ['/id', 200],
    ['/private', 401],
    ['/cookies', 200],
    ['/events', 200],
    ['/bug', 500],
    ['/bytes', 413, { method: 'POST', body: 'ab' }],
    ['/bytes', 405],
    ['/mount/a', 200],
    ['/nothing', 404],
    ['/healthz', 200],
  ] as const) {
    test(`is in the response to ${path}, with status ${status}`, async () => {
      const response = await send(path, more);
      assert.equal(response.status, status);
      assert.equal(response.headers['x-request-id'], 'one');
      const length = Number(response.headers['content-length'] ?? response.text.length);
      assert.equal(response.text.length, length);
    });
  }

  for (const agent of Object.keys(AGENTS)) {
    const by = { headers: { 'X-Request-Id': 'one', 'X-Agent': agent } };

    test(`leaves each challenge in a header of its own where an agent ${agent} [RFC 9110 §11.6.1]`, async () => {
      const { challenges } = await ask(port, '/private', by);
      assert.deepEqual(
        challenges.map((challenge) => challenge.split(' ')[0]),
        ['Bearer', 'DPoP'],
      );
    });

    for (const path of ['/cookies', '/mount/a']) {
      test(`leaves each cookie of ${path} in a header of its own where an agent ${agent} [RFC 6265 §3]`, async () => {
        assert.deepEqual((await ask(port, path, by)).headers['set-cookie'], ['a=1', 'b=2']);
      });
    }
  }

  for (const agent of Object.keys(AGENTS)) {
    test(`leaves the handler's Vary and that of cross-origin reading where an agent ${agent} [RFC 9110 §5.1]`, async () => {
      const { headers } = await ask(port, '/vary', { headers: { 'X-Agent': agent } });
      assert.equal(headers['vary'], 'Accept, Origin');
    });
  }

  test('is replaced by a header of that name that a handler sets', async () => {
    assert.equal((await send('/own')).headers['x-request-id'], 'its own');
  });

  test('goes with a context that the handler and onError have too', async () => {
    assert.deepEqual((await send('/id')).body, { id: 'one' });
    failed.length = 0;
    await send('/bug');
    assert.deepEqual(failed, ['one']);
  });
});

test('a field that is repeated, even the first and more than once, has all its values in order [RFC 9110 §5.1]', () => {
  const repeated = ['Set-Cookie', 'a', 'Undefined', 'b', 'set-cookie', 'c', 'SET-COOKIE', 'd'];
  assert.deepEqual(joinRepeated(repeated), ['Set-Cookie', ['a', 'c', 'd'], 'Undefined', 'b']);
});
