/* Ten thousand idle connections, after one request of 16 KiB each: the memory that they hold in a process
   with a heap of 256 MiB, compared with plain node:http with the same limits (G8). */
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { figures } from '../../support/figures.ts';
import { DOWN, startProcess } from '../../support/process.ts';
import { residentMebibytes } from '../../support/watch.ts';

const rows = figures('idle connections');
const CONNECTIONS = 10_000;
const AT_ONCE = 50;
const HEAP = '--max-old-space-size=256';
/** As a ratio to the resident memory of plain node:http. */
const MOST_RATIO = 1.3;

const PLAIN = `
  const server = require('node:http').createServer(
    { keepAliveTimeout: 72_000, maxHeaderSize: 16_384, requireHostHeader: false },
    (request, response) => response.end('{"status":"ok"}'),
  );
  server.maxHeadersCount = 0;
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

interface Served {
  readonly pid: number;
  readonly port: number;
}

async function startPlain(context: TestContext): Promise<Served> {
  const child = spawn(process.execPath, [HEAP, '-e', PLAIN], { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(() => child.kill('SIGKILL'));
  const [port] = await once(child.stdout, 'data');
  return { pid: child.pid!, port: Number(port) };
}

async function startGatehouse(context: TestContext): Promise<Served> {
  const service = await startProcess({ environment: { ...DOWN, HOST: '127.0.0.1', NODE_OPTIONS: HEAP } });
  context.after(() => service.stop());
  return { pid: service.child.pid!, port: service.port };
}

interface Held {
  readonly status: string;
  readonly socket: Socket;
  /** The server has announced the end of the connection. */
  readonly isEnding: boolean;
}

/** A connection that sends the bytes once and stays open. */
async function ask(port: number, bytes: Buffer): Promise<Held> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(bytes);
  const [response] = await once(socket, 'data');
  const head = response.toString('latin1');
  return { status: head.slice(9, 12), socket, isEnding: /^connection: close\r$/im.test(head) };
}

const end = (socket: Socket) => socket.closed || once(socket, 'close');

/**
 * Opens all connections. Resolves with the number of each status, of connections still open, and the memory
 * of the process.
 */
async function hold({ pid, port }: Served, bytes: Buffer) {
  const statuses: Record<string, number> = {};
  const all: Held[] = [];
  let left = CONNECTIONS;

  const work = async () => {
    while (left > 0) {
      left -= 1;
      const held = await ask(port, bytes);
      statuses[held.status] = (statuses[held.status] ?? 0) + 1;
      all.push(held);
    }
  };

  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await Promise.all(all.filter(({ isEnding }) => isEnding).map(({ socket }) => end(socket)));
  const open = all.filter(({ socket }) => !socket.destroyed).length;
  const mebibytes = residentMebibytes(pid);
  await Promise.all(all.map(({ socket }) => end(socket.destroy())));
  return { statuses, open, mebibytes };
}

const request = (fields: string) => Buffer.from(`GET /healthz HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);

const CASES = [
  ['4,000 fields', '431', 0, request('a:\r\n'.repeat(4_000))],
  ['200 fields of 80 bytes', '200', CONNECTIONS, request(`a: ${'x'.repeat(75)}\r\n`.repeat(199))],
] as const;

describe('connections that are only kept alive', { timeout: 240_000 }, () => {
  for (const [what, status, open, bytes] of CASES) {
    test(`hold nothing of a request of ${what}`, async (t) => {
      const plain = await hold(await startPlain(t), bytes);
      const own = await hold(await startGatehouse(t), bytes);
      const ratio = own.mebibytes / plain.mebibytes;
      rows.push({
        request: what,
        connections: CONNECTIONS,
        status,
        'MiB plain': plain.mebibytes,
        MiB: own.mebibytes,
        ratio,
      });
      assert.deepEqual([own.statuses, own.open], [{ [status]: CONNECTIONS }, open]);
      assert.deepEqual(plain.statuses, { 200: CONNECTIONS });
      assert.ok(ratio <= MOST_RATIO, `${ratio} times the memory`);
    });
  }
});
