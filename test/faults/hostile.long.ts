/* The short form of evidence/faults/hostile.ts: the built service refuses malformed requests, and serves a
   healthy client meanwhile (docs/how-a-request-is-checked.md). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { exchange } from '../support/client.ts';
import { statusesIn } from '../support/raw-responses.ts';
import { SHAPES } from './shapes.ts';
import { assertUntroubled, openFixture, startGoodLoad } from './process-fixture.ts';

describe('the process', { timeout: 120_000 }, () => {
  test('gives one response to each malformed request, and serves a client with a valid token meanwhile', async (t) => {
    const fixture = await openFixture(t);
    const load = startGoodLoad(fixture, { connections: 1 });
    for (const [name, { bytes, status }] of Object.entries(SHAPES)) {
      await t.test(`gives ${status} to ${name}`, async () => {
        assert.deepEqual(statusesIn(await exchange(fixture.service.port, Buffer.from(bytes, 'latin1'))), [
          status,
        ]);
      });
    }
    assertUntroubled(await load.stop());
  });
});
