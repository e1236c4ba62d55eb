/* The form of a token (docs/how-a-request-is-checked.md, the token, 1): every token has one spelling and one reading. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mediaType, parseCompact } from '../../../src/verify/jws/jws.ts';
import { unlessRefused } from '../../support/refused.ts';
import { BASE64URL_MISSPELLINGS } from '../../support/spellings.ts';
import {
  CLAIMS,
  GOOD,
  HEADER,
  issue,
  issueRaw,
  issueClaim,
  NOW,
  rs256,
  verdict,
  withText,
} from '../token/issuer.ts';

const [HEADER_PART = '', PAYLOAD_PART = '', SIGNATURE_PART = ''] = GOOD.split('.');

const encode = (text: string | Buffer) => Buffer.from(text as string).toString('base64url');

/** These parts, with a valid signature over them. */
const sealed = (header: string, payload: string) =>
  `${header}.${payload}.${rs256(Buffer.from(`${header}.${payload}`)).toString('base64url')}`;

test('splits a token into its header, payload, signing input and signature [RFC 7515 §3.1]', () => {
  const jws = unlessRefused(parseCompact(`${encode('{"alg":"x","n":1}')}.${encode('{"a":[2]}')}.AQID`));
  assert.deepEqual({ ...jws.header }, { alg: 'x', n: 1 });
  assert.deepEqual({ ...jws.payload }, { a: [2] });
  assert.equal(jws.signingInput, `${encode('{"alg":"x","n":1}')}.${encode('{"a":[2]}')}`);
  assert.deepEqual(jws.signature, Buffer.from([1, 2, 3]));
});

test('leaves an empty signature to the signature check', () => {
  assert.equal(unlessRefused(parseCompact('e30.e30.')).signature.length, 0);
});

const wrongParts: readonly [string, string][] = [
  ['an empty string', ''],
  ['one part', HEADER_PART],
  ['two parts', `${HEADER_PART}.${PAYLOAD_PART}`],
  ['four parts', `${GOOD}.`],
  ['four full parts', `${GOOD}.${SIGNATURE_PART}`],
  ['three parts after a full stop', `.${GOOD}`],
  ['five parts, as a JWE has', `${GOOD}..`],
  [
    'a JWE with p2c and zip',
    `${encode('{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483648,"zip":"DEF"}')}.AA.AA.AA.AA`,
  ],
  ['ten thousand parts', 'e30.'.repeat(10_000)],
  ['only full stops', '.'.repeat(12_000)],
  [
    'a JWS in flattened JSON serialization',
    JSON.stringify({ protected: HEADER_PART, payload: PAYLOAD_PART, signature: SIGNATURE_PART }),
  ],
  ['three parts separated by commas', GOOD.replaceAll('.', ',')],
];

for (const [what, text] of wrongParts) {
  test(`refuses ${what} as a token [RFC 7515 §5.2(1), RFC 7519 §7.2, B7, B8, C2]`, async () =>
    assert.equal(await verdict(text), 'token-malformed'));
}

/** Texts whose lengths leave spare bits in the last letter. */
const headerText = JSON.stringify(HEADER).padEnd(Math.ceil(JSON.stringify(HEADER).length / 3) * 3 + 1);
const payloadText = JSON.stringify(CLAIMS).padEnd(Math.ceil(JSON.stringify(CLAIMS).length / 3) * 3 + 1);
const header = encode(headerText);
const payload = encode(payloadText);

test('accepts the token without any misspelling', async () => {
  assert.equal(await verdict(sealed(header, payload)), 'accepted');
});

for (const [what, misspell] of BASE64URL_MISSPELLINGS) {
  test(`refuses a token with a part that has ${what} [RFC 7515 §2, §5.2(2), (6), (7), C1]`, async () => {
    assert.equal(await verdict(sealed(misspell(header), payload)), 'token-malformed', 'header');
    assert.equal(await verdict(sealed(header, misspell(payload))), 'token-malformed', 'payload');
    assert.equal(
      await verdict(`${HEADER_PART}.${PAYLOAD_PART}.${misspell(SIGNATURE_PART)}`),
      'token-malformed',
      'signature',
    );
  });
}

const notObjects: readonly [string, string | Buffer][] = [
  ['empty', ''],
  ['null', 'null'],
  ['an array', '[]'],
  ['text', '"x"'],
  ['a number', '1'],
  ['a boolean', 'true'],
  ['a nested token', GOOD],
  ['not JSON', '{"alg":"RS256"'],
  ['an object with data behind it', '{}{}'],
];

const broken = (text: string, bytes: number[]) =>
  Buffer.concat([Buffer.from(`${text.slice(0, -1)},"x":"`), Buffer.from(bytes), Buffer.from('"}')]);

const notUtf8 = (text: string): readonly [string, Buffer][] => [
  ['with the byte FF', broken(text, [0xff])],
  ['with an overlong NUL', broken(text, [0xc0, 0x80])],
  ['with a surrogate', broken(text, [0xed, 0xa0, 0x80])],
  ['with a byte-order mark', Buffer.from(`\ufeff${text}`)],
  ['in UTF-16', Buffer.from(text, 'utf16le')],
];

for (const [what, text] of [...notObjects, ...notUtf8(JSON.stringify(HEADER))]) {
  test(`refuses a token whose header is ${what} [RFC 7515 §5.2(3), B6]`, async () => {
    assert.equal(await verdict(issueRaw(text, JSON.stringify(CLAIMS))), 'header-malformed');
  });
}

const arrayOfClaims = ['an array that has the claims', JSON.stringify([CLAIMS])] as const;

for (const [what, text] of [...notObjects, arrayOfClaims, ...notUtf8(JSON.stringify(CLAIMS))]) {
  test(`refuses a token whose payload is ${what} [RFC 7519 §7.2(10), C6]`, async () => {
    assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), text)), 'payload-malformed');
  });
}

const twice = (name: string, first: string, second: string, text: string) =>
  `{"${name}":${first},${text.slice(1, -1)},"${second}"`;

/** The name, how the second is spelled, a valid value, an invalid value, and its reason. */
const repeated: readonly [string, string, string, string, string][] = [
  ['aud', 'aud', JSON.stringify(CLAIMS.aud), '"other"', 'audience-mismatch'],
  ['aud', '\\u0061ud', JSON.stringify(CLAIMS.aud), '"other"', 'audience-mismatch'],
  ['iss', 'iss', JSON.stringify(CLAIMS.iss), '"other"', 'issuer-mismatch'],
  ['exp', 'exp', String(NOW + 60), String(NOW), 'expired'],
];

for (const [name, spelling, good, bad, reason] of repeated) {
  test(`uses the last of two claims ${name} when the second is spelled ${spelling} [RFC 7519 §4, C5]`, async () => {
    const payloadWith = (first: string, last: string) =>
      `${twice(name, first, spelling, JSON.stringify({ ...CLAIMS, [name]: undefined }))}:${last}}`;

    assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), payloadWith(bad, good))), 'accepted');
    assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), payloadWith(good, bad))), reason);
  });
}

test('uses the last of two header members alg [RFC 7515 §4, C5]', async () => {
  const headerWith = (first: string, last: string) =>
    `{"alg":"${first}",${withText(HEADER, 'alg', `"${last}"`).slice(1)}`;

  assert.equal(await verdict(issueRaw(headerWith('none', 'RS256'), JSON.stringify(CLAIMS))), 'accepted');
  assert.equal(
    await verdict(issueRaw(headerWith('RS256', 'none'), JSON.stringify(CLAIMS))),
    'algorithm-refused',
  );
});

test('takes no header member or claim from an object under __proto__ [C7]', async () => {
  const inheriting = JSON.stringify({ ...HEADER, alg: undefined }).replace(
    '{',
    '{"__proto__":{"alg":"RS256"},',
  );
  assert.equal(await verdict(issueRaw(inheriting, JSON.stringify(CLAIMS))), 'algorithm-refused');
  const inherited = JSON.stringify({ ...CLAIMS, sub: undefined }).replace(
    '{',
    '{"__proto__":{"sub":"admin"},',
  );
  assert.equal(await verdict(issueRaw(JSON.stringify(HEADER), inherited)), 'subject-malformed');
  assert.equal(({} as { sub?: unknown }).sub, undefined);
});

test('accepts a token with unknown claims that are large and deeply nested', async () => {
  assert.equal(await verdict(issueClaim('deep', '['.repeat(5_000) + ']'.repeat(5_000))), 'accepted');
  assert.equal(await verdict(issue({ large: 'x'.repeat(100_000), constructor: 1, toString: 2 })), 'accepted');
});

test('ignores the case of a media type and its prefix application/ [RFC 7515 §4.1.9]', () => {
  assert.deepEqual(['JWT', 'at+JWT', 'Application/AT+JWT', ''].map(mediaType), [
    'jwt',
    'at+jwt',
    'at+jwt',
    '',
  ]);
  assert.equal(mediaType('application/application/jwt'), 'application/jwt');
  for (const type of ['x-application/jwt', 'text/jwt']) assert.equal(mediaType(type), type);
});

test('refuses a token that carries another token [B7, RFC 7519 §7.2(10)]', async () => {
  for (const cty of [undefined, 'JWT', 'jwt', 'application/jwt']) {
    assert.equal(await verdict(issueRaw(JSON.stringify({ ...HEADER, cty }), GOOD)), 'payload-malformed');
    assert.equal(
      await verdict(issueRaw(JSON.stringify({ ...HEADER, cty }), JSON.stringify(GOOD))),
      'payload-malformed',
    );
  }
  assert.equal(
    await verdict(issue({}, { cty: 'JWT', enc: 'A128GCM', zip: 'DEF', p2c: 2 ** 31 })),
    'accepted',
    'members that mean nothing here',
  );
});
