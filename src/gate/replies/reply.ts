// A reply as a value: status, fields, content. Promises: never sniffed, and not cached unless its maker says
// so; `jsonReply` makes JSON in UTF-8. Does not check further fields: ours are valid as made, and
// handler-reply.ts checks a handler's.

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
