/* Reads responses whose bodies may be chunked, from raw bytes. */
import assert from 'node:assert/strict';

export interface Head {
  readonly status: number;
  /** By name in lower case, in order. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  readonly content: string;
  /** Whether it has its proper end. */
  readonly isWhole: boolean;
}

/** The one response in the text, whose body has no bytes over 0xff. */
export function parseHead(text: string): Head {
  const end = text.indexOf('\r\n\r\n');
  assert.ok(end > 0, text);
  const [line = '', ...lines] = text.slice(0, end).split('\r\n');
  const fields: Record<string, string[]> = {};
  for (const each of lines) {
    const colon = each.indexOf(': ');
    const name = each.slice(0, colon).toLowerCase();
    (fields[name] ??= []).push(each.slice(colon + 2));
  }
  const status = Number(line.split(' ')[1]);
  const rest = text.slice(end + 4);
  if (fields['transfer-encoding']?.join() === 'chunked') return { status, fields, ...joinChunks(rest) };

  const length = Number(fields['content-length'] ?? rest.length);
  return { status, fields, content: rest, isWhole: rest.length === length };
}

/** RFC 9112 §7.1 */
function joinChunks(text: string) {
  let rest = text;
  let content = '';
  for (;;) {
    const end = rest.indexOf('\r\n');
    if (end < 0) return { content, isWhole: false };
    const size = parseInt(rest.slice(0, end), 16);
    if (size === 0) return { content, isWhole: rest === '0\r\n\r\n' };
    content += rest.slice(end + 2, end + 2 + size);
    rest = rest.slice(end + 2 + size + 2);
  }
}
