/* Nonces and cross-origin fields over HTTP (RFC 9449 §9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticated } from '../../../src/gate/rules/access.ts';
import { get } from '../../../src/service/routes/route.ts';
import { createSenderCheck } from '../../../src/verify/caller.ts';
import { clock, settingsWith, tokenWith } from '../../support/caller.ts';
import { makeProof, nonceAt } from '../../support/proof.ts';
import { startRoutes } from '../../support/routes.ts';
import { issue } from '../token/issuer.ts';
import { ALGS, call, outcome, proofFor, startDpop, valuesOf, type Call } from './dpop-service.ts';
import { key, strangersKey } from '../sender-fixture.ts';

const SECRET = 'a secret that replicas share, of 32';
const environment = { IDP_DPOP_NONCE_SECRET: SECRET, SCOPE_POLICY: 'true' };
/** Outlives the slots. */
const token = issue({ cnf: { jkt: key.thumbprint }, exp: 2_000_000_000 });

type Service = Awaited<ReturnType<typeof startDpop>>;

const ask = (service: Service, nonce: unknown, what: Call = {}) =>
  call(service, { token, ...what, claims: { nonce, ...what.claims } });

/** The only nonce of a response. */
function nonceOf(response: Awaited<ReturnType<typeof call>>): string {
  const nonces = valuesOf(response, 'DPoP-Nonce');
  assert.equal(nonces.length, 1);
  assert.match(nonces[0]!, /^[\x21\x23-\x5b\x5d-\x7e]+$/);
  return nonces[0]!;
}

test('demands a nonce with 401 use_dpop_nonce, and accepts the one that it gave [RFC 9449 §9]', async () => {
  const service = await startDpop(environment);
  const demand = await ask(service, undefined);
  assert.equal(outcome(service, demand), '401 proof-nonce');
  assert.deepEqual(demand.body, { error: 'use_dpop_nonce', message: 'Authentication required' });
  const error =
    'error="use_dpop_nonce", error_description="the proof needs the nonce that this response carries (nonce)"';
  assert.deepEqual(demand.challenges, ['Bearer realm="api"', `DPoP ${error}, ${ALGS}`]);
  assert.equal(demand.headers['cache-control'], 'no-store');
  const nonce = nonceOf(demand);
  for (let use = 1; use <= 3; use += 1) {
    const good = await ask(service, nonce);
    assert.deepEqual([good.status, valuesOf(good, 'DPoP-Nonce')], [200, []]);
  }
});

for (const wrong of [null, 7, '', 'x', ['x'], {}]) {
  test(`demands a nonce of a proof whose nonce is ${JSON.stringify(wrong)} [RFC 9449 §4.3(10), E13]`, async () => {
    const service = await startDpop({ ...environment, IDP_DPOP_MODE: 'REQUIRED' });
    const demand = await ask(service, wrong);
    assert.equal(outcome(service, demand), '401 proof-nonce');
    assert.equal((await ask(service, nonceOf(demand))).status, 200);
    assert.match(demand.challenges.join(), /^DPoP realm="api", error="use_dpop_nonce", /);
  });
}

test('accepts the nonce of the previous slot, and sends the new one with every response [docs/dpop.md]', async () => {
  const service = await startDpop(environment);
  // Until the last millisecond of its slot.
  service.clock.advance(60_000 - (service.clock.now() % 60_000));
  const old = nonceOf(await ask(service, undefined));
  service.clock.advance(59_999);
  assert.deepEqual(valuesOf(await ask(service, old), 'DPoP-Nonce'), []);
  service.clock.advance(1);
  const proof = proofFor(service, { token, claims: { nonce: old } });
  const granted = await call(service, { token, proof });
  assert.equal(granted.status, 200);
  const fresh = nonceOf(granted);
  assert.notEqual(fresh, old);
  const responses = [
    await call(service, { token, proof }),
    await ask(service, old, { path: '/api/admin' }),
    await ask(service, old, { path: '/api/users/x' }),
    await ask(service, old, { signer: strangersKey }),
    await ask(service, old, { method: 'HEAD' }),
  ];
  assert.deepEqual(
    responses.map(({ status }) => status),
    [401, 403, 403, 401, 200],
  );
  for (const response of responses) assert.equal(nonceOf(response), fresh);
  assert.deepEqual(valuesOf(await ask(service, fresh), 'DPoP-Nonce'), []);
  service.clock.advance(60_000);
  const late = await ask(service, old);
  assert.equal(outcome(service, late), '401 proof-nonce');
  assert.notEqual(nonceOf(late), fresh);
});

test('sends the new nonce with the head of a Response, too, whose body follows in pieces [RFC 9449 §9]', async (t) => {
  const pieces = ['[1,', '2]'].map((text) => Buffer.from(text));
  const allowing = { IDP_DPOP_NONCE_SECRET: SECRET, IDP_DPOP_MODE: 'ALLOWED' };
  const app = await startRoutes({
    environment: allowing,
    sender: () => createSenderCheck(settingsWith(allowing), { record: () => 'new' }),
    routes: [get('/pieces', authenticated, () => new Response(ReadableStream.from(pieces)))],
  });
  t.after(() => app.stop());
  const bound = tokenWith({ cnf: { jkt: key.thumbprint } });
  const uri = `http://127.0.0.1:${app.port}/pieces`;
  const about = { token: bound, uri, method: 'GET', nowSeconds: Math.floor(clock.now() / 1000) };
  const nonce = nonceAt(SECRET, clock.now() - 60_000);
  const headers = { Authorization: `DPoP ${bound}`, DPoP: makeProof(key, about, { nonce }) };
  const response = await app.ask('/pieces', { headers });
  assert.equal(response.status, 200);
  assert.equal(nonceOf(response), nonceAt(SECRET, clock.now()));
});

test('does not record a proof without a nonce, and accepts the same jti with the nonce, once [RFC 9449 §11.1]', async () => {
  const service = await startDpop(environment);
  const nonce = nonceOf(await ask(service, undefined, { claims: { jti: 'j' } }));
  assert.equal((await ask(service, nonce, { claims: { jti: 'j' } })).status, 200);
  assert.equal(outcome(service, await ask(service, nonce, { claims: { jti: 'j' } })), '401 proof-replayed');
});

test('shares nonces with a replica that has the same secret [RFC 9449 §9, E3]', async () => {
  const [one, replica, stranger] = (await Promise.all(
    [environment, environment, { ...environment, IDP_DPOP_NONCE_SECRET: `${SECRET}!` }].map(startDpop),
  )) as [Service, Service, Service];
  const nonce = nonceOf(await ask(one, undefined));
  assert.equal((await ask(replica, nonce)).status, 200);
  assert.equal(outcome(stranger, await ask(stranger, nonce)), '401 proof-nonce');
});

test('gives a nonce only to a caller with a valid token and an otherwise valid proof', async () => {
  const service = await startDpop(environment);
  for (const what of [
    { token: 'x' },
    { claims: { iat: 1 } },
    { proof: undefined },
    { header: { jwk: strangersKey.jwk } },
    { scheme: 'Bearer', proof: undefined },
  ] as Call[]) {
    assert.deepEqual(valuesOf(await ask(service, undefined, what), 'DPoP-Nonce'), []);
  }
  assert.deepEqual(valuesOf(await service.ask('/api/public'), 'DPoP-Nonce'), []);
});

test('does not demand or send a nonce without a secret [docs/settings.md IDP_DPOP_NONCE_SECRET]', async () => {
  const service = await startDpop();
  for (const nonce of [undefined, 'any', 7]) {
    const response = await ask(service, nonce);
    assert.deepEqual([response.status, valuesOf(response, 'DPoP-Nonce')], [200, []]);
  }
});

const ORIGIN = 'https://app.test';

for (const [mode, allowed, exposed] of [
  ['DISABLED', 'Authorization, Content-Type', 'WWW-Authenticate'],
  ['ALLOWED', 'Authorization, Content-Type, DPoP', 'WWW-Authenticate, DPoP-Nonce'],
  ['REQUIRED', 'Authorization, Content-Type, DPoP', 'WWW-Authenticate, DPoP-Nonce'],
] as const) {
  test(`allows and exposes the fields of mode ${mode} to other origins [docs/how-a-request-is-checked.md]`, async () => {
    const service = await startDpop({
      IDP_DPOP_MODE: mode,
      CORS_ALLOWED_ORIGINS: ORIGIN,
      IDP_DPOP_NONCE_SECRET: SECRET,
    });
    const preflight = await service.ask('/api/private', {
      method: 'OPTIONS',
      headers: {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'dpop',
      },
    });
    assert.deepEqual([preflight.status, preflight.headers['access-control-allow-headers']], [204, allowed]);
    const demand = await ask(service, undefined, { headers: { Origin: ORIGIN } });
    assert.equal(demand.status, 401);
    assert.equal(demand.headers['access-control-expose-headers'], exposed);
    assert.equal(demand.headers['access-control-allow-origin'], ORIGIN);
    assert.equal(valuesOf(demand, 'DPoP-Nonce').length, mode === 'DISABLED' ? 0 : 1);
  });
}
