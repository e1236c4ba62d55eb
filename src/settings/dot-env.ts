// Parses `.env` line by line. Given a whole file, Node's util.parseEnv silently drops what follows
// some kinds of lines. Promises: a line that is no assignment, no comment and not empty is rejected.
import { parseEnv } from 'node:util';
import { problemOf, type Entry } from './entry.ts';

// Stricter: a quoted value ends on its line, or a missing quote would swallow settings. Stricter: a comment
// needs a space before it.
const VALUE = String.raw`(["'\x60])(?:(?!\3).)*\3|(?!["'\x60])(?:(?!#).)*?(?<!\s)|`;

const ASSIGNMENT = new RegExp(
  String.raw`^(?![^]*[^\P{Cc}\t])(?:export[ \t]+)?([^\W\d]\w*)[ \t]*=[ \t]*(?!\s)(${VALUE})\s*((?<=\s)#.*)?$`,
  'u',
);

const NO_LINE =
  'is neither NAME=value in visible characters, nor a comment, nor empty; correct it, and quote a #';

export function parseDotEnv(text: string, file: string, problems: string[]): Entry[] {
  const entries: Entry[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const source = `${file}, line ${index + 1}`;
    const line = raw.trim();
    const [, name, written] = ASSIGNMENT.exec(line) ?? [];
    if (name !== undefined) {
      const value = String(parseEnv(`VALUE=${written}`).VALUE);
      entries.push({ name, value, source });
    } else if (!/^(#.*)?$/.test(line)) {
      problems.push(`${source}: ${NO_LINE}`);
    }
  }
  reportRepeated(entries, problems);
  return entries;
}

function reportRepeated(entries: readonly Entry[], problems: string[]) {
  const sources = new Map<string, string>();
  for (const entry of entries) {
    const earlier = sources.get(entry.name);
    if (earlier !== undefined) problems.push(problemOf(entry, `is already set; remove one (${earlier})`));
    sources.set(entry.name, entry.source);
  }
}
