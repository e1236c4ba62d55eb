/* The key and the signature of a proof: each algorithm with its own type of key, strong enough, public, and
   on its curve. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { integer } from '../keys/key-set-fixture.ts';
import {
  makeProofKey,
  PROOF_ALGORITHMS,
  sealProof,
  type Members,
  type ProofAlgorithm,
  type ProofKey,
} from '../../support/proof.ts';
import {
  boundTo,
  draft,
  inHeader,
  inKey,
  verdictOf,
  key,
  openSender,
  verdictOn,
  type Change,
} from '../sender-fixture.ts';

const KEYS = Object.fromEntries(PROOF_ALGORITHMS.map((alg) => [alg, makeProofKey(alg)])) as Record<
  ProofAlgorithm,
  ProofKey
>;

const nothing: Change = () => {};

const both =
  (...changes: Change[]): Change =>
  (proof) => {
    for (const change of changes) change(proof);
  };

const bytesOf = (value: unknown) => Buffer.from(String(value), 'base64url');

for (const alg of PROOF_ALGORITHMS) {
  const key = KEYS[alg];

  test(`accepts a proof signed with ${alg} [RFC 9449 §4.3(5), (6)]`, async () => {
    assert.equal(await verdictOn(nothing, key), 'accepted');
  });

  test(`accepts a second ${alg} proof of a known key, and refuses a wrong signature of that key [RFC 9449 §4.3(6)]`, async () => {
    const sender = openSender();
    const token = boundTo(key.thumbprint);
    const faulty = draft(key, token);
    faulty.claims.jti = 'another claim than the one that was signed';
    const [head, , tail] = sealProof(draft(key, token)).split('.');
    for (const verdict of ['accepted', 'accepted']) {
      assert.equal(await verdictOf(sender, sealProof(draft(key, token)), { token }), verdict);
    }
    assert.equal(
      await verdictOf(sender, [head, sealProof(faulty).split('.')[1], tail].join('.'), { token }),
      'proof-signature',
    );
  });

  for (const [what, alter] of [
    ['is empty', () => Buffer.alloc(0)],
    ['is all zero', (right: Buffer) => Buffer.alloc(right.length)],
    ['is all ones', (right: Buffer) => Buffer.alloc(right.length, 0xff)],
    ['does not have its last byte', (right: Buffer) => right.subarray(0, -1)],
    ['has a byte more', (right: Buffer) => Buffer.concat([right, Buffer.alloc(1)])],
    ['has a zero byte before it', (right: Buffer) => Buffer.concat([Buffer.alloc(1), right])],
    [
      'differs in its first byte',
      (right: Buffer) => Buffer.from(right.map((byte, index) => (index === 0 ? byte ^ 1 : byte))),
    ],
    [
      'differs in its last byte',
      (right: Buffer) =>
        Buffer.from(right.map((byte, index) => (index === right.length - 1 ? byte ^ 1 : byte))),
    ],
  ] as const) {
    test(`refuses a proof with ${alg} whose signature ${what} [RFC 9449 §4.3(6)]`, async () => {
      assert.equal(
        await verdictOn((proof) => {
          proof.alter = alter;
        }, key),
        'proof-signature',
      );
    });
  }

  for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']) {
    test(`refuses a proof with ${alg} whose key has the private member ${name} [RFC 9449 §4.3(7), E9]`, async () => {
      for (const value of ['AQAB', '', null, 0, []]) {
        assert.equal(await verdictOn(inKey(name, value), key), 'proof-key', JSON.stringify(value));
      }
    });
  }

  for (const name of Object.keys(key.jwk)) {
    test(`refuses a proof with ${alg} whose key has an invalid ${name} [RFC 7518 §6]`, async () => {
      for (const value of [undefined, null, 7, '', [key.jwk[name]], {}]) {
        assert.equal(await verdictOn(inKey(name, value), key), 'proof-key', JSON.stringify(value));
      }
    });
  }

  for (const other of PROOF_ALGORITHMS.filter((name) => name !== alg)) {
    test(`refuses a proof that says ${other} with a key and signature for ${alg} [RFC 9449 §4.3(5), RFC 8725 §3.1]`, async () => {
      const reason = [alg, other].every((name) => name.endsWith('S256') && !name.startsWith('E'))
        ? 'proof-signature'
        : 'proof-key';
      assert.equal(await verdictOn(inHeader('alg', other), key), reason);
    });
  }

  test(`ignores use, alg, key_ops, unknown members and members of other key types in a key for ${alg} [docs/dpop.md]`, async () => {
    const members = {
      // Of other key types.
      ...{ crv: 'P-256', e: 'AQAB', n: 'AQ', y: 'AQ', ...key.jwk },
      use: 'enc',
      alg: 'none',
      key_ops: ['sign'],
      kid: 7,
      ext: true,
      x5c: ['MII'],
      x5u: 'https://evil.test/',
      iat: 1,
    };
    assert.equal(
      await verdictOn(both(...Object.entries(members).map(([name, value]) => inKey(name, value))), key),
      'accepted',
    );
  });
}

test('reads the key from jwk alone [RFC 9449 §4.3(6), E9]', async () => {
  const elsewhere = { kid: 'x', x5c: ['MII'], jku: 'https://evil.test/', x5u: 'https://evil.test/' };
  for (const [name, value] of Object.entries(elsewhere)) {
    assert.equal(await verdictOn(inHeader(name, value), KEYS.ES256), 'accepted');
    assert.equal(
      await verdictOn(both(inHeader(name, value), inHeader('jwk', undefined)), KEYS.ES256),
      'proof-key',
    );
  }
});

test('refuses a key with members nested deeper than the stack [RFC 9449 §4.3(7), C9]', async () => {
  for (const [alg, { jwk }] of Object.entries(KEYS) as [ProofAlgorithm, ProofKey][]) {
    for (const name of Object.keys(jwk)) {
      const others = JSON.stringify({ ...jwk, [name]: undefined }).slice(1, -1);
      const deep = `{${others},"${name}":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;

      const change: Change = (proof) => {
        proof.headerText = `{"typ":"dpop+jwt","alg":"${alg}","jwk":${deep}}`;
      };

      assert.equal(await verdictOn(change, KEYS[alg]), 'proof-key', `${alg} ${name}`);
    }
  }
});

test('refuses a whole private key [RFC 9449 §4.3(7)]', async () => {
  for (const key of Object.values(KEYS)) {
    assert.equal(
      await verdictOn(inHeader('jwk', key.privateKey.export({ format: 'jwk' })), key),
      'proof-key',
    );
  }
});

test('refuses the signature of another key [RFC 9449 §4.3(6)]', async () => {
  assert.equal(
    await verdictOn((proof) => {
      proof.signer = makeProofKey('ES256');
    }, KEYS.ES256),
    'proof-signature',
  );
  assert.equal(
    await verdictOn((proof) => {
      proof.signer = makeProofKey('EdDSA');
    }, KEYS.EdDSA),
    'proof-signature',
  );
});

test('refuses a key on another curve of the same key type [RFC 7518 §3.4, RFC 8037 §3.1]', async () => {
  for (const [type, namedCurve, alg] of [
    ['ec', 'secp256k1', 'ES256'],
    ['ed448', '', 'EdDSA'],
    ['x25519', '', 'EdDSA'],
  ] as const) {
    const { publicKey } =
      type === 'ec' ? generateKeyPairSync(type, { namedCurve }) : generateKeyPairSync(type as 'ed448');
    const jwk = publicKey.export({ format: 'jwk' });
    assert.equal(await verdictOn(inHeader('jwk', jwk), KEYS[alg]), 'proof-key');
    // Nor does the name of the right curve make it a valid key.
    assert.equal(
      await verdictOn(inHeader('jwk', { ...jwk, crv: KEYS[alg].jwk.crv }), KEYS[alg]),
      type === 'x25519' ? 'proof-signature' : 'proof-key',
    );
  }
});

const FIELDS = {
  ES256: { bytes: 32, prime: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n },
  ES384: { bytes: 48, prime: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n },
  ES512: { bytes: 66, prime: 2n ** 521n - 1n },
} as const;

const fixed = (value: bigint, bytes: number) =>
  Buffer.from(value.toString(16).padStart(bytes * 2, '0'), 'hex').toString('base64url');

const valueOf = (text: unknown) => BigInt(`0x${bytesOf(text).toString('hex')}`);

for (const [alg, { bytes, prime }] of Object.entries(FIELDS) as [
  keyof typeof FIELDS,
  typeof FIELDS.ES256,
][]) {
  const { x, y } = KEYS[alg].jwk;
  const points: Record<string, Members> = {
    'is not on its curve': { y: fixed(valueOf(y) ^ 1n, bytes) },
    'has its coordinates exchanged': { x: y, y: x },
    'is (0, 0)': { x: fixed(0n, bytes), y: fixed(0n, bytes) },
    'has an x that is the prime of the field': { x: fixed(prime, bytes) },
    'has a y beyond the prime of the field': {
      y: alg === 'ES512' ? fixed(valueOf(y) + prime, bytes) : Buffer.alloc(bytes, 0xff).toString('base64url'),
    },
    'has an x that is a byte short': { x: bytesOf(x).subarray(1).toString('base64url') },
    'has a y that is a byte short': { y: bytesOf(y).subarray(0, -1).toString('base64url') },
    'has an x with a zero byte before it': {
      x: Buffer.concat([Buffer.alloc(1), bytesOf(x)]).toString('base64url'),
    },
    'has a y with a zero byte before it': {
      y: Buffer.concat([Buffer.alloc(1), bytesOf(y)]).toString('base64url'),
    },
    'has a y with padding': { y: `${String(y)}==` },
    'has a y with a byte more': { y: Buffer.concat([bytesOf(y), Buffer.alloc(1)]).toString('base64url') },
    'has an x with padding': { x: `${String(x)}=` },
    'has a y in base64': { y: `${String(y).slice(0, -3)}+/A` },
  };
  for (const [condition, change] of Object.entries(points)) {
    test(`refuses a proof with ${alg} whose point ${condition} [RFC 7518 §6.2.1, A11]`, async () => {
      assert.equal(
        await verdictOn(
          both(...Object.entries(change).map(([name, value]) => inKey(name, value))),
          KEYS[alg],
        ),
        'proof-key',
      );
    });
  }
}

test('refuses an Ed25519 key that is not 32 bytes in canonical base64url [RFC 8037 §2]', async () => {
  const { x } = KEYS.EdDSA.jwk;
  const lengths = [
    bytesOf(x).subarray(1),
    Buffer.concat([bytesOf(x), Buffer.alloc(1)]),
    Buffer.concat([bytesOf(x), bytesOf(x)]),
  ];
  const spellings = [
    ...lengths.map((bytes) => bytes.toString('base64url')),
    `${String(x)}=`,
    ` ${String(x)}`,
  ];
  for (const spelling of spellings) {
    assert.equal(await verdictOn(inKey('x', spelling), KEYS.EdDSA), 'proof-key', spelling);
  }
  assert.equal(await verdictOn(inKey('y', x), KEYS.EdDSA), 'accepted');
});

const ORDER_OF_P256 = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

test('refuses an ECDSA signature in DER, or with r or s equal to zero or the order of the curve [RFC 7518 §3.4, A10]', async () => {
  const zero = Buffer.alloc(32);
  const order = bytesOf(fixed(ORDER_OF_P256, 32));
  const altered: ((right: Buffer) => Buffer)[] = [
    (right) => Buffer.concat([zero, right.subarray(32)]),
    (right) => Buffer.concat([right.subarray(0, 32), zero]),
    (right) => Buffer.concat([order, right.subarray(32)]),
    (right) => Buffer.concat([right.subarray(0, 32), order]),
    () => Buffer.concat([order, order]),
    () => sign('sha256', Buffer.from('any'), KEYS.ES256.privateKey),
  ];
  for (const alter of altered) {
    assert.equal(
      await verdictOn((proof) => {
        proof.alter = alter;
      }, KEYS.ES256),
      'proof-signature',
    );
  }
  const token = boundTo(KEYS.ES256.thumbprint);
  const [head, payload] = sealProof(draft(KEYS.ES256, token)).split('.');
  const der = sign('sha256', Buffer.from(`${head}.${payload}`), KEYS.ES256.privateKey).toString('base64url');
  assert.equal(await verdictOf(openSender(), `${head}.${payload}.${der}`, { token }), 'proof-signature');
});

const even = (value: string) =>
  Buffer.concat([bytesOf(value).subarray(0, -1), Buffer.of(0xfe)]).toString('base64url');

/** A key of the right type passes until its signature is checked. */
const SIZES: [what: string, change: Members, verdict: 'proof-signature' | 'proof-key'][] = [
  ...([1024, 2047, 4097, 4104, 8192, 16384] as const).map((bits): [string, Members, 'proof-key'] => [
    `a modulus of ${bits} bits`,
    { n: integer(bits) },
    'proof-key',
  ]),
  ...([2048, 2049, 4095, 4096] as const).map((bits): [string, Members, 'proof-signature'] => [
    `a modulus of ${bits} bits`,
    { n: integer(bits) },
    'proof-signature',
  ]),
  ['an even modulus', { n: even(integer(2048)) }, 'proof-key'],
  [
    'a modulus with a zero byte before it',
    { n: Buffer.concat([Buffer.alloc(1), bytesOf(integer(2048))]).toString('base64url') },
    'proof-key',
  ],
  ['the exponent 0', { e: 'AA' }, 'proof-key'],
  ['the exponent 1', { e: 'AQ' }, 'proof-key'],
  ['the exponent 2', { e: 'Ag' }, 'proof-key'],
  ['the exponent 3', { e: 'Aw' }, 'proof-signature'],
  ['the even exponent 65536', { e: 'AQAA' }, 'proof-key'],
  ['an exponent of 32 bits', { e: integer(32) }, 'proof-signature'],
  ['an exponent of 33 bits', { e: integer(33) }, 'proof-key'],
  ['an exponent of 2048 bits', { e: integer(2048) }, 'proof-key'],
  ['an exponent with a zero byte before it', { e: 'AAEAAQ' }, 'proof-key'],
];

for (const alg of ['PS256', 'RS256'] as const) {
  for (const [what, change, verdict] of SIZES) {
    test(`gives the verdict ${verdict} on a proof with ${alg} and ${what} [RFC 7518 §3.3, docs/dpop.md]`, async () => {
      assert.equal(
        await verdictOn(
          both(...Object.entries(change).map(([name, value]) => inKey(name, value))),
          KEYS[alg],
        ),
        verdict,
      );
    });
  }
}

test('refuses a PS256 signature whose salt is not as long as the digest [RFC 7518 §3.5]', async () => {
  const token = boundTo(KEYS.PS256.thumbprint);
  const [head, payload] = sealProof(draft(KEYS.PS256, token)).split('.');
  for (const [saltLength, verdict] of [
    [32, 'accepted'],
    [0, 'proof-signature'],
    [31, 'proof-signature'],
    [64, 'proof-signature'],
  ] as const) {
    const signature = sign('sha256', Buffer.from(`${head}.${payload}`), {
      key: KEYS.PS256.privateKey,
      padding: 6,
      saltLength,
    });
    assert.equal(
      await verdictOf(openSender(), `${head}.${payload}.${signature.toString('base64url')}`, { token }),
      verdict,
      String(saltLength),
    );
  }
});

test('accepts a proof only once, even when its mirrored signature verifies too [A10, RFC 9449 §11.1]', async () => {
  const proof = draft(key);
  const mirrored: typeof proof = {
    ...proof,
    alter: (signature) => {
      const other = ORDER_OF_P256 - BigInt(`0x${signature.subarray(32).toString('hex')}`);
      return Buffer.concat([
        signature.subarray(0, 32),
        Buffer.from(other.toString(16).padStart(64, '0'), 'hex'),
      ]);
    },
  };
  for (const [first, second] of [
    [proof, mirrored],
    [mirrored, proof],
  ] as const) {
    const sender = openSender();
    assert.deepEqual(
      [await verdictOf(sender, sealProof(first)), await verdictOf(sender, sealProof(second))],
      ['accepted', 'proof-replayed'],
    );
  }
});
