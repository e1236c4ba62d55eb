/* What changes of the checks on presentation would otherwise go unseen (npm run mutants). */
import assert from 'node:assert/strict';
import { atOnce } from '../support/clock.ts';
import { test } from 'node:test';
import { Refused } from '../../src/base/refusal.ts';
import { requestUri } from '../../src/request/uri.ts';
import { createNonces } from '../../src/sender/dpop-nonce.ts';
import { createReplayStore } from '../../src/sender/replay.ts';
import { callerWith } from '../support/caller.ts';
import { sealProof } from '../support/proof.ts';
import { NOW, openVerifier } from '../token/issuer.ts';
import { draft, openSender, PATH, TOKEN } from './stand.ts';

test('gives the nonce that every replica gives, of whatever version, for this secret and time [RFC 9449 §9]', () => {
  assert.equal(
    createNonces('s'.repeat(32)).current(1_800_000_000_000),
    'dTAJ5snXWHvL9YnimlMMF815NMVpQFn8om8luQssmVo',
  );
});

test('takes the last of several forwarded fields, each with one hop, under TRUST_PROXY', () => {
  const hops = [
    ['http', 'evil.test'],
    ['https', 'outer.test'],
  ] as const;
  const fields = hops.flatMap(([scheme, host]) => ['X-Forwarded-Proto', scheme, 'X-Forwarded-Host', host]);
  assert.equal(
    requestUri(
      { host: 'inner.test', path: '/a', rawHeaders: fields },
      { publicUrl: undefined, trustProxy: true },
    ),
    'https://outer.test/a',
  );
});

test('forgets a used proof when an eighth of the window has passed since its end, and no sooner', () => {
  const store = createReplayStore(80, 1);
  const verdicts = [0, 9, 10].map((second) =>
    store.record('1'.repeat(43), `jti ${second}`, NOW + second, NOW + second),
  );
  assert.deepEqual(verdicts, ['new', 'full', 'new']);
});

test('tells that a memory without any room is full', () => {
  let told = 0;
  const store = createReplayStore(80, 0, () => {
    told += 1;
  });
  assert.deepEqual(
    [1, 2].map((jti) => store.record('1'.repeat(43), String(jti), NOW, NOW)),
    ['full', 'full'],
  );
  assert.equal(told, 1);
});

test('makes callers that no handler can give other claims', () => {
  const caller = callerWith({ scope: 'read' });
  assert.throws(() => Object.assign(caller, { claims: { scope: 'admin' } }), TypeError);
  assert.deepEqual(caller.scopes, ['read']);
});

test('leads from a caller to no constructor that makes one', () => {
  assert.equal(Reflect.get(callerWith({}), 'constructor'), Object);
});

test('tells callers to come back in ten seconds when the memory of used proofs is full [RFC 9110 §10.2.3]', async () => {
  const verify = await openVerifier(1);
  const sender = openSender({ store: createReplayStore(330, 0) });
  const presentation = {
    method: 'GET',
    host: 'inner.test',
    path: PATH,
    rawHeaders: [],
  };
  const present = () =>
    sender(
      atOnce(verify(TOKEN)),
      { scheme: 'DPoP', token: TOKEN, proof: sealProof(draft()) },
      presentation,
      NOW * 1000,
    );
  assert.throws(present, (thrown) => {
    assert.ok(thrown instanceof Refused);
    assert.deepEqual(thrown.refusal, {
      kind: 'temporarily_unavailable',
      reason: 'replay-memory-full',
      retryAfterSeconds: 10,
    });
    return true;
  });
});
