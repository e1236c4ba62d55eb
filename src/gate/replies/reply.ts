// A reply as a value: status, fields, content; and the fields of all replies. Promises: never sniffed, and
// not cached unless its maker says so; `jsonReply` makes JSON in UTF-8. Does not check further fields: ours
// are valid as made, and handler-reply.ts checks a handler's.
import type { Found } from '../../verify/base/refusal.ts';

export interface Reply {
  readonly status: number;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  readonly content: string | Uint8Array;
  readonly closes?: boolean | undefined;
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

/** 204 (RFC 9110 §15.3.5). */
export const NO_CONTENT: Reply = {
  status: 204,
  fields: ['cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  content: '',
};

/** `json` is text; `headers` alternates names and values. */
export function jsonReply(status: number, json: string, headers: readonly string[] = []): Reply {
  const length = String(Buffer.byteLength(json));
  return { status, fields: [...ALWAYS, 'Content-Length', length, ...headers], content: json };
}

/** Of a challenge: those that have a value. */
export function parametersText(parameters: object): string {
  const present = Object.entries(parameters).filter(([, value]) => value);
  return present.map(([name, value]) => `${name}="${value}"`).join(', ');
}

/** Lets pages of other origins read responses. Fields: alternating names and values (Fetch standard §3.3). */
export interface CrossOrigin {
  /** On every reply. */
  readonly vary: readonly string[];
  /** For a request with this `Origin`. */
  readonly forReading: (origin?: string) => readonly string[];
}

/** What the fields of every reply to a request depend on. */
export interface Learnt extends Found {
  /** Replaces `CrossOrigin.forReading`. */
  readonly crossOrigin?: readonly string[] | undefined;
}

/** The fields that every reply gets, whatever it says: alternating names and values. */
export function extraFields(learnt: Learnt, crossOrigin?: CrossOrigin, origin?: string) {
  const shared = learnt.crossOrigin ?? crossOrigin?.forReading(origin) ?? [];
  return [...(crossOrigin?.vary ?? []), ...shared, ...nonceFields(learnt)];
}

/** RFC 9449 §9 */
export function nonceFields({ freshNonce }: Found) {
  return freshNonce ? ['DPoP-Nonce', freshNonce] : [];
}
