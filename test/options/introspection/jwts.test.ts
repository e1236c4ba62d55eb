/* JWTs whose issuer is asked whether they still count (docs/introspection.md): after every other check, and
   nothing of the answer is read but `active`. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { issue, NOW, signingKey } from '../../verify/token/issuer.ts';
import { ACTIVE, OPAQUE, openStand, type Plan, type Stand } from './fixture.ts';

const openJwts = (plan: Plan = {}): Promise<Stand> =>
  openStand({ say: () => ({ active: true }), ...plan, options: { tokens: ['jwt'], ...plan.options } });

const GOOD = issue();

describe('a JWT', () => {
  for (const [what, token, reason] of [
    ['is forged', `${GOOD.slice(0, -8)}AAAAAAAA`, 'signature-mismatch'],
    ['has expired', issue({ exp: NOW }), 'expired'],
    ['is for another audience', issue({ aud: 'other' }), 'audience-mismatch'],
    ['has another issuer', issue({ iss: 'https://other.test/' }), 'issuer-mismatch'],
    ['names an unknown key', issue({}, { kid: 'other' }), 'key-unknown'],
    ['has another algorithm', issue({}, { alg: 'none' }), 'algorithm-refused'],
  ] as const) {
    for (const tokens of [['jwt'], ['opaque'], ['opaque', 'jwt']] as const) {
      test(`that ${what} causes no introspection request for ${tokens} [§22, J3]`, async () => {
        const stand = await openJwts({ options: { tokens } });
        assert.equal(await stand.verdict(token), reason);
        assert.deepEqual(stand.asked, []);
      });
    }
  }

  test('that passed every other check is asked about, and keeps its own claims [§22]', async () => {
    // Each would refuse an opaque token.
    const said = {
      active: true,
      ...{ iss: 'https://other.test/', aud: 'other', exp: 'x', nbf: NOW + 60, iat: 'x', sub: '' },
      ...{ token_use: 'id', token_type: 'DPoP', typ: 'ID', events: {}, nonce: 'n', admin: true },
    };
    const stand = await openJwts({ say: () => said, rules: { requiredClaims: ['only_jwt'] } });
    const token = issue({ only_jwt: true });
    const claims = await stand.claims(token);
    assert.deepEqual(stand.asked, [token]);
    assert.deepEqual([claims.sub, claims.admin, claims.active], ['auth0|user', undefined, undefined]);
  });

  test('that is no longer active is refused, and the refusal names its key [§22]', async () => {
    const stand = await openJwts({ say: () => ({ active: false }) });
    const { refusal, found } = await stand.refused(GOOD);
    assert.equal(refusal.reason, 'token-inactive');
    assert.deepEqual(found, { kid: signingKey.kid, issuerName: 'idp' });
    assert.deepEqual(stand.counts, ['introspection inactive idp']);
  });

  test('is not asked about if opaque tokens alone are [§22]', async () => {
    const stand = await openJwts({ options: { tokens: ['opaque'] } });
    assert.equal(await stand.verdict(GOOD), 'accepted');
    assert.deepEqual([stand.asked, stand.counts], [[], ['token verified']]);
    assert.equal(stand.introspect.isAboutJwts, false);
  });

  test('is asked about beside opaque tokens [§22]', async () => {
    const stand = await openJwts({ options: { tokens: ['opaque', 'jwt'] }, say: () => ACTIVE });
    assert.deepEqual([await stand.verdict(GOOD), await stand.verdict(OPAQUE)], ['accepted', 'accepted']);
    assert.deepEqual(stand.asked, [GOOD, OPAQUE]);
  });

  test('counts once: introspected after an introspection request, else remembered [§22]', async () => {
    const stand = await openJwts();
    for (let turn = 0; turn < 3; turn += 1) await stand.verdict(GOOD);
    assert.deepEqual(stand.counts, [
      'introspection active idp',
      'token introspected',
      'token remembered',
      'token remembered',
    ]);
  });

  test('is 503, never 401, without an answer [§22]', async () => {
    const stand = await openJwts({ say: () => Promise.reject(new Error('down')) });
    const { refusal, found } = await stand.refused(GOOD);
    assert.equal(refusal.kind, 'temporarily_unavailable');
    assert.deepEqual(found, { kid: signingKey.kid, issuerName: 'idp' });
  });

  test('has its answer kept until the earlier expiry of both, although the tolerance lets it go on [§22]', async () => {
    for (const [ofToken, ofAnswer] of [
      [4, 8],
      [8, 4],
    ] as const) {
      const say = () => ({ active: true, exp: NOW + ofAnswer });
      const stand = await openJwts({ say, rules: { clockToleranceSeconds: 60 } });
      const token = issue({ exp: NOW + ofToken });
      await stand.verdict(token);
      stand.clock.advance(3_999);
      assert.equal(await stand.verdict(token), 'accepted');
      assert.equal(stand.asked.length, 1);
      stand.clock.advance(1);
      assert.equal(await stand.verdict(token), 'accepted');
      assert.equal(stand.asked.length, 2);
    }
  });

  test('that has expired is asked about no more, kept answer or not [§22]', async () => {
    const stand = await openJwts();
    const token = issue({ exp: NOW + 4 });
    await stand.verdict(token);
    stand.clock.advance(4_000);
    assert.equal(await stand.verdict(token), 'expired');
    assert.equal(stand.asked.length, 1);
  });

  test('that expires while its issuer is asked is refused, and the refusal names its key [§22, RFC 7519 §4.1.4]', async () => {
    const stand = await openJwts({
      say() {
        stand.clock.advance(4_000);
        return { active: true };
      },
    });
    const { refusal, found } = await stand.refused(issue({ exp: NOW + 4 }));
    assert.equal(refusal.reason, 'expired');
    assert.deepEqual(found, { kid: signingKey.kid, issuerName: 'idp' });
    assert.deepEqual(stand.counts, ['introspection active idp']);
  });

  test('that expires while its issuer is asked has its answer kept no longer [§22]', async () => {
    const stand = await openJwts({
      say() {
        stand.clock.advance(4_000);
        return { active: true };
      },
    });
    const token = issue({ exp: NOW + 4 });
    assert.equal(await stand.verdict(token), 'expired');
    stand.clock.set(NOW * 1000);
    await stand.verdict(token);
    assert.equal(stand.asked.length, 2);
  });

  test('is verified anew although the answer is kept [§22, J5]', async () => {
    const stand = await openJwts({ options: { cacheSeconds: 300 } });
    await stand.verdict(GOOD);
    stand.clock.set((NOW + 60) * 1000);
    assert.equal(await stand.verdict(GOOD), 'expired');
  });
});

describe('--check', () => {
  for (const [tokens, form] of [
    [['opaque'], /^[\w-]{22}$/],
    [['jwt'], /^(?:[\w-]{22}\.){2}[\w-]{22}$/],
    [['jwt', 'opaque'], /^[\w-]{22}$/],
  ] as const) {
    test(`asks about a random token of the form that will be asked about: ${tokens} [§22]`, async () => {
      const stand = await openJwts({ options: { tokens }, say: () => ({ active: false }) });
      assert.deepEqual(await stand.introspect.probe(), { endpoint: undefined });
      await stand.introspect.probe();
      const [first = '', second = ''] = stand.asked;
      assert.match(first, form);
      assert.notEqual(first, second);
    });
  }

  test('finds an issuer that says active of it, and one that does not say [§22]', async () => {
    const stand = await openJwts();
    assert.deepEqual((await stand.introspect.probe()).problem, { reason: 'active', code: '' });
    stand.say = () => ({});
    assert.deepEqual((await stand.introspect.probe()).problem, { reason: 'no-verdict', code: '' });
  });

  test('finds the name and frames of an error that `introspect` throws [§22]', async () => {
    const stand = await openJwts();
    stand.say = () => {
      throw new RangeError();
    };
    const problem = Object((await stand.introspect.probe()).problem);
    assert.deepEqual([problem.reason, problem.error], ['unforeseen', 'RangeError']);
    assert.match(problem.frames[0], /jwts\.test\.ts:\d+:\d+$/);
  });
});
