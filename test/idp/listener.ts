/**
 * The TLS listener: its certificate, whether it listens, and its sockets. Closing it destroys the sockets and
 * waits until they are gone.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Names of certificates in `tls/`. */
export type Certificate = 'provider' | 'other-host' | 'expired' | 'cluster';

/** The state of the listener. */
export interface ListenerState {
  readonly listening: boolean;
  readonly certificate: Certificate;
}

function readCertificate(name: Certificate): { cert: Buffer; key: Buffer } {
  const read = (file: string) => readFileSync(new URL(`tls/${file}.pem`, import.meta.url));
  return { cert: read(name), key: read(`${name}-key`) };
}

/** Called for connections, before their handshake, and for requests. */
export interface ConnectionHandler {
  countConnection(): void;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Serves unresolvable names on the IPv4 loopback address: callers bring their own `lookup`. */
function listenAddress(host: string): string {
  return host === 'localhost' || isIP(host) !== 0 ? host : '127.0.0.1';
}

/** A listener that keeps its port when it is closed and opened again. */
export class Listener {
  readonly #server: Server;
  readonly #host: string;
  readonly #sockets = new Set<Socket>();
  #port: number;
  #state: ListenerState = { listening: false, certificate: 'provider' };
  #turn: Promise<void> = Promise.resolve();

  /** `port` 0 picks a free one. */
  constructor(host: string, port: number, handler: ConnectionHandler) {
    this.#host = listenAddress(host);
    this.#port = port;
    this.#server = createServer(readCertificate('provider'), (request, response) => {
      void handler.handle(request, response);
    });
    this.#server.on('connection', (socket: Socket) => {
      handler.countConnection();
      this.#track(socket);
    });
    // The timers of a response end with the TLS socket, which closes after the socket below it.
    this.#server.on('secureConnection', (socket) => this.#track(socket));
  }

  get port(): number {
    return this.#port;
  }

  get openSockets(): number {
    return [...this.#sockets].filter((socket) => !(socket instanceof TLSSocket)).length;
  }

  /**
   * Changes the state of the listener. Applies calls in order. A change cuts all connections, but a change of
   * the certificate alone none in its handshake: nobody is told that the port is closed.
   */
  enter(state: ListenerState): Promise<void> {
    const change = () => this.#change(state);
    this.#turn = this.#turn.then(change, change);
    return this.#turn;
  }

  async #change(state: ListenerState): Promise<void> {
    const { listening, certificate } = this.#state;
    if (state.listening === listening && state.certificate === certificate) return;
    if (state.certificate !== certificate) this.#server.setSecureContext(readCertificate(state.certificate));
    if (!state.listening) await this.#close();
    else if (listening) await this.#cut((socket) => socket instanceof TLSSocket);
    else await this.#listen();
    this.#state = state;
  }

  /** A new port is outside the range that systems assign from, so that nobody gets it while this is closed. */
  async #listen(): Promise<void> {
    const port = this.#port === 0 ? randomInt(20_000, 32_000) : this.#port;
    this.#server.listen(port, this.#host);
    try {
      await once(this.#server, 'listening');
      this.#port = port;
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!isTaken || this.#port !== 0) throw error;
      await this.#listen();
    }
  }

  async #close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    await Promise.all([closed, this.#cut()]);
  }

  async #cut(isCut: (socket: Socket) => boolean = () => true): Promise<void> {
    const cut = [...this.#sockets].filter(isCut);
    const gone = cut.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    for (const socket of cut) socket.destroy();
    await Promise.all(gone);
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
