/* The registered claims (docs/how-a-request-is-checked.md, the token, 5): every accepted form, every refused form, and every boundary to
   the millisecond. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AUDIENCE,
  CAPACITIES,
  CLAIMS,
  HEADER,
  ISSUER,
  issue,
  issueClaim,
  issueRaw,
  verdictOf,
  NOW,
  openVerifier,
  verdict,
  type Circumstances,
  type Verdict,
} from './issuer.ts';

/** Tests tokens whose claim is each of these JSON texts. */
function shows(
  expected: Verdict,
  claim: string,
  clause: string,
  texts: readonly string[],
  circumstances?: Circumstances,
): void {
  const verb = expected === 'accepted' ? 'accepts' : 'refuses';
  for (const text of texts) {
    test(`${verb} a token whose ${claim} is ${text.slice(0, 60)} [${clause}, C8, D1, D2]`, async () => {
      assert.equal(await verdict(issueClaim(claim, text), circumstances), expected);
    });
  }
}

/** Tests that a token without the claim is refused, or accepted. */
function showsAbsent(expected: Verdict, claim: string, clause: string): void {
  const verb = expected === 'accepted' ? 'accepts' : 'refuses';

  test(`${verb} a token without ${claim} [${clause}, D1, D5]`, async () => {
    assert.equal(await verdict(issue({ [claim]: undefined })), expected);
  });
}

const issuers = [
  '',
  'https://idp.test',
  'https://idp.test//',
  'https://idp.test/x',
  'https://idp.test/ ',
  ' https://idp.test/',
  'https://IDP.test/',
  'HTTPS://idp.test/',
  'http://idp.test/',
  'idp.test',
  'https://idp.test.evil.test/',
  'https://evil.test/https://idp.test/',
  'https://idp.test:443/',
  'https://idp.test/\0',
];

showsAbsent('issuer-mismatch', 'iss', 'RFC 7519 §4.1.1');
const notIssuers: readonly unknown[] = [...issuers, null, true, 0, {}, [], [ISSUER], { toString: ISSUER }];

shows(
  'issuer-mismatch',
  'iss',
  'RFC 9068 §4',
  notIssuers.map((value) => JSON.stringify(value)),
);

shows('accepted', 'iss', 'RFC 9068 §4', ['"https://idp.test/realm"'], {
  rules: { issuer: 'https://idp.test/realm' },
});

shows('issuer-mismatch', 'iss', 'RFC 9068 §4', ['"https://idp.test/realm/"'], {
  rules: { issuer: 'https://idp.test/realm' },
});

const audiences: readonly unknown[] = [
  '',
  'https://other.test',
  'https://api.test/',
  'https://api.tes',
  'https://api.test.evil.test',
  'xhttps://api.test',
  'https://API.test',
  ' https://api.test',
  'https://api.test ',
  'https://api.test https://other.test',
  'https://api.test,https://other.test',
  'http://api.test',
  null,
  true,
  0,
  {},
  { 0: AUDIENCE },
  [],
  [''],
  ['https://other.test'],
  ['https://api.test/'],
  [[AUDIENCE]],
  [AUDIENCE, 7],
  [null, AUDIENCE],
  [AUDIENCE, [AUDIENCE]],
  [7],
  [{}],
  [`${AUDIENCE} `],
];

showsAbsent('audience-mismatch', 'aud', 'RFC 7519 §4.1.3');

shows(
  'audience-mismatch',
  'aud',
  'RFC 7519 §4.1.3',
  audiences.map((value) => JSON.stringify(value)),
);

const goodAudiences = [
  AUDIENCE,
  [AUDIENCE],
  [AUDIENCE, 'x'],
  ['x', AUDIENCE],
  ['', AUDIENCE, 'https://idp.test/userinfo'],
  [AUDIENCE, AUDIENCE],
];

shows(
  'accepted',
  'aud',
  'RFC 7519 §4.1.3',
  goodAudiences.map((value) => JSON.stringify(value)),
);

const notNumbers = [
  '"1800000060"',
  '""',
  'null',
  'true',
  'false',
  '[]',
  '[1800000060]',
  '{}',
  '1e999',
  '-1e999',
  '"Infinity"',
  '"2027-01-15T08:00:00Z"',
];

showsAbsent('expiry-malformed', 'exp', 'RFC 7519 §4.1.4');
shows('expiry-malformed', 'exp', 'RFC 7519 §4.1.4', notNumbers);

shows('expired', 'exp', 'RFC 7519 §4.1.4', [
  '0',
  '-0',
  '-1',
  '-1e308',
  '1799999999',
  '1799999999.999',
  '1800000000',
  '1.8e9',
]);

shows('accepted', 'exp', 'RFC 7519 §4.1.4', [
  '1800000000.001',
  '1800000001',
  '1.9e9',
  '9007199254740993',
  '1e308',
]);

showsAbsent('accepted', 'nbf', 'RFC 7519 §4.1.5');
shows('not-before-malformed', 'nbf', 'RFC 7519 §4.1.5', notNumbers);

shows('not-yet-valid', 'nbf', 'RFC 7519 §4.1.5', [
  '1800000000.001',
  '1800000001',
  '9007199254740993',
  '1e308',
]);

shows('accepted', 'nbf', 'RFC 7519 §4.1.5', ['0', '-1', '1799999999.5', '1800000000']);

showsAbsent('accepted', 'iat', 'RFC 7519 §4.1.6');
shows('issued-at-malformed', 'iat', 'RFC 7519 §4.1.6', notNumbers);
shows('accepted', 'iat', 'RFC 7519 §4.1.6', ['0', '-1', '0.5', '1800000000', '1900000000']);

showsAbsent('subject-malformed', 'sub', 'RFC 7519 §4.1.2');

shows('subject-malformed', 'sub', 'RFC 7519 §4.1.2', [
  '""',
  'null',
  '0',
  '7',
  'true',
  '[]',
  '["user"]',
  '{}',
  '{"length":1}',
]);

shows('accepted', 'sub', 'RFC 7519 §4.1.2', ['"x"', '" "', '"0"', '"client@clients"', '"\\u4e2d\\n"']);

for (const cacheEntries of CAPACITIES) {
  for (const tolerance of [0, 1, 300]) {
    const room = `a cache of ${cacheEntries} tokens and a tolerance of ${tolerance} s`;
    const open = () => openVerifier(cacheEntries, { rules: { clockToleranceSeconds: tolerance } });

    test(`accepts a token until the last millisecond before it expires, with ${room} [RFC 7519 §4.1.4, D5]`, async () => {
      for (const exp of [NOW, NOW + 0.5]) {
        const verify = await open();
        const end = (exp + tolerance) * 1000;
        const token = issue({ exp });
        assert.equal(await verdictOf(verify, token, end), 'expired');
        assert.equal(await verdictOf(verify, token, end - 1), 'accepted');
        assert.equal(await verdictOf(verify, token, end - 1), 'accepted', 'remembered');
        assert.equal(await verdictOf(verify, token, end), 'expired', 'remembered');
        assert.equal(await verdictOf(verify, token, end + 1_000_000), 'expired', 'long ago');
        assert.equal(await verdictOf(verify, token, end - 1), 'accepted', 'the clock put back');
      }
    });

    test(`accepts a token from the first millisecond of its validity, with ${room} [RFC 7519 §4.1.5]`, async () => {
      for (const nbf of [NOW, NOW + 0.5]) {
        const verify = await open();
        const start = (nbf - tolerance) * 1000;
        const token = issue({ nbf, exp: NOW + 1_000 });
        assert.equal(await verdictOf(verify, token, start - 1), 'not-yet-valid');
        assert.equal(await verdictOf(verify, token, start), 'accepted');
        assert.equal(await verdictOf(verify, token, start), 'accepted', 'remembered');
        assert.equal(await verdictOf(verify, token, start - 1), 'not-yet-valid', 'remembered');
        assert.equal(await verdictOf(verify, token, start + 1), 'accepted');
      }
    });
  }
}

test('accepts a token whose iat is in the future, since iat is not compared with the clock', async () => {
  assert.equal(
    await verdict(issue({ iat: NOW + 301 }), { rules: { clockToleranceSeconds: 300 } }),
    'accepted',
  );
});

test('reads no claim from a nested object, another spelling or the header', async () => {
  for (const claim of ['iss', 'aud', 'exp', 'sub'] as const) {
    const value = CLAIMS[claim];
    const elsewhere = { [claim.toUpperCase()]: value, [` ${claim}`]: value, claims: { [claim]: value } };
    assert.notEqual(
      await verdict(issue({ [claim]: undefined, ...elsewhere }, { [claim]: value })),
      'accepted',
      claim,
    );
  }
});

test('refuses claims inherited through a member __proto__, and leaves Object.prototype alone [C7]', async () => {
  const before = Reflect.ownKeys(Object.prototype);
  const text = JSON.stringify({ ...CLAIMS, exp: undefined }).replace(
    '{',
    `{"__proto__":{"exp":${NOW + 60}},"constructor":{"exp":1},`,
  );
  assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), text)), 'expiry-malformed');
  assert.deepEqual(Reflect.ownKeys(Object.prototype), before);
});

test('compares no claim with a tenant where there are none, not even one whose name is "undefined" [D1]', async () => {
  assert.equal(await verdict(issue({ undefined: 'x' })), 'accepted');
});
