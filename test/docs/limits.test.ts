/* No figure of the documents is written by hand: a phrase made from the code has each limit and duration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WORDS } from './constants.ts';
import { LIMITS, OTHERS } from './limits.ts';
import { PAGES, read } from './pages.ts';

const joined = (text: string) => text.replace(/\s+/g, ' ');

for (const [page, phrases] of Object.entries(LIMITS)) {
  const text = joined(read(page));
  for (const phrase of phrases) {
    test(`${page} states the limits that the code has: ${phrase}`, () => {
      assert.ok(text.includes(phrase), `${page} does not say: ${phrase}`);
    });
  }
}

/** A changelog tells of the past; the pages of tests are for their authors. */
const READ = PAGES.filter((page) => page !== 'CHANGELOG.md' && !page.startsWith('test/'));

/** Generated text, code, and targets of links. */
const NOT_PROSE = [
  /<!-- generated: [^]*?<!-- end -->/g,
  /^ *```[^]*?^ *```$/gm,
  /^ {4,}.*$/gm,
  /`[^`\n]+`/g,
  /\]\([^)\n]*\)/g,
];

const hidden = (text: string) => text.replace(/[\w,.%]/g, '#');

/** Without figures in what is no prose, and as long as the joined page. */
const proseOf = (page: string) =>
  joined(NOT_PROSE.reduce((text, part) => text.replace(part, hidden), read(page)));

const DIGITS = String.raw`(?<![\w.,#§:/-]|RFC )\d[\d,.]*(?<![,.])(?![\w.]*\w)`;

const WORD = String.raw`\b(?:${WORDS.slice(1).join('|')})\b`;

const TIME = '(?:s|ms|µs|seconds?|minutes?|hours?|(?:working )?days?|weeks?|months?|years?)';

const AMOUNT =
  '(?:bytes?|[kKMG]i?B|bits?|characters?|letters?|levels?|keys?|segments?|proofs?|tokens?|requests?|fields?|' +
  'issuers?|tenants?|threads?|sessions?|fetch(?:es)?|retries|failures?|rounds?|frames?|lines?|dots?|' +
  'subscriptions?|entries|routes?|connections?|times)';

const BOUND =
  'at (?:most|least)|up to|over|under|below|above|more than|less than|within|exceed|default(?:s to|:| port)?';

/** A number with a unit, with a separator of thousands, after a word for a limit, or after a setting's name. */
const FIGURES = [
  `(?:${DIGITS} to )?${DIGITS}(?:[ -](?:(?!with|lists)\\w+ )?(?:${TIME}|${AMOUNT})\\b|%)`,
  `(?:${WORD} to )?${WORD}[ -](?:${TIME}\\b|(?:lines|times|dots|rounds|levels|sessions)\\b)`,
  String.raw`(?<![\w.,#])\d{1,3}(?:,\d{3})+`,
  `\\b(?:${BOUND}) (?:${DIGITS}|${WORD})`,
  `\` \\(${DIGITS}\\)`,
  String.raw`\b(?:port|on Node) \d+`,
  String.raw`\boldest (?:half|third)\b`,
  `${WORD} (?:X-Auth-)?headers\\b`,
  String.raw`\b(?:within|than|are|most|another|once|take|last|for) (?:an? )?(?:second|minute|hour|day)\b`,
].map((pattern) => new RegExp(pattern, 'g'));

interface Span {
  readonly from: number;
  readonly to: number;
}

const spanOf = ({ index, 0: { length } }: RegExpExecArray): Span => ({ from: index, to: index + length });

const figuresIn = (prose: string) => FIGURES.flatMap((pattern) => [...prose.matchAll(pattern)].map(spanOf));

/** The numbers of a figure, or all of it if it has none, as in "an hour". */
function numbersIn(prose: string, figure: Span): readonly Span[] {
  const text = prose.slice(figure.from, figure.to);
  const numbers = [...text.matchAll(new RegExp(`\\d[\\d,.]*|${WORD}`, 'g'))].map(spanOf);
  if (numbers.length === 0) return [figure];
  return numbers.map(({ from, to }) => ({ from: figure.from + from, to: figure.from + to }));
}

function spansOf(text: string, phrase: string): Span[] {
  const spans: Span[] = [];
  for (let from = text.indexOf(phrase); from >= 0; from = text.indexOf(phrase, from + 1)) {
    spans.push({ from, to: from + phrase.length });
  }
  return spans;
}

/** The figures of a page that no phrase has. */
function strayFiguresOf(page: string): readonly string[] {
  const text = joined(read(page));
  const others = OTHERS.filter(([name]) => name === page).map(([, phrase]) => phrase);
  const known = [...(LIMITS[page] ?? []), ...others].flatMap((phrase) => spansOf(text, phrase));
  const prose = proseOf(page);
  const isKnown = ({ from, to }: Span) => known.some((span) => span.from <= from && to <= span.to);
  return figuresIn(prose)
    .filter((figure) => !numbersIn(prose, figure).every(isKnown))
    .map(
      ({ from, to }) =>
        `${text.slice(Math.max(0, from - 40), from)}⟦${text.slice(from, to)}⟧${text.slice(to, to + 40)}`,
    );
}

for (const page of READ) {
  test(`each limit and duration of ${page} comes from the code`, () => {
    assert.deepEqual(strayFiguresOf(page), [], 'add a phrase to LIMITS in test/docs/limits.ts');
  });
}

test('each figure that does not come from the code is still in its page', () => {
  const gone = OTHERS.filter(([page, phrase]) => !joined(read(page)).includes(phrase));
  assert.deepEqual(gone, []);
});

const WITH_FIGURES = [
  'takes 5 s',
  'at most 512 KiB',
  'by about 14%',
  'a 60-line server',
  'ten minutes',
  'up to 1,000',
  '| 1,048,576 |',
  '`#` (15)',
  '(default 30)',
  'from 1 to 16 letters',
  'sends 64 introspection requests',
  'less than an hour old',
];

for (const text of WITH_FIGURES) {
  test(`finds a figure in: ${text}`, () => assert.notDeepEqual(figuresIn(text), []));
}

for (const text of [
  'gets 503 with a token',
  'RFC 9068 tokens',
  'HS256 or encrypted tokens',
  'a second proof',
  '§4.3(9)',
]) {
  test(`finds no figure in: ${text}`, () => assert.deepEqual(figuresIn(text), []));
}
