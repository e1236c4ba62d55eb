import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALGORITHM_NAMES } from '../../../src/verify/keys/jwk.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { ProofVerifier } from '../../../src/verify/dpop/proof.ts';
import { LocalReplayStore } from '../../../src/verify/dpop/replay.ts';
import { hashOf, nonceAt, sealProof } from '../../support/proof.ts';
import { NOW } from '../token/issuer.ts';
import { FAULTS, whole, type Fault, type Whole } from './proof-faults.ts';
import {
  draft,
  inClaims,
  inHeader,
  inKey,
  verdictOf,
  key,
  openSender,
  URI,
  verdictOn,
  type Change,
} from '../sender-fixture.ts';
import { unlessRefused } from '../../support/refused.ts';

const SECRET = 'a secret that replicas share, of 32';
const NONCE = nonceAt(SECRET, NOW * 1000);
const rules = { dpopNonceSecret: SECRET };

function verdictOnWhole(
  { proof, token, isSent, record }: Whole,
  sender = openSender({ rules, store: { record: () => record } }),
) {
  return verdictOf(sender, isSent ? sealProof(proof) : undefined, { token });
}

describe('the checks on a proof', () => {
  test('accept the proof without any fault', async () => {
    assert.equal(await verdictOnWhole(whole(NONCE)), 'accepted');
  });

  const faults = Object.entries<Fault>(FAULTS);
  for (const [index, [reason, { what, apply, place }]] of faults.entries()) {
    test(`refuse ${what}`, async () => {
      const faulty = whole(NONCE);
      apply(faulty);
      assert.equal(await verdictOnWhole(faulty), reason);
    });

    const beside = faults
      .slice(index + 1)
      .filter(([, fault]) => place === undefined || place !== fault.place);
    if (beside.length > 0) {
      test(`report ${reason} before every later fault [docs/dpop.md]`, async () => {
        for (const [later, second] of beside) {
          const both = whole(NONCE);
          second.apply(both);
          apply(both);
          assert.equal(await verdictOnWhole(both), reason, `beside ${later}`);
        }
      });
    }

    if (place === 'store') continue;
    test(`record no proof with the fault ${reason} [RFC 9449 §11.1, E14]`, async () => {
      const sender = openSender({ rules, store: new LocalReplayStore(330, 1) });
      const good = whole(NONCE);
      const faulty = whole(NONCE);
      faulty.proof.claims.jti = good.proof.claims.jti;
      apply(faulty);
      assert.equal(await verdictOnWhole(faulty, sender), reason);
      assert.equal(await verdictOnWhole(good, sender), 'accepted');
      assert.equal(await verdictOnWhole(good, sender), 'proof-replayed');
    });
  }
});

const text =
  (part: 'headerText' | 'payloadText', value: string | Buffer): Change =>
  (proof) => {
    proof[part] = value;
  };

const finish =
  (make: (text: string) => string): Change =>
  (proof) => {
    proof.finish = make;
  };

const MALFORMED: Record<string, Change> = {
  'is empty': finish(() => ''),
  'is not a JWS': finish(() => 'proof'),
  'has two parts': finish((proof) => proof.slice(0, proof.lastIndexOf('.'))),
  'has four parts': finish((proof) => `${proof}.AA`),
  'has five parts, as a JWE has': finish((proof) => `${proof}.AA.AA`),
  'is sent twice, joined as a list': finish((proof) => `${proof}, ${proof}`),
  'has a blank after it': finish((proof) => `${proof} `),
  'has an alphabet of base64': finish((proof) => `${proof.slice(0, -4)}+/AA`),
  'has a header that is an array': text('headerText', '[]'),
  'has a header that is null': text('headerText', 'null'),
  'has a header that is not JSON': text('headerText', '{'),
  'has a header that is empty': text('headerText', ''),
  'has a header that is not UTF-8': text('headerText', Buffer.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)),
  'has a payload that is an array': text('payloadText', '[]'),
  'has a payload that is null': text('payloadText', 'null'),
  'has a payload that is text': text('payloadText', '"jti"'),
  'has a payload that is empty': text('payloadText', ''),
};

for (const [condition, change] of Object.entries(MALFORMED)) {
  test(`refuses a proof that ${condition} [RFC 9449 §4.3(2)]`, async () => {
    assert.equal(await verdictOn(change), 'proof-malformed');
  });
}

test('uses the last of repeated claims [RFC 7519 §4]', async () => {
  const claims = draft().claims;

  const repeated = (first: object, last: object) =>
    `${JSON.stringify(first).slice(0, -1)},${JSON.stringify(last).slice(1)}`;

  assert.equal(await verdictOn(text('payloadText', repeated({ htm: 'POST' }, claims))), 'accepted');
  assert.equal(await verdictOn(text('payloadText', repeated(claims, { htm: 'POST' }))), 'proof-htm');
});

const HEADERS: [name: string, values: readonly unknown[], reason: string, clause: string][] = [
  [
    'typ',
    [
      undefined,
      null,
      7,
      ['dpop+jwt'],
      {},
      '',
      'dpop',
      'jwt',
      'at+jwt',
      'dpop+jwt ',
      'xdpop+jwt',
      'text/dpop+jwt',
      'dpop+jwt;v=1',
      'application/application/dpop+jwt',
    ],
    'proof-type',
    'RFC 9449 §4.3(4)',
  ],
  [
    'alg',
    [
      undefined,
      null,
      7,
      ['ES256'],
      {},
      '',
      'none',
      'None',
      'NONE',
      'HS256',
      'HS384',
      'HS512',
      'es256',
      'ES256 ',
      'ES256K',
      'RS384',
      'RS512',
      'RS1',
      'PS384',
      'PS512',
      'Ed448',
      // RFC 9864's name for what is EdDSA here (docs/dpop.md).
      'Ed25519',
      'constructor',
      'toString',
      '__proto__',
    ],
    'proof-algorithm',
    'RFC 9449 §4.3(5)',
  ],
  ['crit', [null, [], ['b64'], ['x'], 'x', false], 'proof-critical', 'RFC 7515 §4.1.11'],
  ['b64', [false, true, null], 'proof-critical', 'RFC 7797 §6'],
  [
    'jwk',
    [undefined, null, 7, 'key', [], [key.jwk], {}, JSON.stringify(key.jwk)],
    'proof-key',
    'RFC 9449 §4.3(7)',
  ],
];

for (const [name, values, reason, clause] of HEADERS) {
  for (const value of values) {
    test(`refuses a proof whose ${name} is ${JSON.stringify(value)} [${clause}, E8]`, async () => {
      assert.equal(await verdictOn(inHeader(name, value)), reason);
    });
  }
}

for (const typ of ['dpop+jwt', 'DPoP+JWT', 'application/dpop+jwt', 'APPLICATION/DPOP+JWT']) {
  test(`accepts the typ ${typ} [RFC 9449 §4.3(4), RFC 7515 §4.1.9]`, async () => {
    assert.equal(await verdictOn(inHeader('typ', typ)), 'accepted');
  });
}

const ath = String(draft().claims.ath);

const CLAIMS: [name: string, values: readonly unknown[], reason: string, clause: string][] = [
  [
    'jti',
    [undefined, null, 7, ['x'], {}, true, '', 'x'.repeat(257), 'x'.repeat(5000)],
    'proof-jti',
    'RFC 9449 §4.3(3)',
  ],
  ['iat', [undefined, null, String(NOW), [NOW], {}, true, ''], 'proof-iat', 'RFC 9449 §4.3(3)'],
  ['iat', [0, -1, -NOW], 'proof-too-old', 'RFC 9449 §4.3(11)'],
  [
    'htm',
    [undefined, null, 7, ['GET'], {}, '', 'get', 'Get', 'HEAD', 'POST', 'GET ', ' GET', 'GETX', '*'],
    'proof-htm',
    'RFC 9449 §4.3(8)',
  ],
  [
    'htu',
    [
      undefined,
      null,
      7,
      [URI],
      {},
      '',
      '/api/private',
      'api.test/api/private',
      '//api.test/api/private',
      'javascript:alert(1)',
      `${URI} `,
      ` ${URI}`,
      `${URI}/`,
      `${URI}x`,
      URI.slice(0, -1),
      'https://api.test',
      'http://api.test/api/private',
      'https://api.test:444/api/private',
      'https://other.test/api/private',
      'https://user@api.test/api/private',
      'https://api.test/API/private',
      'https://api.test//api/private',
    ],
    'proof-htu',
    'RFC 9449 §4.3(9)',
  ],
  [
    'ath',
    [
      undefined,
      null,
      7,
      [ath],
      {},
      '',
      `${ath}=`,
      ath.toLowerCase(),
      hashOf('another token'),
      hashOf(''),
      Buffer.from(ath, 'base64url').toString('hex'),
      Buffer.from(ath, 'base64url').toString('base64'),
      `${ath.slice(0, -1)}_`,
    ],
    'proof-ath',
    'RFC 9449 §4.3(12)',
  ],
];

for (const [name, values, reason, clause] of CLAIMS) {
  for (const value of values) {
    test(`refuses a proof whose ${name} is ${JSON.stringify(value)?.replace(/x{80,}/, ({ length }) => `${length} x`)} [${clause}, E8]`, async () => {
      assert.equal(await verdictOn(inClaims(name, value)), reason);
    });
  }
}

for (const [name, value] of [
  ['jti', 'x'],
  ['jti', ' '],
  ['jti', 'x'.repeat(256)],
  ['jti', '字'.repeat(256)],
  ['jti', '\u0000 "\\ é 字'],
  ['iat', NOW - 0.5],
  ['htu', `${URI}?q=1#f`],
  ['htu', 'HTTPS://API.TEST:443/api/%70rivate'],
  ['exp', 1],
  ['nbf', NOW + 1e6],
  ['nonce', 'unasked'],
  ['nonce', 7],
  ['other', {}],
] as const) {
  test(`accepts a proof whose ${name} is ${JSON.stringify(value).slice(0, 60)} [RFC 9449 §4.2, docs/dpop.md]`, async () => {
    assert.equal(await verdictOn(inClaims(name, value)), 'accepted');
  });
}

test('reads the nonce from the claims of a proof alone [RFC 9449 §4.2]', async () => {
  assert.equal(await verdictOn(inClaims('nonce', NONCE), key, { rules }), 'accepted');
  for (const elsewhere of [inHeader('nonce', NONCE), inKey('nonce', NONCE)]) {
    assert.equal(await verdictOn(elsewhere, key, { rules }), 'proof-nonce');
  }
});

test('refuses a proof whose iat is not a finite number [RFC 9449 §4.3(3), E12]', async () => {
  for (const number of ['1e999', '-1e999']) {
    const payload = JSON.stringify({ ...draft().claims, iat: undefined }).replace(/}$/, `,"iat":${number}}`);
    assert.equal(await verdictOn(text('payloadText', payload)), 'proof-iat');
  }
});

for (const [offset, leeway] of [
  [300, 30],
  [0, 0],
  [1, 0],
  [0, 1],
  [5, 7],
] as const) {
  for (const [iat, verdict] of [
    [NOW - offset - 1, 'proof-too-old'],
    [NOW - offset - 0.5, 'proof-too-old'],
    [NOW - offset, 'accepted'],
    [NOW + leeway, 'accepted'],
    [NOW + leeway + 0.5, 'proof-too-new'],
    [NOW + leeway + 1, 'proof-too-new'],
  ] as const) {
    test(`gives the verdict ${verdict} on a proof whose iat is now${iat < NOW ? '' : '+'}${iat - NOW}, with offset ${offset} and leeway ${leeway} [RFC 9449 §4.3(11), E12]`, async () => {
      const rules = { dpopIatOffsetSeconds: offset, dpopIatLeewaySeconds: leeway };
      assert.equal(await verdictOn(inClaims('iat', iat), key, { rules }), verdict);
    });
  }
}

test('compares iat with the time in whole seconds [RFC 9449 §4.3(11)]', async () => {
  const nowMillis = NOW * 1000 + 999;
  for (const [iat, verdict] of [
    [NOW - 301, 'proof-too-old'],
    [NOW - 300, 'accepted'],
    [NOW + 31, 'proof-too-new'],
  ] as const) {
    const changed = draft();
    changed.claims.iat = iat;
    assert.equal(await verdictOf(openSender(), sealProof(changed), { nowMillis }), verdict);
  }
});

/** The proof and the token of RFC 9449 §7.1, figures 12 and 13. */
const EXAMPLE =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdC' +
  'RnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwi' +
  'aHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8y' +
  'cjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSY' +
  'oMxhAJpLjA';

const EXAMPLE_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';
const EXAMPLE_TIME = 1_562_262_618;

function verdictOnExample(
  nowSeconds: number,
  change: { method?: string; path?: string; token?: string } = {},
) {
  const proofs = new ProofVerifier({
    dpopIatOffsetSeconds: 300,
    dpopIatLeewaySeconds: 30,
    dpopNonceSecret: undefined,
    dpopAlgorithms: ALGORITHM_NAMES,
    publicUrl: 'https://resource.example.org',
    trustProxy: false,
  });
  const { token = EXAMPLE_TOKEN, method = 'GET', path = '/protectedresource' } = change;
  const facts = { method, path, host: '', rawHeaders: [] };

  try {
    return unlessRefused(proofs.verify(EXAMPLE, token, facts, nowSeconds));
  } catch (failure) {
    if (failure instanceof Refused) return failure.refusal.reason;
    throw failure;
  }
}

test('verifies the example proof at its time [RFC 9449 §7.1]', () => {
  const proven = {
    thumbprint: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
    jti: 'e1j3V_bKic8-LAEB',
    expiresAtSeconds: EXAMPLE_TIME + 300,
    freshNonce: undefined,
  };
  for (const nowSeconds of [EXAMPLE_TIME - 30, EXAMPLE_TIME, EXAMPLE_TIME + 0.999, EXAMPLE_TIME + 300]) {
    assert.deepEqual(verdictOnExample(nowSeconds), proven);
  }
});

test('refuses the example proof one second outside its window [RFC 9449 §4.3(11)]', () => {
  assert.equal(verdictOnExample(EXAMPLE_TIME - 31), 'proof-too-new');
  assert.equal(verdictOnExample(EXAMPLE_TIME + 301), 'proof-too-old');
});

test('refuses the example proof for another method, URI or token [RFC 9449 §4.3(8), (9), (12), E8]', () => {
  assert.equal(verdictOnExample(EXAMPLE_TIME, { method: 'HEAD' }), 'proof-htm');
  assert.equal(verdictOnExample(EXAMPLE_TIME, { path: '/other' }), 'proof-htu');
  assert.equal(verdictOnExample(EXAMPLE_TIME, { token: `${EXAMPLE_TOKEN}A` }), 'proof-ath');
});

test('refuses the example proof for a path with #, after which no URI has a path [RFC 9449 §4.3(9)]', () => {
  for (const path of ['/protectedresource#', '/protectedresource#/other', '/#/protectedresource']) {
    assert.equal(verdictOnExample(EXAMPLE_TIME, { path }), 'proof-htu', path);
  }
});
