/* The memory of decisions that waited: nothing of a request stays with its connection. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { decision } from '../../src/decisions.ts';
import { createGate, needs } from '../../src/gate.ts';
import { makeIssuer } from '../support/issuer.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

test('a connection that stays open keeps no request about which a decision has been made', async (t) => {
  const issuer = makeIssuer();
  const gate = createGate(issuer.options);
  t.after(() => gate.close());
  const access = needs(decision('may pay', async () => true));
  const socket = new EventEmitter();

  const ask = async () => {
    const rawHeaders = ['Host', 'a', 'Authorization', `Bearer ${issuer.token()}`];
    const request = { method: 'GET', url: '/pay', rawHeaders, socket };
    assert.equal((await gate.check(request, access)).refusal, undefined);
    return new WeakRef(request);
  };

  const requests = [await ask(), await ask(), await ask()];
  // The target of a WeakRef lives until the end of the job that made it.
  await new Promise(setImmediate);
  collect();
  const kept = requests.filter((request) => request.deref() !== undefined);
  assert.deepEqual([kept.length, socket.listenerCount('close')], [0, 1]);
});
