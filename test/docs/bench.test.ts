/* The page of the benchmark has no figures in prose but those of its plan and of its last run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WARM } from '../evidence/bench/plan.ts';
import type { Results } from '../evidence/bench/results.ts';
import { says, word, WORDS } from './constants.ts';
import { read } from './pages.ts';

const PAGE = 'test/evidence/bench/README.md';

const { machine, rounds } = JSON.parse(read('test/evidence/bench/results.json')) as Results;

const PHRASES = [
  says`${WARM.connections} connections, unless the case says otherwise`,
  says`${word(Number(machine.cores))} cores of an ${String(machine.processor)}, Linux, Node ${String(machine.node).slice(1)},`,
  says`medians of ${word(rounds)} rounds`,
];

for (const phrase of PHRASES) {
  test(`${PAGE} says what the plan and the last run have: ${phrase}`, () => {
    assert.ok(read(PAGE).includes(phrase));
  });
}

/** Generated text, code, and versions. */
const OTHERS =
  /<!-- generated: [^]*?<!-- end -->|`[^`\n]+`|\b(?:Node|Express|Fastify):? (?:\d+, )*(?:\d+ or )?\d+(?![.\d])/g;

const AMOUNT = `(?:${WORDS.slice(1).join('|')}|third|half|fifth|million)`;

test(`${PAGE} has no other figure in its prose`, () => {
  const prose = PHRASES.reduce((text, phrase) => text.replace(phrase, ''), read(PAGE).replace(OTHERS, ''));
  assert.deepEqual(prose.match(new RegExp(`(?<![\\w-])\\d[\\d,.]*|\\b${AMOUNT}\\b`, 'g')) ?? [], []);
});
