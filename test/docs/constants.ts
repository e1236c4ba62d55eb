/* Reads figures from the text of files whose constants are not exported, and writes figures as the documents
   write them. */
import assert from 'node:assert/strict';
import { withoutComments } from '../support/imports.ts';
import { read } from './pages.ts';

const NUMBER = String.raw`(?:0x[\da-f_]+|[\d_]+(?:\.\d+)?)`;

/** Nothing but numbers and signs, so that evaluating it can do nothing else. */
const EXPRESSION = String.raw`[(\s]*${NUMBER}(?:[\s()]*(?:\*\*|<<|[*+/])[\s()]*${NUMBER})*[\s)]*?`;

const WHOLE_EXPRESSION = new RegExp(`^${EXPRESSION}$`);

function evaluate(expression: string, where: string): number {
  assert.match(expression, WHOLE_EXPRESSION, where);
  return Number(new Function(`'use strict'; return (${expression.replaceAll('_', '')});`)());
}

const sourceOf = (file: string) => (file.endsWith('.ts') ? withoutComments(read(file)) : read(file));

/** `what` names the pattern if it matches nowhere, or in several places. */
function onlyNumber(file: string, pattern: RegExp, what: string): number {
  const found = [...sourceOf(file).matchAll(new RegExp(pattern, `g${pattern.flags}`))];
  assert.equal(found.length, 1, `${file} has ${what} ${found.length} times, not once`);
  return evaluate(found[0]?.[1] ?? '', `${file}: ${what}`);
}

/** The number in the only place of a file that matches. The pattern has one group. */
export const numberIn = (file: string, pattern: RegExp): number => onlyNumber(file, pattern, pattern.source);

/** The only number that a file gives this name: `NAME = 5_000`, or `name: 5_000`. */
export const constantIn = (file: string, name: string): number =>
  onlyNumber(
    file,
    new RegExp(`(?<![\\w.#])${name}(?:: number)?(?: =|:) (${EXPRESSION})(?=[;,)}\\n]| })`),
    `a number ${name}`,
  );

/** For a figure that the documents state once for several constants. */
export function same(first: number, ...others: readonly number[]): number {
  for (const other of others) assert.equal(other, first, 'the documents have one figure for both');
  return first;
}

function whole(figure: number): number {
  assert.ok(Number.isInteger(figure), `${figure} needs other words in the documents`);
  return figure;
}

export const count = (figure: number) => whole(figure).toLocaleString('en-US');

export const seconds = (millis: number) => `${whole(millis / 1_000)} s`;

export const minutes = (millis: number) => whole(millis / 60_000);

export const kib = (bytes: number) => `${whole(bytes / 1024)} KiB`;

export const mib = (bytes: number) => `${whole(bytes / 1024 ** 2)} MiB`;

export const gib = (bytes: number) => `${whole(bytes / 1024 ** 3)} GiB`;

const UNITS = new Map([
  [1_000, 'second'],
  [60_000, 'minute'],
  [3_600_000, 'hour'],
  [86_400_000, 'day'],
]);

/** One unit of time, as in "another second". */
export const unit = (millis: number) =>
  UNITS.get(millis) ?? assert.fail(`${millis} ms need other words in the documents`);

/** One unit of time with its article, as in "within a second". */
export const one = (millis: number) =>
  unit(millis)
    .replace(/^(?=h)/, 'an ')
    .replace(/^(?!an )/, 'a ');

export const WORDS = 'one two three four five six seven eight nine ten eleven twelve'.split(' ');

export const word = (figure: number) => WORDS[figure - 1] ?? assert.fail(`there is no word for ${figure}`);

const BY_HAND = new RegExp(`\\d|\\b(?:${WORDS.slice(1).join('|')})\\b`);

/** A phrase of a page. Its figures come from code: what is written by hand has none. */
export function says(texts: TemplateStringsArray, ...figures: readonly (string | number)[]): string {
  for (const text of texts) assert.doesNotMatch(text, BY_HAND, 'a figure is written by hand');
  return String.raw({ raw: texts }, ...figures);
}
