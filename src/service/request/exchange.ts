// One request with its response: its form, whether its client is still there, why its body is refused, and
// its signal. Node's request is made cheaper: an empty body ends without events (before Node 26), an unread
// one is kept as one piece, and a whole one is handed over as it arrives. Trusts Node to read only while
// there is room. Does not check Host or target (verify/request/facts.ts does), nor limit a body that is read
// (service/routes/body.ts does).
import { AsyncResource } from 'node:async_hooks';
import { IncomingMessage, type ServerResponse } from 'node:http';
import { nothing } from '../../verify/base/clock.ts';
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import { ByteBuffer } from '../../verify/base/byte-buffer.ts';

/** Gets each chunk of a body, then `null`. */
export type BodyReader = (chunk: Buffer | null) => void;

export class RequestStream extends IncomingMessage {
  #unread: ByteBuffer | undefined;
  #reader: BodyReader | undefined;

  /** Whether the body was read to its end. */
  get isRead() {
    // Without a reader it is `null` until reading begins.
    return this.complete && (this.#reader !== undefined || this.readableFlowing !== null);
  }

  /** In place of the events of a stream, which cost more than the body. What has arrived comes at once. */
  readBy(reader: BodyReader) {
    const unread = this.#unread?.release() ?? null;
    const arrived: Buffer | null = this.complete ? this.read() : unread;
    this.#reader = reader;

    if (arrived !== null) reader(arrived);
    if (this.complete) reader(null);
    // Node may have stopped, for want of room.
    else if (arrived !== null) this._read(0);
  }

  override resume(): this {
    if (this.readableEnded && this.listenerCount('data') === 0) return this;

    // Its reader would wait for more.
    this.#release();
    return super.resume();
  }

  #release() {
    if (this.#unread !== undefined) super.push(this.#unread.release());
    this.#unread = undefined;
  }

  /** Joins the chunks of an unread body. */
  override push(piece: Buffer | null): boolean {
    if (this.#reader !== undefined) {
      this.#reader(piece);
      return true;
    }

    if (piece !== null && !this.readableFlowing) {
      this.#unread ??= new ByteBuffer();
      return this.#unread.add(piece) < this.readableHighWaterMark;
    }

    this.#release();
    return super.push(piece);
  }
}

// Node releases a request once this is true.
Object.defineProperty(RequestStream.prototype, 'readableEnded', {
  get(this: IncomingMessage) {
    return this.complete && this.readableLength === 0;
  },
});

/** What a request needs to know of its connection. */
interface ConnectionState {
  /** The last response is known: nothing after it is read or run (RFC 9112 §9.6). */
  readonly isEnding: boolean;
  /** During a drain. */
  readonly isFinishing: boolean;
  /** Makes the current response the last. */
  readonly endReading: (then?: AfterLast) => void;
}

/** What becomes of bytes that still arrive: `read` is for a body that its handler reads meanwhile. */
export type AfterLast = 'pause' | 'drop' | 'read';

export class Exchange {
  readonly request;
  readonly response;
  readonly connection;
  readonly arrivedAtMillis;
  /** Whether its response is the body of a `Response`, with or without a head yet. */
  isStreaming = false;
  /** Why a mount's body could not be read to its end: what reads its stream may hide that. */
  bodyFailure?: unknown;
  /** Why reading the body must stop, or not begin. */
  bodyRefusal: Refused | undefined;
  /** For a drain that cuts the connection: ends the wait for a handler, so that the request is observed. */
  abandon = nothing;
  /** For the connection, when a drain begins. */
  interrupt = nothing;
  /** The reader of the body replaces it, and stops when it is called. */
  stopReadingBody = nothing;
  #controller: AbortController | undefined;
  #abort = nothing;

  constructor(
    request: RequestStream,
    response: ServerResponse,
    connection: ConnectionState,
    arrivedAtMillis: number,
  ) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    this.arrivedAtMillis = arrivedAtMillis;
  }

  /** A response to a destroyed socket could finish before its turn, and end the process. */
  get isGone() {
    return this.response.destroyed || !this.request.socket.writable;
  }

  /** A client that gives up sometimes closes only its own side. */
  get hasLeft() {
    return this.isGone || !this.request.socket.readable;
  }

  /** Aborts when the client leaves before the response is written. */
  get controller() {
    if (this.#controller !== undefined) return this.#controller;

    const controller = new AbortController();
    this.#controller = controller;
    // In the context of the request, for tracing.
    this.#abort = bind(() => controller.abort());
    if (this.hasLeft) this.leave();
    return controller;
  }

  /** For the connection, which sees that the client has closed it, or its own side. */
  leave() {
    if (this.response.writableFinished) return;

    this.#abort();
    this.interrupt();
  }

  /** For a stream, whose client may leave, or which may have to end for a drain. */
  onInterrupted(check: () => void) {
    this.isStreaming = true;
    this.interrupt = bind(check);
  }

  /**
   * Before its connection is destroyed: to HTTP/1.0, the end of the connection is that of a body that has
   * begun, unless it is a reset (RFC 9112 §6.3).
   */
  resetIfBegun() {
    const { request, response } = this;
    if (response.headersSent && request.httpVersion === '1.0') request.socket.resetAndDestroy();
  }

  /** For the listener, which sees invalid and late bodies. */
  refuseBody(refused: Refused) {
    this.bodyRefusal = refused;
    this.stopReadingBody();
  }
}

/** To the context of now. `AsyncResource.bind` costs 700 bytes more. */
export function bind(action: () => void) {
  const resource = new AsyncResource('gatehouse');
  return () => resource.runInAsyncScope(action);
}

export const MAX_FIELDS = 200;

/** HTTP version, framing, number of header fields, and expectation. */
export function checkMessage({ httpVersion, rawHeaders, headers }: Exchange['request']) {
  const { expect, 'transfer-encoding': coding } = headers;
  // RFC 9112 §2.3, §6.1: Node accepts 0.9 and 2.0, too. HTTP/1.0 has no transfer codings.
  const isKnown = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  // RFC 9112 §6.1
  const isFramed = coding === undefined || coding.toLowerCase() === 'chunked';
  // RFC 9112 §5.1: the parser of Node 20.12 lets fields without a name through.
  const areNamed = headers[''] === undefined;
  if (!isKnown || !isFramed || !areNamed) return refuse('malformed-http');
  if (rawHeaders.length > 2 * MAX_FIELDS) return refuse('header_fields_too_large');

  // RFC 9110 §10.1.1. Node joins repeated fields.
  const isMet = expect === undefined || expect.toLowerCase() === '100-continue';
  return isMet ? undefined : refuse('expectation_failed');
}

/**
 * Takes and returns alternating names and values. A name that occurs again occurs once, with all its values:
 * if a tracing agent has set a field, `writeHead` of Node 20 keeps only the last of several.
 */
export function joinRepeated(fields: readonly string[]) {
  const joined: (string | string[])[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    const earlier = indexOfName(joined, name);
    if (earlier < 0) {
      joined.push(name, value);
      continue;
    }
    const values = joined[earlier + 1] ?? [];
    const all = typeof values === 'string' ? [values] : values;
    joined[earlier + 1] = [...all, value];
  }
  return joined;
}

/** RFC 9110 §5.1: whatever the case. */
function indexOfName(fields: readonly unknown[], name: string) {
  for (let index = 0; index < fields.length; index += 2) {
    const other = String(fields[index]);
    // For speed: most names differ in length.
    if (other.length === name.length && other.toLowerCase() === name.toLowerCase()) return index;
  }
  return -1;
}
