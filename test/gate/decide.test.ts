/* The one decision: what its record has, for each way that it ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDecide, type Asked, type DecideOptions } from '../../src/gate/decide.ts';
import { authenticated, needs, open, optional } from '../../src/gate/rules/access.ts';
import { claimCheck, scope } from '../../src/gate/rules/guards.ts';
import { recentLogin } from '../../src/gate/rules/recent-login.ts';
import { callerWith, clock, senderWith, tokenWith, verifyToken } from '../support/caller.ts';

const surroundings = { clock, log: () => {}, count: undefined };

const checkSender = senderWith({ IDP_DPOP_MODE: 'ALLOWED' });

const decideWith = (more: Partial<DecideOptions> = {}) =>
  createDecide({ dpopMode: 'ALLOWED', surroundings, verifyToken, checkSender, ...more });

/** A request with this field `Authorization`, for whatever `more` says. */
function askedWith(authorization: string | undefined, more: Partial<Asked> = {}): Asked {
  const fields = authorization === undefined ? [] : ['Authorization', authorization];
  const facts = { method: 'GET', host: 'api.example', path: '/', rawHeaders: ['Host', 'a', ...fields] };
  return { facts, demands: [authenticated], isServed: true, ...more };
}

const BEARER = `Bearer ${tokenWith()}`;

const BOUND = `Bearer ${tokenWith({ cnf: { jkt: 'A'.repeat(43) } })}`;

test('reads no credentials where every demand ignores them, and any where one does not', async () => {
  for (const demands of [[], [open], [open, open]]) {
    assert.equal((await decideWith()(askedWith('Bearer x', { demands }))).reason, undefined);
  }
  for (const demands of [
    [open, optional],
    [authenticated, open],
  ]) {
    assert.ok((await decideWith()(askedWith('Bearer x', { demands }))).reason);
  }
});

test('has the caller, the issuer and the key of a request that may pass, and no reason', async () => {
  const { caller, issuerName, kid, reason } = await decideWith()(askedWith(BEARER));
  assert.deepEqual(
    [caller?.subject, issuerName, typeof kid, reason],
    ['auth0|user', 'idp', 'string', undefined],
  );
});

test('has no caller without credentials, which are required only where a demand says so', async () => {
  const guest = await decideWith()(askedWith(undefined, { demands: [optional] }));
  assert.deepEqual([guest.caller, guest.reason], [undefined, undefined]);
  assert.equal((await decideWith()(askedWith(undefined))).reason, 'no-credentials');
});

test('refuses credentials that it cannot read, even where they are optional [RFC 6750 §3.1]', async () => {
  for (const authorization of ['Bearer ', 'Bearer a b']) {
    const { reason } = await decideWith()(askedWith(authorization, { demands: [optional] }));
    assert.equal(reason, 'credentials-malformed');
  }
});

test('asks for a login only where something is served [RFC 9470 §3]', async () => {
  const demands = [needs(recentLogin({ maxAgeSeconds: 60 }))];
  for (const [isServed, expected] of [
    [true, 'login-insufficient'],
    [false, undefined],
  ] as const) {
    assert.equal((await decideWith()(askedWith(BEARER, { demands, isServed }))).reason, expected);
  }
});

test('names the issuer and the key of a token that its sender may not use, and no caller', async () => {
  const { reason, issuerName, kid, caller } = await decideWith()(askedWith(BOUND));
  assert.ok(reason);
  assert.deepEqual([issuerName, typeof kid, caller], ['idp', 'string', undefined]);
});

test('has the caller of a request that a guard refuses', async () => {
  const { reason, caller } = await decideWith()(askedWith(BEARER, { demands: [needs(scope('a'))] }));
  assert.deepEqual([reason, caller?.subject], ['scope-missing', 'auth0|user']);
});

test('does not ask again who calls if that is known', async () => {
  const verifyNothing = () => assert.fail('asked again');
  const decide = decideWith({ verifyToken: verifyNothing });
  const caller = callerWith({ sub: 'known' });
  assert.equal((await decide(askedWith(BEARER, { known: { caller } }))).caller, caller);
  assert.equal((await decide(askedWith(BEARER, { known: { caller: undefined } }))).reason, 'no-credentials');
});

const failing = claimCheck('fails', () => assert.fail('inside'));

for (const [what, options, demands, hasCaller] of [
  ['a check of tokens throws', { verifyToken: () => assert.fail('inside') }, [authenticated], false],
  ['a check of tokens rejects', { verifyToken: async () => assert.fail('inside') }, [authenticated], false],
  ['a check of senders throws', { checkSender: () => assert.fail('inside') }, [authenticated], false],
  ['a guard throws', {}, [needs(failing)], true],
] as const) {
  test(`is a bug in the record, and no request is admitted, if ${what}`, async () => {
    const { reason, caller, thrown } = await decideWith(options)(askedWith(BEARER, { demands }));
    assert.deepEqual([reason, caller !== undefined], ['bug', hasCaller]);
    assert.equal((thrown?.error as Error).message, 'inside');
  });
}
