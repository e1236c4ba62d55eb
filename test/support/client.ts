/* Clients for tests: one for well-formed requests, one that sends raw bytes. */
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly text: string;
  /** The parsed body; `undefined` when it is empty. */
  readonly body: any;
  /** Every `WWW-Authenticate` field, in order. */
  readonly challenges: readonly string[];
}

export interface Ask {
  readonly method?: string;
  /** Sends `Authorization: Bearer <token>`. */
  readonly token?: string;
  /** Names and values in turn, or an object. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

/** Sends one request on a new connection. */
export function ask(
  port: number,
  path: string,
  { method = 'GET', token, headers = {}, body }: Ask = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const sent = request(
      { host: '127.0.0.1', port, path, method, agent: false, headers: { ...authorization, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const challenges = response.rawHeaders.flatMap((name, index) =>
            index % 2 === 0 && name.toLowerCase() === 'www-authenticate'
              ? [response.rawHeaders[index + 1] ?? '']
              : [],
          );
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            rawHeaders: response.rawHeaders,
            text,
            body: text === '' ? undefined : JSON.parse(text),
            challenges,
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A bare connection. */
export interface Wire {
  readonly socket: Socket;
  send(bytes: string | Buffer): void;
  /** Resolves with everything received once the text satisfies `isEnough`, or the server has closed. */
  until(isEnough: (received: string) => boolean): Promise<string>;
  /** Resolves with everything received once the server has closed its side. */
  untilClosed(): Promise<string>;
  destroy(): void;
}

export function openWire(port: number): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    let isClosed = false;
    const watchers = new Set<() => void>();

    const note = () => {
      for (const watcher of [...watchers]) watcher();
    };

    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      note();
    });
    socket.on('end', () => {
      isClosed = true;
      note();
    });
    socket.on('close', () => {
      isClosed = true;
      note();
    });
    socket.on('error', () => {});
    socket.once('error', reject);

    const until = (isEnough: (text: string) => boolean) =>
      new Promise<string>((done) => {
        const watcher = () => {
          if (!isClosed && !isEnough(received)) return;
          watchers.delete(watcher);
          done(received);
        };
        watchers.add(watcher);
        watcher();
      });

    socket.once('connect', () =>
      resolve({
        socket,
        send: (bytes) => void socket.write(bytes),
        until,
        untilClosed: () => until(() => false),
        destroy: () => void socket.destroy(),
      }),
    );
  });
}

/** Sends bytes on a new connection and resolves with all that arrives until the server closes. */
export async function exchange(port: number, bytes: string | Buffer): Promise<string> {
  const wire = await openWire(port);
  wire.send(bytes);
  const received = await wire.untilClosed();
  wire.destroy();
  return received;
}
