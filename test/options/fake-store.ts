/* A store on loopback that replies in RESP2 as the test wants, for behavior that a real store does not show
   on demand; and our client for it, with a test clock. Shares no code with src. */
import { EventEmitter, once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import type { TestContext } from 'node:test';
import type { MaybePromise } from '../../src/verify/base/clock.ts';
import { createLog } from '../../src/options/log.ts';
import { SharedReplayStore } from '../../src/options/redis/replay.ts';
import type { ReplayVerdict } from '../../src/verify/dpop/replay.ts';
import { TestClock } from '../support/clock.ts';

/** A wait that lasts longer fails, and closes what the test has opened. */
const PATIENCE_MILLIS = 20_000;

/** Resolves with the result of `find` as soon as a change gives one. */
async function when<Value>(changes: EventEmitter, find: () => Value | undefined): Promise<Value> {
  const signal = AbortSignal.timeout(PATIENCE_MILLIS);
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    await once(changes, 'change', { signal });
  }
}

/** The reply to a command; `undefined` for none. */
export type Say = (words: readonly string[], socket: Socket) => string | undefined;

/** The replies of a working, empty store. */
export function goodStore(): Say {
  const names = new Set<string>();
  return ([command, name = '']) => {
    if (command === 'PING') return '+PONG\r\n';
    if (command !== 'SET') return '+OK\r\n';
    if (names.has(name)) return '$-1\r\n';
    names.add(name);
    return '+OK\r\n';
  };
}

/** A good greeting, and this reply to every `SET`. */
export const afterGreeting =
  (say: Say | string): Say =>
  (words, socket) => {
    if (words[0] !== 'SET') return goodStore()(words, socket);
    return typeof say === 'string' ? say : say(words, socket);
  };

/** Every complete command at the start of the bytes, and the rest. */
function parseCommands(bytes: Buffer): { commands: string[][]; rest: Buffer } {
  const commands: string[][] = [];
  let rest = bytes;
  for (;;) {
    let at = 0;

    const line = (type: string): number => {
      const end = rest.indexOf('\r\n', at);
      const text = rest.toString('latin1', at, end === -1 ? rest.length : end);
      if (text !== '' && text[0] !== type) throw new Error(`is not RESP2: ${JSON.stringify(text)}`);
      at = end === -1 ? Infinity : end + 2;
      return Number(text.slice(1));
    };

    const words: string[] = [];
    const count = line('*');
    while (words.length < count && at < rest.length) {
      const length = line('$');
      words.push(rest.toString('utf8', at, at + length));
      at += length + 2;
    }
    if (rest.length === 0 || at > rest.length || words.length < count) return { commands, rest };
    commands.push(words);
    rest = rest.subarray(at);
  }
}

export interface FakeStore {
  readonly port: number;
  /** Every command so far, of all connections. */
  readonly commands: readonly (readonly string[])[];
  /** The pieces in which commands arrived. */
  readonly pieces: readonly string[];
  /** Every connection so far. */
  readonly sockets: readonly Socket[];
  /** Sets its replies from now on. */
  say: Say;
  /** Resolves with the `count`-th command, past or future. */
  received(count: number): Promise<readonly string[]>;
  /** Resolves with the `count`-th connection, past or future. */
  connected(count: number): Promise<Socket>;
  close(): Promise<void>;
}

export async function startFakeStore(
  context: TestContext,
  say: Say = goodStore(),
  tls?: TlsOptions,
  port = 0,
): Promise<FakeStore> {
  const commands: string[][] = [];
  const pieces: string[] = [];
  const sockets: Socket[] = [];
  const changes = new EventEmitter();

  const accept = (socket: Socket) => {
    let rest: Buffer = Buffer.alloc(0);
    sockets.push(socket);
    changes.emit('change');
    socket.setNoDelay();
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      pieces.push(bytes.toString('latin1'));
      const parsed = parseCommands(Buffer.concat([rest, bytes]));
      rest = parsed.rest;
      for (const words of parsed.commands) {
        commands.push(words);
        const reply = store.say(words, socket);
        if (reply !== undefined) socket.write(reply);
      }
      changes.emit('change');
    });
  };

  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  server.on('tlsClientError', () => {});
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');

  const store: FakeStore = {
    port: (server.address() as AddressInfo).port,
    commands,
    pieces,
    sockets,
    say,
    received: (count) => when(changes, () => commands[count - 1]),
    connected: (count) => when(changes, () => sockets[count - 1]),
    close: async () => {
      if (!server.listening) return;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
  context.after(store.close);
  return store;
}

/** Sends bytes to the latest connection. Resolves when they have been read. */
export async function deliver({ sockets }: FakeStore, bytes: string): Promise<void> {
  await new Promise((resolve) => sockets.at(-1)?.write(bytes, resolve));
  // On loopback, written bytes are readable in the next turn, which comes between two of these.
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

export interface Client {
  readonly clock: TestClock;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  /** Resolves with the `count`-th line with this message, past or future. */
  logged(message: string, count?: number): Promise<Record<string, unknown>>;
  /**
   * Resolves with the milliseconds of the `count`-th timer, past or future. Only the first hundred are
   * recorded.
   */
  timer(count: number): Promise<number>;
  /** Resolves once the store has greeted, whether or not that is logged. */
  greeted(): Promise<true>;
  /** Resolves once the connection is lost and the next attempt is scheduled, whether or not that is logged. */
  lost(): Promise<true>;
  /** What the metric says. */
  isUp(): boolean;
  /** Records a proof with this `jti` that can be accepted for `lifeSeconds` more. */
  record(jti: string, lifeSeconds?: number): MaybePromise<ReplayVerdict>;
  close(): void;
}

const MOST_TIMERS = 100;

export const THUMBPRINT = 'T'.repeat(43);
export const NOW = 1_800_000_000;

/** Our client of a store. It closes with the test. */
export function openClient(context: TestContext, address: string): Client {
  const clock = new TestClock(NOW * 1000);
  const logs: Record<string, unknown>[] = [];
  const timers: number[] = [];
  const changes = new EventEmitter();

  const write = (line: string) => {
    logs.push(JSON.parse(line));
    changes.emit('change');
  };

  const after = (millis: number, action: () => void) => {
    // Nobody asks for later ones, of which there may be many.
    if (timers.length < MOST_TIMERS) timers.push(millis);
    changes.emit('change');
    const cancel = clock.after(millis, action);
    return () => {
      cancel();
      changes.emit('change');
    };
  };

  const store = new SharedReplayStore(address, { ...clock, after }, createLog('debug', write, clock.now));
  const close = () => store.close?.();
  context.after(close);

  const logged = (message: string, count = 1) =>
    when(changes, () => logs.filter((line) => line.message === message)[count - 1]);

  const timer = (count: number) => when(changes, () => timers[count - 1]);

  function isUp() {
    const state = store.state();
    return 'isUp' in state && state.isUp;
  }

  // The timer of the greeting, or of the next attempt: without a proof that waits, there is no other.
  const isTimed = () => clock.pending.length > 0;
  const greeted = () => when(changes, () => (isTimed() ? undefined : true));
  const lost = () => when(changes, () => (isTimed() ? true : undefined));

  const record = (jti: string, lifeSeconds = 300) => store.record(THUMBPRINT, jti, NOW + lifeSeconds, NOW);
  return { clock, logs, logged, timer, greeted, lost, isUp, record, close };
}

export interface Pair {
  readonly store: FakeStore;
  readonly client: Client;
}

/** A fake store and our client, after the greeting. */
export async function startPair(context: TestContext, say?: Say): Promise<Pair> {
  const store = await startFakeStore(context, say);
  const client = openClient(context, `redis://127.0.0.1:${store.port}`);
  await client.logged('replay store ready');
  return { store, client };
}
