// A strict parser for the YAML that settings need: nested maps, lists, plain and quoted scalars. Promises:
// what it accepts has the meaning of YAML 1.2 (core schema); anything else is rejected with its line.
import { throwAt, type Entry, type RawValue, type Scalar } from './entry.ts';

const START = /^\uFEFF?((?: *(?:#.*)?\r?\n)*)(?:---(?= *(?: #.*)?(?:\r?\n|$)))?/;
const CHARACTER = /[\x00-\x1f\x7f-\x9f\u2028\u2029\uD800-\uDFFF\uFEFF\uFFFE\uFFFF]/u;

/** Only JSON's escapes, and no surrogates. */
const DOUBLE = /"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*"/.source;
const QUOTED = `${DOUBLE}|'(?:[^']|'')*'(?!')`;
// Plain text must not end in a blank, or a run of blanks would be scanned again from each one.
const ITEM = `(?:${QUOTED}|[^"',[\\]{} ](?:[^,[\\]{}]*?[^,[\\]{} ])??)`;
const ITEMS = new RegExp(`${ITEM}(?= *[,\\]])`, 'g');
const LIST = `\\[(?: *${ITEM} *(?:,|(?=\\])))* *\\]`;
const VALUE = new RegExp(`^(?: *(?! )(${QUOTED}|${LIST}|[^"'[# ](?:.*?[^ ])??))?(?: +#.*)? *$`);
const PAIR = new RegExp(`^(${QUOTED}|[^"'](?:.*?[^ ])??) *:( .*)?$`);

/** Unsupported forms of YAML, infinity and NaN. */
const OTHER = /^[,[\]{}#&*!|>'"%@`]|^[-?:]( |$)|:( |$)| #|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/;
const NUMBER = /^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+)$/;

const NO_MAP = 'the indentation fits no map; a value must end on the line where it begins';

const NO_PAIR = 'a missing "key: value", a quote not closed on its line, or a list item out of place';

/** A key with its value on the lines below, or the root of the document. */
interface Key {
  readonly prefix: string;
  readonly indent: number;
  readonly outer?: Key;
  /** The start of each line below: blanks, and a dash in a list. */
  below?: string;
}

/** Throws `SettingProblem`. */
export function parseYaml(document: string, file: string): Entry[] {
  const names = new Set<string>();
  const entries: Entry[] = [];
  let items: Scalar[] = [];
  const root: Key = { prefix: '', indent: -1 };
  let open = root;

  function readLine(line: string, source: string) {
    const [, start = '', text = ''] = /^( *(?:-(?= |$))?)(.*)/.exec(line) ?? [];
    const isItem = start.endsWith('-');
    // `start` counts the dash too: the items of a list may be indented like its key.
    while (open.indent >= start.length) open = open.outer ?? root;

    if (open.below === undefined) {
      open.below = start;
      items = [];
      // Replaces the empty value on the key's line.
      const last = entries.pop();
      if (isItem && last) entries.push({ ...last, value: items });
    }
    if (open.below !== start || (isItem && open === root)) {
      throwAt(source, isItem ? NO_PAIR : NO_MAP);
    }
    if (isItem) items.push(readItem(text, source));
    else readPair(text, source, start.length);
  }

  function readPair(text: string, source: string, indent: number) {
    const [, written = '', rest = ''] = PAIR.exec(text) ?? throwAt(source, NO_PAIR);
    const key = readScalar(written, source);
    // YAML 1.2.2 §8.2.2 bounds a key.
    if (typeof key !== 'string' || key === '' || written.length > 1000) {
      return throwAt(source, 'a key that is not text of at most 1000 characters; quote or shorten it');
    }
    // `"a.b"` is not `b` below `a`.
    const name = open.prefix + (/\.|^"/.test(key) ? JSON.stringify(key) : key);
    if (names.has(name)) throwAt(source, 'a key that is already set; remove one of the two');
    names.add(name);

    entries.push({ name, value: readValue(rest, source), source });
    if (/^ *(#.*)?$/.test(rest)) open = { prefix: `${name}.`, indent, outer: open };
  }

  for (const [index, line] of document.replace(START, '$1').split(/\r?\n/).entries()) {
    const source = `${file}, line ${index + 1}`;
    if (CHARACTER.test(line)) throwAt(source, 'a tab or another character that is not supported; use spaces');
    if (/^(%|(---|\.\.\.)( |$))/.test(line)) throwAt(source, 'a directive or a second document; remove it');
    if (!/^ *(#|$)/.test(line)) readLine(line, source);
  }
  return entries;
}

function readItem(text: string, source: string): Scalar {
  const item = readValue(text, source);
  return typeof item === 'object' && item !== null ? throwAt(source, 'a list inside a list') : item;
}

function readValue(after: string, source: string): RawValue {
  const [, text = ''] =
    VALUE.exec(after) ??
    throwAt(
      source,
      'a quote or list not closed on its line, an unknown escape, or something after the value',
    );
  if (!text.startsWith('[')) return readScalar(text, source);

  const items = text.slice(1).matchAll(ITEMS);
  return Array.from(items, ([item]) => readScalar(item, source));
}

/** Resolves a plain scalar by the core schema (YAML 1.2.2 §10.3.2). */
function readScalar(text: string, source: string): Scalar {
  if (text.startsWith('"')) return String(JSON.parse(text));
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  if (OTHER.test(text)) throwAt(source, 'a list item on the line of its key, or unsupported YAML; quote it');
  if (/^(null|Null|NULL|~|)$/.test(text)) return null;
  if (/^(true|True|TRUE|false|False|FALSE)$/.test(text)) return text.toLowerCase() === 'true';
  return NUMBER.test(text) ? Number(text) : text;
}
