/**
 * A server on loopback that sends, byte for byte, what the test wants, or nothing, unlike any server of
 * node:http. It can show the provider's certificate.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';

export interface RawServer {
  readonly port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** Resolves once every connection is gone. */
  closed(): Promise<void>;
  /** Destroys every connection and closes. */
  stop(): Promise<void>;
}

/** A server that passes every connection to `handle`, before any TLS. */
export async function startRawServer(handle: (socket: Socket) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    handle(socket);
  }).listen(0, 'localhost');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get connections() {
      return connections;
    },
    async closed() {
      await Promise.all([...sockets].map((socket) => new Promise((gone) => socket.once('close', gone))));
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await once(server.close(), 'close');
    },
  };
}

const read = (file: string) => readFileSync(new URL(`tls/${file}.pem`, import.meta.url));

/** The provider's certificate and key. */
export const identity = { cert: read('provider'), key: read('provider-key') };

const secureContext = createSecureContext(identity);

/** Speaks TLS on a connection. Calls `speak` with the first piece of the request and the socket below TLS. */
export function speakTls(
  socket: Socket,
  speak: (secure: TLSSocket, request: string, socket: Socket) => void,
): void {
  const secure = new TLSSocket(socket, { isServer: true, secureContext });
  secure.on('error', () => {}).once('data', (bytes: Buffer) => speak(secure, String(bytes), socket));
}

/** Speaks TLS on a connection until it has sent this many bytes, and then does what `end` says. */
export function cutTls(socket: Socket, bytes: number, end: (socket: Socket) => void): void {
  let left = bytes;
  const cut = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      const part = chunk.subarray(0, left);
      left -= part.length;
      socket.write(part, () => {
        if (left === 0) end(socket);
        done();
      });
    },
  });
  socket.on('data', (chunk) => cut.push(chunk));
  new TLSSocket(cut as Socket, { isServer: true, secureContext }).on('error', () => {}).resume();
}
