/*
 * A strict reader of the part of YAML 1.2 that settings need: nested maps, lists of scalars, plain and quoted scalars.
 * Trusts nothing. Promises: what it accepts it reads as YAML 1.2 (core schema) does; all else is an error with its line.
 * Does not know any setting: settings.ts does.
 */

export type YamlScalar = string | number | boolean | null;

/** One value of the file. `path` is its keys joined by dots, `line` where it stands (from 1). */
export interface YamlEntry {
  readonly path: string;
  readonly value: YamlScalar | readonly YamlScalar[];
  readonly line: number;
}

/** What stops the reading; the message names the line. */
export class YamlError extends Error {
  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`);
  }
}

interface Line { readonly number: number; readonly indent: number; readonly text: string }

/** A map that is open at some depth, with the keys that it has so far. */
interface OpenMap { readonly indent: number; readonly path: string; readonly keys: Set<string> }

/** Reads a document into its values, in order. Throws `YamlError`. */
export function parseYaml(source: string): YamlEntry[] {
  const lines = contentLines(source);
  const entries: YamlEntry[] = [];
  const open: OpenMap[] = [];
  for (let index = 0, line = lines[0]; line !== undefined; line = lines[(index += 1)]) {
    const map = mapFor(line, open);
    const { key, rest } = readKey(line);
    if (map.keys.has(key)) throw new YamlError(line.number, `the key "${key}" is there twice`);
    map.keys.add(key);
    const path = map.path === '' ? key : `${map.path}.${key}`;
    if (entries.some((entry) => entry.path === path)) throw new YamlError(line.number, `${path} is set twice`);
    const next = lines[index + 1];
    if (rest === '' && next !== undefined && isListItem(next.text) && next.indent >= line.indent) {
      const items = readList(lines, index + 1);
      entries.push({ path, value: items, line: line.number });
      index += items.length;
    } else if (rest === '' && next !== undefined && next.indent > line.indent) {
      open.push({ indent: next.indent, path, keys: new Set() });
    } else {
      entries.push({ path, value: readValue(rest, line.number), line: line.number });
    }
  }
  return entries;
}

/** Lines that hold something, without comments of their own, markers and the byte-order mark. */
function contentLines(source: string): Line[] {
  const lines: Line[] = [];
  let started = false;
  for (const [index, raw] of source.replace(/^\uFEFF/, '').split(/\r?\n/).entries()) {
    const number = index + 1;
    if (/\t/.test(raw)) throw new YamlError(number, 'a tab; indent and separate with spaces');
    if (/[\x00-\x1f\x7f-\x9f\u2028\u2029\uD800-\uDFFF\uFEFF\uFFFE\uFFFF]/.test(raw.replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, ''))) {
      throw new YamlError(number, 'a character that YAML does not allow here');
    }
    if (/^ *(#|$)/.test(raw)) continue;
    if (/^(---|\.\.\.)( |$)/.test(raw)) {
      if (started || !/^--- *( #.*)?$/.test(raw)) throw new YamlError(number, 'only one document, begun by a bare "---"');
    } else {
      lines.push({ number, indent: raw.search(/[^ ]/), text: afterSpaces(raw) });
    }
    started = true;
  }
  return lines;
}

/** The open map that the line belongs to by its indentation. */
function mapFor({ indent, number }: Line, open: OpenMap[]): OpenMap {
  if (open.length === 0) open.push({ indent, path: '', keys: new Set() });
  while (open.length > 1 && (open.at(-1)?.indent ?? 0) > indent) open.pop();
  const map = open.at(-1);
  if (map?.indent !== indent) throw new YamlError(number, 'the indentation fits no map; a value ends on its own line');
  return map;
}

/** Splits `key: rest`. */
function readKey({ text, number }: Line): { key: string; rest: string } {
  if (isListItem(text)) throw new YamlError(number, 'a list item where a key is wanted');
  const quoted = /^["']/.test(text) ? readQuoted(text, number) : undefined;
  const colon = quoted === undefined ? text.search(/:( |$)/) : text.length - afterSpaces(quoted.rest).length;
  if (colon < 0 || !/^:( |$)/.test(text.slice(colon))) throw new YamlError(number, 'no "key: value"');
  const key = quoted?.value ?? readPlain(text.slice(0, colon), number);
  if (typeof key !== 'string' || key === '') throw new YamlError(number, 'a key that is not text; quote it');
  if (colon > 1000) throw new YamlError(number, 'a key of more than 1000 characters');
  return { key, rest: withoutComment(afterSpaces(text.slice(colon + 1))) };
}

/** The text after a colon or dash and its space, or nothing if it is a comment. */
const withoutComment = (text: string) => (text.startsWith('#') ? '' : text);

/** Only spaces separate in YAML; trimStart would take other blanks too. */
const afterSpaces = (text: string) => text.replace(/^ +/, '');

const isListItem = (text: string) => /^-( |$)/.test(text);

/** The block list whose first item is `lines[start]`. */
function readList(lines: readonly Line[], start: number): YamlScalar[] {
  const items: YamlScalar[] = [];
  const indent = lines[start]?.indent;
  for (const { text, number, indent: own } of lines.slice(start)) {
    if (own !== indent || !isListItem(text)) break;
    const item = readValue(withoutComment(afterSpaces(text.slice(1))), number);
    if (Array.isArray(item)) throw new YamlError(number, 'a list inside a list');
    items.push(item as YamlScalar);
  }
  return items;
}

/** A value on one line: empty, a scalar, or a flow list; then at most a comment. */
function readValue(text: string, line: number): YamlScalar | YamlScalar[] {
  if (text.startsWith('[')) return readFlowList(text, line);
  if (!/^["']/.test(text)) return readPlain(text.replace(/ +#.*$/, ''), line);
  const { value, rest } = readQuoted(text, line);
  expectEnd(rest, line);
  return value;
}

function expectEnd(rest: string, line: number): void {
  if (!/^( +#.*| *)$/.test(rest)) throw new YamlError(line, 'something after the end of the value');
}

function readFlowList(text: string, line: number): YamlScalar[] {
  const items: YamlScalar[] = [];
  let rest = afterSpaces(text.slice(1));
  while (!rest.startsWith(']')) {
    const quoted = /^["']/.test(rest) ? readQuoted(rest, line) : undefined;
    const plain = /^[^,[\]{}]*/.exec(rest)?.[0] ?? '';
    if (quoted === undefined && (/^ *$/.test(plain) || / #/.test(plain))) throw new YamlError(line, 'an empty or unfinished list item');
    items.push(quoted?.value ?? readPlain(plain, line));
    rest = afterSpaces(quoted?.rest ?? rest.slice(plain.length));
    if (!/^[,\]]/.test(rest)) throw new YamlError(line, 'a list that does not end on its line');
    if (rest.startsWith(',')) rest = afterSpaces(rest.slice(1));
  }
  expectEnd(rest.slice(1), line);
  return items;
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', '/': '/', n: '\n', r: '\r', t: '\t', 0: '\0' };

/** A single- or double-quoted scalar at the start of `text`, and what follows it. */
function readQuoted(text: string, line: number): { value: string; rest: string } {
  const match = /^'((?:[^']|'')*)'(?!')|^"((?:[^"\\]|\\.)*)"/.exec(text);
  if (match === null) throw new YamlError(line, 'a quoted text that does not end on its line');
  const [all, single, double = ''] = match;
  const value = single?.replaceAll("''", "'") ?? double.replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/g, (_, escape: string) => {
    const character = escape.length > 1 ? String.fromCharCode(parseInt(escape.slice(1), 16)) : ESCAPES[escape];
    if (character === undefined || /[\uD800-\uDFFF]/.test(character)) throw new YamlError(line, 'an escape that is not supported');
    return character;
  });
  return { value, rest: text.slice(all.length) };
}

/** A plain scalar, resolved by the core schema (YAML 1.2.2 §10.3.2). */
function readPlain(padded: string, line: number): YamlScalar {
  const text = padded.replace(/ +$/, '');
  if (/^[,[\]{}#&*!|>'"%@`]|^[-?:]( |$)|:( |$)| #/.test(text)) throw new YamlError(line, 'a form of YAML that is not supported here; quote the text');
  if (/^(null|Null|NULL|~|)$/.test(text)) return null;
  if (/^(true|True|TRUE|false|False|FALSE)$/.test(text)) return text.toLowerCase() === 'true';
  if (/^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$|^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(text)) return Number(text);
  if (/^[-+]?(\.inf|\.Inf|\.INF)$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return /^(\.nan|\.NaN|\.NAN)$/.test(text) ? NaN : text;
}
