// A strict reader of the part of YAML 1.2 that settings need: nested maps, lists, plain and quoted scalars.
// Promises: what it accepts it reads as YAML 1.2 (core schema) does; all else is a fault that names its line.
import { fail, type Entry, type RawValue, type Scalar } from './entry.ts';

/** A byte-order mark, and the bare marker of the only document. */
const START = /^\uFEFF?((?: *(?:#.*)?\r?\n)*)(?:---(?= *(?: #.*)?(?:\r?\n|$)))?/;
const CHARACTER = /[\x00-\x1f\x7f-\x9f\u2028\u2029\uD800-\uDFFF\uFEFF\uFFFE\uFFFF]/u;

/** In double quotes only the escapes that JSON has too, and no halves of a character. */
const DOUBLE = /"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*"/.source;
const QUOTED = `${DOUBLE}|'(?:[^']|'')*'(?!')`;
// Plain text ends before blanks, so that many of them are looked at once and not from each of them anew.
const ITEM = `(?:${QUOTED}|[^"',[\\]{} ](?:[^,[\\]{}]*?[^,[\\]{} ])??)`;
const ITEMS = new RegExp(`${ITEM}(?= *[,\\]])`, 'g');
const LIST = `\\[(?: *${ITEM} *(?:,|(?=\\])))* *\\]`;
const VALUE = new RegExp(`^(?: *(?! )(${QUOTED}|${LIST}|[^"'[# ](?:.*?[^ ])??))?(?: +#.*)? *$`);
const PAIR = new RegExp(`^(${QUOTED}|[^"'](?:.*?[^ ])??) *:( .*)?$`);

/** Of plain scalars the beginnings and separators of other forms, and figures that no setting has. */
const OTHER = /^[,[\]{}#&*!|>'"%@`]|^[-?:]( |$)|:( |$)| #|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/;
const NUMBER = /^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+)$/;

interface Line {
  readonly place: string;
  readonly indent: number;
  readonly text: string;
}

const isItem = ({ text }: Line) => /^-( |$)/.test(text);

/** Reads the document of a file into its values, in order. Throws `Fault`. */
export function parseYaml(source: string, file: string): Entry[] {
  /** Those that are still to be read, the next one last. */
  const lines = contentLines(source, file).reverse();
  /** Every key so far; that of a map has no entry. */
  const names = new Set<string>();
  const entries: Entry[] = [];

  /** Reads the keys at an indentation. */
  function readMap(indent: number, prefix: string): void {
    let next = lines.at(-1);
    while (next?.indent === indent) {
      lines.pop();
      readPair(next, prefix);
      next = lines.at(-1);
    }
  }

  /** Reads a key with all that belongs to it. */
  function readPair({ place, indent, text }: Line, prefix: string): void {
    const [, written = '', rest = ''] =
      PAIR.exec(text) ??
      fail(
        place,
        'no "key: value", a quoted text that does not end on its line, or a list item without a key',
      );
    const key = readScalar(written, place);
    // YAML 1.2.2 §7.4.2: a key is bounded, so that no reader has to look ahead without end.
    if (typeof key !== 'string' || key === '' || written.length > 1000) {
      return fail(place, 'a key that is not text of at most 1000 characters; quote it');
    }
    const name = prefix + key;
    if (names.has(name)) fail(place, 'a key that is set before; remove one');
    names.add(name);

    const isOpen = /^ *(#.*)?$/.test(rest);
    const value = isOpen ? readBelow(indent, name) : readValue(rest, place);
    if (value !== undefined) entries.push({ name, value, place });
  }

  /** The list below a key, or `undefined` for a map. */
  function readBelow(indent: number, name: string): RawValue | undefined {
    const below = lines.at(-1);
    if (below === undefined || below.indent < indent) return null;
    if (isItem(below)) return readItems(below.indent);
    if (below.indent === indent) return null;

    readMap(below.indent, `${name}.`);
    return undefined;
  }

  function readItems(indent: number): RawValue {
    const items: Scalar[] = [];
    let next = lines.at(-1);
    while (next?.indent === indent && isItem(next)) {
      lines.pop();
      const item = readValue(next.text.slice(1), next.place);
      if (typeof item === 'object' && item !== null) return fail(next.place, 'a list inside a list');
      items.push(item);
      next = lines.at(-1);
    }
    return items;
  }

  readMap(lines.at(-1)?.indent ?? 0, '');
  const left = lines.at(-1);
  if (left !== undefined) fail(left.place, 'the indentation fits no map; a value ends on its own line');
  return entries;
}

/** The lines that hold something: no comments, no blank lines, no marker, no byte-order mark. */
function contentLines(source: string, file: string) {
  const lines: Line[] = [];
  const all = source.replace(START, '$1').split(/\r?\n/);
  for (const [index, raw] of all.entries()) {
    const place = `${file}, line ${index + 1}`;
    if (CHARACTER.test(raw)) fail(place, 'a tab or another character that is not supported; use spaces');
    if (/^(%|(---|\.\.\.)( |$))/.test(raw)) fail(place, 'a directive or a second document; remove it');
    if (/^ *(#|$)/.test(raw)) continue;

    const indent = raw.search(/[^ ]/);
    lines.push({ place, indent, text: raw.slice(indent) });
  }
  return lines;
}

/** The value of what stands after a colon or a dash. */
function readValue(after: string, place: string): RawValue {
  const [, text = ''] =
    VALUE.exec(after) ??
    fail(
      place,
      'a text or list that does not end on its line, an unknown escape, or something after the value',
    );
  if (!text.startsWith('[')) return readScalar(text, place);

  const items = text.slice(1).matchAll(ITEMS);
  return Array.from(items, ([item]) => readScalar(item, place));
}

/** A scalar, resolved by the core schema when it is plain (YAML 1.2.2 §10.3.2). */
function readScalar(text: string, place: string): Scalar {
  if (text.startsWith('"')) return String(JSON.parse(text));
  const inner = text.slice(1, -1);
  if (text.startsWith("'")) return inner.replaceAll("''", "'");
  if (OTHER.test(text)) fail(place, 'a list item without a key, or a form that is not read; quote it');
  if (/^(null|Null|NULL|~|)$/.test(text)) return null;
  if (/^(true|True|TRUE|false|False|FALSE)$/.test(text)) return text.toLowerCase() === 'true';
  return NUMBER.test(text) ? Number(text) : text;
}
