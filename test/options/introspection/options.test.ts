/* The options of `introspection`: what is wrong, and which issuers it does not fit (docs/introspection.md). */
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { authenticated, createGate } from '../../../src/gate.ts';
import { introspection, type IntrospectionOptions } from '../../../src/introspection.ts';
import { signingKeyIn } from '../../../src/options/introspection/client.ts';
import { tenants } from '../../../src/tenants.ts';
import { createTestIssuer } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { directoryFor } from '../key-access-fixture.ts';

const KEY_FILE = fileURLToPath(new URL('../../idp/tls/client-key.pem', import.meta.url));

const GOOD: IntrospectionOptions = { tokens: ['opaque'], clientId: 'orders-api', clientSecret: 'x' };

const refused = (change: object, problem: string | RegExp) =>
  assert.throws(() => introspection({ ...GOOD, ...change } as never), {
    name: 'TypeError',
    message: typeof problem === 'string' ? `introspection: ${problem}` : problem,
  });

for (const [change, problem] of [
  [{ tokens: [] }, 'tokens: must be a list of 1 or more texts'],
  [{ tokens: ['JWT'] }, 'tokens: must be one of opaque, jwt'],
  [{ tokens: 'opaque' }, 'tokens: must be a list of 1 or more texts'],
  [{ tokens: undefined }, 'tokens: is missing; list opaque, jwt, or opaque and jwt'],
  [{ clientId: undefined }, 'clientId: is missing; set the client id of this API at the issuer'],
  [{ clientId: '' }, 'clientId: is empty; write it or remove it'],
  [{ uri: 'http://idp.test/' }, /^introspection: uri: must be a URL that begins with https:\/\//],
  [{ uri: 'https://user@idp.test/' }, /^introspection: uri: must be a URL that begins with https:\/\//],
  [{ clientSecret: undefined }, 'needs exactly one of clientSecret and keyFile'],
  [{ keyFile: KEY_FILE }, 'needs exactly one of clientSecret and keyFile'],
  [{ keyId: 'k' }, 'keyId: has no effect without keyFile; remove it, or set keyFile'],
  [{ audience: 'none' }, 'audience: must be one of required, provider'],
  [{ cacheSeconds: 301 }, 'cacheSeconds: must be a whole number from 0 to 300'],
  [{ cacheSeconds: -1 }, 'cacheSeconds: must be a whole number from 0 to 300'],
  [{ cacheSecond: 1 }, /is no option/],
] as const) {
  test(`refuses ${JSON.stringify(change)} [§22]`, () => refused(change, problem));
}

const pem = (key: unknown) => String(key);

const PKCS8 = {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
} as const;

const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve, ...PKCS8 });

const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength, ...PKCS8 });

const GOOD_KEYS = {
  'RSA of 2048 bits': () => rsa(2048).privateKey,
  'P-256': () => ec('P-256').privateKey,
  'P-384': () => ec('P-384').privateKey,
  Ed25519: () => generateKeyPairSync('ed25519', PKCS8).privateKey,
};

for (const [what, make] of Object.entries(GOOD_KEYS)) {
  test(`takes a key file of ${what} [§22]`, (t) => {
    const keyFile = directoryFor(t)('key.pem', pem(make()));
    introspection({ ...GOOD, clientSecret: undefined, keyFile, keyId: 'k' });
  });
}

const encrypted = { ...PKCS8.privateKeyEncoding, cipher: 'aes-256-cbc', passphrase: 'x' };

const WRONG_KEYS = {
  'RSA of 2047 bits': () => rsa(2047).privateKey,
  'RSA for PSS alone': () => generateKeyPairSync('rsa-pss', { modulusLength: 2048, ...PKCS8 }).privateKey,
  'P-521': () => ec('P-521').privateKey,
  secp256k1: () => ec('secp256k1').privateKey,
  X25519: () => generateKeyPairSync('x25519', PKCS8).privateKey,
  Ed448: () => generateKeyPairSync('ed448', PKCS8).privateKey,
  'a key with a passphrase': () =>
    generateKeyPairSync('rsa', { modulusLength: 2048, ...PKCS8, privateKeyEncoding: encrypted }).privateKey,
  'PKCS #1': () =>
    generateKeyPairSync('rsa', {
      modulusLength: 2048,
      ...PKCS8,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    }).privateKey,
  'SEC 1': () =>
    generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      ...PKCS8,
      privateKeyEncoding: { type: 'sec1', format: 'pem' },
    }).privateKey,
  'a public key': () => ec('P-256').publicKey,
  'two keys': () => pem(ec('P-256').privateKey) + pem(ec('P-256').privateKey),
  'a broken key': () => pem(ec('P-256').privateKey).replace(/\n..../, '\nAAAA'),
  'no key': () => 'secret-word',
};

const WRONG_KEY_FILE =
  'introspection: keyFile: must be a file with one private key in PEM (BEGIN PRIVATE KEY) without passphrase: ' +
  'RSA from 2048 bits, P-256, P-384 or Ed25519; set it to a regular file of at most 1 MiB that gatehouse may read';

for (const [what, make] of Object.entries(WRONG_KEYS)) {
  test(`refuses a key file of ${what}, and shows neither it nor its path [§22]`, (t) => {
    const keyFile = directoryFor(t)('secret-name.pem', pem(make()));
    try {
      introspection({ ...GOOD, clientSecret: undefined, keyFile });
      assert.fail('it was taken');
    } catch (error) {
      const { message } = error as Error;
      assert.equal(message, WRONG_KEY_FILE);
      assert.doesNotMatch(message, /secret-/);
    }
  });
}

test('does not take a bug for a wrong key', (t) => {
  const content = pem(ec('P-256').privateKey);
  const ofKeyPairs = Object.getPrototypeOf(Object.getPrototypeOf(createPrivateKey(content)));
  t.mock.getter(ofKeyPairs, 'asymmetricKeyDetails', () => {
    throw new RangeError('bug');
  });
  assert.throws(() => signingKeyIn(content), RangeError);
});

test('names the client and how it authenticates, for --check [§22]', () => {
  for (const [change, expected] of [
    [{}, 'client_secret_basic'],
    [{ clientSecret: undefined, keyFile: KEY_FILE }, 'private_key_jwt'],
  ] as const) {
    const { clientId, authentication } = Part.contentOf(introspection({ ...GOOD, ...change }));
    assert.deepEqual([clientId, authentication], ['orders-api', expected]);
  }
});

test('refuses a key file that cannot be read [§22]', () => {
  refused(
    { clientSecret: undefined, keyFile: '/nonexistent/key.pem' },
    /^introspection: keyFile: cannot be read \(ENOENT\); set it to a regular file of at most 1 MiB/,
  );
});

const { options: TEST } = makeIssuer();

const opaque = () => introspection(GOOD);

const jwt = () => introspection({ ...GOOD, tokens: ['jwt'] });

const both = () => introspection({ ...GOOD, tokens: ['jwt', 'opaque'] });

const partner = { domain: 'partner.test', audience: 'x' };

for (const [what, options, message] of [
  [
    'opaque beside at+jwt',
    () => ({ ...TEST, tokenType: 'at+jwt', introspection: opaque() }),
    'introspection: tokens: must not have opaque beside the token type at+jwt, which only a JWT has; remove one',
  ],
  [
    'opaque for a second issuer',
    () => ({
      ...TEST,
      introspection: opaque(),
      issuers: { partner: { ...partner, introspection: opaque() } },
    }),
    'introspection: tokens: must not have opaque for a second issuer: an opaque token does not say whose it is; remove one',
  ],
  [
    'opaque for two others, beside jwt',
    () => ({
      ...TEST,
      issuers: {
        a: { ...partner, introspection: both() },
        b: { domain: 'b.test', audience: 'x', introspection: both() },
      },
    }),
    'issuers.a: introspection: tokens: must not have opaque for a second issuer: an opaque token does not say whose it is; remove one',
  ],
  [
    'a tenant template',
    () => ({
      ...TEST,
      jwksUri: 'https://idp.test/keys',
      tenants: tenants({ issuer: 'https://idp.test/{tenant}/', list: ['a'] }),
      introspection: jwt(),
    }),
    'introspection: is not available for a tenant template; remove it',
  ],
] as const) {
  test(`refuses ${what}, and uses no part [§22, J18]`, () => {
    const given = options();
    assert.throws(() => createGate(given as never), { name: 'TypeError', message });
    assert.throws(() => createGate(given as never), { name: 'TypeError', message });
  });
}

test('takes opaque for one issuer beside jwt for others, and jwt beside at+jwt [§22]', () => {
  createGate({
    ...TEST,
    tokenType: 'at+jwt',
    introspection: jwt(),
    issuers: { partner: { ...partner, introspection: opaque() } },
  }).close();
});

test('serves one issuer: a second use throws [§11]', () => {
  const part = jwt();
  createGate({ ...TEST, introspection: part }).close();
  assert.throws(() => createGate({ ...TEST, introspection: part }), {
    message: 'introspection: already belongs to a gate or service; make another',
  });
});

test('sends no introspection request without the part, even if a test has a response for it [§22]', async (t) => {
  let asked = 0;

  const introspect = async () => {
    asked += 1;
    return { active: true };
  };

  const issuer = createTestIssuer();
  const gate = createGate({ ...issuer.options, introspect });
  t.after(gate.close);
  for (const [token, admitted] of [
    [issuer.token(), true],
    [issuer.opaqueToken(), false],
  ] as const) {
    const rawHeaders = ['Host', 'api.test', 'Authorization', `Bearer ${token}`];
    const verdict = await gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
    assert.deepEqual([verdict.refusal === undefined, asked], [admitted, 0]);
  }
});
