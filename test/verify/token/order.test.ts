/* The order of the checks: of two faults, the earlier one of docs/how-a-request-is-checked.md is reported, cached or not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draft, FAULTS, seal, type Fault } from './faults.ts';
import { GOOD, verdict } from './issuer.ts';

const faults = Object.entries(FAULTS).filter(([, { sender }]) => sender === undefined) as [string, Fault][];

test('accepts the token without any fault', async () => {
  assert.equal(seal(draft()), GOOD);
  assert.equal(await verdict(GOOD), 'accepted');
});

for (const [index, [earlier, first]] of faults.entries()) {
  test(`reports ${earlier} before every later fault [docs/how-a-request-is-checked.md]`, async () => {
    for (const [later, second] of [[earlier, first] as const, ...faults.slice(index + 1)]) {
      if (later !== earlier && first.place === second.place) continue;
      const both = draft();
      first.apply(both);
      second.apply(both);
      assert.equal(await verdict(seal(both), { rules: both.rules }), earlier, `beside ${later}`);
    }
  });
}
