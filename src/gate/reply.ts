// A reply as a value: status, header fields, JSON. Promises: JSON in UTF-8 with Content-Length, never
// cached, never sniffed. Does not look at further fields: those of a refusal are the service's own,
// handler-reply.ts checks a handler's. Does not say which reply a refusal gets (challenge.ts), or how it is
// sent (write.ts).
import { isJsonObject } from '../verify/base/encoding.ts';
import { UsageError } from '../verify/base/events.ts';

/** Written once, it may be sent often. */
export interface Reply {
  readonly status: number;
  /** All names and values, in turn. */
  readonly fields: readonly string[];
  readonly content: string | Uint8Array;
  /** Whether the connection ends with it. */
  readonly closes?: boolean;
}

/** A header field. Not `readonly`, so that a list of them fits the `Headers` of Fetch. */
export type Field = [name: string, value: string];

/** Names and values that stand in turn, side by side. */
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
  // RFC 9111 §5.2.2.5: nothing that depends on a token may be stored.
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
];

/**
 * A JSON reply; `headers` are more fields, in turn, that can be sent. Throws a `TypeError` as `jsonText`.
 */
export function jsonReply(status: number, body: unknown, headers: readonly string[] = []): Reply {
  const content = jsonText(body);
  const length = String(Buffer.byteLength(content));
  return { status, fields: [...ALWAYS, 'Content-Length', length, ...headers], content };
}

/**
 * The text of a plain object, an array, or an instance of a class with something to serialise. Throws a
 * `TypeError` for what has none, such as a `Date`, which is text in JSON, and for what would become `{}` or
 * its inner members. Only the outermost value is judged.
 */
export function jsonText(body: unknown): string {
  const text = isSerialisable(body) ? JSON.stringify(body) : '';
  if (text?.[0] !== '{' && text?.[0] !== '[') throw new UsageError('a body that is no JSON object or array');

  return text;
}

function isSerialisable(body: unknown) {
  if (!isJsonObject(body)) return Array.isArray(body);
  // These say in JSON what is for a log, or bytes one by one.
  if (body instanceof Error || ArrayBuffer.isView(body)) return false;

  const { toJSON, then, pipe } = body;
  if (typeof toJSON === 'function') return true;

  // What is awaited, piped or iterated is not its members.
  const isSource = [then, pipe].some((member) => typeof member === 'function');
  if (isSource || Symbol.iterator in body || Symbol.asyncIterator in body) return false;

  // Of plain objects, also of another realm, the prototype is the last one.
  const prototype: unknown = Object.getPrototypeOf(body);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain || Object.keys(body).length > 0;
}
