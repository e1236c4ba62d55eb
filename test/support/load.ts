/* A load client: keep-alive connections over bare sockets, each with one request in flight, or more if
   pipelined. Counts what came back, how fast, and above all what did not come back. */
import { connect, type Socket } from 'node:net';
import { Latencies } from './latencies.ts';

/** A request, and the name under which it is counted. */
export interface Shot {
  readonly kind: string;
  readonly bytes: string;
}

export interface LoadResponse {
  readonly shot: Shot;
  readonly status: number;
  readonly head: string;
  readonly text: string;
  readonly millis: number;
}

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  /** The next request; `undefined` ends the connection that asks. */
  readonly next: () => Shot | undefined;
  /** In-flight requests on one connection. Default 1; more are pipelined. */
  readonly depth?: number;
  /** Milliseconds between a response and the next request. Default 0. */
  readonly pauseMillis?: number;
  /** Whether to open an ended connection again. Default: always. */
  readonly reconnects?: () => boolean;
  readonly heed?: (response: LoadResponse) => void;
}

export class Tally {
  sent = 0;
  answered = 0;
  /** Responses by kind and status, such as `valid 200`. */
  readonly statuses = new Map<string, number>();
  readonly latencies = new Latencies();
  /** The longest time in milliseconds without any response. */
  longestGap = 0;
  /** Requests without a response though nothing announced that the connection would close. */
  lost = 0;
  /** Requests without a response behind a `Connection: close`, which a client may repeat. */
  lostAfterClose = 0;
  /** Connections closed without announcement while no request was in flight. */
  closedIdle = 0;
  /** Connections that could not be opened. */
  refusedConnections = 0;

  /** Responses with any other kind and status. */
  except(...expected: readonly string[]): Record<string, number> {
    return Object.fromEntries([...this.statuses].filter(([name]) => !expected.includes(name)));
  }

  countExcept(...expected: readonly string[]): number {
    return Object.values(this.except(...expected)).reduce((sum, count) => sum + count, 0);
  }
}

export interface Load {
  readonly tally: Tally;
  /** Resolves when every connection has ended. */
  readonly ended: Promise<void>;
  /** Waits for the in-flight responses, then resolves. */
  stop(): Promise<Tally>;
}

/** A request without a response for this long, in milliseconds, is lost. */
const PATIENCE = 20_000;

interface Shared {
  readonly plan: LoadPlan;
  readonly tally: Tally;
  isStopping: boolean;
  lastResponseAt: number;
}

class LoadConnection {
  readonly #shared: Shared;
  readonly #end: () => void;
  #socket: Socket | undefined;
  #underWay: { shot: Shot; sentAt: number }[] = [];
  #received = '';
  #isToldToClose = false;
  #isDone = false;

  constructor(shared: Shared, end: () => void) {
    this.#shared = shared;
    this.#end = end;
    this.#open();
  }

  #open(): void {
    const { plan, tally } = this.#shared;
    let isConnected = false;
    this.#received = '';
    this.#isToldToClose = false;
    const socket = connect({ port: plan.port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    socket.setTimeout(PATIENCE, () => void socket.destroy());
    socket.on('connect', () => {
      isConnected = true;
      this.#fill();
    });
    socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => {
      if (!isConnected) tally.refusedConnections += 1;
      this.#closed(isConnected);
    });
  }

  #closed(wasConnected: boolean): void {
    const { plan, tally, isStopping } = this.#shared;
    if (this.#isToldToClose) tally.lostAfterClose += this.#underWay.length;
    else tally.lost += this.#underWay.length;
    if (wasConnected && !this.#isDone && !this.#isToldToClose && this.#underWay.length === 0) {
      tally.closedIdle += 1;
    }
    this.#underWay = [];
    if (this.#isDone || isStopping || !wasConnected || !(plan.reconnects?.() ?? true)) this.#end();
    else this.#open();
  }

  /** Sends until as many requests as planned are in flight. */
  #fill(): void {
    const { plan, tally } = this.#shared;
    while (
      !this.#isToldToClose &&
      !this.#isDone &&
      this.#socket?.readyState === 'open' &&
      this.#underWay.length < (plan.depth ?? 1)
    ) {
      const shot = this.#shared.isStopping ? undefined : plan.next();
      if (shot === undefined) this.#isDone = true;
      else {
        tally.sent += 1;
        this.#underWay.push({ shot, sentAt: performance.now() });
        this.#socket.write(shot.bytes, 'latin1');
      }
    }
    if (this.#isDone && this.#underWay.length === 0) this.#socket?.end();
  }

  #read(text: string): void {
    this.#received += text;
    for (;;) {
      const end = this.#received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = this.#received.slice(0, end);
      const whole = end + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (this.#received.length < whole) return;
      this.#count(head, this.#received.slice(end + 4, whole));
      this.#received = this.#received.slice(whole);
      if (this.#shared.plan.pauseMillis === undefined) this.#fill();
      else setTimeout(() => this.#fill(), this.#shared.plan.pauseMillis);
    }
  }

  #count(head: string, text: string): void {
    const { plan, tally, lastResponseAt } = this.#shared;
    const under = this.#underWay.shift();
    if (under === undefined) throw new Error(`a response that nobody asked for: ${head.slice(0, 60)}`);
    const now = performance.now();
    const response = {
      shot: under.shot,
      status: Number(head.slice(9, 12)),
      head,
      text,
      millis: now - under.sentAt,
    };
    const name = `${response.shot.kind} ${response.status}`;
    tally.answered += 1;
    tally.statuses.set(name, (tally.statuses.get(name) ?? 0) + 1);
    tally.latencies.add(response.millis);
    tally.longestGap = Math.max(tally.longestGap, now - lastResponseAt);
    this.#shared.lastResponseAt = now;
    if (/\r\nconnection: close/i.test(head)) this.#isToldToClose = true;
    plan.heed?.(response);
  }
}

export function startLoad(plan: LoadPlan): Load {
  const shared: Shared = { plan, tally: new Tally(), isStopping: false, lastResponseAt: performance.now() };
  const connections = Array.from(
    { length: plan.connections },
    () => new Promise<void>((end) => void new LoadConnection(shared, end)),
  );
  const ended = Promise.all(connections).then(() => {});

  const stop = async () => {
    shared.isStopping = true;
    await ended;
    return shared.tally;
  };

  return { tally: shared.tally, ended, stop };
}

/** A GET with this token, if any, that keeps its connection. */
export function getBytes(path: string, token?: string, more = ''): string {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  return `GET ${path} HTTP/1.1\r\nHost: api.test\r\n${authorization}${more}\r\n`;
}

/** Returns the shots in turn, over and over. */
export function inTurn(shots: readonly Shot[]): () => Shot {
  let count = -1;
  return () => {
    count += 1;
    return shots[count % shots.length]!;
  };
}
