/* A million pipelined responses over connections that end in every way: none that could arrive is lost, and
   none is crossed (G8, G10). The seed is the time unless SEED is set. */
import { test } from 'node:test';
import { pour } from '../../faults/pipelines.ts';
import { figures } from '../../support/figures.ts';

const rows = figures('pipelined answers');
const seed = Number(process.env.SEED ?? Date.now());

test(`loses and crosses no response of a million, with seed ${seed}`, { timeout: 600_000 }, async (t) => {
  const { ends, ...outcome } = await pour(t, seed, 1_000_000);
  rows.push({ seed, ...outcome, ...ends });
});
