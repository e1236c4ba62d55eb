// A reply as a value: status, fields, content. Promises: JSON in UTF-8 with Content-Length, never cached,
// never sniffed. Does not check further fields: ours are constants, and handler-reply.ts checks a handler's.
import { isJsonObject } from '../verify/base/encoding.ts';
import { UsageError } from '../verify/base/events.ts';

/** One value may be sent often. */
export interface Reply {
  readonly status: number;
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly content: string | Uint8Array;
  readonly closes?: boolean;
}

/** A header field. Mutable, to fit the `Headers` of Fetch. */
export type Field = [name: string, value: string];

export function pairsOf(fields: readonly string[]): Field[] {
  const pairs: Field[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    pairs.push([fields[index] ?? '', fields[index + 1] ?? '']);
  }
  return pairs;
}

const ALWAYS = [
  'Content-Type',
  'application/json; charset=utf-8',
  // RFC 9111 §5.2.2.5
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
];

/** `headers` has names and values in turn. Throws as `jsonText` does. */
export function jsonReply(status: number, body: unknown, headers: readonly string[] = []): Reply {
  const content = jsonText(body);
  const length = String(Buffer.byteLength(content));
  return { status, fields: [...ALWAYS, 'Content-Length', length, ...headers], content };
}

/**
 * The JSON text of a plain object, an array, or a class instance with something to serialise. Throws a
 * `TypeError` for anything else, such as a `Date` or a `Map`. Checks the outermost value only.
 */
export function jsonText(body: unknown): string {
  const text = isSerialisable(body) ? JSON.stringify(body) : '';
  if (text?.[0] !== '{' && text?.[0] !== '[') throw new UsageError('a body that is no JSON object or array');

  return text;
}

function isSerialisable(body: unknown) {
  if (!isJsonObject(body)) return Array.isArray(body);
  // JSON would show private details, or bytes one by one.
  if (body instanceof Error || ArrayBuffer.isView(body)) return false;

  const { toJSON, then, pipe } = body;
  if (typeof toJSON === 'function') return true;

  // A promise, stream or iterator: its members are not its content.
  const isSource = [then, pipe].some((member) => typeof member === 'function');
  if (isSource || Symbol.iterator in body || Symbol.asyncIterator in body) return false;

  // The prototype of a plain object, of any realm, has none.

  const prototype: unknown = Object.getPrototypeOf(body);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain || Object.keys(body).length > 0;
}
