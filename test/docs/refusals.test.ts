/* docs/refusals.md has an anchor for each reason, and says what to do about each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decision } from '../../src/decisions.ts';
import { claimCheck, claimEquals, claimIncludes } from '../../src/gate/rules/guards.ts';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { anchorsOf, read } from './pages.ts';

const PAGE = 'docs/refusals.md';

const REASONS = Object.values(REFUSALS).flatMap((sentences) => Object.keys(sentences));

test('every reason has an anchor, for error_uri [RFC 6750 §3]', () => {
  const anchors = anchorsOf(PAGE);
  assert.deepEqual(
    REASONS.filter((reason) => !anchors.includes(reason)),
    [],
  );
});

test('every row of a reason says what the client or the operator does', () => {
  const rows = read(PAGE).match(/^\|.*<a id="[^"]+"><\/a>.*$/gm) ?? [];
  assert.ok(rows.length > 60);
  const cells = rows.map((row) => row.slice(2, -2).split(' | '));
  assert.deepEqual(
    cells.filter((row) => row.slice(-2).join('').trim() === ''),
    [],
  );
});

test("a sentence with an API's own words is found as the page says", () => {
  const page = read(PAGE).replaceAll('\n', ' ');
  assert.ok(page.includes("search for the part after a claim's name, or before a colon."));

  const lost = [
    claimEquals('plan', 'pro'),
    claimIncludes('roles', ['editor']),
    claimCheck('is a member', () => true),
    decision('may pay from this account', () => true),
  ]
    .map(({ refused }) => refused.refusal.description.replace(/^the claim \w+ |:.*/g, ''))
    .filter((part) => !page.includes(part));
  assert.deepEqual(lost, []);
});
