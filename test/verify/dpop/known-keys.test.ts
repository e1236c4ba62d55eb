/* The cache of imported proof keys: importing is costly, and only keys that have signed are worth caching. */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { makeProofKey, sealProof } from '../../support/proof.ts';
import { draft, verdictOf, key, openSender } from '../sender-fixture.ts';

test('imports a key until two of its proofs have been verified, and then no more', async (context) => {
  const imports = context.mock.method(crypto, 'createPublicKey').mock;
  syncBuiltinESMExports();
  try {
    const sender = openSender();
    const forged = draft();
    forged.alter = (signature) => Buffer.alloc(signature.length);
    const counts: number[] = [];
    for (const proof of [draft(), forged, forged, draft(), draft(), draft()]) {
      await verdictOf(sender, sealProof(proof));
      counts.push(imports.callCount());
    }
    assert.deepEqual(counts, [1, 2, 3, 4, 4, 4]);
  } finally {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  }
});

test('caches at most a thousand keys of proofs, however many keys callers use', async (context) => {
  const keys = [key, ...Array.from({ length: 1_000 }, () => makeProofKey())];
  const imports = context.mock.method(crypto, 'createPublicKey').mock;
  syncBuiltinESMExports();
  try {
    const sender = openSender();
    for (const one of keys) {
      await verdictOf(sender, sealProof(draft(one)));
      await verdictOf(sender, sealProof(draft(one)));
    }
    const count = imports.callCount();
    assert.equal(await verdictOf(sender, sealProof(draft())), 'accepted');
    assert.equal(imports.callCount(), count + 1);
  } finally {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  }
});
