/* Phrases that were edited out of the documents, and never come back: neither there nor in the comments and
   messages of the code, nor in the names of tests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesBelow } from '../support/tree.ts';
import { PAGES, read, ROOT } from './pages.ts';

/** What an English-speaking engineer would not write, and what to write instead. */
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\b(?:requests?|responses?|fetch|fetches) under way\b/, 'in-flight requests; the running fetch'],
  [/\bwhile requests come\b/, 'under traffic'],
  [/\bof the provider of the demo\b/, 'of the demo provider'],
  [/\bsomebody else\b/, 'another client, another caller'],
  [/\bthe same goes for\b/, 'repeat the verb'],
  [/\b(?:names?|fields?) and values in turn\b/, 'alternating names and values'],
  [/\b(?:a server that you have|routes of your own|a store of yours)\b/, 'your existing server, your routes'],
  [/\b(?:refuses|admits|believes) nobody\b/, 'no client, only …'],
  [/\bcounts? no longer\b/, 'is revoked, is no longer valid'],
];

const sources = (folder: string) =>
  filesBelow(new URL(folder, ROOT))
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => `${folder}${name}`);

const FILES = [...PAGES, '.env.example', 'docs/rules.yml', ...sources('src/'), ...sources('test/')].filter(
  (name) => name !== 'test/docs/phrases.test.ts',
);

/** Without line breaks and what begins a line of a comment or a quotation. */
const flat = (text: string) => text.replace(/\s+(?:[*>#]|\/\/)?\s*/g, ' ');

const texts = FILES.map((name) => [name, flat(read(name))] as const);

for (const [phrase, instead] of PHRASES) {
  test(`no document, comment, message or test name has ${phrase.source}`, () => {
    const found = texts.flatMap(([name, text]) => {
      const hit = phrase.exec(text);
      return hit === null ? [] : [`${name}: …${text.slice(Math.max(0, hit.index - 40), hit.index + 40)}…`];
    });
    assert.deepEqual(found, [], `write: ${instead}`);
  });
}
