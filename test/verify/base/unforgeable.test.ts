/* Every sealed value at run time: no look-alike opens, and none opens in place of another. Tokens:
   verify/token/unforgeable.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factsOf, importSigningKey } from '../../../src/verify/keys/jwk.ts';
import { authenticated, needs, optional } from '../../../src/gate/rules/access.ts';
import { get } from '../../../src/service/routes/route.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { isGenuine, type Caller } from '../../../src/verify/caller.ts';
import { parseCompact, payloadOf, verifySignature } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import { verifiedOf } from '../../../src/verify/token/verify.ts';
import { callerWith } from '../../support/caller.ts';
import { runRoute } from '../../support/route.ts';
import { GOOD, openVerifier, signingKey } from '../token/issuer.ts';
import { lookAlikes } from './look-alikes.ts';

const imported = importSigningKey({ ...signingKey.publicJwk });
const jws = unlessRefused(parseCompact(GOOD));
assert.ok(typeof imported === 'object');
const key = imported;
const signed = verifySignature(jws, key) ?? assert.fail('the signature does not match');
const token = await (await openVerifier(0))(GOOD);
const caller = callerWith({ scope: 'read' });

const routes = [authenticated, optional, needs(scope('read'))].map((access) =>
  get('/x', access, () => ({ passed: true })),
);

/** Every kind of route that requires a caller. */
function admit(someone: Caller): unknown[] {
  if (someone === undefined) throw new TypeError('nobody');
  return routes.map((route) => runRoute(route, someone));
}

const forged = {
  claims: { sub: 'forged' },
  thumbprint: 'x',
  jti: 'x',
  expiresAtSeconds: Infinity,
  digest: null,
  kid: 'x',
  scope: 'admin',
};

const PROOFS: Readonly<Record<string, readonly [genuine: object, open: (value: never) => unknown]>> = {
  'a verification key': [key, factsOf],
  'a caller': [caller, admit],
};

for (const [what, [genuine, open]] of Object.entries(PROOFS)) {
  test(`accepts ${what} that is genuine`, () => assert.doesNotThrow(() => open(genuine as never)));
  for (const [likeness, make] of Object.entries(lookAlikes(forged))) {
    test(`does not accept ${likeness} in place of ${what}`, () =>
      assert.throws(() => open(make(genuine) as never), TypeError));
  }
}

const ALL: typeof PROOFS = {
  ...PROOFS,
  'a signed payload': [signed, payloadOf],
  'a verified token': [token, verifiedOf],
};

for (const [what, [, open]] of Object.entries(ALL)) {
  test(`accepts no other sealed value in place of ${what}`, () => {
    for (const [other, [genuine]] of Object.entries(ALL)) {
      if (other !== what) assert.throws(() => open(genuine as never), TypeError, other);
    }
  });
}

test('throws a TypeError with a fixed message for a value that was not sealed here', () =>
  assert.throws(() => verifiedOf({} as never).claims, {
    name: 'TypeError',
    message: 'this value was not sealed here',
  }));

const lookAlikeOf = (genuine: object) =>
  Object.assign(Object.create(Object.getPrototypeOf(genuine)), genuine);

test('verifies no signature with a look-alike of a key', () => {
  const lookAlike = Object.assign(lookAlikeOf(key), factsOf(key));
  assert.throws(() => verifySignature(jws, lookAlike), TypeError);
});

test('exposes nothing that could be copied from a sealed value', () => {
  for (const genuine of [key, signed, token]) {
    assert.deepEqual([Reflect.ownKeys(genuine), JSON.stringify(genuine)], [[], '{}']);
  }
  assert.deepEqual(
    [Reflect.ownKeys(caller), Object.isFrozen(caller), Object.isFrozen(caller.claims)],
    [['claims', 'freshNonce'], true, true],
  );
});

test('recognises only a caller that the sender check made', () => {
  assert.equal(isGenuine(caller), true);
  for (const make of [(of: object) => ({ ...of }), structuredClone, Object.create]) {
    assert.equal(isGenuine(make(caller) as Caller), false);
  }
  for (const other of [undefined, null, 1, 'caller', {}]) assert.equal(isGenuine(other), false);
});

test('makes no caller with the constructor of an existing caller but without a verified token', () => {
  const make = caller.constructor as new (token: unknown, ...rest: unknown[]) => Caller;
  for (const given of [caller, {}, undefined, lookAlikeOf(token)]) {
    assert.throws(() => new make(given, 'Bearer', 0), TypeError);
  }
});
