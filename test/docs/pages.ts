/* The headings, links, tables and samples of the documents, for tests that compare them with the
   repository. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { rowsOf, type Cells } from './tables.ts';

export const ROOT = new URL('../../', import.meta.url);

export const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8');

/** Every page for readers, by its path in the repository. */
export const PAGES = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'test/README.md',
  'test/evidence/bench/README.md',
].concat(
  readdirSync(new URL('docs/', ROOT))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
);

/** The anchor of a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');

/** The anchors of a page's headings. */
export const anchorsOf = (page: string) => [
  ...[...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchor(heading)),
  ...[...read(page).matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id),
];

/** The targets of a page's links and pictures. */
export function linksIn(page: string): readonly string[] {
  const links = /\]\(([^)\s]+)\)|<(?:img|source)\b[^>]* src(?:set)?="([^"]+)"/g;
  return [...read(page).matchAll(links)].map(([, link, picture]) => link ?? picture ?? '');
}

/** The text of a page under a heading, up to the next one. */
export function under(page: string, heading: string): string {
  const [, body = assert.fail(`${page} has no heading ${heading}`)] = read(page).split(`# ${heading}\n`);
  return body.split(/^#+ /m)[0] ?? '';
}

/** The rows of a table under a heading, the first or a later one. */
export function tableUnder(page: string, heading: string, index = 0): readonly Cells[] {
  const tables = under(page, heading).match(/(?:^\|.*\n)+/gm) ?? [];
  return rowsOf(tables[index] ?? assert.fail(`${page} has no such table under ${heading}`));
}

/** The samples of a language under a heading. */
export const samplesUnder = (page: string, heading: string, language: string): readonly string[] =>
  [...under(page, heading).matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, sample = '']) => sample,
  );

/** The first sample of a language in a section of any level; comments in samples may look like headings. */
export function sampleUnder(page: string, heading: string, language: string): string {
  const [, section = ''] = read(page).split(new RegExp(`^#+ ${heading}\\n`, 'm'));
  const [, sample = assert.fail(`${page} has no ${language} under ${heading}`)] =
    new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(section) ?? [];
  return sample;
}

/** Everything between back ticks. */
export const codeIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
