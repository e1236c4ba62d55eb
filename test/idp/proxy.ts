/* A forward proxy on loopback that opens tunnels and records the requests for them. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface Proxy {
  readonly port: number;
  /** The target and header fields of every request for a tunnel. */
  readonly asked: readonly { readonly target: string | undefined; readonly headers: IncomingHttpHeaders }[];
  /** The number of open sockets on both sides. */
  readonly openSockets: number;
  stop(): Promise<void>;
}

/** Starts a proxy on loopback. Every name leads to 127.0.0.1, at the requested port or this one. */
export async function startProxy(port?: number): Promise<Proxy> {
  const asked: { target: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const sockets = new Set<Socket>();

  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket));
  };

  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connection', keep).on('connect', ({ url, headers }, socket) => {
    asked.push({ target: url, headers });
    const onward = connect(port ?? Number(/\d+$/.exec(url ?? '')), '127.0.0.1');
    keep(onward);
    onward.once('close', () => socket.destroy());
    socket.once('close', () => onward.destroy());
    onward.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    get openSockets() {
      return sockets.size;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await once(server.close(), 'close');
    },
  };
}
