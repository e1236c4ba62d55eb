// Sends a `Response`: its head, then its body as it comes. Promises: reads at most one chunk ahead of what
// the socket accepts; no part looks like the whole; an event stream ends with its token and with a drain.
import { ignoreErrors, type Clock } from '../../verify/base/clock.ts';
import { isBytes } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';
import type { Exchange } from '../request/exchange.ts';
import type { FetchBody, ResponseReply } from './response.ts';

/** Of one write, so that a client that reads slowly is not taken for one that has stopped. */
const PIECE_BYTES = 64 * 1024;

/** The clock may be set, and timers stand still while the machine sleeps. */
const LOOK_MILLIS = 10_000;

const NO_BYTES = 'a chunk of the body of a Response is not a Uint8Array';
const OTHER_LENGTH = 'the body of a Response is shorter or longer than its Content-Length';

/** RFC 9110 §15.3.5, §15.3.6, §15.4.5 */
const WITHOUT_BODY = [204, 205, 304];

const afterTurn = () => new Promise<false>((resolve) => void setImmediate(resolve, false));

/** For a body that will not be read. */
export const discard = (body: FetchBody | null) => void ignoreErrors(() => body?.cancel());

export interface Sending {
  readonly clock: Clock;
  /** `more` are fields. */
  readonly writeHead: (more: readonly string[]) => void;
  /** When an event stream ends, in milliseconds since the epoch. */
  readonly expiresAtMillis: number | undefined;
}

/** Resolves when it is sent, or the client has gone. Rejects if it must be cut off, or before its head. */
export function sendResponse(exchange: Exchange, reply: ResponseReply, sending: Sending) {
  const { request, response } = exchange;
  const { status, body } = reply;
  // RFC 9110 §9.3.2
  const hasBody = request.method !== 'HEAD' && !WITHOUT_BODY.includes(status);
  if (hasBody && !exchange.isGone) return sendBody(exchange, reply, sending);

  // What feeds a body may listen to the signal alone, and then close it.
  if (body) exchange.controller.abort();
  discard(body);
  if (exchange.isGone) return undefined;

  sending.writeHead([]);
  return response.end();
}

async function sendBody(exchange: Exchange, reply: ResponseReply, sending: Sending) {
  const { response } = exchange;
  const { isEventStream } = reply;
  const reader = reply.body?.getReader();
  let bytesLeft = reply.lengthBytes;
  let ahead: Promise<Uint8Array | undefined> | undefined;
  let isOver = false;
  let wake = () => {};
  let endRead = (_: unknown) => {};
  let cancelTimer = () => {};

  const woken = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });

  function stop() {
    isOver = true;
    void ignoreErrors(() => reader?.cancel());
    // A polyfill may cancel its reader only after a pending read.
    if (!response.writableEnded) discard(reply.body);
    endRead(undefined);
    wake();
  }

  /** The proper end. */
  function finish() {
    exchange.controller.abort();
    stop();
  }

  function check() {
    if (isOver) return;

    const { isGone, hasLeft, connection } = exchange;
    if (isGone) stop();
    // A client that has only closed its side may wait for the end of any other stream.
    else if (isEventStream && (hasLeft || connection.isFinishing)) finish();
  }

  function finishAt(millis: number) {
    const { clock } = sending;
    const leftMillis = Math.min(millis - clock.now(), LOOK_MILLIS);
    if (leftMillis <= 0) finish();
    else cancelTimer = clock.after(leftMillis, () => finishAt(millis));
  }

  function next() {
    const chunk = ahead ?? read();
    ahead = undefined;
    return chunk;
  }

  async function read(): Promise<Uint8Array | undefined> {
    if (isOver) return undefined;

    const chunk = new Promise((resolve, reject) => {
      endRead = resolve;
      Promise.resolve(reader?.read() ?? { done: true }).then(resolve, reject);
    });

    const { done, value } = Object(await chunk);
    if (done || isOver) return undefined;
    if (!isBytes(value)) throw new UsageError(NO_BYTES);

    bytesLeft -= value.length;
    if (bytesLeft < 0) throw new UsageError(OTHER_LENGTH);
    // The last byte waits until nothing follows it.
    if (bytesLeft === 0) await read();
    return value;
  }

  /** Whether nothing follows a small chunk, as far as the body says so within a turn. */
  async function isWhole(chunk: Uint8Array | undefined) {
    if (isEventStream || !isNaN(bytesLeft)) return false;
    if (chunk === undefined) return true;
    if (chunk.length > PIECE_BYTES) return false;

    ahead = read();
    return Promise.race([ahead.then((more) => more === undefined), afterTurn()]);
  }

  async function write(chunk: Uint8Array) {
    for (let at = 0; at < chunk.length && !isOver && !exchange.isGone; at += PIECE_BYTES) {
      if (!response.write(chunk.subarray(at, at + PIECE_BYTES))) await woken();
    }
  }

  /** Returns the first chunk, unless events are to come. */
  async function begin() {
    // Before the head, so that a bug is a 500.
    const first = isEventStream ? undefined : await next();
    const hasLength = await isWhole(first);
    // Until earlier responses are written.
    if (response.socket === null && !exchange.isGone) {
      response.once('socket', () => wake());
      await woken();
    }
    if (exchange.isGone) return undefined;

    if (!isEventStream && first === undefined && bytesLeft > 0) throw new UsageError(OTHER_LENGTH);

    sending.writeHead(hasLength ? ['content-length', String(first?.length ?? 0)] : []);
    if (!isEventStream) return first;

    const { expiresAtMillis } = sending;
    response.flushHeaders();
    if (expiresAtMillis !== undefined) finishAt(expiresAtMillis);
    check();
    return undefined;
  }

  function end() {
    if (exchange.isGone) return;
    if (bytesLeft > 0 || (isOver && bytesLeft === 0)) throw new UsageError(OTHER_LENGTH);
    response.end();
  }

  async function writeAll() {
    let chunk = (await begin()) ?? (await next());
    for (; chunk !== undefined && !isOver; chunk = await next()) await write(chunk);
    end();
  }

  exchange.onInterrupted(check);
  response.on('drain', () => wake());
  try {
    await writeAll();
  } catch (error) {
    // Once cancelled, or aborted by the signal, the end is known.
    if (!isOver || !response.headersSent) throw error;
    end();
  } finally {
    stop();
    cancelTimer();
  }
}
