/* The MCP server of the documents: who owns a session, how many there can be, when streams end, and what
   tools see. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { until } from '../../support/watch.ts';
import { replaceAll, SDK_1, type ServerKind } from './mcp-program.ts';
import { inScene, SESSIONS, statusesOf, type Fact, type Scene } from './mcp-scene.ts';
import { call, INITIALIZE, LIST, modern, open, type Question } from './mcp-wire.ts';

export async function sessions(scene: Scene): Promise<Fact[]> {
  const token = scene.token();
  const session = await scene.open(token);

  const uses = (other: string): Question[] => [
    { token: other, session, body: LIST },
    { token: other, session, body: INITIALIZE },
    { token: other, session, method: 'GET' },
    { token: other, session, method: 'DELETE' },
  ];

  const thief = await scene.askAll(uses(scene.token({ sub: 'bob' })));
  const namesake = await scene.askAll(uses(scene.otherIssuersToken()));
  const ids = [
    '00000000-0000-4000-8000-000000000000',
    '',
    'constructor',
    '__proto__',
    `${session}, ${session}`,
  ];
  const unknown = await scene.askAll(ids.map((id) => ({ token, session: id, body: LIST })));
  const owner = await scene.ask({ token: scene.token(), session, body: LIST });
  const stranger = await scene.ask({ session, body: LIST });
  const without = await scene.ask({ token, body: LIST });
  const ended = await scene.ask({ token, session, method: 'DELETE' });
  const gone = await scene.ask({ token, session, body: LIST });
  return [
    {
      name: 'a session is unknown to another subject, in POST, GET and DELETE',
      found: statusesOf(thief),
      expected: [404, 404, 404, 404],
    },
    {
      name: 'a session is unknown to the same subject of another issuer',
      found: statusesOf(namesake),
      expected: [404, 404, 404, 404],
    },
    {
      name: 'a session of another client looks like one that never was',
      // But for the id, which is that of each message (JSON-RPC 2.0 §5).
      found: [
        ...new Set([...thief, ...unknown].map(({ text }) => text.replace(/"id":(?:\d+|null)/, ''))),
      ].slice(1),
      expected: [],
    },
    { name: 'the owner goes on with another token', found: owner.status, expected: 200 },
    { name: 'a session is no token', found: stranger.status, expected: 401 },
    { name: 'a message without a session gets 400', found: without.status, expected: 400 },
    {
      name: 'a session that its owner has ended is gone',
      found: [ended.status, gone.status],
      expected: [200, 404],
    },
    {
      name: 'the id of a session is random',
      found: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(session),
      expected: true,
    },
  ];
}

const many = <Value>(count: number, make: (number: number) => Promise<Value>) =>
  Promise.all(Array.from({ length: count }, (_, number) => make(number)));

export async function bounds(scene: Scene): Promise<Fact[]> {
  const openFor = (sub: string) => scene.open(scene.token({ sub }));

  const isOpen = async (session: string, sub: string) =>
    (await scene.ask({ token: scene.token({ sub }), session, body: LIST })).status === 200;

  const [first = '', second = '', ...others] = await many(8, () => openFor('carol'));
  await isOpen(first, 'carol');
  const ninth = await openFor('carol');
  const own = [first, second, ...others, ninth];
  const ofCarol = await many(9, (number) => isOpen(own[number] ?? '', 'carol'));
  const all = await many(12, (number) => openFor(`user-${number}`));
  const ofAll = await many(12, (number) => isOpen(all[number] ?? '', `user-${number}`));

  const token = scene.token({ sub: 'dora' });
  const session = await openFor('dora');
  const body = ' '.repeat(1_000_000) + JSON.stringify(LIST);
  const large = await scene.askAll([false, true].map((isChunked) => ({ token, session, body, isChunked })));
  const after = await scene.ask({ token, session, body: LIST });
  const failed = await many(20, () => scene.ask({ token, body: { ...INITIALIZE, params: {} } }));
  return [
    {
      name: 'a caller has eight sessions, and a ninth ends the one not used for longest',
      found: ofCarol,
      expected: own.map((id) => id !== second),
    },
    {
      name: 'all callers have no more sessions than the page says',
      found: ofAll.filter(Boolean).length,
      expected: SESSIONS,
    },
    {
      name: 'a body over the limit gets 413, chunked or not, and the session goes on',
      found: [...statusesOf(large), after.status],
      expected: [413, 413, 200],
    },
    {
      name: 'a session that did not begin takes no room',
      found: [failed.every(({ status }) => status === 400), await isOpen(session, 'dora')],
      expected: [true, true],
    },
  ];
}

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

/** With a token that expired before its request, within the tolerance of the gate. */
export const tolerated = (kind: ServerKind): Promise<Fact[]> =>
  inScene(
    kind,
    async ({ ask, open: openSession, token }) => {
      const expired = token({ exp: inSeconds(-5) });
      const session = await openSession(expired);
      const { status, text } = await ask({ token: expired, session, body: call('take_a_moment') });
      return [
        {
          name: 'a token within the clock tolerance gets the whole response',
          found: [status, text.includes('moment')],
          expected: [200, true],
        },
      ];
    },
    (lines) =>
      replaceAll(lines, [
        ['  audience: RESOURCE,\n', '  audience: RESOURCE,\n  clockToleranceSeconds: 60,\n'],
      ]),
  );

/** The status of a response, and how its body ends. */
async function endOf(response: IncomingMessage): Promise<string> {
  response.resume();
  const end = await once(response, 'end', { signal: AbortSignal.timeout(15_000) }).then(
    () => 'whole',
    (error: Error) => (error.name === 'AbortError' ? 'open' : 'cut'),
  );
  return `${response.statusCode} ${end}`;
}

/** On Bun the head of a stream comes with its first event, so nothing here waits for a head alone. */
export async function streams(scene: Scene): Promise<Fact[]> {
  const { port } = scene.program;
  const lasting = scene.token({ sub: 'erin', exp: inSeconds(60 * 24 * 3600) });
  const lastingSession = await scene.open(lasting);
  const token = scene.token({ sub: 'frank' });
  const session = await scene.open(token);
  const short = scene.token({ sub: 'frank', exp: inSeconds(4) });
  const until60Days = open(port, { method: 'GET', token: lasting, session: lastingSession });
  const ends = await Promise.all([
    open(port, { method: 'GET', token: short, session }).then(endOf),
    open(port, { token: short, session, body: call('wait_for_ever') }).then(endOf),
    scene.ask({ token: short, session, body: LIST }).then(({ status }) => status),
  ]);
  const expired = await scene.ask({ method: 'GET', token: short, session });
  const lastingEnd = await Promise.race([until60Days.then(endOf), scene.ask({ token }).then(() => 'open')]);
  return [
    {
      name: 'the stream of a session, and the response of a slow tool, end when the token does',
      found: ends,
      expected: ['200 whole', '200 whole', 200],
    },
    { name: 'an expired token opens no stream', found: expired.status, expected: 401 },
    { name: 'the stream of a token for 60 days does not end at once', found: lastingEnd, expected: 'open' },
  ];
}

/** What a client can open after a stream has ended. */
export async function nextStream(scene: Scene): Promise<Fact[]> {
  const { port } = scene.program;
  const token = scene.token({ sub: 'ivan' });
  const session = await scene.open(token);
  const short = scene.token({ sub: 'ivan', exp: inSeconds(2) });
  await open(port, { method: 'GET', token: short, session }).then(endOf);
  const next = await open(port, { method: 'GET', token, session });
  const second = await open(port, { method: 'GET', token, session });
  next.destroy();
  second.destroy();
  return [
    {
      name: 'after a stream ends, another token opens it again, but not twice at once',
      found: [next.statusCode, second.statusCode],
      expected: [200, 409],
    },
  ];
}

export async function timers(scene: Scene): Promise<Fact[]> {
  const { port } = scene.program;
  const token = scene.token({ sub: 'heidi' });
  const session = await scene.open(token);

  const count = async () => {
    const { text } = await scene.ask({ token, session, body: call('count_timers') });
    return Number(/timers: (\d+)/.exec(text)?.[1]);
  };

  const before = await count();
  const opened = await many(5, async () => {
    const stream = await open(port, { method: 'GET', token, session: await scene.open(token) });
    return stream.resume();
  });
  const during = await count();
  for (const stream of opened) stream.destroy();
  const after = await until('the timers are gone', async () => (await count()) <= before, 5).then(
    () => 'gone',
    () => 'still there',
  );
  return [
    {
      name: 'the timer of a stream is cleared when its client leaves',
      found: [during > before, after],
      expected: [true, 'gone'],
    },
  ];
}

export async function secrets(scene: Scene): Promise<Fact[]> {
  const token = scene.token({ sub: 'grace' });
  const session = await scene.open(token);
  const fields = ['Cookie', 'secret=crumbs', 'X-Forwarded-Access-Token', token];
  const told = [await scene.ask({ token, session, body: call('tell'), fields })];
  if (scene.kind !== SDK_1) {
    const { fields: own = [], body } = modern(call('tell'));
    told.push(await scene.ask({ token, body, fields: [...own, ...fields] }));
  }

  const parts = [...token.split('.'), 'crumbs', 'Bearer'];
  return [
    {
      name: 'a tool learns who the caller is, and sees neither token nor cookie',
      found: told.map(({ status, text }) => [
        status,
        /accept|content-type/.test(text),
        text.includes('grace'),
        parts.filter((part) => text.includes(part)),
      ]),
      expected: told.map(() => [200, true, true, []]),
    },
    {
      name: 'the log has neither token nor cookie',
      found: parts.filter((part) => scene.program.log().includes(part)),
      expected: [],
    },
  ];
}
