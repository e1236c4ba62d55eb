/* A million pipelined answers over connections that end in every way: none is lost that could be given, and none crossed (G8, G10). The
   seed is the time unless SEED gives one. */
import { test } from 'node:test';
import { pour } from '../../faults/pipelines.ts';
import { figures } from '../../support/figures.ts';

const rows = figures('pipelined answers');
const seed = Number(process.env.SEED ?? Date.now());

test(`loses and crosses no response of a million, with seed ${seed}`, { timeout: 600_000 }, async (t) => {
  const { ends, ...outcome } = await pour(t, seed, 1_000_000);
  rows.push({ seed, ...outcome, ...ends });
});
