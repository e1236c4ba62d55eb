/* Phrases that were edited out of the documents, and never come back: neither there nor in the comments and
   messages of the code, nor in the names of tests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesBelow } from '../support/tree.ts';
import { PAGES, read, ROOT } from './pages.ts';

/** What an English-speaking engineer would not write, and what to write instead. */
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bprevents? (?:the )?start(?:up)?\b/, 'stops startup; is rejected at startup'],
  [/\bis a problem\b/, 'is rejected'],
  [/\b(?:requests?|responses?|fetch|fetches) under way\b/, 'in-flight requests; the running fetch'],
  [/\bwhile requests come\b/, 'while requests arrive; with steady traffic'],
  [/\bshows? what this page says\b/, 'Verified by … in the last line'],
  [/\bthe provider of the demo\b/, 'the demo provider'],
  [/\bsomebody else\b/, 'another client, another caller'],
  [/\bthe same goes for\b/, 'repeat the verb'],
  [/\b(?:names?|fields?) and values in turn\b/, 'alternating names and values'],
  [/\b(?:a server that you have|routes of your own|a store of yours)\b/, 'your existing server, your routes'],
  [/\b(?:refuses|admits|believes) nobody\b/, 'no client, only …'],
  [/\bcounts? no longer\b/, 'is revoked, is no longer valid'],
];

/** The same, in documents only. */
const PHRASES_OF_DOCUMENTS: typeof PHRASES = [
  [/\bnobody\b/i, 'no one, no client; turn it positive'],
  [/\bsays? (?:what|which|how|why)\b/, 'lists, explains'],
  [/\b(?:the|each|this|its) question\b(?!-)/, 'auth request, introspection request'],
  [/\bentry points?\b/, 'export, import path; main file'],
  [/\bin turns?\b/, 'one at a time, alternately'],
  [/\bunder way\b/, 'in flight, running'],
  [/(?<!stack |`)\bframes\b(?!`)/, 'stack frames'],
  [/\b[Gg]ood (?:tokens?|hosts?|proofs?|keys?)\b/, 'valid'],
  [/\b(?:that|which|it|table|line) (?:names|gives)\b/, 'lists, identifies; returns'],
  [/\bstrangers?\b(?!:)/, 'unauthenticated clients; an attacker; another tenant'],
  [/\b(?:some|any)body\b/, 'someone, anyone, another client'],
  [/\b(?:is|are|be) at work\b/, 'is enabled, in use, running'],
  [/\bas ever\b/, 'as usual'],
  [/\bis due\b/, 'is pending'],
  [/\bthat you have\b/, 'your existing …'],
  [/\bprivate authorit(?:y|ies)\b/, 'private CA'],
  [/\bcounts? as absent\b/, 'is treated as missing'],
  [/\b(?:503|401) at once\b/, '503 immediately'],
  [/\bwhat its lines are for\b/i, 'Why it is written this way'],
  [/\bis away\b(?!')/, 'is down'],
  [/\b(?:keys|tokens|scopes|name) alone\b/, 'only …, before the noun'],
  [/\bgets? (?:one|a name) of its own\b/, 'gets its own …'],
];

const sources = (folder: string) =>
  filesBelow(new URL(folder, ROOT))
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => `${folder}${name}`);

const FORMS = filesBelow(new URL('.github/', ROOT)).map((name) => `.github/${name}`);

const OF_DEMO = filesBelow(new URL('test/demo/web/', ROOT))
  .filter((name) => /\.(?:html|js)$/.test(name))
  .map((name) => `test/demo/web/${name}`);

const DOCUMENTS = [...PAGES, ...FORMS, ...OF_DEMO, '.env.example', 'docs/rules.yml'];
const CODE = [...sources('src/'), ...sources('test/')].filter((name) => name !== 'test/docs/phrases.test.ts');

/** Without line breaks, and what begins a line of a comment or a quotation. */
const flat = (text: string) => text.replace(/\s+(?:[*>#]|\/\/)?\s*/g, ' ');

const flattened = (names: readonly string[]) => names.map((name) => [name, flat(read(name))] as const);

const documents = flattened(DOCUMENTS);
const everything = [...documents, ...flattened(CODE)];

function assertAbsent([phrase, instead]: (typeof PHRASES)[number], texts: typeof documents): void {
  const found = texts.flatMap(([name, text]) => {
    const hit = phrase.exec(text);
    return hit === null ? [] : [`${name}: …${text.slice(Math.max(0, hit.index - 40), hit.index + 40)}…`];
  });
  assert.deepEqual(found, [], `write: ${instead}`);
}

for (const phrase of PHRASES) {
  test(`no document, comment, message or test name has ${phrase[0].source}`, () => {
    assertAbsent(phrase, everything);
  });
}

for (const phrase of PHRASES_OF_DOCUMENTS) {
  test(`no document has ${phrase[0].source}`, () => assertAbsent(phrase, documents));
}
