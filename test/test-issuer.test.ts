/* What a test issuer says in its tokens and keys. That a service accepts them: testing.wire.test.ts. */
import { strict as assert } from 'node:assert';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { authenticated, createGate } from '../src/gate.ts';
import { createProof, createProofKey, createTestIssuer } from '../src/testing.ts';

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;

test('issues tokens for the domain and audience of its settings that expire in five minutes', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_999 });
  const { options, token } = createTestIssuer({ domain: 'idp.test', audience: 'https://orders.test' });
  assert.deepEqual([options.domain, options.audience], ['idp.test', 'https://orders.test']);
  assert.deepEqual(options.algorithms, ['RS256']);
  assert.deepEqual(claimsOf(token({ scope: 'read' })), {
    iss: 'https://idp.test/',
    aud: 'https://orders.test',
    sub: 'test-user',
    exp: 1_300,
    scope: 'read',
  });
});

test('replaces the usual claims of each kind of token by those that are given, and adds others', async () => {
  const { token, boundToken, opaqueToken, options } = createTestIssuer();
  const given = { aud: 'https://orders.test', sub: 'ada', exp: 1, scope: 'read' };
  const claims = { iss: 'https://issuer.test/', ...given };
  assert.deepEqual(claimsOf(token(given)), claims);
  assert.deepEqual(await options.introspect(opaqueToken(given)), { active: true, ...claims });
  const cnf = { 'x5t#S256': 'x' };
  assert.deepEqual(claimsOf(boundToken(createProofKey(), { cnf })).cnf, cnf);
});

test('says that its own tokens of either form are active, no others, in a copy of their claims [§22]', async () => {
  const { token, opaqueToken, options } = createTestIssuer();
  const act = { sub: 'agent' };
  const said = await options.introspect(opaqueToken({ act }));
  assert.deepEqual([said.active, said.act], [true, act]);
  assert.notEqual(said.act, act);
  assert.deepEqual(await options.introspect(token()), { active: true });
  assert.deepEqual(await options.introspect('stranger'), { active: false });
});

test('refuses what is no plain object in place of its options', () => {
  for (const none of [new Map([['audience', 'x']]), [], null, 5]) {
    assert.throws(() => createTestIssuer(none as never), {
      name: 'TypeError',
      message:
        'createTestIssuer: must be a plain object with a member for each option, not an instance of a class',
    });
  }
});

test('signs RS256 with a key of 2048 bits', async () => {
  const { keys } = await createTestIssuer().options.fetchKeys();
  const key = createPublicKey({ key: keys[0] ?? {}, format: 'jwk' });
  assert.equal(key.asymmetricKeyDetails?.modulusLength, 2048);
});

test('replaces the issuer of options that it is spread over, so that its tokens fit', async () => {
  const production = { domain: 'tenant.test', audience: 'https://api.test', issuer: 'https://login.test/' };
  const issuer = createTestIssuer();
  const gate = createGate({ ...production, ...issuer.options });
  const verdict = await gate.check(
    new Request('http://a.test/', { headers: issuer.bearer() }),
    authenticated,
  );
  gate.close();
  assert.equal(verdict.refusal, undefined);
});

test('makes a proof only for a request whose url is text: anything else is a TypeError that says so', () => {
  const message = 'createProof needs a request whose url is text';
  for (const request of [
    undefined,
    {},
    { method: 'GET' },
    { method: 'GET', url: new URL('https://a.test') },
  ]) {
    assert.throws(() => createProof(createProofKey(), request as never, 'token'), {
      name: 'TypeError',
      message,
    });
  }
});

test('makes a proof for a URL without its query and fragment, unless a claim says otherwise [RFC 9449 §4.2]', () => {
  const key = createProofKey();

  const proofFor = (url: string, claims = {}) =>
    claimsOf(createProof(key, { method: 'GET', url }, 'token', claims));

  for (const rest of ['', '?page=2', '#top', '?a\nb']) {
    assert.equal(proofFor(`https://api.test/orders${rest}`).htu, 'https://api.test/orders');
  }
  const given = { jti: 'x', htm: 'POST', htu: 'https://api.test/orders?page=2', iat: 1, ath: 'y' };
  assert.deepEqual(proofFor('https://api.test/', given), given);
});

test('takes a claim only after the token of a proof: a nonce beside the method is a TypeError that says so', () => {
  const key = createProofKey();
  const { proof } = createTestIssuer();
  const request = { method: 'GET', url: 'https://api.test/orders?page=2' };
  assert.equal(claimsOf(proof(key, request, 'token', { nonce: 'n' })).nonce, 'n');
  assert.throws(() => proof(key, { ...request, nonce: 'n' } as typeof request, 'token'), {
    name: 'TypeError',
    message: 'nonce is a claim: pass it after the token',
  });
});
