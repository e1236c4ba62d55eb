/* The processor time of a request to the same handlers, mounted in a service and under @hono/node-server, side
   by side in turns. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

const ROUNDS = 5;
const REQUESTS = 4_000;
const CONNECTIONS = 8;

const USUAL = 'Host: a\r\nUser-Agent: cost\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=1\r\n';
const BODY = '{"item":"tea","count":1}';

const get = (path: string) => `GET ${path} HTTP/1.1\r\n${USUAL}\r\n`;

const REQUESTS_OF: Readonly<Record<string, string>> = {
  'a text': get('/text'),
  JSON: get('/json'),
  'a field of the request': get('/fields'),
  'a Hono app': get('/hono'),
  'a body, read and sent back': `POST /echo HTTP/1.1\r\n${USUAL}Content-Length: ${BODY.length}\r\n\r\n${BODY}`,
};

interface Server {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly lines: Interface;
  readonly port: number;
}

async function start(file: string, kind: string): Promise<Server> {
  const child = spawn(process.execPath, [file, kind], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout);
  const [port] = (await once(lines, 'line')) as [string];
  return { child, lines, port: Number(port) };
}

async function microsUsed({ child, lines }: Server): Promise<number> {
  child.stdin.write('\n');
  const [line] = (await once(lines, 'line')) as [string];
  const { user, system } = JSON.parse(line) as { user: number; system: number };
  return user + system;
}

const isWhole = (text: string) => {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : body.length === Number(length);
};

/** One request at a time. */
function ask(port: number, request: string, count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1');
    let left = count;
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
      if (!isWhole(text)) return;
      if (!text.startsWith('HTTP/1.1 200')) return reject(new Error(text));

      text = '';
      left -= 1;
      if (left > 0) socket.write(request);
      else socket.destroy();
    });
    socket.on('error', reject).on('close', () => resolve());
    socket.write(request);
  });
}

async function microsEach(server: Server, request: string): Promise<number> {
  const before = await microsUsed(server);
  const each = REQUESTS / CONNECTIONS;
  await Promise.all(Array.from({ length: CONNECTIONS }, () => ask(server.port, request, each)));
  return ((await microsUsed(server)) - before) / REQUESTS;
}

const median = (values: readonly number[]) =>
  values.toSorted((one, other) => one - other)[values.length >> 1]!;

export async function printCost(file: string): Promise<void> {
  const servers = [await start(file, 'mount'), await start(file, 'hono')] as const;
  try {
    for (const [name, request] of Object.entries(REQUESTS_OF)) {
      const found = [[], []] as [number[], number[]];
      for (let round = -1; round < ROUNDS; round += 1) {
        for (const [index, server] of servers.entries()) {
          const micros = await microsEach(server, request);
          if (round >= 0) found[index]!.push(micros);
        }
      }
      const [mounted, hono] = found.map(median) as [number, number];
      const rate = (hono / mounted).toFixed(2);
      console.log(
        `${name}: ${mounted.toFixed(1)} µs mounted, ${hono.toFixed(1)} µs under @hono/node-server, throughput ${rate}`,
      );
    }
  } finally {
    for (const { child } of servers) child.kill();
  }
}
