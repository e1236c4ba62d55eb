/* What a token names as its confirmation (cnf), where a source of certificates is set: each row of the table in
   docs/certificates.md, under both schemes and in every DPoP mode. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SCHEMES, type DpopMode } from '../../src/verify/request/facts.ts';
import { client, confirmOf, otherClient, written } from '../options/certificates-fixture.ts';
import { draft, key, openSender, strangersKey, verdictOf, type Verdict } from './sender-fixture.ts';
import { sealProof } from '../support/proof.ts';
import { issue } from './token/issuer.ts';

const MODES: readonly DpopMode[] = ['DISABLED', 'ALLOWED', 'REQUIRED'];

const jkt = key.thumbprint;
const x5t = client.thumbprint;

/** The fields of a request: the certificate of the token, another one, one that cannot be read, none. */
const SENT = {
  own: ['Client-Cert', written('rfc9440', client.der)],
  other: ['Client-Cert', written('rfc9440', otherClient.der)],
  bad: ['Client-Cert', 'x'],
  none: [],
} as const;

type Sent = keyof typeof SENT;

const ALL = Object.keys(SENT) as readonly Sent[];

interface Presentation {
  readonly cnf: unknown;
  readonly mode: DpopMode;
  readonly scheme: 'Bearer' | 'DPoP';
  readonly sent: Sent;
  readonly required?: boolean;
  /** Default: a valid one for the scheme `DPoP`. */
  readonly proof?: string | undefined;
}

function verdict(presentation: Presentation): Promise<Verdict> {
  const { cnf, mode, scheme, sent, required } = presentation;
  const confirm = confirmOf({ source: 'rfc9440', proxies: 'any', required }, mode);
  const sender = openSender({ rules: { dpopMode: mode }, confirm });
  const token = issue({ cnf });
  const usual = scheme === 'DPoP' ? sealProof(draft(key, token)) : undefined;
  const proof = 'proof' in presentation ? presentation.proof : usual;
  return verdictOf(sender, proof, { token, scheme, fields: SENT[sent] });
}

/** Each scheme in each mode that accepts it. */
const accepted = MODES.flatMap((mode) => SCHEMES[mode].map((scheme) => ({ mode, scheme })));

const CERTIFICATE: Readonly<Record<Sent, Verdict>> = {
  own: 'accepted',
  other: 'certificate-mismatch',
  bad: 'certificate-malformed',
  none: 'certificate-missing',
};

const MALFORMED: readonly unknown[] = [
  null,
  [],
  [{ jkt }],
  jkt,
  7,
  0,
  false,
  '',
  { jkt: '' },
  { jkt: null },
  { jkt: 7 },
  { jkt: [jkt] },
  { jkt: {}, 'x5t#S256': x5t },
  ...[
    null,
    '',
    7,
    [x5t],
    {},
    `${x5t}=`,
    x5t.slice(1),
    `${x5t}A`,
    `${x5t.slice(0, -1)}*`,
    `${x5t.slice(0, -1)}\n`,
    ` ${x5t}`,
    client.hex,
    x5t.replaceAll('-', '+').replaceAll('_', '/'),
    // Its last character has bits that no thumbprint of 32 bytes has.
    `${'A'.repeat(42)}B`,
  ].flatMap((value) => (value === x5t ? [] : [{ 'x5t#S256': value }, { jkt, 'x5t#S256': value }])),
  ...['jwk', 'jwe', 'jku', 'kid', 'osc'].flatMap((method) => [
    { [method]: null },
    { jkt, [method]: 'x' },
    { 'x5t#S256': x5t, [method]: 'x' },
    { jkt, 'x5t#S256': x5t, [method]: {} },
  ]),
];

for (const cnf of MALFORMED) {
  test(`refuses cnf ${JSON.stringify(cnf)?.slice(0, 70)} before all else, whatever the scheme, mode and certificate [RFC 7800 §3.1, RFC 8705 §3.1, J2]`, async () => {
    for (const { mode, scheme } of accepted) {
      for (const sent of ALL) {
        assert.equal(await verdict({ cnf, mode, scheme, sent }), 'confirmation-refused', `${scheme} ${mode}`);
      }
      const required = { cnf, mode, scheme, sent: 'own', required: true } as const;
      assert.equal(await verdict(required), 'confirmation-refused');
    }
  });
}

describe('a token bound to a key and a certificate', () => {
  const cnf = { jkt, 'x5t#S256': x5t };

  test('is refused as Bearer, with its certificate too [RFC 9449 §7.2, J2]', async () => {
    for (const sent of ALL) {
      const outcomes = ['DISABLED', 'ALLOWED'] as const;
      const found = outcomes.map((mode) => verdict({ cnf, mode, scheme: 'Bearer', sent }));
      assert.deepEqual(await Promise.all(found), ['confirmation-refused', 'bound-token']);
    }
  });

  test('needs both under DPoP: the certificate first, then the proof [RFC 8705 §3, J2]', async () => {
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      for (const sent of ALL) {
        const both = { cnf, mode, scheme: 'DPoP', sent } as const;
        assert.equal(await verdict(both), CERTIFICATE[sent]);
        const unproved = sent === 'own' ? 'proof-missing' : CERTIFICATE[sent];
        assert.equal(await verdict({ ...both, proof: undefined }), unproved);
        const strangers = sealProof(draft(strangersKey, issue({ cnf })));
        const mismatch = sent === 'own' ? 'key-mismatch' : CERTIFICATE[sent];
        assert.equal(await verdict({ ...both, proof: strangers }), mismatch);
      }
    }
  });
});

describe('a token bound to a key alone', () => {
  const cnf = { jkt };

  test('is refused as Bearer [RFC 9449 §7.2]', async () => {
    for (const sent of ALL) {
      const outcomes = ['DISABLED', 'ALLOWED'] as const;
      const found = outcomes.map((mode) => verdict({ cnf, mode, scheme: 'Bearer', sent }));
      assert.deepEqual(await Promise.all(found), ['confirmation-refused', 'bound-token']);
    }
  });

  test('needs a proof under DPoP, and no certificate, also where Bearer needs one [RFC 9449 §7.1]', async () => {
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      for (const sent of ALL) {
        const one = { cnf, mode, scheme: 'DPoP', sent, required: true } as const;
        assert.equal(await verdict(one), 'accepted');
        assert.equal(await verdict({ ...one, proof: undefined }), 'proof-missing');
      }
    }
  });
});

describe('a token bound to a certificate alone', () => {
  test('needs it as Bearer, in both modes, beside members that are no method [RFC 8705 §3, RFC 7800 §3.1, J2]', async () => {
    for (const cnf of [{ 'x5t#S256': x5t }, { 'x5t#S256': x5t, 'kc-jkt-type': 'DPoP' }]) {
      for (const mode of ['DISABLED', 'ALLOWED'] as const) {
        for (const sent of ALL) {
          for (const required of [false, true]) {
            assert.equal(await verdict({ cnf, mode, scheme: 'Bearer', sent, required }), CERTIFICATE[sent]);
          }
        }
      }
    }
  });

  test('needs that of its thumbprint, letter case included [RFC 8705 §3.1]', async () => {
    const swapped = x5t.replace(/[a-z]/, (letter) => letter.toUpperCase());
    const cnf = { 'x5t#S256': swapped };
    assert.notEqual(swapped, x5t);
    assert.equal(
      await verdict({ cnf, mode: 'ALLOWED', scheme: 'Bearer', sent: 'own' }),
      'certificate-mismatch',
    );
  });

  test('is refused under DPoP, with its certificate too [RFC 9449 §7.1, J2]', async () => {
    for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
      for (const sent of ALL) {
        const cnf = { 'x5t#S256': x5t };
        assert.equal(await verdict({ cnf, mode, scheme: 'DPoP', sent }), 'not-bound');
      }
    }
  });
});

describe('a token bound to neither', () => {
  test('passes as Bearer unless a certificate is required [RFC 8705 §3]', async () => {
    for (const mode of ['DISABLED', 'ALLOWED'] as const) {
      for (const sent of ALL) {
        const one = { cnf: undefined, mode, scheme: 'Bearer', sent } as const;
        assert.equal(await verdict(one), 'accepted');
        assert.equal(await verdict({ ...one, required: true }), 'certificate-required');
      }
    }
  });

  test('is refused as Bearer with a cnf of other members while DPoP is on [RFC 9449 §7.2]', async () => {
    for (const cnf of [{}, { 'kc-jkt-type': 'DPoP' }, { JKT: jkt, 'x5t#s256': x5t }]) {
      const one = { cnf, scheme: 'Bearer', sent: 'own' } as const;
      for (const required of [false, true]) {
        assert.equal(await verdict({ ...one, mode: 'ALLOWED', required }), 'bound-token');
      }
      assert.equal(await verdict({ ...one, mode: 'DISABLED' }), 'accepted');
      assert.equal(await verdict({ ...one, mode: 'DISABLED', required: true }), 'certificate-required');
    }
  });

  test('is refused under DPoP [RFC 9449 §7.1]', async () => {
    for (const cnf of [undefined, {}, { 'kc-jkt-type': 'DPoP' }]) {
      for (const mode of ['ALLOWED', 'REQUIRED'] as const) {
        assert.equal(await verdict({ cnf, mode, scheme: 'DPoP', sent: 'own', required: true }), 'not-bound');
      }
    }
  });
});
