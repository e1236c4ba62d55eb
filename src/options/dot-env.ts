// Reads `.env`, each line by itself with Node's own util.parseEnv: given a whole file that loses settings in
// silence, on Node 20 the one after a line of a blank, on 22 to 26 that after `NAME=` and a blank. Promises:
// what is neither assignment, comment nor empty is a problem; blanks at the ends of a line are nothing.
import { parseEnv } from 'node:util';
import { noteRepetitions, type Entry } from '../process/settings/entry.ts';

// Stricter: a quoted value ends its line. One whose second quote is missing would swallow the settings
// below. Stricter: a comment stands behind a blank. Others read `a#b` as a whole, and would mean it so.
const VALUE = String.raw`(["'\x60])(?:(?!\3).)*\3|(?!["'\x60])(?:(?!#).)*?(?<!\s)|`;

// A control character but a tab nobody sees, or sees as the end of a line.
const ASSIGNMENT = new RegExp(
  String.raw`^(?![^]*[^\P{Cc}\t])(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?!\s)(${VALUE})\s*((?<=\s)#.*)?$`,
  'u',
);

/** What a file holds; what it should not hold, a name that is set twice among it, is added to `problems`. */
export function parseDotEnv(source: string, file: string, problems: string[]): Entry[] {
  const entries: Entry[] = [];
  for (const [index, raw] of source.split('\n').entries()) {
    const place = `${file}, line ${index + 1}`;
    const text = raw.trim();
    const [, name, written] = ASSIGNMENT.exec(text) ?? [];
    if (name !== undefined) {
      const value = String(parseEnv(`VALUE=${written}`).VALUE);
      entries.push({ name, value, place });
    } else if (!/^(#.*)?$/.test(text)) {
      problems.push(`${place}: no visible NAME=value on one line, no comment, not empty; mend it, quote #`);
    }
  }
  noteRepetitions(entries, problems);
  return entries;
}
