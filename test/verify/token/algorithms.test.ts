/* Which algorithm verifies a token: the issuer's list and the key decide, never the header alone (RFC 8725
   §3.1). */
import { strict as assert } from 'node:assert';
import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { ALGORITHM_NAMES, factsOf, importSigningKey, type Algorithm } from '../../../src/verify/keys/jwk.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { createTokenVerifier, verifiedOf } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import { NOW, RULES } from './issuer.ts';

const CURVES = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const;

const DIGESTS = {
  RS256: 'sha256',
  PS256: 'sha256',
  ES256: 'sha256',
  ES384: 'sha384',
  ES512: 'sha512',
  EdDSA: null,
};

/** Made from text: Node 20 can hang when a generated key is exported during garbage collection. */
const TEXT = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

function pairFor(algorithm: Algorithm) {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519', TEXT);
  if (algorithm === 'RS256' || algorithm === 'PS256') {
    return generateKeyPairSync('rsa', { modulusLength: 2048, ...TEXT });
  }
  return generateKeyPairSync('ec', { namedCurve: CURVES[algorithm], ...TEXT });
}

type Pair = Readonly<Record<'publicKey' | 'privateKey', string>>;

const PAIRS = Object.fromEntries(ALGORITHM_NAMES.map((name) => [name, pairFor(name)])) as unknown as Readonly<
  Record<string, Pair>
>;

const jwkOf = (algorithm: Algorithm, more: object = {}) => ({
  ...createPublicKey(PAIRS[algorithm]!.publicKey).export({ format: 'jwk' }),
  kid: algorithm,
  alg: algorithm,
  ...more,
});

const encode = (part: object | Buffer) =>
  (Buffer.isBuffer(part) ? part : Buffer.from(JSON.stringify(part))).toString('base64url');

const CLAIMS = { iss: RULES.issuer, aud: RULES.audience[0], sub: 'a', exp: NOW + 60 };

/** A token with this header and signature. */
function tokenOf(header: object, signBytes: (input: Buffer) => Buffer, claims: object = CLAIMS) {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${encode(signBytes(Buffer.from(input)))}`;
}

const signAs =
  (algorithm: Algorithm, key = PAIRS[algorithm]!.privateKey) =>
  (input: Buffer) =>
    sign(DIGESTS[algorithm], input, {
      key,
      dsaEncoding: 'ieee-p1363',
      ...(algorithm === 'PS256' && { padding: 6, saltLength: 32 }),
    });

const goodToken = (algorithm: Algorithm) => tokenOf({ alg: algorithm, kid: algorithm }, signAs(algorithm));

const MACS = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/** Every form in which a public key is published, and the empty secret. */
function spellingsOf(algorithm: Algorithm): readonly (string | Buffer)[] {
  const pem = PAIRS[algorithm]!.publicKey;
  const key = createPublicKey(pem);
  const der = key.export({ type: 'spki', format: 'der' });
  const jwk = key.export({ format: 'jwk' });
  const { n, x = '', y = '' } = jwk;
  const numbers = [n ?? x, y].map((text) => Buffer.from(text, 'base64url'));
  const point = Buffer.concat([Buffer.from([4]), ...numbers]);
  const pkcs1 =
    n === undefined
      ? []
      : [key.export({ type: 'pkcs1', format: 'pem' }), key.export({ type: 'pkcs1', format: 'der' })];
  return [
    ...[
      pem,
      pem.trim(),
      ` ${pem}`,
      `\ufeff${pem}`,
      pem.replaceAll('\n', '\r\n'),
      pem.replaceAll(/-.*-|\n/g, ''),
      ...pkcs1,
    ],
    ...[der, der.toString('base64'), der.toString('base64url'), der.toString('hex')],
    ...[JSON.stringify(jwk), JSON.stringify(jwkOf(algorithm)), JSON.stringify({ keys: [jwkOf(algorithm)] })],
    ...[n ?? x, numbers[0]!, point, point.toString('hex'), ''],
  ];
}

/** A verifier with these keys; `change` publishes others. */
async function open(algorithms: readonly Algorithm[], jwks: readonly object[]) {
  let published = jwks;
  const clock = new TestClock(NOW * 1000);
  const keys = new KeySet(
    'idp',
    async () => ({ keys: published }),
    { clock, log: () => {}, count: undefined },
    (published) => importSigningKey(published, algorithms),
  );
  await keys.refresh();
  const verify = createTokenVerifier([{ ...RULES, algorithms, keys }], clock, 10);
  return {
    publish: (others: readonly object[]) => {
      published = others;
    },
    change: (others: readonly object[]) => {
      published = others;
      return keys.refresh();
    },
    verdictOf: async (token: string) => {
      const verified = await verify(token);
      return verified instanceof Refused ? verified.refusal.reason : verifiedOf(verified).claims.sub;
    },
  };
}

const ALL = ALGORITHM_NAMES;

describe('a token', () => {
  for (const algorithm of ALL) {
    test(`signed with ${algorithm} is accepted if the list has it, the first time and again [RFC 7518 §3.1, RFC 8037 §3.1]`, async () => {
      const { verdictOf } = await open([algorithm], [jwkOf(algorithm)]);
      for (let time = 0; time < 3; time += 1) assert.equal(await verdictOf(goodToken(algorithm)), 'a');
    });

    test(`signed with ${algorithm} is accepted by a key without alg, whose type implies one [RFC 7517 §4.4]`, async () => {
      const { verdictOf } = await open([algorithm], [jwkOf(algorithm, { alg: undefined })]);
      assert.equal(await verdictOf(goodToken(algorithm)), 'a');
    });

    test(`signed with ${algorithm} is refused if it is not in the list, before a key is looked up [RFC 8725 §3.1]`, async () => {
      const others = ALL.filter((name) => name !== algorithm);
      const { verdictOf } = await open(
        others,
        others.map((name) => jwkOf(name)),
      );
      assert.equal(await verdictOf(goodToken(algorithm)), 'algorithm-refused');
      assert.equal(
        await verdictOf(tokenOf({ alg: algorithm, kid: 'unknown' }, signAs(algorithm))),
        'algorithm-refused',
      );
    });

    for (const other of ALL.filter((name) => name !== algorithm)) {
      test(`that says ${other} and names a key for ${algorithm} is refused, however it is signed [RFC 8725 §3.1, A12]`, async () => {
        const { verdictOf } = await open(
          ALL,
          ALL.map((name) => jwkOf(name)),
        );
        for (const signer of [signAs(algorithm), signAs(other)]) {
          assert.equal(await verdictOf(tokenOf({ alg: other, kid: algorithm }, signer)), 'algorithm-refused');
        }
      });
    }

    test(`that says HS256 or none is refused for a key for ${algorithm}, whatever secret signed it [RFC 8725 §2.1, §3.2, A2]`, async () => {
      const { verdictOf } = await open(ALL, [jwkOf(algorithm)]);
      for (const secret of spellingsOf(algorithm)) {
        for (const [alg, digest] of Object.entries(MACS)) {
          const mac = (input: Buffer) => createHmac(digest, secret).update(input).digest();
          assert.equal(await verdictOf(tokenOf({ alg, kid: algorithm }, mac)), 'algorithm-refused');
          // A MAC with the name of the key's own algorithm is not a signature.
          const posing = tokenOf({ alg: algorithm, kid: algorithm }, mac);
          assert.equal(await verdictOf(posing), 'signature-mismatch');
        }
      }
      for (const alg of [
        'none',
        'None',
        '',
        null,
        undefined,
        [algorithm],
        algorithm.toLowerCase(),
        'Ed25519',
      ]) {
        const bare = tokenOf({ alg, kid: algorithm }, () => Buffer.alloc(0));
        assert.equal(await verdictOf(bare), 'algorithm-refused', String(alg));
      }
    });
  }

  for (const [algorithm, bytes] of [
    ['ES256', 64],
    ['ES384', 96],
    ['ES512', 132],
  ] as const) {
    test(`signed with ${algorithm} has two concatenated integers of ${bytes / 2} bytes and nothing else [RFC 7518 §3.4, A10]`, async () => {
      const { verdictOf } = await open([algorithm], [jwkOf(algorithm)]);
      const header = { alg: algorithm, kid: algorithm };
      const halves = (signature: Buffer) => [signature.subarray(0, bytes / 2), signature.subarray(bytes / 2)];
      const der = (input: Buffer) => sign(DIGESTS[algorithm], input, PAIRS[algorithm]!.privateKey);
      const wrong: ((signature: Buffer) => Buffer)[] = [
        (signature) => Buffer.concat([Buffer.alloc(1), signature]),
        (signature) => Buffer.concat([signature, Buffer.alloc(1)]),
        (signature) => signature.subarray(1),
        (signature) => Buffer.concat([signature, signature]),
        (signature) => Buffer.alloc(signature.length),
        () => Buffer.alloc(0),
        // A half has a byte too many, or lacks its leading byte.
        (signature) => Buffer.concat(halves(signature).flatMap((half) => [Buffer.alloc(1), half])),
        (signature) => Buffer.concat(halves(signature).map((half) => half.subarray(1))),
        // CVE-2022-21449: neither integer may be 0.
        (signature) => Buffer.concat([halves(signature)[0]!, Buffer.alloc(bytes / 2)]),
        (signature) => Buffer.concat([Buffer.alloc(bytes / 2), halves(signature)[1]!]),
        (signature) => Buffer.concat(halves(signature).reverse()),
      ];
      assert.equal(await verdictOf(tokenOf(header, der)), 'signature-mismatch');
      for (const change of wrong) {
        const changed = tokenOf(header, (input) => change(signAs(algorithm)(input)));
        assert.equal(await verdictOf(changed), 'signature-mismatch');
      }
    });
  }

  test('signed with PS256 has a salt of 32 bytes [RFC 7518 §3.5]', async () => {
    const { verdictOf } = await open(['PS256'], [jwkOf('PS256')]);
    for (const saltLength of [0, 20, 31, 33, 64]) {
      const key = PAIRS.PS256!.privateKey;
      const salted = (input: Buffer) => sign('sha256', input, { key, padding: 6, saltLength });
      assert.equal(await verdictOf(tokenOf({ alg: 'PS256', kid: 'PS256' }, salted)), 'signature-mismatch');
    }
  });

  for (const [algorithm, other] of [
    ['RS256', 'PS256'],
    ['PS256', 'RS256'],
  ] as const) {
    test(`signed as ${other} by the RSA key of ${algorithm} is refused, whatever its header says [RFC 8725 §3.1, A12]`, async () => {
      const { verdictOf } = await open(ALL, [jwkOf(algorithm)]);
      const signer = signAs(other, PAIRS[algorithm]!.privateKey);
      assert.equal(await verdictOf(tokenOf({ alg: other, kid: algorithm }, signer)), 'algorithm-refused');
      assert.equal(
        await verdictOf(tokenOf({ alg: algorithm, kid: algorithm }, signer)),
        'signature-mismatch',
      );
    });
  }

  test('signed with one RSA key under two names is accepted by the key of its own algorithm alone [RFC 8725 §3.1, A12]', async () => {
    const { verdictOf } = await open(ALL, [
      jwkOf('RS256', { kid: 'rs' }),
      jwkOf('RS256', { kid: 'ps', alg: 'PS256' }),
    ]);
    const key = PAIRS.RS256!.privateKey;
    for (const [alg, kid, expected] of [
      ['RS256', 'rs', 'a'],
      ['PS256', 'ps', 'a'],
      ['RS256', 'ps', 'algorithm-refused'],
      ['PS256', 'rs', 'algorithm-refused'],
    ] as const) {
      assert.equal(await verdictOf(tokenOf({ alg, kid }, signAs(alg, key))), expected);
    }
  });

  test('signed with EdDSA has a signature of Ed25519: Ed448, and an S that is too large by the group order, are refused [RFC 8037 §3.1, RFC 8032 §5.1.7, A13]', async () => {
    const { verdictOf } = await open(['EdDSA'], [jwkOf('EdDSA')]);
    const header = { alg: 'EdDSA', kid: 'EdDSA' };
    const { privateKey } = generateKeyPairSync('ed448', TEXT);
    assert.equal(
      await verdictOf(tokenOf(header, (input) => sign(null, input, privateKey))),
      'signature-mismatch',
    );

    const order = 2n ** 252n + 27742317777372353535851937790883648493n;

    const second = (signature: Buffer) => {
      const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
      const bytes = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();
      return Buffer.concat([signature.subarray(0, 32), bytes]);
    };

    const malleable = tokenOf(header, (input) => second(signAs('EdDSA')(input)));
    assert.equal(await verdictOf(malleable), 'signature-mismatch');
  });

  for (const [before, after] of [
    ['RS256', 'ES256'],
    ['ES256', 'ES384'],
    ['ES256', 'EdDSA'],
    ['EdDSA', 'RS256'],
  ] as const) {
    test(`signed with ${before} is refused once its kid names a key of ${after}, even if it was accepted before [RFC 8725 §3.1, A12]`, async () => {
      const { verdictOf, change } = await open(ALL, [jwkOf(before, { kid: 'one' })]);
      const token = tokenOf({ alg: before, kid: 'one' }, signAs(before));
      for (let time = 0; time < 3; time += 1) assert.equal(await verdictOf(token), 'a');
      await change([jwkOf(after, { kid: 'one' })]);
      assert.equal(await verdictOf(token), 'algorithm-refused');
      assert.equal(await verdictOf(tokenOf({ alg: after, kid: 'one' }, signAs(after))), 'a');
    });
  }

  test('that was accepted is refused once its key is published for another algorithm under the same kid [RFC 8725 §3.1, A12]', async () => {
    const jwk = jwkOf('RS256', { kid: 'one' });
    const { verdictOf, change } = await open(['RS256', 'PS256'], [jwk]);
    const token = tokenOf({ alg: 'RS256', kid: 'one' }, signAs('RS256'));
    for (let time = 0; time < 3; time += 1) assert.equal(await verdictOf(token), 'a');
    await change([{ ...jwk, alg: 'PS256' }]);
    assert.equal(await verdictOf(token), 'algorithm-refused');
    assert.equal(
      await verdictOf(tokenOf({ alg: 'PS256', kid: 'one' }, signAs('PS256', PAIRS.RS256!.privateKey))),
      'a',
    );
  });
});

/** Keys of two algorithms under one `kid`: of two types, of two curves, and one RSA key or two. */
const SHARED: readonly (readonly [string, Algorithm, Algorithm, object?])[] = [
  ['an RSA key and an EC key', 'RS256', 'ES256'],
  ['an RSA key for RS256 and another for PS256', 'RS256', 'PS256'],
  ['one RSA key, once for RS256 and once for PS256', 'RS256', 'PS256', jwkOf('RS256')],
  ['two EC keys', 'ES256', 'ES384'],
  ['an EC key and an Ed25519 key', 'ES512', 'EdDSA'],
];

describe('a kid that keys of two algorithms share', () => {
  for (const [what, one, other, key = jwkOf(other)] of SHARED) {
    const jwks = [jwkOf(one, { kid: 'one' }), { ...key, kid: 'one', alg: other }];
    const secret = key === SHARED[2]?.[3] ? PAIRS[one] : PAIRS[other];
    const tokens = [
      tokenOf({ alg: one, kid: 'one' }, signAs(one)),
      tokenOf({ alg: other, kid: 'one' }, signAs(other, secret?.privateKey)),
    ];

    test(`names the key of the token's algorithm, the first time and again: ${what} [RFC 7517 §4.5]`, async () => {
      for (const published of [jwks, jwks.toReversed()]) {
        const { verdictOf } = await open([one, other], published);
        for (const token of [...tokens, ...tokens, ...tokens]) assert.equal(await verdictOf(token), 'a');
      }
    });

    test(`names no key for another algorithm of the list: ${what} [RFC 8725 §3.1]`, async () => {
      const { verdictOf } = await open(ALL, jwks);
      for (const alg of ALL.filter((name) => name !== one && name !== other)) {
        const token = tokenOf({ alg, kid: 'one' }, signAs(alg));
        assert.equal(await verdictOf(token), 'algorithm-refused', alg);
      }
    });

    test(`names a key by the list of the issuer alone: ${what} [RFC 8725 §3.1]`, async () => {
      const { verdictOf } = await open([one], jwks);
      assert.deepEqual(await Promise.all(tokens.map(verdictOf)), ['a', 'algorithm-refused']);
    });

    test(`does not stand in for a missing kid: ${what} [RFC 7515 §4.1.4]`, async () => {
      const { verdictOf } = await open([one, other], jwks);
      for (const alg of [one, other]) {
        assert.equal(await verdictOf(tokenOf({ alg }, signAs(alg))), 'key-unknown');
      }
    });

    test(`names no more the key that was withdrawn, even for a token that was accepted before: ${what} [RFC 7517 §4.5]`, async () => {
      const { verdictOf, change } = await open([one, other], jwks);
      for (const token of [...tokens, ...tokens]) assert.equal(await verdictOf(token), 'a');
      await change([jwks[1]!]);
      assert.deepEqual(await Promise.all(tokens.map(verdictOf)), ['algorithm-refused', 'a']);
    });
  }

  test('names a key that is published beside another one on first sight [docs/keys.md]', async () => {
    const { verdictOf, publish } = await open(ALL, [jwkOf('RS256', { kid: 'one' })]);
    publish([jwkOf('RS256', { kid: 'one' }), jwkOf('ES256', { kid: 'one' })]);
    assert.equal(await verdictOf(tokenOf({ alg: 'ES256', kid: 'one' }, signAs('ES256'))), 'a');
  });

  test('finds neither of two keys of one algorithm, and still the key of another [RFC 7517 §4.5]', async () => {
    const second = jwkOf('PS256', { kid: 'one', alg: 'RS256' });
    const { verdictOf } = await open(ALL, [
      jwkOf('RS256', { kid: 'one' }),
      second,
      jwkOf('ES256', { kid: 'one' }),
    ]);
    for (const key of [PAIRS.RS256, PAIRS.PS256]) {
      const token = tokenOf({ alg: 'RS256', kid: 'one' }, signAs('RS256', key?.privateKey));
      assert.equal(await verdictOf(token), 'key-unknown');
    }
    assert.equal(await verdictOf(tokenOf({ alg: 'ES256', kid: 'one' }, signAs('ES256'))), 'a');
  });
});

describe('a key of the set', () => {
  for (const [what, jwk, algorithms, reason] of [
    ['P-256 under ES384', jwkOf('ES256', { alg: 'ES384' }), ALL, 'key-type'],
    ['RSA under ES256', jwkOf('RS256', { alg: 'ES256' }), ALL, 'key-type'],
    ['P-256 under RS256', jwkOf('ES256', { alg: 'RS256' }), ALL, 'key-type'],
    ['ES256 where the list has RS256', jwkOf('ES256'), ['RS256'], 'algorithm'],
    [
      'P-256 without alg where the list has RS256',
      jwkOf('ES256', { alg: undefined }),
      ['RS256'],
      'algorithm',
    ],
    ['the name Ed25519', jwkOf('EdDSA', { alg: 'Ed25519' }), ALL, 'algorithm'],
    ['HS256', { kty: 'oct', k: 'AAAA', alg: 'HS256', kid: 'a' }, ALL, 'algorithm'],
    ['a secret without alg', { kty: 'oct', k: 'AAAA', kid: 'a' }, ALL, 'key-type'],
    ['RSA-OAEP', jwkOf('RS256', { alg: 'RSA-OAEP' }), ALL, 'algorithm'],
    ['an alg that is not a string', jwkOf('RS256', { alg: ['RS256'] }), ALL, 'algorithm'],
    ['secp256k1', { ...jwkOf('ES256', { alg: undefined }), crv: 'secp256k1' }, ALL, 'key-type'],
    ['a private member', jwkOf('ES256', { d: 'AAAA' }), ALL, 'private-member'],
    ['two faults', jwkOf('ES256', { d: 'AAAA', use: 'enc' }), ['RS256'], 'algorithm'],
  ] as const) {
    test(`with ${what} is skipped as ${reason} [RFC 7517 §4, RFC 8725 §3.1]`, () => {
      assert.equal(importSigningKey(jwk, algorithms as readonly Algorithm[]), reason);
    });
  }

  for (const curve of ['ed448', 'x25519', 'x448'] as const) {
    test(`of ${curve} is skipped, since EdDSA means Ed25519 here [RFC 8037 §2, A13]`, () => {
      const make = generateKeyPairSync as (type: string, options: object) => { publicKey: string };
      const jwk = createPublicKey(make(curve, TEXT).publicKey).export({ format: 'jwk' });
      assert.equal(importSigningKey({ ...jwk }, ALL), 'key-type');
      assert.equal(importSigningKey({ ...jwk, alg: 'EdDSA' }, ALL), 'key-type');
    });
  }

  test('without alg gets the first algorithm on the list that fits its type and curve [RFC 7517 §4.4]', () => {
    for (const [of, algorithms, first] of [
      ['RS256', ['RS256', 'PS256'], 'RS256'],
      ['RS256', ['PS256'], 'PS256'],
      ['RS256', ['ES256', 'PS256', 'RS256'], 'PS256'],
      ['ES384', ['ES256', 'ES384'], 'ES384'],
      ['ES256', ['ES384', 'ES256'], 'ES256'],
    ] as const) {
      const key = importSigningKey(jwkOf(of, { alg: undefined }), algorithms);
      assert.ok(typeof key !== 'string');
      assert.equal(factsOf(key).algorithm, first);
    }
  });
});

test('the list of one issuer does not apply to the tokens of another [RFC 8725 §3.8, A14]', async () => {
  const clock = new TestClock(NOW * 1000);
  const partner = 'https://partner.test/';

  const keysOf = async (algorithm: Algorithm) => {
    const keys = new KeySet(
      'idp',
      async () => ({ keys: [jwkOf(algorithm)] }),
      { clock, log: () => {}, count: undefined },
      (published) => importSigningKey(published, [algorithm]),
    );
    await keys.refresh();
    return keys;
  };

  const verify = createTokenVerifier(
    [
      { ...RULES, algorithms: ['RS256'], keys: await keysOf('RS256') },
      { ...RULES, name: 'partner', issuer: partner, algorithms: ['ES256'], keys: await keysOf('ES256') },
    ],
    clock,
    10,
  );

  const verdictOf = async (algorithm: Algorithm, iss: string) => {
    const token = tokenOf({ alg: algorithm, kid: algorithm }, signAs(algorithm), { ...CLAIMS, iss });
    const verified = await verify(token);
    return verified instanceof Refused ? verified.refusal.reason : verifiedOf(verified).issuer.name;
  };

  assert.equal(await verdictOf('RS256', RULES.issuer), 'idp');
  assert.equal(await verdictOf('ES256', partner), 'partner');
  assert.equal(await verdictOf('ES256', RULES.issuer), 'algorithm-refused');
  assert.equal(await verdictOf('RS256', partner), 'algorithm-refused');
  assert.equal(await verdictOf('ES256', 'https://evil.test/'), 'issuer-mismatch');
});
