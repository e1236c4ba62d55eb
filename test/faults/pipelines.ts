/* Pipelined requests over connections that end in every way, by repeatable chance: what came back, and what
   was lost or crossed. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { andThen, type MaybePromise } from '../../src/verify/base/clock.ts';
import { jsonReply, type Reply } from '../../src/gate/replies/reply.ts';
import { writeReply } from '../../src/service/request/responder.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import { Random } from '../evidence/fuzz/random.ts';
import { TestClock } from '../support/clock.ts';

const LONG = 'x'.repeat(400);

/** Every response names its request. One in five is late, a few are very late. */
function echo(random: Random) {
  return ({ url }: IncomingMessage): MaybePromise<Reply> => {
    const text = url?.startsWith('/long') ? LONG : '';
    const reply = jsonReply(200, JSON.stringify({ url, text }));
    const chance = random.below(100);
    if (chance >= 20) return reply;
    return new Promise((resolve) => {
      if (chance >= 2) setImmediate(resolve, reply);
      else setTimeout(resolve, chance * 2, reply);
    });
  };
}

/** How a connection ends, after its requests. */
const ENDS = [
  'half-closed',
  'told to close',
  'a body',
  'garbage',
  'CONNECT',
  'destroyed',
  'reset',
  'cut',
] as const;

type End = (typeof ENDS)[number];

/** Connections that the client or the server ends by force deliver only the first responses. */
const isForced = (end: End) => ['destroyed', 'reset', 'cut'].includes(end);

/** What is sent after the requests, and the number of its responses. */
const LAST: Readonly<Partial<Record<End, readonly [bytes: string, statuses: readonly number[]]>>> = {
  'told to close': ['GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', [200]],
  'a body': ['POST /last HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', [200]],
  garbage: ['garbage\r\n\r\n', [400]],
  CONNECT: ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', [400]],
};

export interface Outcome {
  readonly connections: number;
  readonly responses: number;
  /** How many connections ended in each way. */
  readonly ends: Readonly<Record<string, number>>;
}

interface Pieces {
  readonly bytes: string;
  readonly random: Random;
}

/** Writes the bytes in pieces of any size. */
async function send(socket: Socket, { bytes, random }: Pieces): Promise<void> {
  for (let at = 0; at < bytes.length && socket.writable;) {
    const length = 1 + random.below(random.chance(0.5) ? 300 : 100_000);
    if (!socket.write(bytes.slice(at, at + length), 'latin1')) {
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
    } else if (random.chance(0.2)) {
      await new Promise(setImmediate);
    }
    at += length;
  }
}

/** Stops reading now and then. */
function readSlowly(socket: Socket, random: Random): void {
  socket.on('data', () => {
    if (!random.chance(0.3)) return;
    socket.pause();
    setTimeout(() => socket.resume(), random.below(5));
  });
}

/** The complete responses in the received text. */
function* responsesIn(received: string): Generator<{ status: number; url: unknown }> {
  for (let at = 0; at < received.length;) {
    const end = received.indexOf('\r\n\r\n', at) + 4;
    if (end < 4) return;
    const head = received.slice(at, end);
    assert.match(head, /^HTTP\/1\.1 \d{3} /);
    const length = Number(/\r\nContent-Length: (\d+)/.exec(head)?.[1] ?? 0);
    if (received.length < end + length) return;
    const text = received.slice(end, end + length);
    yield { status: Number(head.slice(9, 12)), url: text === '' ? undefined : JSON.parse(text).url };
    at = end + length;
  }
}

interface Run {
  readonly port: number;
  readonly name: number;
  readonly random: Random;
  /** The server's side of the connection from this port, once it is accepted. */
  readonly acceptedFrom: (port: number | undefined) => Promise<Socket>;
}

/** Runs one connection, on which every possible response must arrive, in order. Returns their number. */
async function oneConnection({
  port,
  name,
  random,
  acceptedFrom,
}: Run): Promise<{ end: End; responses: number }> {
  const end = random.pick(ENDS);
  const count = random.chance(0.1) ? random.below(3_000) : random.below(150);
  const urls = Array.from(
    { length: count },
    (_, index) => `/${random.pick(['short', 'long'])}/${name}/${index}`,
  );
  const [last = '', statuses = []] = LAST[end] ?? [];
  const behind =
    end === 'half-closed' || isForced(end)
      ? ''
      : 'GET /behind HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(random.below(2_000));
  const bytes = urls.map((url) => `GET ${url} HTTP/1.1\r\nHost: a\r\n\r\n`).join('') + last + behind;

  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const received: Buffer[] = [];
  socket.on('error', () => {});
  socket.on('data', (chunk) => received.push(chunk));
  socket.on('end', () => socket.end());
  if (random.chance(0.3)) readSlowly(socket, random);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  const { localPort } = socket;
  const sent = send(socket, { bytes, random });
  if (isForced(end)) {
    await pass(random.below(8));
    if (end === 'destroyed') socket.destroy();
    else if (end === 'reset') socket.resetAndDestroy();
    else (await acceptedFrom(localPort)).destroy();
  } else {
    await sent;
    if (end === 'half-closed') socket.end();
  }
  await closed;

  const responses = [...responsesIn(Buffer.concat(received).toString('latin1'))];
  const expected = [...urls.map((url) => ({ status: 200, url })), ...statuses.map((status) => ({ status }))];
  for (const [index, { status, url }] of responses.entries()) {
    const wanted = expected[index];
    assert.equal(status, wanted?.status, `${end}: answer ${index} of ${count}`);
    if (index < count) assert.equal(url, urls[index], `${end}: crossed`);
  }
  if (!isForced(end)) {
    assert.equal(responses.length, expected.length, `${end}: lost, with ${behind.length} bytes behind`);
  }
  return { end, responses: responses.length };
}

/**
 * Runs connections until this many responses have arrived. Throws for the first one that is lost, crossed or
 * unexpected.
 */
export async function pour(context: TestContext, seed: number, wanted: number): Promise<Outcome> {
  const answer = echo(new Random(seed, 0));
  const { server } = new Listener(
    {
      startTiming: () => 0,
      respond: (exchange) => {
        void andThen(answer(exchange.request), (reply) => {
          if (reply !== undefined) writeReply(exchange, reply, []);
        });
      },
      refuseConnection: () => jsonReply(400, '{}'),
      hold: () => {},
      release: () => {},
      whenIdle: (then) => then(),
    },
    new TestClock(),
    15_000,
  );
  const sockets = new Map<number | undefined, Socket>();
  server.on('connection', (socket: Socket) => {
    const { remotePort } = socket;
    sockets.set(remotePort, socket);
    socket.once('close', () => sockets.delete(remotePort));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });

  const acceptedFrom = async (from: number | undefined) => {
    for (;;) {
      const socket = sockets.get(from);
      if (socket !== undefined) return socket;
      await once(server, 'connection');
    }
  };

  const { port } = server.address() as AddressInfo;
  const ends: Record<string, number> = {};
  let connections = 0;
  let responses = 0;

  const work = async () => {
    while (responses < wanted) {
      connections += 1;
      const name = connections;
      const run = {
        port,
        name,
        random: new Random(seed, name),
        acceptedFrom,
      };
      const found = await oneConnection(run);
      responses += found.responses;
      ends[found.end] = (ends[found.end] ?? 0) + 1;
    }
  };

  await Promise.all(Array.from({ length: 16 }, work));
  // Connections closed by clients end without a limit.
  while (sockets.size > 0) await pass(1);
  return { connections, responses, ends };
}
