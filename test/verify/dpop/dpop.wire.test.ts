/* What each mode does with each way to present a token, over HTTP: status, body, challenge and log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { issue, NOW } from '../token/issuer.ts';
import {
  ALGS,
  BOUND,
  call,
  outcome,
  proofFor,
  REFUSED,
  startDpop,
  UNBOUND,
  type Call,
} from './dpop-service.ts';
import { key, strangersKey } from '../sender-fixture.ts';

type ProofReason = keyof typeof REFUSALS.invalid_dpop_proof;

const MODES = ['DISABLED', 'ALLOWED', 'REQUIRED'] as const;

const SERVICES = {
  DISABLED: await startDpop({ IDP_DPOP_MODE: 'DISABLED' }),
  ALLOWED: await startDpop(),
  REQUIRED: await startDpop({ IDP_DPOP_MODE: 'required' }),
};

/** The scheme, whether there is a valid proof, whether the token is bound, and the outcome in each mode. */
const COMBINATIONS: [
  scheme: string,
  hasProof: boolean,
  isBound: boolean,
  outcomes: Record<(typeof MODES)[number], string>,
][] = [
  ['Bearer', false, false, { DISABLED: '200', ALLOWED: '200', REQUIRED: '401 scheme-refused' }],
  ['Bearer', false, true, { DISABLED: '200', ALLOWED: '401 bound-token', REQUIRED: '401 scheme-refused' }],
  [
    'Bearer',
    true,
    false,
    { DISABLED: '200', ALLOWED: '400 proof-beside-bearer', REQUIRED: '401 scheme-refused' },
  ],
  [
    'Bearer',
    true,
    true,
    { DISABLED: '200', ALLOWED: '400 proof-beside-bearer', REQUIRED: '401 scheme-refused' },
  ],
  [
    'DPoP',
    false,
    false,
    { DISABLED: '401 scheme-refused', ALLOWED: '401 not-bound', REQUIRED: '401 not-bound' },
  ],
  [
    'DPoP',
    false,
    true,
    { DISABLED: '401 scheme-refused', ALLOWED: '401 proof-missing', REQUIRED: '401 proof-missing' },
  ],
  [
    'DPoP',
    true,
    false,
    { DISABLED: '401 scheme-refused', ALLOWED: '401 not-bound', REQUIRED: '401 not-bound' },
  ],
  ['DPoP', true, true, { DISABLED: '401 scheme-refused', ALLOWED: '200', REQUIRED: '200' }],
];

for (const [scheme, hasProof, isBound, outcomes] of COMBINATIONS) {
  for (const mode of MODES) {
    test(`answers ${outcomes[mode]} in mode ${mode} to ${scheme} with ${hasProof ? 'a' : 'no'} proof and a token that is ${isBound ? '' : 'not '}bound [RFC 9449 §7.1, §7.2, E6]`, async () => {
      const service = SERVICES[mode];
      const token = isBound ? BOUND : UNBOUND;
      for (const spelling of [scheme, scheme.toLowerCase(), scheme.toUpperCase()]) {
        const proof = hasProof ? proofFor(service, { token }) : undefined;
        assert.equal(
          outcome(service, await call(service, { scheme: spelling, token, proof })),
          outcomes[mode],
        );
      }
    });
  }
}

const jkt = key.thumbprint;

const CONFIRMATIONS: [cnf: unknown, reason: string][] = [
  [{ 'x5t#S256': jkt }, 'confirmation-refused'],
  [{ jkt, jwk: key.jwk }, 'confirmation-refused'],
  ...['jwk', 'jwe', 'jku', 'kid', 'x5t#S256', 'osc'].flatMap((method): [unknown, string][] => [
    [{ jkt, [method]: 'x' }, 'confirmation-refused'],
    [{ jkt, [method]: null }, 'confirmation-refused'],
  ]),
  [{}, 'not-bound'],
  [{ 'kc-jkt-type': 'DPoP' }, 'not-bound'],
  [null, 'confirmation-refused'],
  [[], 'confirmation-refused'],
  [[{ jkt }], 'confirmation-refused'],
  [jkt, 'confirmation-refused'],
  [7, 'confirmation-refused'],
  [false, 'confirmation-refused'],
  [{ jkt: null }, 'confirmation-refused'],
  [{ jkt: 7 }, 'confirmation-refused'],
  [{ jkt: [jkt] }, 'confirmation-refused'],
  [{ JKT: jkt }, 'not-bound'],
  [{ jkt: '' }, 'key-mismatch'],
  [{ jkt: `${jkt}=` }, 'key-mismatch'],
  [{ jkt: jkt.toLowerCase() }, 'key-mismatch'],
  [{ jkt: strangersKey.thumbprint }, 'key-mismatch'],
];

for (const [cnf, reason] of CONFIRMATIONS) {
  test(`refuses a token whose cnf is ${JSON.stringify(cnf).replaceAll(jkt, '<jkt>').slice(0, 60)} [RFC 9449 §6.1, docs/dpop.md, E6]`, async () => {
    const token = issue({ cnf });
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      const response = await call(SERVICES[mode], { token });
      assert.equal(outcome(SERVICES[mode], response), `401 ${reason}`);
      assert.equal(response.body.error, 'invalid_token');
    }
    assert.equal((await call(SERVICES.DISABLED, { token, scheme: 'Bearer' })).status, 200);
    assert.equal(
      outcome(SERVICES.ALLOWED, await call(SERVICES.ALLOWED, { token, scheme: 'Bearer', proof: undefined })),
      '401 bound-token',
    );
  });
}

// Keycloak adds the first of these. Only registered names would mean another confirmation method.
for (const beside of [{ 'kc-jkt-type': 'DPoP' }, { unknown: null }, { JWK: key.jwk }]) {
  const names = Object.keys(beside).join(', ');

  test(`accepts a bound token whose cnf also has ${names} [RFC 7800 §3.1, RFC 9449 §6.1]`, async () => {
    const token = issue({ cnf: { jkt, ...beside } });
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      assert.equal((await call(SERVICES[mode], { token })).status, 200);
    }
    const asBearer = await call(SERVICES.ALLOWED, { token, scheme: 'Bearer', proof: undefined });
    assert.equal(outcome(SERVICES.ALLOWED, asBearer), '401 bound-token');
  });
}

const sentence = (error: string, description: string) =>
  `error="${error}", error_description="${description}"`;

const STALE = sentence('invalid_dpop_proof', REFUSALS.invalid_dpop_proof['proof-too-old']);
const MISMATCH = sentence('invalid_token', REFUSALS.invalid_token['key-mismatch']);
const TWICE = sentence('invalid_dpop_proof', REFUSALS.invalid_dpop_proof['proof-repeated']);
const SCOPE = `${sentence('insufficient_scope', 'the token lacks a required scope')}, scope="admin"`;

/** The caller's error in the challenge of the scheme that the caller used. */
const CHALLENGED: [
  what: string,
  make: Call & { headers?: Record<string, string> },
  status: number,
  error: string,
][] = [
  ['a proof is refused', { claims: { iat: NOW - 301 } }, 401, STALE],
  ['the key of the proof is not that of the token', { signer: strangersKey }, 401, MISMATCH],
  ['there are two proofs', { proof: ['p', 'q'] }, 401, TWICE],
  [
    'a scope is missing',
    { path: '/api/admin', token: issue({ cnf: { jkt }, scope: 'read:users' }) },
    403,
    SCOPE,
  ],
];

for (const [what, make, status, error] of CHALLENGED) {
  test(`puts the error into the DPoP challenge, with algs, when DPoP was used and ${what} [RFC 9449 §7.1]`, async () => {
    const policy = { SCOPE_POLICY: 'true' };
    const both = await call(await startDpop(policy), make);
    assert.equal(both.status, status);
    assert.deepEqual(both.challenges, ['Bearer realm="api"', `DPoP ${error}, ${ALGS}`]);
    const one = await call(await startDpop({ ...policy, IDP_DPOP_MODE: 'REQUIRED' }), make);
    assert.deepEqual([one.status, one.body], [status, both.body]);
    assert.deepEqual(one.challenges, [`DPoP realm="api", ${error}, ${ALGS}`]);
  });
}

test('puts the error into the Bearer challenge when Bearer was used, and offers both schemes [RFC 9449 §7.2]', async () => {
  const { challenges } = await call(SERVICES.ALLOWED, { scheme: 'Bearer', proof: undefined });
  assert.deepEqual(challenges, [
    `Bearer realm="api", ${sentence('invalid_token', REFUSALS.invalid_token['bound-token'])}`,
    `DPoP ${ALGS}`,
  ]);
});

test('challenges without an error when there are no credentials that the mode accepts [RFC 6750 §3.1]', async () => {
  const offers = {
    DISABLED: ['Bearer realm="api"'],
    ALLOWED: ['Bearer realm="api"', `DPoP ${ALGS}`],
    REQUIRED: [`DPoP realm="api", ${ALGS}`],
  };
  for (const mode of MODES) {
    for (const headers of [{}, { DPoP: 'p' }, { Authorization: 'Basic eDp5' }]) {
      const { status, body, challenges } = await SERVICES[mode].ask('/api/private', { headers });
      assert.deepEqual([status, body.error, challenges], [401, 'unauthorized', offers[mode]]);
    }
  }
  assert.deepEqual((await call(SERVICES.REQUIRED, { scheme: 'Bearer' })).challenges, offers.REQUIRED);
  assert.deepEqual((await call(SERVICES.DISABLED)).challenges, offers.DISABLED);
});

/** A reason without its call does not compile. */
const CALLS: Record<ProofReason, Call> = {
  'proof-missing': { proof: undefined },
  'proof-malformed': { proof: 'x' },
  'proof-type': { header: { typ: 'JWT' } },
  'proof-algorithm': { header: { alg: 'none' } },
  'proof-critical': { header: { crit: [] } },
  'proof-key': { header: { jwk: undefined } },
  'proof-jti': { claims: { jti: '' } },
  'proof-iat': { claims: { iat: 'x' } },
  'proof-htm': { claims: { htm: 'get' } },
  'proof-htu': { claims: { htu: 'http://evil.test/' } },
  'proof-too-old': { claims: { iat: NOW - 301 } },
  'proof-too-new': { claims: { iat: NOW + 31 } },
  'proof-ath': { claims: { ath: 'x' } },
  'proof-signature': { header: { jwk: strangersKey.jwk } },
  'proof-replayed': {},
  'proof-repeated': { proof: ['p', 'q'] },
};

for (const reason of Object.keys(CALLS) as ProofReason[]) {
  const what = CALLS[reason];

  test(`answers 401 invalid_dpop_proof with its own sentence when a proof has the fault ${reason} [RFC 9449 §7.1]`, async () => {
    const service = SERVICES.ALLOWED;
    const proof = 'proof' in what ? what.proof : proofFor(service, what);
    if (reason === 'proof-replayed') assert.equal((await call(service, { proof })).status, 200);
    const response = await call(service, { proof });
    assert.equal(outcome(service, response), `401 ${reason}`);
    assert.deepEqual(response.body, REFUSED);
    assert.deepEqual(
      response.challenges[1],
      `DPoP ${sentence('invalid_dpop_proof', REFUSALS.invalid_dpop_proof[reason])}, ${ALGS}`,
    );
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.equal(response.headers['dpop-nonce'], undefined);
  });
}

test('says that the proof is invalid under ERROR_DETAIL [docs/refusals.md]', async () => {
  const service = await startDpop({ ERROR_DETAIL: 'true' });
  const { status, body, challenges } = await call(service, { claims: { iat: NOW - 301 } });
  assert.deepEqual(
    [status, body],
    [401, { error: 'invalid_dpop_proof', message: 'The DPoP proof is invalid' }],
  );
  assert.deepEqual(challenges, ['Bearer realm="api"', `DPoP ${STALE}, ${ALGS}`]);
});

test('refuses two proofs, in two fields or in one [RFC 9449 §4.3(1), E10]', async () => {
  const service = SERVICES.ALLOWED;
  const two = [proofFor(service), proofFor(service)];
  for (const [proof, said] of [
    [two, '401 proof-repeated'],
    [['', ''], '401 proof-repeated'],
    [two.join(', '), '401 proof-malformed'],
    [two.join(','), '401 proof-malformed'],
    ['', '401 proof-malformed'],
  ] as const) {
    assert.equal(outcome(service, await call(service, { proof: proof as string })), said);
  }
  // While DPoP is off, they are ignored.
  assert.equal((await call(SERVICES.DISABLED, { scheme: 'Bearer', proof: two })).status, 200);
  // Without a token, no proof is read.
  for (const mode of MODES) {
    assert.equal((await SERVICES[mode].ask('/api/public', { headers: { DPoP: two } })).status, 200);
  }
});

test('accepts DPoP in profile B only when it is set [docs/settings.md IDP_DPOP_MODE]', async () => {
  const plain = await startDpop({ PROFILE: 'B' });
  assert.equal(outcome(plain, await call(plain)), '401 scheme-refused');
  const on = await startDpop({ PROFILE: 'B', IDP_DPOP_MODE: 'ALLOWED' });
  for (const [path, what, said] of [
    ['/api/private', {}, '200'],
    ['/api/feed', {}, '200'],
    ['/api/feed', { proof: undefined }, '401 proof-missing'],
    ['/api/feed', { scheme: 'Bearer', proof: undefined }, '401 bound-token'],
  ] as const) {
    assert.equal(outcome(on, await call(on, { path, ...what })), said);
  }
});
