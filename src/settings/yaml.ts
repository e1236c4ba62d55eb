// A strict reader of the part of YAML 1.2 that settings need: nested maps, lists of scalars, plain and quoted scalars.
// Promises: what it accepts it reads as YAML 1.2 (core schema) does; all else is an error that names its line.

export type YamlScalar = string | number | boolean | null;
/** One value of the file: its keys joined by dots, and the line where it stands (from 1). */
export type YamlEntry = { readonly path: string; value: YamlScalar | YamlScalar[]; readonly line: number };
/** What stops the reading; the message names the line. */
export class YamlError extends Error {}
function fail(line: number, what: string): never {
  throw new YamlError(`line ${line}: ${what}`);
}
/** Reads a document into its values, in order. Throws `YamlError`. */
export function parseYaml(source: string): YamlEntry[] {
  const entries: YamlEntry[] = [];
  const maps: { indent: number; path: string; keys: Set<string> }[] = [];
  /** The last key without a value on its line: a map or a list may follow, and its items stand at `items`. */
  let pending: { entry: YamlEntry; indent: number; items: number | undefined } | undefined;
  for (const { line, indent, text } of contentLines(source)) {
    if (/^-( |$)/.test(text)) {
      if (pending === undefined || indent < pending.indent || indent !== (pending.items ?? indent))
        fail(line, 'a list item that fits no key');
      pending.items = indent;
      const item = readValue(text.slice(1), line);
      if (Array.isArray(item)) fail(line, 'a list inside a list');
      pending.entry.value = [...(Array.isArray(pending.entry.value) ? pending.entry.value : []), item];
      continue;
    }
    if (pending !== undefined && pending.items === undefined && indent > pending.indent) {
      maps.push({ indent, path: `${pending.entry.path}.`, keys: new Set() });
      entries.pop();
    }
    if (maps.length === 0) maps.push({ indent, path: '', keys: new Set() });
    while (maps.length > 1 && indent < (maps.at(-1)?.indent ?? 0)) maps.pop();
    const map = maps.at(-1);
    if (map?.indent !== indent)
      return fail(line, 'the indentation fits no map; a value ends on its own line');
    const { key, rest } = readKey(text, line);
    const entry: YamlEntry = { path: map.path + key, value: readValue(rest, line), line };
    if (map.keys.has(key) || entries.some(({ path }) => path === entry.path))
      fail(line, 'a key that has been set before');
    map.keys.add(key);
    entries.push(entry);
    pending = /^ *(#.*)?$/.test(rest) ? { entry, indent, items: undefined } : undefined;
  }
  return entries;
}
/** The lines that hold something: no comments, no blank lines, no marker, no byte-order mark. */
function contentLines(source: string): { line: number; indent: number; text: string }[] {
  let isStarted = false;
  return source
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .flatMap((raw, index) => {
      const line = index + 1;
      if (
        /[\x00-\x1f\x7f-\x9f\u2028\u2029\uD800-\uDFFF\uFEFF\uFFFE\uFFFF]/.test(
          raw.replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, ''),
        )
      ) {
        fail(line, 'a tab or another character that is not supported; indent and separate with spaces');
      }
      if (/^ *(#|$)/.test(raw)) return [];
      if (raw.startsWith('%')) fail(line, 'a directive; remove it');
      const isMarker = /^(---|\.\.\.)( |$)/.test(raw);
      if (isMarker && (isStarted || !/^--- *( #.*)?$/.test(raw)))
        fail(line, 'only one document, begun by a bare "---"');
      isStarted = true;
      return isMarker ? [] : [{ line, indent: raw.search(/[^ ]/), text: raw.replace(/^ +/, '') }];
    });
}
/** Splits `key: rest`; the rest begins with the space, if there is one. */
function readKey(text: string, line: number): { key: string; rest: string } {
  const quoted = /^["']/.test(text) ? readQuoted(text, line) : undefined;
  const colon =
    quoted === undefined ? text.search(/:( |$)/) : text.length - quoted.rest.replace(/^ +/, '').length;
  if (colon < 0 || colon > 1000 || !/^:( |$)/.test(text.slice(colon))) fail(line, 'no "key: value"');
  const key = quoted?.value ?? readPlain(text.slice(0, colon), line);
  if (typeof key !== 'string' || key === '') return fail(line, 'a key that is not text; quote it');
  return { key, rest: text.slice(colon + 1) };
}
function readValue(after: string, line: number): YamlScalar | YamlScalar[] {
  const text = after.replace(/^ +/, '');
  if (!/^["'[]/.test(text)) return readPlain(after.replace(/ +#.*$/, '').replace(/^ +/, ''), line);
  const { value, rest } = text.startsWith('[') ? readFlowList(text, line) : readQuoted(text, line);
  if (!/^( +#.*| *)$/.test(rest)) fail(line, 'something after the end of the value');
  return value;
}
function readFlowList(text: string, line: number): { value: YamlScalar[]; rest: string } {
  const value: YamlScalar[] = [];
  let rest = text.replace(/^\[ */, '');
  while (!rest.startsWith(']')) {
    const plain = /^[^,[\]{}]*/.exec(rest)?.[0] ?? '';
    const quoted = /^["']/.test(rest) ? readQuoted(rest, line) : undefined;
    if (quoted === undefined && /^ *$/.test(plain))
      fail(line, 'a list that is empty at one place or does not end on its line');
    value.push(quoted?.value ?? readPlain(plain, line));
    const end =
      /^ *(?:, *|(?=\]))/.exec(quoted?.rest ?? rest.slice(plain.length)) ??
      fail(line, 'a list that does not end on its line');
    rest = (quoted?.rest ?? rest.slice(plain.length)).slice(end[0].length);
  }
  return { value, rest: rest.slice(1) };
}
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  n: '\n',
  r: '\r',
  t: '\t',
  0: '\0',
};
/** A single- or double-quoted scalar at the start of `text`, and what follows it. */
function readQuoted(text: string, line: number): { value: string; rest: string } {
  const match =
    /^'((?:[^']|'')*)'(?!')|^"((?:[^"\\]|\\.)*)"/.exec(text) ??
    fail(line, 'a quoted text that does not end on its line');
  const [all, single, double = ''] = match;
  const value =
    single?.replaceAll("''", "'") ??
    double.replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/g, (_, escape: string) => {
      const character =
        escape.length > 1 ? String.fromCharCode(parseInt(escape.slice(1), 16)) : ESCAPES[escape];
      return character === undefined || /[\uD800-\uDFFF]/.test(character)
        ? fail(line, 'an escape that is not supported')
        : character;
    });
  return { value, rest: text.slice(all.length) };
}
/** A plain scalar, resolved by the core schema (YAML 1.2.2 §10.3.2). */
function readPlain(padded: string, line: number): YamlScalar {
  const text = padded.replace(/ +$/, '');
  if (/^[,[\]{}#&*!|>'"%@`]|^[-?:]( |$)|:( |$)| #/.test(text))
    fail(line, 'a form of YAML that is not supported here; quote the text');
  if (/^(null|Null|NULL|~|)$/.test(text)) return null;
  if (/^(true|True|TRUE|false|False|FALSE)$/.test(text)) return text.toLowerCase() === 'true';
  if (
    /^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$|^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(
      text,
    )
  )
    return Number(text);
  if (/^[-+]?(\.inf|\.Inf|\.INF)$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return /^(\.nan|\.NaN|\.NAN)$/.test(text) ? NaN : text;
}
