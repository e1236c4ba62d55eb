// RESP2, the protocol of Redis and Valkey: commands to bytes, bytes to replies. Trusts the server not to lie,
// but not to send what fits the protocol. Promises: a reply is whole, or it is none.

/**
 * `null` for a null string. Text begins with its type: `+` for a status, `-` for an error, `:` for a number,
 * `$` for a string, whose bytes are Latin-1 characters here. A null list is empty.
 */
export type Reply = string | null | readonly Reply[];

interface Parsed {
  readonly reply: Reply;
  /** Where the next reply begins. */
  readonly end: number;
}

/** Of lists in lists; `CLUSTER SLOTS` has the most. */
const MAX_DEPTH = 4;

export function encode(words: readonly string[]): string {
  const lines = [`*${words.length}`];
  for (const word of words) lines.push(`$${Buffer.byteLength(word)}`, word);
  return [...lines, ''].join('\r\n');
}

/** Parses the reply that begins at `start`. */
export function parseReply(text: string, start: number, depth = 0): Parsed | 'incomplete' | 'malformed' {
  const lineEnd = text.indexOf('\r\n', start);
  if (lineEnd === -1) return 'incomplete';

  const line = text.slice(start, lineEnd);
  const end = lineEnd + 2;
  if (/^[-+:]/.test(line)) return { reply: line, end };

  const [, type, digits] = /^([$*])(-1|\d{1,5})$/.exec(line) ?? [];
  const length = Number(digits);
  if (type === '$') return parseString(text, end, length);
  if (type === '*' && depth < MAX_DEPTH) return parseList(text, end, length, depth + 1);

  return 'malformed';
}

function parseString(text: string, start: number, length: number) {
  if (length < 0) return { reply: null, end: start };

  const end = start + length;
  if (text.length < end + 2) return 'incomplete';

  if (!text.startsWith('\r\n', end)) return 'malformed';

  return { reply: `$${text.slice(start, end)}`, end: end + 2 };
}

function parseList(text: string, start: number, count: number, depth: number) {
  const reply: Reply[] = [];
  let end = start;
  while (reply.length < count) {
    const parsed = parseReply(text, end, depth);
    if (typeof parsed === 'string') return parsed;

    reply.push(parsed.reply);
    end = parsed.end;
  }
  return { reply, end };
}

export const isError = (reply: Reply | undefined): reply is string =>
  typeof reply === 'string' && reply.startsWith('-');

/** After the errors named here, reconnecting may help. All others concern one command. */
const ERROR_OF_COMMAND = /^-(?!(?:READONLY|LOADING|MASTERDOWN|NOAUTH|CLUSTERDOWN|MOVED)\b)/;

/** Whether the connection may go on after an unexpected reply. */
export const mayGoOnAfter = (reply: Reply | undefined): boolean =>
  isError(reply) && ERROR_OF_COMMAND.test(reply);

/** The first word of an error in capitals, or what is logged for any other unexpected reply. */
export function reasonIn(reply: Reply | undefined): string {
  const [, word = 'reply-refused'] = /^-([A-Z]+)/.exec(isError(reply) ? reply : '') ?? [];
  return word;
}
