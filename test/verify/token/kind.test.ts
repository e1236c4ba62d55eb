/* Which kinds of token are access tokens (docs/how-a-request-is-checked.md, the token, 6), and what operators may also demand (7). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLAIMS, HEADER, issue, issueClaim, issueRaw, NOW, verdict, type Members } from './issuer.ts';

test('accepts token_use access or null and no other [RFC 8725 §3.12]', async () => {
  for (const use of ['access', null]) {
    assert.equal(await verdict(issue({ token_use: use })), 'accepted', String(use));
  }
  for (const text of ['"id"', '"refresh"', '"Access"', '"access "', '""', 'true', '0', '["access"]', '{}']) {
    assert.equal(await verdict(issueClaim('token_use', text)), 'token-use-refused', text);
  }
});

for (const typ of [
  'Bearer',
  'bearer',
  'BEARER',
  'DPoP',
  'dpop',
  'DPOP',
  'JWT',
  'jwt',
  'Jwt',
  'at+jwt',
  'AT+JWT',
  null,
]) {
  test(`accepts a token whose payload typ is ${typ} [docs/how-a-request-is-checked.md]`, async () => {
    assert.equal(await verdict(issue({ typ })), 'accepted');
  });
}

const payloadTypes = [
  'ID',
  'Refresh',
  'Logout',
  'Offline',
  'id',
  '',
  'Bearer ',
  ' Bearer',
  'Bearers',
  'xBearer',
  'application/at+jwt',
  'application/jwt',
  'id+jwt',
  true,
  0,
  ['Bearer'],
  {},
];

for (const typ of payloadTypes) {
  test(`refuses a token whose payload typ is ${JSON.stringify(typ)} [RFC 8725 §3.12]`, async () => {
    assert.equal(await verdict(issue({ typ })), 'payload-type-refused');
  });
}

for (const events of [{ 'http://schemas.openid.net/event/backchannel-logout': {} }, {}, [], false, 0, '']) {
  test(`refuses a token whose events are ${JSON.stringify(events)} [RFC 8417 §2.2]`, async () => {
    assert.equal(await verdict(issue({ events })), 'event-token');
    assert.equal(
      await verdict(issue({ events, token_use: 'access' }, { typ: 'at+jwt' })),
      'event-token',
      'said to be an access token',
    );
  });
}

test('accepts a token whose events are null [docs/how-a-request-is-checked.md]', async () => {
  assert.equal(await verdict(issue({ events: null })), 'accepted');
});

/** Claims and headers that identify an access token. */
const excuses: Readonly<Record<string, readonly [Members, Members]>> = {
  'token_use access': [{ token_use: 'access' }, {}],
  'payload typ Bearer': [{ typ: 'Bearer' }, {}],
  'payload typ BEARER': [{ typ: 'BEARER' }, {}],
  'payload typ DPoP': [{ typ: 'DPoP' }, {}],
  'payload typ dpop': [{ typ: 'dpop' }, {}],
  'header typ at+jwt': [{}, { typ: 'at+jwt' }],
  'header typ application/AT+JWT': [{}, { typ: 'application/AT+JWT' }],
};

const noExcuses: Readonly<Record<string, readonly [Members, Members]>> = {
  'header typ JWT': [{}, {}],
  'no header typ': [{}, { typ: undefined }],
  'payload typ JWT': [{ typ: 'JWT' }, {}],
  'payload typ at+jwt': [{ typ: 'at+jwt' }, {}],
  'token_use null': [{ token_use: null }, {}],
  'payload typ null': [{ typ: null }, {}],
  'a scope, client_id and jti': [
    { scope: 'read:messages', client_id: 'c', jti: 'j', iat: NOW, cnf: { jkt: 'x' } },
    {},
  ],
};

for (const member of ['nonce', 'at_hash', 'c_hash', 's_hash']) {
  test(`refuses a token that has ${member}, whatever its value but null [OpenID Connect Core §2, §3.3.2.11]`, async () => {
    for (const value of ['x', '', false, true, 0, [], {}]) {
      assert.equal(await verdict(issue({ [member]: value })), 'id-token', JSON.stringify(value));
    }
    assert.equal(await verdict(issue({ [member]: null })), 'accepted');
  });

  for (const [what, [claims, header]] of Object.entries(excuses)) {
    test(`accepts a token that has ${member} if ${what} says that it is an access token [docs/how-a-request-is-checked.md]`, async () => {
      assert.equal(await verdict(issue({ [member]: 'x', ...claims }, header)), 'accepted');
    });
  }
  for (const [what, [claims, header]] of Object.entries(noExcuses)) {
    test(`refuses a token that has ${member} together with ${what} [docs/how-a-request-is-checked.md]`, async () => {
      assert.equal(await verdict(issue({ [member]: 'x', ...claims }, header)), 'id-token');
    });
  }
}

test('accepts a token with members that ID tokens share with access tokens [RFC 9068 §2.2]', async () => {
  const shared = {
    auth_time: NOW,
    acr: '1',
    amr: ['pwd'],
    azp: 'client',
    sid: 's',
    email: 'a@b.test',
    hash: 'x',
    Nonce: 'x',
  };
  assert.equal(await verdict(issue(shared)), 'accepted');
});

const profile = { rules: { tokenType: 'at+jwt' } } as const;
const profileClaims = { client_id: 'client', iat: NOW, jti: 'id' };

for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/At+Jwt']) {
  test(`accepts a token of the RFC 9068 profile whose typ is ${typ} when that profile is required [RFC 9068 §4]`, async () => {
    assert.equal(await verdict(issue(profileClaims, { typ }), profile), 'accepted');
  });
}

test('refuses a token that is not of the RFC 9068 profile when that profile is required [RFC 9068 §4]', async () => {
  for (const typ of [undefined, 'JWT', 'application/jwt']) {
    assert.equal(await verdict(issue(profileClaims, { typ }), profile), 'profile-required', typ);
  }
  const inPayload = issue({ ...profileClaims, typ: 'at+jwt', token_use: 'access' });
  assert.equal(await verdict(inPayload, profile), 'profile-required', 'typ in the payload');
  for (const claim of ['client_id', 'iat', 'jti']) {
    assert.equal(
      await verdict(issue({ ...profileClaims, [claim]: undefined }, { typ: 'at+jwt' }), profile),
      'profile-required',
      claim,
    );
  }
});

test('refuses a client_id or jti that is not a string when the RFC 9068 profile is required [RFC 9068 §2.2]', async () => {
  for (const claim of ['client_id', 'jti']) {
    for (const value of [null, 7, true, ['x'], {}]) {
      const token = issue({ ...profileClaims, [claim]: value }, { typ: 'at+jwt' });
      assert.equal(await verdict(token, profile), 'profile-required', `${claim} ${value}`);
    }
  }
});

test('accepts a token of typ at+jwt without the claims of the RFC 9068 profile when any type is allowed [docs/how-a-request-is-checked.md]', async () => {
  assert.equal(await verdict(issue({}, { typ: 'at+jwt' })), 'accepted');
});

const required = (...requiredClaims: string[]) => ({ rules: { requiredClaims } });

test('accepts any value but null of a required claim, and refuses a token without the claim [docs/how-a-request-is-checked.md]', async () => {
  for (const text of ['"x"', '""', '0', 'false', '[]', '{}']) {
    assert.equal(await verdict(issueClaim('scp', text), required('scp')), 'accepted', text);
  }
  assert.equal(await verdict(issueClaim('scp', 'null'), required('scp')), 'claim-required');
  assert.equal(await verdict(issue(), required('scp')), 'claim-required');
  assert.equal(await verdict(issue({ SCP: 'x' }), required('scp')), 'claim-required');
  assert.equal(await verdict(issue({}, { scp: 'x' }), required('scp')), 'claim-required', 'in the header');
});

test('refuses a token without one of two required claims [docs/how-a-request-is-checked.md]', async () => {
  assert.equal(await verdict(issue({ scp: 'x', tid: 'x' }), required('scp', 'tid')), 'accepted');
  assert.equal(await verdict(issue({ scp: 'x' }), required('scp', 'tid')), 'claim-required');
  assert.equal(await verdict(issue({ tid: 'x' }), required('scp', 'tid')), 'claim-required');
});

test('refuses a token of the RFC 9068 profile, too, without a required claim [docs/how-a-request-is-checked.md]', async () => {
  const rules = { rules: { ...profile.rules, requiredClaims: ['scp'] } };
  const typ = 'at+jwt';
  assert.equal(await verdict(issue(profileClaims, { typ }), rules), 'claim-required');
  assert.equal(await verdict(issue({ ...profileClaims, scp: 'x' }, { typ }), rules), 'accepted');
});

for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__']) {
  test(`finds a required claim ${name} only when the token itself has it`, async () => {
    assert.equal(await verdict(issue(), required(name)), 'claim-required');
    const text = JSON.stringify(CLAIMS).replace('{', `{"${name}":{"own":true},`);
    assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), text), required(name)), 'accepted');
  });
}
