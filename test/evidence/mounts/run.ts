/* Runs the programs of test/package/mounts as they stand there, each as a service of its own, and asks them
   what their real clients ask, and what no client should.

   Shows: GraphQL Yoga, tRPC, a Hono app and an MCP server, mounted in a service (`npm run evidence mounts cost`
   for the processor time of a mounted handler beside that under @hono/node-server, on a quiet machine).
   Takes: 15 s.
   Needs: packages. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { printCost } from './cost.ts';
import { openFolder, inScene, inSeconds, readAll, readUntil, type Scene } from './scene.ts';

const READ = 'read:orders';
const BOTH = 'read:orders write:orders';
const JSON_TYPE = { 'content-type': 'application/json' };
const EVENTS = { accept: 'text/event-stream' };

/** The challenge of a scope that is missing. */
const INSUFFICIENT = /error="insufficient_scope".*scope="write:(?:orders|files)"/;

let isGood = true;

async function show(name: string, check: () => Promise<void>) {
  try {
    await check();
    console.log(`${name}: as expected`);
  } catch (error) {
    isGood = false;
    console.log(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}

const unasked = async ({ ask }: Scene, path: string) => {
  const { status, headers } = await ask(path, { method: 'POST' });
  assert.deepEqual([status, /^Bearer /.test(headers.get('www-authenticate') ?? '')], [401, true]);
};

/** Of more bytes than the program takes, in chunks: no field announces them. */
const tooLong = (bytes: number) =>
  new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(bytes + 1).fill(0x20));
      controller.close();
    },
  });

/** Neither a length nor a chunked body gets past the limit. */
async function refusesLongBodies({ ask, bearer }: Scene, path: string, bytes: number, scope: string) {
  const headers = { ...bearer({ scope }), ...JSON_TYPE };
  const large = await ask(path, { method: 'POST', headers, body: ' '.repeat(bytes + 1) });
  assert.equal(large.status, 413);
  const body = tooLong(bytes);
  const chunked = await ask(path, { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
  assert.deepEqual([chunked.status, chunked.json?.error], [413, 'content_too_large'], chunked.text);
}

/** A stream of two seconds has its proper end then, and not before. */
async function endsWithToken(
  scene: Scene,
  path: string,
  scope: string,
  act: () => Promise<unknown>,
  part: string,
) {
  const exp = inSeconds(3);
  const short = await scene.open(path, { ...scene.bearer({ scope, exp }), ...EVENTS });
  assert.match(short.headers['content-type'] ?? '', /^text\/event-stream/);
  const heard = readUntil(short, part);
  await act();
  await heard;
  await readAll(short);
  assert.ok(Date.now() / 1000 >= exp);
  assert.equal(short.complete, true);
}

const reasons = ({ process }: Scene) =>
  process.logs.flatMap(({ message, reason }) => (message === 'request' && reason ? [String(reason)] : []));

async function graphql(scene: Scene) {
  const { ask, bearer } = scene;

  const post = (query: string, scope: string) =>
    ask('/graphql', {
      method: 'POST',
      headers: { ...bearer({ scope }), ...JSON_TYPE },
      body: JSON.stringify({ query }),
    });

  const add = () => post('mutation { addOrder(item: "milk") { id item } }', BOTH);

  await show('GraphQL Yoga: a query', async () => {
    await unasked(scene, '/graphql');
    const { status, json } = await post('{ orders { id item } }', READ);
    assert.deepEqual([status, json.data.orders], [200, [{ id: '1', item: 'tea' }]]);
    assert.equal((await post('{ orders { id } }', 'other')).status, 403);
  });

  await show('GraphQL Yoga: a mutation, and a field whose scope is missing', async () => {
    const refused = await post('mutation { addOrder(item: "milk") { id } }', READ);
    assert.equal(refused.status, 403);
    assert.match(refused.headers.get('www-authenticate') ?? '', INSUFFICIENT);
    assert.equal((await add()).json.data.addOrder.item, 'milk');
  });

  await show('GraphQL Yoga: a subscription ends with its token', () => {
    const query = encodeURIComponent('subscription { orderAdded { item } }');
    return endsWithToken(scene, `/graphql?query=${query}`, READ, add, 'milk');
  });

  await show('GraphQL Yoga: bodies that are too long', () =>
    refusesLongBodies(scene, '/graphql', 65_536, READ),
  );
}

async function trpc(scene: Scene) {
  const { ask, bearer } = scene;

  const add = (scope = BOTH) =>
    ask('/trpc/add', {
      method: 'POST',
      headers: { ...bearer({ scope }), ...JSON_TYPE },
      body: JSON.stringify({ item: 'milk' }),
    });

  await show('tRPC: queries and mutations', async () => {
    await unasked(scene, '/trpc/list');
    const { status, json } = await ask('/trpc/list', { headers: bearer({ scope: READ }) });
    assert.deepEqual([status, json.result.data], [200, [{ id: '1', item: 'tea' }]]);
    const refused = await add(READ);
    assert.equal(refused.status, 403);
    assert.match(refused.headers.get('www-authenticate') ?? '', INSUFFICIENT);
    assert.equal((await add()).json.result.data.item, 'milk');
  });

  await show('tRPC: a batch, of which one procedure is refused', async () => {
    const { status, json } = await ask('/trpc/list,add?batch=1', {
      method: 'POST',
      headers: { ...bearer({ scope: 'write:orders' }), ...JSON_TYPE },
      body: JSON.stringify({ 1: { item: 'x' } }),
    });
    const both = await ask('/trpc/list,list?batch=1', { headers: bearer({ scope: READ }) });
    assert.deepEqual([both.status, both.json.length], [200, 2]);
    assert.ok(status >= 400 || status === 207, `${status} ${JSON.stringify(json)}`);
  });

  await show('tRPC: a subscription ends with its token', () =>
    endsWithToken(scene, '/trpc/added', READ, add, 'milk'),
  );

  await show('tRPC: an error has no stack, whose paths are for no one else', async () => {
    const headers = { ...bearer({ scope: BOTH }), ...JSON_TYPE };
    for (const body of ['{"item":7}', '{']) {
      const { status, text } = await ask('/trpc/add', { method: 'POST', headers, body });
      assert.deepEqual([status, /stack|\.mjs/.test(text)], [400, false], text);
    }
  });

  await show('tRPC: bodies that are too long', () => refusesLongBodies(scene, '/trpc/add', 65_536, BOTH));
}

async function hono(scene: Scene) {
  const { ask, bearer } = scene;
  const all = 'read:files write:files';

  const upload = (bytes: number, scope = all) => {
    const body = new FormData();
    body.set('file', new Blob([new Uint8Array(bytes).fill(7)]), 'any');
    return ask('/files', { method: 'POST', headers: bearer({ scope }), body });
  };

  await show('Hono: an upload and a download, by its own router', async () => {
    await unasked(scene, '/files');
    const { status, json } = await upload(1_000_000);
    assert.equal(status, 201);
    const headers = bearer({ scope: all });
    const response = await fetch(`${scene.url}/files/${json.id}`, { headers });
    const bytes = new Uint8Array(await response.arrayBuffer());
    assert.deepEqual(
      [response.status, bytes.length, bytes.every((byte) => byte === 7)],
      [200, 1_000_000, true],
    );
    const listed = await ask('/files', { headers });
    assert.deepEqual(listed.json, [json.id]);
    assert.equal((await ask('/files/none', { headers })).status, 404);
    assert.equal((await ask(`/files/${json.id}`, { method: 'DELETE', headers })).status, 204);
  });

  await show('Hono: a refusal of its middleware has its challenge, and counts as one', async () => {
    const before = reasons(scene).length;
    const { status, headers, json } = await upload(10, 'read:files');
    assert.deepEqual([status, json.error], [403, 'insufficient_scope']);
    assert.match(headers.get('www-authenticate') ?? '', INSUFFICIENT);
    await ask('/healthz');
    assert.deepEqual(reasons(scene).slice(before), ['scope-missing']);
  });

  await show('Hono: a body that is no form is 400, and no error of the service', async () => {
    const form = 'multipart/form-data; boundary=x';
    const logged = () => scene.process.logs.filter(({ message }) => message === 'request failed');
    for (const type of ['application/json', 'text/plain', form, 'multipart/form-data', '']) {
      const headers = { ...bearer({ scope: all }), 'content-type': type };
      for (const body of ['{}', '--x\r\nbroken', new Uint8Array(9)]) {
        assert.equal((await ask('/files', { method: 'POST', headers, body })).status, 400, type);
      }
      assert.equal((await ask('/files', { method: 'POST', headers })).status, 400, type);
    }
    await ask('/healthz');
    assert.deepEqual(logged(), []);
  });

  await show('Hono: bodies that are too long', async () => {
    assert.equal((await upload(16_777_216)).status, 413);
    const headers = { ...bearer({ scope: all }), 'content-type': 'multipart/form-data; boundary=x' };
    const body = tooLong(16_777_216);
    const { status } = await ask('/files', { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    assert.equal(status, 413);
  });
}

const MCP = {
  ...JSON_TYPE,
  accept: 'application/json, text/event-stream',
};

const RESOURCE = 'http://localhost/mcp';

const MESSAGES = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1.0.0' },
  },
  'tools/list': {},
  'tools/call': { name: 'send_message', arguments: { to: 'bob', text: 'Hello' } },
};

async function mcp(scene: Scene) {
  const { ask, bearer } = scene;
  const read = { scope: 'read:messages', aud: RESOURCE, sub: 'alice' };
  const both = { ...read, scope: 'read:messages write:messages' };
  let session = {};

  const post = (method: keyof typeof MESSAGES, claims: object, headers = {}) =>
    ask('/mcp', {
      method: 'POST',
      headers: { ...bearer(claims), ...MCP, ...session, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: MESSAGES[method] }),
    });

  await show('MCP: the challenge names the document, which needs no token', async () => {
    const { status, headers } = await ask('/mcp', { method: 'POST', headers: MCP, body: '{}' });
    const challenge = headers.get('www-authenticate') ?? '';
    assert.equal(status, 401);
    assert.match(
      challenge,
      /scope="read:messages", resource_metadata="[^"]*\/oauth-protected-resource\/mcp"/,
    );
    const { json } = await ask('/.well-known/oauth-protected-resource/mcp');
    assert.equal(json.resource, RESOURCE);
  });

  await show('MCP: a session lists and calls tools', async () => {
    const { status, headers } = await post('initialize', read);
    assert.equal(status, 200);
    session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    const { text } = await post('tools/list', read);
    assert.match(text, /list_messages.*send_message/);
    const stranger = await post('tools/list', { ...read, sub: 'bob' });
    assert.equal(stranger.status, 404);
  });

  await show(
    'MCP: a tool whose scope is missing is 403 with both scopes, and counts as refused',
    async () => {
      const before = reasons(scene).length;
      const refused = await post('tools/call', read);
      assert.equal(refused.status, 403);
      const challenge = refused.headers.get('www-authenticate') ?? '';
      assert.match(challenge, /error="insufficient_scope".*scope="read:messages write:messages"/);
      assert.match((await post('tools/call', both)).text, /alice has written to bob/);
      assert.deepEqual(reasons(scene).slice(before), ['scope-missing']);
    },
  );

  await show('MCP: an error has the id of its message (JSON-RPC 2.0 §5)', async () => {
    const send = (sent: object, headers = {}) =>
      ask('/mcp', {
        method: 'POST',
        headers: { ...bearer(read), ...MCP, ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 'c7', ...sent }),
      });

    const errors = [
      await send({ method: 'tools/call', params: { name: 'none' } }, session),
      await send({ method: 'tools/list' }),
      await send({ method: 'tools/list' }, { 'mcp-session-id': 'none' }),
    ];
    assert.deepEqual(
      errors.map(({ status, json }) => [status, json.id, json.error.code]),
      [
        [400, 'c7', -32602],
        [400, 'c7', -32000],
        [404, 'c7', -32001],
      ],
    );
  });

  await show('MCP: the stream of a session ends with its token', async () => {
    const exp = inSeconds(2);
    const stream = await scene.open('/mcp', { ...bearer({ ...read, exp }), ...EVENTS, ...session });
    assert.equal(stream.statusCode, 200);
    await readAll(stream);
    assert.ok(Date.now() / 1000 >= exp);
  });

  await show('MCP: pages of other origins, arrays of messages and long bodies', async () => {
    assert.equal((await post('tools/list', read, { origin: 'https://evil.example' })).status, 403);
    const headers = { ...bearer(both), ...MCP, ...session };
    const body = JSON.stringify([{ jsonrpc: '2.0', id: 1, method: 'tools/list' }]);
    assert.equal((await ask('/mcp', { method: 'POST', headers, body })).status, 400);
    const long = tooLong(1_000_000);
    const chunked = await ask('/mcp', { method: 'POST', headers, body: long, duplex: 'half' } as RequestInit);
    assert.equal(chunked.status, 413);
  });
}

const PROGRAMS = {
  'graphql.mjs': [graphql, {}],
  'trpc.mjs': [trpc, {}],
  'hono.mjs': [hono, {}],
  'mcp.mjs': [mcp, { IDP_AUDIENCE: RESOURCE, RESOURCE_URL: RESOURCE }],
} as const;

const HERE = fileURLToPath(new URL('./', import.meta.url));

const words = process.argv.slice(2);
const folder = openFolder();

try {
  if (words.includes('cost')) await printCost(folder.add('cost-server.mjs', HERE));

  for (const [name, [work, environment]] of Object.entries(PROGRAMS)) {
    if (words.length === 0 || words.some((word) => name.startsWith(word))) {
      await inScene(folder.add(name), environment, work);
    }
  }
} finally {
  folder.remove();
}

process.exitCode = isGood ? 0 : 1;
