/* The short form of evidence/faults/pipelines.ts: no response is lost or crossed, however a connection with
   many requests ends. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { pour } from './pipelines.ts';

test(
  'loses no response and mixes up none on connections that are half-closed, closed, broken, slowed, destroyed and cut',
  { timeout: 120_000 },
  async (t) => {
    const { responses, ends } = await pour(t, 1, 30_000);
    assert.ok(responses >= 30_000);
    assert.equal(Object.keys(ends).length, 8);
  },
);
