import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRefusalReplies } from '../../../src/gate/replies/refusal-replies.ts';
import {
  refuse,
  refuseMethod,
  REFUSALS,
  unavailable,
  type Refusal,
  type RefusalReason,
} from '../../../src/verify/base/refusal.ts';
import type { Scheme } from '../../../src/verify/request/facts.ts';
import { settingsWith } from '../../support/caller.ts';
import { readReply } from '../../support/reply.ts';

interface Shown {
  readonly mode?: 'DISABLED' | 'ALLOWED' | 'REQUIRED';
  readonly used?: Scheme;
  readonly detail?: boolean;
}

const show = (refusal: Refusal, { mode = 'DISABLED', used, detail = false }: Shown = {}) =>
  readReply(
    createRefusalReplies(settingsWith({ IDP_DPOP_MODE: mode, ERROR_DETAIL: String(detail) }))(refusal, used),
  );

/** Header fields as lines. Other tests check `algs`. */
const lines = (headers: readonly string[]) =>
  headers.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${headers[index + 1]?.replace(/(, | )algs="[^"]+"/, '')}`] : [],
  );

const { refusal: NO_TOKEN } = refuse('no-credentials');
const { refusal: EXPIRED } = refuse('expired');
const { refusal: REPEATED } = refuse('authorization-repeated');
const { refusal: NO_METHOD } = refuseMethod(['GET', 'HEAD']);
const { refusal: NO_KEYS } = unavailable('keys-unavailable', 7);

const { refusal: SCOPE } = refuse('scope-missing', {
  description: 'the token lacks a required scope',
  scopes: ['a', 'b:c'],
  demands: { scope: 'a b:c' },
});

const { refusal: CLAIM } = refuse('claim-missing', { description: 'the claim x is missing' });

const ERROR = (error: string, description: string) => `error="${error}", error_description="${description}"`;

test('points to the explanation of the reason, right after the description, where a challenge has an error [RFC 6750 §3]', () => {
  const settings = settingsWith({ IDP_DPOP_MODE: 'ALLOWED', ERROR_DOCS_URL: 'https://docs.test/errors' });
  const reply = createRefusalReplies(settings);
  const challengesOf = (refusal: Refusal) => lines(readReply(reply(refusal, 'DPoP')).headers.slice(0, 4));
  assert.deepEqual(challengesOf(SCOPE), [
    'WWW-Authenticate: Bearer realm="api"',
    `WWW-Authenticate: DPoP ${ERROR('insufficient_scope', 'the token lacks a required scope')}, error_uri="https://docs.test/errors#scope-missing", scope="a b:c"`,
  ]);
  assert.ok(challengesOf(EXPIRED)[1]?.endsWith(', error_uri="https://docs.test/errors#expired"'));
  assert.ok(!challengesOf(NO_TOKEN).join().includes('error_uri'));
});

for (const [what, refusal, error] of [
  ['a missing token', NO_TOKEN, ''],
  ['a refused token', EXPIRED, ERROR('invalid_token', 'the token has expired')],
  [
    'malformed credentials',
    REPEATED,
    ERROR('invalid_request', 'the request has more than one Authorization header field'),
  ],
  [
    'a missing scope',
    SCOPE,
    `${ERROR('insufficient_scope', 'the token lacks a required scope')}, scope="a b:c"`,
  ],
  ['a missing claim', CLAIM, ERROR('insufficient_scope', 'the claim x is missing')],
] as const) {
  const line = (scheme: string, ...parameters: string[]) =>
    `WWW-Authenticate: ${scheme} ${parameters.filter(Boolean).join(', ')}`.trim();

  const bearer = (withError: string) => line('Bearer', 'realm="api"', withError);
  for (const [shown, expected] of [
    [{ mode: 'DISABLED' }, [bearer(error)]],
    [{ mode: 'DISABLED', used: 'Bearer' }, [bearer(error)]],
    [{ mode: 'ALLOWED' }, [bearer(error), line('DPoP')]],
    [{ mode: 'ALLOWED', used: 'Bearer' }, [bearer(error), line('DPoP')]],
    [{ mode: 'ALLOWED', used: 'DPoP' }, [bearer(''), line('DPoP', error)]],
    [{ mode: 'REQUIRED' }, [line('DPoP', 'realm="api"', error)]],
    [{ mode: 'REQUIRED', used: 'DPoP' }, [line('DPoP', 'realm="api"', error)]],
  ] as const) {
    const { mode, used }: Shown = shown;
    const after = used ?? 'no accepted scheme';
    test(`challenges for ${what} in mode ${mode} with one field for each scheme, when the request used ${after} [RFC 6750 §3, RFC 9110 §11.6.1, RFC 9449 §7.1]`, () => {
      assert.deepEqual(lines(show(refusal, shown).headers), expected);
    });
  }
}

test('asks to retry and does not challenge while no keys are available [RFC 9110 §10.2.3]', () => {
  assert.deepEqual(lines(show(NO_KEYS, { mode: 'ALLOWED', used: 'Bearer' }).headers), ['Retry-After: 7']);
});

test('names the allowed methods and does not challenge when the method is not among them [RFC 9110 §15.5.6]', () => {
  const { headers } = show(NO_METHOD, { mode: 'ALLOWED' });
  assert.deepEqual(lines(headers), ['Allow: GET, HEAD']);
});

for (const kind of [
  'not_found',
  'request_timeout',
  'expectation_failed',
  'header_fields_too_large',
] as const) {
  test(`sends no header field for ${kind}, and so no challenge`, () =>
    assert.deepEqual(show(refuse(kind).refusal).headers, []));
}

test('sends no challenge when it refuses a body or a query, since no other token would help [RFC 6750 §3.1]', () => {
  for (const reason of ['body-malformed', 'query-refused'] as const) {
    assert.deepEqual(show(refuse(reason).refusal, { used: 'Bearer' }).headers, []);
  }
});

const LOGIN = 'Authentication required';

for (const [refusal, status, body] of [
  [NO_TOKEN, 401, { error: 'unauthorized', message: LOGIN }],
  [refuse('scheme-refused').refusal, 401, { error: 'unauthorized', message: LOGIN }],
  [EXPIRED, 401, { error: 'invalid_token', message: LOGIN }],
  [
    REPEATED,
    400,
    { error: 'invalid_request', message: 'the request has more than one Authorization header field' },
  ],
  [SCOPE, 403, { error: 'insufficient_scope', message: 'the token lacks a required scope' }],
  [CLAIM, 403, { error: 'insufficient_scope', message: 'the claim x is missing' }],
  [
    NO_KEYS,
    503,
    { error: 'temporarily_unavailable', message: 'The signing keys are temporarily unavailable' },
  ],
  [refuse('not_found').refusal, 404, { error: 'not_found', message: 'There is nothing at this path' }],
  [NO_METHOD, 405, { error: 'method_not_allowed', message: 'This method is not supported here' }],
  [
    refuse('request_timeout').refusal,
    408,
    { error: 'request_timeout', message: 'The request did not arrive in time' },
  ],
  [
    refuse('expectation_failed').refusal,
    417,
    { error: 'expectation_failed', message: 'The expectation of the request cannot be met' },
  ],
  [
    refuse('header_fields_too_large').refusal,
    431,
    { error: 'header_fields_too_large', message: 'The header fields of the request are too large' },
  ],
] as const) {
  test(`answers ${refusal.reason} with ${status} and a body of error and message, in this order [docs/refusals.md]`, () => {
    const shown = show(refusal);
    assert.equal(shown.status, status);
    assert.equal(JSON.stringify(shown.body), JSON.stringify(body));
  });
}

const DETAILED = [
  [EXPIRED, 401, { error: 'invalid_token', message: 'The access token is invalid or has expired' }],
  [
    SCOPE,
    403,
    {
      error: 'forbidden',
      message: 'Missing permission: the token lacks a required scope',
      required_scopes: ['a', 'b:c'],
    },
  ],
  [CLAIM, 403, { error: 'forbidden', message: 'Missing permission: the claim x is missing' }],
] as const;

for (const [refusal, status, body] of DETAILED) {
  test(`answers ${refusal.reason} under ERROR_DETAIL with the detailed body and an unchanged challenge [docs/refusals.md]`, () => {
    const shown = show(refusal, { detail: true, mode: 'ALLOWED', used: 'DPoP' });
    assert.equal(shown.status, status);
    assert.equal(JSON.stringify(shown.body), JSON.stringify(body));
    assert.deepEqual(shown.headers, show(refusal, { mode: 'ALLOWED', used: 'DPoP' }).headers);
  });
}

for (const refusal of [NO_TOKEN, REPEATED, NO_KEYS, refuse('not_found').refusal, NO_METHOD] as const) {
  test(`gives ${refusal.reason} the same response with ERROR_DETAIL as without it [docs/refusals.md]`, () => {
    assert.deepEqual(show(refusal, { detail: true }), show(refusal));
  });
}

const reasons = Object.values(REFUSALS).flatMap((sentences) => Object.keys(sentences)) as RefusalReason[];

/** Except those whose sentence comes from a guard, or is empty. */
const EVERY = reasons.map((reason) => refuse(reason).refusal).filter(({ description }) => description !== '');

test('describes every refusal in printable ASCII without quotes, which cannot break a header field [RFC 6750 §3, G1]', () => {
  const sentences = EVERY.map((refusal) => {
    const { headers, body } = show(refusal);
    for (const line of lines(headers)) assert.match(line, /^[\x20-\x7e]+$/);
    const described =
      headers.join().match(/error_description="(.*?)"/)?.[1] ?? (body as { message: string }).message;
    assert.match(described, /^[\x20-\x21\x23-\x5b\x5d-\x7e]{10,}$/, refusal.reason);
    return described;
  });
  assert.equal(new Set(sentences).size, EVERY.length);
});

test('closes the connection only after refusals that leave the next bytes in doubt [docs/how-a-request-is-checked.md]', () => {
  const closing = EVERY.filter((refusal) => show(refusal).closes).map((refusal) => refusal.reason);
  assert.deepEqual(closing.sort(), [
    'expectation_failed',
    'header_fields_too_large',
    'host-refused',
    'malformed-http',
    'request_timeout',
    'target-refused',
  ]);
});

test('returns the same reply for equal scheme, reason and details, whatever was refused before', () => {
  const rules = settingsWith({ IDP_DPOP_MODE: 'ALLOWED' });
  const replyTo = createRefusalReplies(rules);
  const ofItsOwn: readonly Refusal[] = [
    SCOPE,
    { ...SCOPE, scopes: ['c'], demands: { scope: 'c' } },
    CLAIM,
    { ...CLAIM, description: 'the claim y is missing' },
    NO_KEYS,
    unavailable('keys-unavailable', 8).refusal,
  ];
  for (const _ of ['written', 'written before']) {
    for (const refusal of [NO_TOKEN, ...EVERY, ...ofItsOwn]) {
      for (const used of [undefined, 'Bearer', 'DPoP'] as const) {
        assert.deepEqual(replyTo({ ...refusal }, used), createRefusalReplies(rules)(refusal, used));
      }
    }
  }
});

test('caches the reply to a refusal for each scheme, but no reply with details of a single request', () => {
  const replyTo = createRefusalReplies(settingsWith({}));
  assert.equal(replyTo(EXPIRED, 'Bearer'), replyTo(refuse('expired').refusal, 'Bearer'));
  assert.equal(replyTo(CLAIM, 'Bearer'), replyTo(CLAIM, 'Bearer'));
  assert.notEqual(replyTo(CLAIM, 'Bearer'), replyTo(CLAIM, undefined));
  assert.notEqual(replyTo(CLAIM, 'Bearer'), replyTo({ ...CLAIM }, 'Bearer'));
  assert.notEqual(replyTo(NO_METHOD, undefined), replyTo(NO_METHOD, undefined));
});

test('caches no reply that names scopes, since a host may have any number of them', () => {
  const replyTo = createRefusalReplies({ ...settingsWith({}), metadataUrl: 'https://api.test/' });
  const naming = (scope: string) => replyTo({ ...NO_TOKEN, demands: { scope } }, undefined);
  assert.notEqual(naming('org:1'), naming('org:1'));
  assert.deepEqual(naming('org:1'), naming('org:1'));
  assert.match(naming('a b').fields.join(), /scope="a b"/);
});

test('asks for a nonce with a fixed sentence, in the challenge of the scheme that was used [RFC 9449 §9]', () => {
  const { status, headers, body } = show(refuse('proof-nonce').refusal, { mode: 'ALLOWED', used: 'DPoP' });
  assert.equal(status, 401);
  assert.deepEqual(body, { error: 'use_dpop_nonce', message: LOGIN });
  assert.ok(
    headers[3]?.includes(
      ERROR('use_dpop_nonce', 'the proof needs the nonce that this response carries (nonce)'),
    ),
  );
});

test('explains a refused proof under ERROR_DETAIL [docs/refusals.md]', () => {
  const { body } = show(refuse('proof-missing').refusal, { detail: true, mode: 'REQUIRED' });
  assert.deepEqual(body, { error: 'invalid_dpop_proof', message: 'The DPoP proof is invalid' });
});

test('names the algorithms of proofs only in the challenge of the scheme DPoP [RFC 9449 §7.1]', () => {
  const { headers } = show(NO_TOKEN, { mode: 'ALLOWED' });
  assert.deepEqual(headers, [
    'WWW-Authenticate',
    'Bearer realm="api"',
    'WWW-Authenticate',
    'DPoP algs="ES256 ES384 ES512 EdDSA PS256 RS256"',
  ]);
});

for (const [refusal, status] of [
  [refuse('proof-htm').refusal, 401],
  [refuse('proof-nonce').refusal, 401],
  [refuse('body-malformed').refusal, 400],
  [refuse('query-refused').refusal, 400],
  [refuse('body-too-large').refusal, 413],
  [refuse('media-type-refused').refusal, 415],
  [refuse('body-refused').refusal, 422],
] as const) {
  test(`answers ${refusal.kind} with ${status} [docs/refusals.md]`, () =>
    assert.equal(show(refusal).status, status));
}

test('names the demanded login in the challenge, but not in the body [RFC 9470 §3]', () => {
  const demands = { acr_values: 'mfa', other: undefined, max_age: '0' };
  const shown = show(refuse('login-insufficient', { demands }).refusal);
  const sentence = 'the login of the user is not recent or strong enough';
  const error = ERROR('insufficient_user_authentication', sentence);
  assert.deepEqual(
    [shown.status, lines(shown.headers), shown.body],
    [
      401,
      [`WWW-Authenticate: Bearer realm="api", ${error}, acr_values="mfa", max_age="0"`],
      { error: 'insufficient_user_authentication', message: LOGIN },
    ],
  );
});

test('returns the issues of a schema, and names the accepted media types [RFC 9110 §15.5.16]', () => {
  const issues = [{ path: ['item'], message: 'must be text' }];
  assert.deepEqual(show(refuse('body-refused', { issues }).refusal).body, {
    error: 'unprocessable_content',
    message: 'The body does not match its schema',
    issues,
  });
  const { headers, body } = show(refuse('media-type-refused', { headers: ['Accept', 'a/b'] }).refusal);
  assert.deepEqual([lines(headers), Object.keys(body as object)], [['Accept: a/b'], ['error', 'message']]);
});
