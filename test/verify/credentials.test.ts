import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused, type Refusal } from '../../src/verify/base/refusal.ts';
import {
  fieldValues,
  acceptedScheme,
  parseCredentials,
  type DpopMode,
} from '../../src/verify/request/facts.ts';
import { unlessRefused } from '../support/refused.ts';

const refused = (kind: Refusal['kind'], reason: Refusal['reason']) => (failure: unknown) => {
  assert.ok(failure instanceof Refused);
  assert.deepEqual([failure.refusal.kind, failure.refusal.reason], [kind, reason]);
  return true;
};

const DPOP_MODES = ['DISABLED', 'ALLOWED', 'REQUIRED'] as const;

const parse = (mode: DpopMode, ...rawHeaders: string[]) => unlessRefused(parseCredentials(rawHeaders, mode));

test('returns every value of a header field, whatever the case of its name [RFC 9110 §5.1]', () => {
  const raw = [
    'Host',
    'a',
    'X-Host',
    'b',
    'HOST',
    'c',
    'hos',
    'd',
    'hosts',
    'e',
    'Other',
    'host',
    'last',
    'f',
  ];
  assert.deepEqual(fieldValues(raw, 'host'), ['a', 'c']);
  assert.deepEqual(fieldValues(raw, 'last'), ['f']);
  assert.deepEqual(fieldValues(raw, 'missing'), []);
});

for (const mode of DPOP_MODES) {
  test(`finds no credentials without an Authorization field in mode ${mode}`, () => {
    assert.equal(
      parse(mode, 'Host', 'a', 'X-Authorization', 'Bearer x.y.z', 'Cookie', 'Authorization=Bearer x'),
      undefined,
    );
  });

  test(`refuses two Authorization fields in mode ${mode} [RFC 9110 §5.3]`, () => {
    for (const second of ['Bearer x.y.z', 'Basic x', '']) {
      const fields = ['Authorization', 'Bearer x.y.z', 'Host', 'a', 'authorization', second];
      assert.throws(() => parse(mode, ...fields), refused('invalid_request', 'authorization-repeated'));
    }
  });
}

for (const value of ['Bearer x.y.z', 'bearer x.y.z', 'BEARER x.y.z', 'bEaReR x.y.z']) {
  test(`accepts "${value}" as a Bearer token [RFC 9110 §11.1]`, () => {
    for (const mode of ['DISABLED', 'ALLOWED'] as const) {
      const credentials = parse(mode, 'Host', 'a', 'authorization', value);
      assert.deepEqual(
        [credentials?.scheme, credentials?.token, credentials?.proof],
        ['Bearer', 'x.y.z', undefined],
      );
    }
  });
}

for (const value of ['DPoP x.y.z', 'dpop x.y.z', 'DPOP x.y.z']) {
  test(`accepts "${value}" with its proof as a DPoP token [RFC 9449 §7.1]`, () => {
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      const credentials = parse(mode, 'Authorization', value, 'DPOP', 'p.q.r');
      assert.deepEqual(
        [credentials?.scheme, credentials?.token, credentials?.proof],
        ['DPoP', 'x.y.z', 'p.q.r'],
      );
    }
  });
}

test('accepts every character that a token may have [RFC 6750 §2.1]', () => {
  for (const token of ['az', 'AZ', '09', '-', '.', '_', '~', '+', '/', 'a=', 'a==']) {
    assert.equal(parse('DISABLED', 'Authorization', `Bearer ${token}`)?.token, token);
  }
});

const FOREIGN = [
  '',
  ' ',
  'Basic dXNlcjpwYXNz',
  'Digest x',
  'Token x.y.z',
  'Bearerx',
  'Bearer1 x.y.z',
  'Bearer-Token x.y.z',
  'Bear x.y.z',
  'x.y.z',
  ' Bearer x.y.z',
  ',Bearer x',
  'DPo x',
  'Bearer',
  'bearer',
];

for (const value of FOREIGN) {
  test(`refuses "${value}", which names no accepted scheme or has no token [RFC 6750 §3.1]`, () => {
    for (const mode of DPOP_MODES) {
      assert.throws(() => parse(mode, 'Authorization', value), refused('unauthorized', 'scheme-refused'));
    }
  });
}

test('refuses a scheme that only begins with the name of an accepted one [RFC 9110 §5.6.2, §11.1]', () => {
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
  for (const character of `!#$%&'*+-.^_\`|~0123456789${letters}`) {
    for (const scheme of ['Bearer', 'DPoP']) {
      assert.throws(
        () => parse('ALLOWED', 'Authorization', `${scheme}${character} x.y.z`),
        refused('unauthorized', 'scheme-refused'),
        character,
      );
    }
  }
});

test('refuses two spaces between scheme and token, although the standard allows them [RFC 9110 §11.4]', () => {
  assert.throws(
    () => parse('ALLOWED', 'Authorization', 'Bearer  x.y.z'),
    refused('invalid_token', 'credentials-malformed'),
  );
});

for (const separator of ['  ', '\t', ' \t', ',', '=', ':', '\u00a0', '/', '"']) {
  test(`refuses an accepted scheme followed by ${JSON.stringify(separator)} and a token [RFC 6750 §2.1]`, () => {
    assert.throws(
      () => parse('ALLOWED', 'Authorization', `Bearer${separator}x.y.z`),
      refused('invalid_token', 'credentials-malformed'),
    );
    assert.throws(
      () => parse('ALLOWED', 'Authorization', `DPoP${separator}x.y.z`),
      refused('invalid_token', 'credentials-malformed'),
    );
  });
}

for (const tail of [
  ' ',
  '\t',
  ' a',
  '\u00a0',
  ',',
  ',Basic a',
  ', Bearer x.y.z',
  '\n',
  '\ta',
  '\v',
  '\f',
  '\r',
  '\u00a0a',
]) {
  test(`refuses a token followed by ${JSON.stringify(tail)} [RFC 6750 §2.1]`, () => {
    assert.throws(
      () => parse('DISABLED', 'Authorization', `Bearer x.y.z${tail}`),
      refused('invalid_token', 'credentials-malformed'),
    );
  });
}

test('refuses a scheme and a space without a token [RFC 6750 §2.1]', () => {
  assert.throws(
    () => parse('ALLOWED', 'Authorization', 'Bearer '),
    refused('invalid_token', 'credentials-malformed'),
  );
  assert.throws(
    () => parse('ALLOWED', 'Authorization', 'DPoP ', 'DPoP', 'p'),
    refused('invalid_token', 'credentials-malformed'),
  );
});

test('refuses the scheme that the mode does not accept [docs/dpop.md]', () => {
  assert.throws(
    () => parse('DISABLED', 'Authorization', 'DPoP x.y.z', 'DPoP', 'p'),
    refused('unauthorized', 'scheme-refused'),
  );
  assert.throws(
    () => parse('REQUIRED', 'Authorization', 'Bearer x.y.z'),
    refused('unauthorized', 'scheme-refused'),
  );
  assert.throws(
    () => parse('REQUIRED', 'Authorization', 'Bearer x.y.z', 'DPoP', 'p'),
    refused('unauthorized', 'scheme-refused'),
  );
});

test('refuses two DPoP fields with the scheme DPoP before it parses the token [RFC 9449 §4.3(1)]', () => {
  const proofs = ['DPoP', 'p', 'dpop', 'q'];
  for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
    for (const token of ['x.y.z', 'not a token']) {
      const fields = ['Authorization', `DPoP ${token}`, ...proofs];
      assert.throws(() => parse(mode, ...fields), refused('invalid_dpop_proof', 'proof-repeated'));
    }
  }
});

test('treats two DPoP fields as one with any other scheme, and ignores them while DPoP is off [docs/dpop.md]', () => {
  const proofs = ['DPoP', 'p', 'dpop', 'q'];
  for (const mode of DPOP_MODES) {
    assert.equal(parse(mode, ...proofs), undefined);
    const basic = ['Authorization', 'Basic x', ...proofs];
    assert.throws(() => parse(mode, ...basic), refused('unauthorized', 'scheme-refused'));
  }
  const bearer = ['Authorization', 'Bearer x.y.z', ...proofs];
  assert.throws(() => parse('ALLOWED', ...bearer), refused('invalid_request', 'proof-beside-bearer'));
  assert.deepEqual(parse('DISABLED', 'Authorization', 'Bearer x', ...proofs), {
    scheme: 'Bearer',
    token: 'x',
    proof: undefined,
  });
});

test('refuses a DPoP field with a Bearer token only in mode ALLOWED [docs/dpop.md]', () => {
  const both = ['Authorization', 'Bearer x.y.z', 'DPoP', ''];
  assert.throws(() => parse('ALLOWED', ...both), refused('invalid_request', 'proof-beside-bearer'));
  assert.equal(parse('DISABLED', ...both)?.token, 'x.y.z');
});

test('finds no credentials in a DPoP field without an Authorization field', () => {
  for (const mode of DPOP_MODES) assert.equal(parse(mode, 'DPoP', 'p.q.r'), undefined);
});

test('reads the scheme for the challenge from a valid or invalid value, if the mode accepts that scheme', () => {
  for (const [value, mode, scheme] of [
    ['bearer', 'ALLOWED', 'Bearer'],
    ['Bearer\tx', 'DISABLED', 'Bearer'],
    ['dpop  x', 'ALLOWED', 'DPoP'],
    ['DPoP', 'REQUIRED', 'DPoP'],
    ['DPoP x', 'DISABLED', undefined],
    ['Bearer x', 'REQUIRED', undefined],
    ['Basic x', 'ALLOWED', undefined],
    ['', 'ALLOWED', undefined],
  ] as const) {
    assert.equal(acceptedScheme(value, mode), scheme, value);
  }
});

test('reads no credentials that a browser sends by itself [G9]', () => {
  const fields = ['Cookie', 'Authorization=Bearer x.y.z; token=x.y.z', 'Host', 'rebound.test'];
  assert.equal(parseCredentials(fields, 'ALLOWED'), undefined);
});
