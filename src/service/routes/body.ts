// Reads a body, as bytes or strict JSON (docs/routes-reference.md), after access is granted. Promises: reads
// nothing if the header fields rule it out; keeps no more than the limit. Does not check what the JSON says:
// the route's schema does.
import { nothing } from '../../verify/base/clock.ts';
import { parseJson } from '../../verify/base/encoding.ts';
import { ByteBuffer } from '../../verify/base/byte-buffer.ts';
import { refuse } from '../../verify/base/refusal.ts';
import { fieldValues } from '../../verify/request/facts.ts';
import type { Exchange } from '../request/exchange.ts';

/** RFC 8259 §9 allows a limit. Recursive code fails at a few thousand levels. */
const MAX_DEPTH = 64;

/** A request whose body may be refused while it is read. */
export type BodySource = Pick<
  Exchange,
  'request' | 'response' | 'bodyRefusal' | 'stopReadingBody' | 'bodyFailure'
>;

/**
 * Thrown when the client has left: a response would reach no one. Not an `Error`, which frameworks would turn
 * into a response.
 */
export const CLIENT_GONE = Object.freeze({ name: 'AbortError', message: 'the client has left' });

/** Resolves to the JSON value. Takes and rejects with the same as `readBody`. */
export async function readJson(source: BodySource, types: readonly string[], limitBytes: number) {
  const value = parseJson(await readBody(source, types, limitBytes, checkCharset));
  if (value === undefined) throw refuse('body-malformed');

  checkShape(value);
  return value;
}

/**
 * Resolves to the bytes. `types` are media types in lower case, without parameters; without any, all are
 * accepted. `checkMore` throws for another Content-Type. Throws or rejects with `Refused`, or with
 * `CLIENT_GONE` when the client has left.
 */
export function readBody(
  source: BodySource,
  types: readonly string[],
  limitBytes: number,
  checkMore: (contentType: string) => void = nothing,
): Promise<Buffer> {
  const { headers } = source.request;
  const length = Number(headers['content-length'] ?? 0);
  // RFC 9112 §6.3: either field announces a body.
  if (length === 0 && headers['transfer-encoding'] === undefined) throw refuse('body-missing');

  checkMore(checkType(source.request, types));
  // RFC 9110 §15.5.14
  if (length > limitBytes) throw refuse('body-too-large');

  const body = new ByteBuffer();

  return new Promise<Buffer>((resolve, reject) => {
    beginBody(source, reject);
    // `release`, because the reader holds `body` until the response.
    source.request.readBy((chunk) => {
      if (chunk === null) resolve(body.release());
      else if (body.add(chunk) > limitBytes) {
        // RFC 9110 §15.5.14
        body.release();
        reject(refuse('body-too-large'));
      }
    });
  });
}

/** Lets the client send the body. Calls `fail` when reading must stop, or must not begin. */
export function beginBody(source: BodySource, fail: (reason: unknown) => void) {
  const { request, response } = source;

  const stop = () => {
    // A client that closes its side mid-body has left.
    const refused = request.socket.readable ? source.bodyRefusal : undefined;
    fail(refused ?? CLIENT_GONE);
  };

  if (request.destroyed || source.bodyRefusal !== undefined) return stop();

  // RFC 9110 §10.1.1: the client may send now. HTTP/1.0 has no 100.
  const isAwaited =
    request.headers.expect !== undefined && request.httpVersion !== '1.0' && !response.headersSent;
  if (isAwaited) response.writeContinue();
  request.on('close', stop);
  source.stopReadingBody = stop;
}

/** RFC 9110 §5.6.4. Without a closing quote it ends with the field. */
const QUOTED = /"(?:(utf-?8)"|(?:[^"\\]|\\.)*"?)/gi;

/** RFC 9110 §5.6.6 */
const OTHER_CHARSET = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

/** Returns the Content-Type. */
function checkType({ headers, rawHeaders }: BodySource['request'], types: readonly string[]) {
  // Stricter: RFC 9110 §8.4 allows a list of codings.
  const isUncoded = /^(?:identity)?$/i.test(headers['content-encoding'] ?? '');
  // RFC 9110 §12.5.3
  if (!isUncoded) throw refuse('coding-refused', { headers: ['Accept-Encoding', 'identity'] });

  // RFC 9110 §8.3: not a list, and not repeated.
  const [contentType = '', ...others] = fieldValues(rawHeaders, 'content-type');
  const [mediaType = ''] = contentType.split(';');
  const isNamed = others.length === 0 && types.includes(mediaType.trim().toLowerCase());
  // RFC 9110 §15.5.16
  if (!isNamed && types.length > 0) {
    throw refuse('media-type-refused', { headers: ['Accept', types.join(', ')] });
  }
  return contentType;
}

/** RFC 8259 §8.1 */
function checkCharset(contentType: string) {
  const isOther = OTHER_CHARSET.test(contentType.replace(QUOTED, '"$1"'));
  if (isOther) throw refuse('charset-refused');
}

/** Level by level, as recursion may overflow. */
function checkShape(value: unknown) {
  let level = [value].filter(isContainer);
  let isMemberRefused = false;
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) throw refuse('body-too-deep');

    const below: object[] = [];
    for (const container of level) {
      // Copying an array would cost five times its parsing.
      const isList = Array.isArray(container);
      isMemberRefused ||= !isList && hasRefusedMember(container);
      for (const member of isList ? container : Object.values(container)) {
        if (isContainer(member)) below.push(member);
      }
    }
    level = below;
  }
  if (isMemberRefused) throw refuse('body-member-refused');
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Code that copies these members can change all objects. */
function hasRefusedMember(container: object) {
  if (Object.hasOwn(container, '__proto__')) return true;

  return Object.hasOwn(container, 'constructor') && Object.hasOwn(Object(container.constructor), 'prototype');
}
