/* The README, and its tables as lists of rows of cells. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export const ROOT = new URL('../../', import.meta.url);
export const README = readFileSync(new URL('README.md', ROOT), 'utf8');

/** The text under a heading, up to the next one. */
function textUnder(heading: string): string {
  const [, body = ''] = README.split(new RegExp(`^#+ ${heading}$`, 'm'));
  return body.split(/^#+ /m)[0] ?? '';
}

/** The tables under a heading, without their heads. */
export const tablesUnder = (heading: string): string[][][] =>
  (textUnder(heading).match(/(?:^\|.*\n)+/gm) ?? []).map((table) =>
    table
      .trim()
      .split('\n')
      .slice(2)
      .map((row) => row.slice(2, -2).split(' | ')),
  );
export const tableUnder = (heading: string, index = 0): string[][] =>
  tablesUnder(heading)[index] ?? assert.fail(`no table under ${heading}`);

export const code = (text: string) => `\`${text}\``;
