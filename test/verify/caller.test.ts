import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../src/verify/base/refusal.ts';
import { callerWith } from '../support/caller.ts';

test('names the subject of the token [RFC 7519 §4.1.2]', () => {
  assert.equal(callerWith({ sub: 'client@clients' }).subject, 'client@clients');
});

test('reads scopes and claims by the names of its own issuer, not of another [D12]', () => {
  const namespace = 'https://partner.example/claims/';
  const environment = {
    IDP_CLAIM_NAMESPACE: 'https://idp.example/claims/',
    ISSUERS: 'partner',
    ISSUER_PARTNER_DOMAIN: 'partner.example',
    ISSUER_PARTNER_AUDIENCE: 'orders-api',
    ISSUER_PARTNER_SCOPE_CLAIM: 'scp',
    ISSUER_PARTNER_CLAIM_NAMESPACE: namespace,
  };
  const claims = {
    scope: 'of-idp',
    scp: 'of-partner',
    'https://idp.example/claims/role': 'of-idp',
    [`${namespace}role`]: 'of-partner',
  };
  const partners = { iss: 'https://partner.example/', aud: 'orders-api' };
  const first = callerWith(claims, environment);
  const second = callerWith({ ...claims, ...partners }, environment);
  assert.deepEqual([first.issuerName, first.scopes, first.claim('role')], ['idp', ['of-idp'], 'of-idp']);
  assert.deepEqual(
    [second.issuerName, second.scopes, second.claim('role')],
    ['partner', ['of-partner'], 'of-partner'],
  );
  assert.deepEqual([first.issuer, second.issuer], ['https://idp.example/', 'https://partner.example/']);
});

test('shows the claims as the provider wrote them, without a prototype', () => {
  const { claims } = callerWith({ email: null, 'https://ns.example/email': 'x' });
  assert.equal(claims.email, null);
  assert.equal(claims['https://ns.example/email'], 'x');
  assert.equal(claims.constructor, undefined);
});

for (const [what, granted, scopes, text] of [
  ['a string', 'read write', ['read', 'write'], 'read write'],
  ['one word', 'read', ['read'], 'read'],
  ['a string with needless spaces', ' read  write ', ['read', 'write'], ' read  write '],
  ['an empty string', '', [], ''],
  ['a string with a tab', 'read\twrite', ['read\twrite'], 'read\twrite'],
  ['a string with a line feed', 'read\nwrite', ['read\nwrite'], 'read\nwrite'],
  ['an array of strings', ['read', 'write'], ['read', 'write'], 'read write'],
  ['an array with a word that has a space', ['read write'], ['read write'], 'read write'],
  ['an empty array', [], [], null],
  ['an array with a number', ['read', 1], [], null],
  ['an array with an array', [['read'], 'write'], [], null],
  ['an array with null', [null, 'write'], [], null],
  ['a number', 7, [], null],
  ['null', null, [], null],
  ['an object', { read: true }, [], null],
  ['true', true, [], null],
  ['nothing', undefined, [], null],
] as const) {
  for (const [name, environment] of [
    ['scope', {}],
    ['scp', { IDP_SCOPE_CLAIM: 'scp' }],
  ] as const) {
    test(`reads the scopes from ${name} when it is ${what} [RFC 6749 §3.3, docs/how-a-request-is-checked.md, D8]`, () => {
      const caller = callerWith({ [name]: granted }, environment);
      assert.deepEqual(caller.scopes, scopes);
      assert.equal(caller.scopeText, text);
    });
  }
}

test('reads only the claim that the settings name when a token has scope and scp [D8]', () => {
  const both = { scope: 'from-scope', scp: ['from-scp'] };
  assert.deepEqual(callerWith(both).scopes, ['from-scope']);
  assert.equal(callerWith(both).scopeText, 'from-scope');
  assert.deepEqual(callerWith(both, { IDP_SCOPE_CLAIM: 'scp' }).scopes, ['from-scp']);
  assert.equal(callerWith(both, { IDP_SCOPE_CLAIM: 'scp' }).scopeText, 'from-scp');
});

test('reads scopes without the claim namespace', () => {
  const namespaced = { scope: 'a', 'https://ns.example/scope': 'b' };
  assert.deepEqual(callerWith(namespaced, { IDP_CLAIM_NAMESPACE: 'https://ns.example/' }).scopes, ['a']);
});

const NAMESPACE = 'https://ns.example/';

for (const [what, claims, value] of [
  ['the plain claim when the namespaced one is missing', { org_id: 'plain' }, 'plain'],
  [
    'the namespaced claim when there are both',
    { org_id: 'plain', [`${NAMESPACE}org_id`]: 'spaced' },
    'spaced',
  ],
  ['the namespaced claim when it is null', { org_id: 'plain', [`${NAMESPACE}org_id`]: null }, null],
  ['the namespaced claim when it is false', { org_id: 'plain', [`${NAMESPACE}org_id`]: false }, false],
  ['the namespaced claim when it is empty', { org_id: 'plain', [`${NAMESPACE}org_id`]: '' }, ''],
  ['the namespaced claim when it is alone', { [`${NAMESPACE}org_id`]: 0 }, 0],
  [
    'no claim of another namespace',
    { 'https://ns.example.evil/org_id': 'x', 'https://ns.exampleorg_id': 'x' },
    undefined,
  ],
] as const) {
  test(`reads ${what} [docs/settings.md IDP_CLAIM_NAMESPACE]`, () => {
    assert.equal(callerWith(claims, { IDP_CLAIM_NAMESPACE: NAMESPACE }).claim('org_id'), value);
  });
}

for (const name of ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti']) {
  test(`reads ${name} as it was verified, not from a namespace [RFC 7519 §4.1]`, () => {
    const caller = callerWith({ [NAMESPACE + name]: 'another' }, { IDP_CLAIM_NAMESPACE: NAMESPACE });
    assert.deepEqual(caller.claim(name), caller.claims[name]);
  });
}

for (const name of ['club_sub', 'subclub', 'Sub', 'ISS']) {
  test(`reads ${name} from the namespace, since it only resembles a verified claim`, () => {
    const caller = callerWith({ [NAMESPACE + name]: 'spaced' }, { IDP_CLAIM_NAMESPACE: NAMESPACE });
    assert.equal(caller.claim(name), 'spaced');
  });
}

test('reads the plain claim when no namespace is set', () => {
  const caller = callerWith({ org_id: 'plain', [`${NAMESPACE}org_id`]: 'spaced' });
  assert.equal(caller.claim('org_id'), 'plain');
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(caller.claim(name), undefined);
  }
});

const boundRefused = (failure: unknown) => {
  assert.ok(failure instanceof Refused);
  assert.equal(failure.refusal.reason, 'bound-token');
  return true;
};

for (const cnf of [{ jkt: 'x' }, { 'x5t#S256': 'x' }, {}, null, [], 'x', false, 0]) {
  test(`refuses a token with cnf ${JSON.stringify(cnf)} as Bearer when DPoP is on [RFC 9449 §7.2, RFC 8705 §3, E16]`, () => {
    assert.equal(callerWith({ cnf: undefined }, { IDP_DPOP_MODE: 'ALLOWED' }).subject, 'auth0|user');
    assert.throws(() => callerWith({ cnf }, { IDP_DPOP_MODE: 'ALLOWED' }), boundRefused);
  });
}

test('ignores cnf when DPoP is off [docs/dpop.md]', () => {
  assert.equal(callerWith({ cnf: { jkt: 'x' } }, { IDP_DPOP_MODE: 'DISABLED' }).subject, 'auth0|user');
});

test('makes callers whose claims no handler can replace', () => {
  const caller = callerWith({ scope: 'read' });
  assert.throws(() => Object.assign(caller, { claims: { scope: 'admin' } }), TypeError);
  assert.deepEqual(caller.scopes, ['read']);
});
