/* What an issuer must say of an opaque token (docs/introspection.md): each member wrong, alone. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AUDIENCE, ISSUER, NOW, type Members } from '../../verify/token/issuer.ts';
import { ACTIVE, OPAQUE, openStand, type Plan } from './fixture.ts';

/** The verdict on a good answer but for these members, at first and from what is kept. */
async function verdictOn(change: Members, plan: Plan = {}): Promise<string> {
  const said = JSON.stringify({ ...ACTIVE, ...change });
  const stand = await openStand({ ...plan, say: () => JSON.parse(said) });
  const first = await stand.verdict();
  assert.equal(await stand.verdict(), first);
  return first;
}

const without = (name: string) => ({ [name]: undefined });

const provider: Plan = { options: { audience: 'provider' } };

describe('the answer about an opaque token', () => {
  for (const [change, expected, plan] of [
    [{}, 'accepted'],
    [{ iss: undefined }, 'accepted'],
    [{ iss: ISSUER.slice(0, -1) }, 'issuer-mismatch'],
    [{ iss: null }, 'issuer-mismatch'],
    [{ iss: [ISSUER] }, 'issuer-mismatch'],
    [{ aud: ['x', AUDIENCE] }, 'accepted'],
    [{ aud: 'other' }, 'audience-mismatch'],
    [{ aud: undefined }, 'audience-mismatch'],
    [{ aud: undefined }, 'accepted', provider],
    [{ aud: null }, 'audience-mismatch', provider],
    [{ aud: 'other' }, 'audience-mismatch', provider],
    [{ aud: [] }, 'audience-mismatch', provider],
    [{ exp: undefined }, 'expiry-malformed'],
    [{ exp: null }, 'expiry-malformed'],
    [{ exp: String(NOW + 60) }, 'expiry-malformed'],
    [{ exp: NOW }, 'expired'],
    [{ exp: NOW - 4 }, 'accepted', { rules: { clockToleranceSeconds: 5 } }],
    [{ exp: NOW - 5 }, 'expired', { rules: { clockToleranceSeconds: 5 } }],
    [{ nbf: NOW }, 'accepted'],
    [{ nbf: NOW + 1 }, 'not-yet-valid'],
    [{ nbf: null }, 'not-before-malformed'],
    [{ iat: 'now' }, 'issued-at-malformed'],
    [{ iat: null }, 'issued-at-malformed'],
    [{ sub: undefined, client_id: 'a-client' }, 'subject-malformed'],
    [{ sub: '' }, 'subject-malformed'],
    [{ sub: null }, 'subject-malformed'],
    [{ token_use: 'access' }, 'accepted'],
    [{ token_use: 'access_token' }, 'accepted'],
    [{ token_use: null }, 'accepted'],
    [{ token_use: 'refresh_token' }, 'token-use-refused'],
    [{ token_use: 'ACCESS' }, 'token-use-refused'],
    [{ token_use: ['access'] }, 'token-use-refused'],
    [{ token_use: 'Access_Token' }, 'token-use-refused'],
    [{ token_use: ['access_token'] }, 'token-use-refused'],
    [{ token_type: 'bearer' }, 'accepted'],
    [{ token_type: 'Access_Token' }, 'accepted'],
    [{ token_type: null }, 'accepted'],
    [{ token_type: 'refresh_token' }, 'token-use-refused'],
    [{ token_type: ['Bearer'] }, 'token-use-refused'],
    [{ token_type: '' }, 'token-use-refused'],
    [{ token_type: 'JWT' }, 'token-use-refused'],
    [{ token_type: 'at+jwt' }, 'token-use-refused'],
    [{ token_type: 'refresh_token', token_use: 'access_token' }, 'token-use-refused'],
    [{ typ: 'Refresh' }, 'payload-type-refused'],
    [{ typ: null }, 'accepted'],
    [{ events: {} }, 'event-token'],
    [{ events: null }, 'accepted'],
    [{ nonce: 'n' }, 'id-token'],
    [{ nonce: null }, 'accepted'],
    [{ nonce: 'n', token_use: 'access_token' }, 'accepted'],
    [{ nonce: 'n', typ: 'Bearer' }, 'accepted'],
    // Only the header of a JWT can say so (RFC 9068 §2.1), and this token has none.
    [{ nonce: 'n', typ: 'at+jwt' }, 'id-token'],
    [{ nonce: 'n', token_type: 'Bearer' }, 'id-token'],
    [{ at_hash: 'h', token_type: 'access_token' }, 'id-token'],
    [{}, 'claim-required', { rules: { requiredClaims: ['scp'] } }],
    [{ scp: null }, 'claim-required', { rules: { requiredClaims: ['scp'] } }],
    [{ scp: '' }, 'accepted', { rules: { requiredClaims: ['scp'] } }],
    [{}, 'claim-required', { rules: { requiredClaims: ['constructor'] } }],
    [{ iss: undefined }, 'claim-required', { rules: { requiredClaims: ['iss'] } }],
    [{ aud: undefined }, 'claim-required', { ...provider, rules: { requiredClaims: ['aud'] } }],
    [{ iss: 'x', aud: 'x' }, 'issuer-mismatch'],
    [{ aud: 'x', exp: NOW }, 'audience-mismatch'],
    [{ exp: NOW, sub: '' }, 'expired'],
    [{ sub: '', token_use: 'id' }, 'subject-malformed'],
    [{ token_type: 'x', typ: 'x' }, 'token-use-refused'],
    [{ nonce: 'n' }, 'id-token', { rules: { requiredClaims: ['scp'] } }],
  ] as readonly (readonly [Members, string, Plan?])[]) {
    test(`with ${JSON.stringify(change)}${plan === undefined ? '' : ` and ${JSON.stringify(plan)}`}: ${expected} [§22, RFC 7662 §2.2, J4]`, async () => {
      assert.equal(await verdictOn(change, plan), expected);
    });
  }

  test('is refused without expiry, unlike in the standard, and without audience [RFC 7662 §2.2]', async () => {
    assert.equal(await verdictOn(without('exp')), 'expiry-malformed');
    assert.equal(await verdictOn(without('aud')), 'audience-mismatch');
  });

  test('that says false is the reason, whatever else it says [§22, RFC 7662 §2.2]', async () => {
    const stand = await openStand({ say: () => ({ ...ACTIVE, active: false }) });
    const { refusal, found } = await stand.refused();
    assert.equal(refusal.reason, 'token-inactive');
    assert.deepEqual(found, { issuerName: 'idp' });
  });

  for (const active of ['true', 1, null, undefined, [true], {}]) {
    test(`with active ${JSON.stringify(active)} is none: 503, not 401 [§22, J4]`, async () => {
      const stand = await openStand({ say: () => ({ ...ACTIVE, active }) });
      const { refusal } = await stand.refused();
      assert.deepEqual(
        [refusal.kind, refusal.reason],
        ['temporarily_unavailable', 'introspection-unavailable'],
      );
      assert.deepEqual(refusal.headers, ['Retry-After', '1']);
      assert.equal(stand.logs.at(-1)?.reason, 'no-verdict');
    });
  }

  test('is the claims, frozen down to its lists, with `active` among them [§22]', async () => {
    const stand = await openStand({ say: () => ({ ...ACTIVE, list: [{ a: 1 }] }) });
    const claims = await stand.claims();
    assert.deepEqual({ ...claims }, { ...ACTIVE, list: [{ a: 1 }] });
    const list = claims.list as object[];
    assert.ok([claims, list, list[0]!].every(Object.isFrozen));
    assert.equal(claims.constructor, undefined);
  });
});

describe('an opaque token that is bound [RFC 9449 §6.2]', () => {
  for (const [change, dpopMode, expected] of [
    [{ token_type: 'DPoP' }, 'ALLOWED', 'not-bound'],
    [{ token_type: 'dpop', cnf: {} }, 'REQUIRED', 'not-bound'],
    [{ token_type: 'DPoP', cnf: null }, 'ALLOWED', 'not-bound'],
    [{ token_type: 'DPoP', cnf: { 'x5t#S256': 'x' } }, 'ALLOWED', 'not-bound'],
    [{ token_type: 'DPoP', cnf: { jkt: 'x' } }, 'ALLOWED', 'accepted'],
    [{ token_type: 'DPoP' }, 'DISABLED', 'accepted'],
    [{ token_type: 'Bearer' }, 'ALLOWED', 'accepted'],
  ] as const) {
    test(`${JSON.stringify(change)} with DPoP ${dpopMode}: ${expected}`, async () => {
      assert.equal(await verdictOn(change, { values: { dpopMode } }), expected);
    });
  }
});

describe('the form of a token', () => {
  const JWT = 'eyJhbGciOiJSUzI1NiJ9.e30.AAAA';
  for (const [what, token, isAsked] of [
    ['no dot', 'abc', true],
    ['one dot', 'a.b', true],
    ['no dot, although it begins as a JWT does', 'eyJhbGciOiJSUzI1NiJ9', true],
    ['three dots', 'a.b.c.d', true],
    ['five dots', 'a.b.c.d.e.f', true],
    ['six dots', 'a.b.c.d.e.f.g', true],
    ['each punctuation mark that a token may have', OPAQUE, true],
    ['4,096 characters', 'a'.repeat(4_096), true],
    ['4,097 characters', 'a'.repeat(4_097), false],
    ['two dots', JWT, false],
    ['two dots alone', '..', false],
    ['four dots, as a JWE', 'a.b.c.d.e', false],
    ['padding alone', '==', false],
    ['padding inside', 'a=b', false],
    ['another character', 'a!', false],
    ['a letter outside ASCII', 'é', false],
  ] as const) {
    test(`with ${what} is ${isAsked ? '' : 'not '}opaque [§22, RFC 6750 §2.1, J3, J16]`, async () => {
      const stand = await openStand();
      assert.equal((await stand.verdict(token)) === 'accepted', isAsked);
      assert.deepEqual(stand.asked, isAsked ? [token] : []);
    });
  }

  test('takes each character that a Bearer token may have, and no other [RFC 6750 §2.1, J3]', async () => {
    const stand = await openStand();
    const tokens = Array.from({ length: 512 }, (_, code) => `a${String.fromCharCode(code)}`);
    for (const token of tokens) await stand.verdict(token);
    const taken = '+-./0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~';
    assert.deepEqual(
      stand.asked,
      Array.from(taken, (one) => `a${one}`),
    );
  });

  test('decides alone: without opaque, each is malformed as ever [§22]', async () => {
    const stand = await openStand({ options: { tokens: ['jwt'] } });
    assert.equal(await stand.verdict(OPAQUE), 'token-malformed');
    assert.deepEqual(stand.asked, []);
  });
});
