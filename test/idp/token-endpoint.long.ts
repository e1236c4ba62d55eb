import assert from 'node:assert/strict';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from './provider.ts';
import { fetchJson, fetchWhole, type RequestOptions } from './request.ts';
import { signJws } from './tokens.ts';

const client = { id: 'machine', secret: 'hidden', scopes: ['read:messages', 'write:messages'] };
const NOW_SECONDS = 2_000_000_000;

let provider: Provider;
let good: Record<string, unknown>;

before(async () => {
  provider = await startProvider({
    clients: [
      { ...client, claims: { org_id: 'org_123456' }, subject: 'robot' },
      { ...client, id: 'plain', scopes: [] },
      { ...client, id: 'half-hour', claims: { exp: NOW_SECONDS + 1800 } },
      { ...client, id: 'expired', claims: { exp: NOW_SECONDS - 60 } },
      { ...client, id: 'a +', secret: 'b:c :d' },
      { ...client, id: 'interactive', grantTypes: ['authorization_code'] },
    ],
    scopes: ['read:messages', 'write:messages', 'read:admin'],
    now: () => NOW_SECONDS * 1000,
  });
  const { audience } = provider;
  good = { client_id: 'machine', client_secret: 'hidden', audience, grant_type: 'client_credentials' };
});

after(() => provider.stop());

const tokenUrl = () => `${provider.issuer}oauth/token`;

function post(body: unknown, headers: Record<string, string> = {}): RequestOptions {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: text };
}

const FORM = 'application/x-www-form-urlencoded';

/** What `curl -d` sends. */
const postForm = (fields: Record<string, string> | string, headers: Record<string, string> = {}) =>
  post(String(new URLSearchParams(fields)), { 'Content-Type': FORM, ...headers });

const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` });

const asForm = () => good as Record<string, string>;

const GRANT = { grant_type: 'client_credentials' };

function claimsOf(response: Record<string, unknown>): Record<string, unknown> {
  const payload = String(response['access_token']).split('.')[1]!;
  return JSON.parse(String(Buffer.from(payload, 'base64url'))) as Record<string, unknown>;
}

test("issues a token with all of the client's scopes when none is requested", async () => {
  const { status, headers, body } = await fetchWhole(tokenUrl(), post(good));
  const response = JSON.parse(String(body)) as Record<string, unknown>;
  assert.equal(status, 200);
  assert.equal(headers['cache-control'], 'no-store');
  const { access_token: _, ...rest } = response;
  assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'read:messages write:messages' });
  const { iss, aud, sub, scope, org_id, iat, exp, cnf } = claimsOf(response);
  assert.deepEqual([iss, aud, sub, org_id], [provider.issuer, provider.audience, 'robot', 'org_123456']);
  assert.deepEqual([scope, iat, exp, cnf], [rest['scope'], NOW_SECONDS, NOW_SECONDS + 3600, undefined]);
});

test('grants only the requested scopes when some are requested', async () => {
  const response = await fetchJson(tokenUrl(), post({ ...good, scope: 'write:messages' }));
  assert.equal(response['scope'], 'write:messages');
  assert.equal(claimsOf(response)['scope'], 'write:messages');
});

test('sends no scope and a default subject when the client has neither', async () => {
  const response = await fetchJson(tokenUrl(), post({ ...good, client_id: 'plain' }));
  assert.equal('scope' in response, false);
  assert.equal(claimsOf(response)['sub'], 'plain@clients');
});

test('takes a form as it takes JSON [RFC 6749 §4.4.2]', async () => {
  const response = await fetchJson(tokenUrl(), postForm({ ...asForm(), scope: 'read:messages' }));
  assert.equal(claimsOf(response)['scope'], 'read:messages');
});

test('takes a parameter without a value as omitted [RFC 6749 §3.2]', async () => {
  const response = await fetchJson(tokenUrl(), postForm({ ...asForm(), scope: '' }));
  assert.equal(response['scope'], 'read:messages write:messages');
});

test("takes the client's credentials from HTTP Basic [RFC 6749 §2.3.1]", async () => {
  const response = await fetchJson(tokenUrl(), postForm(GRANT, basic('machine:hidden')));
  assert.equal(claimsOf(response)['sub'], 'robot');
});

test('decodes the credentials of HTTP Basic as it decodes a form [RFC 6749 §2.3.1]', async () => {
  const response = await fetchJson(tokenUrl(), postForm(GRANT, basic('a+%2B:b%3Ac+:d')));
  assert.equal(claimsOf(response)['sub'], 'a +@clients');
});

test('issues a token for its only API when the request names no audience', async () => {
  const response = await fetchJson(tokenUrl(), post({ ...good, audience: undefined }));
  assert.equal(claimsOf(response)['aud'], provider.audience);
});

test('names Basic in its 401 to a client that used it, and only then [RFC 6749 §5.2]', async () => {
  const used = await fetchWhole(tokenUrl(), postForm(GRANT, basic('machine:guess')));
  assert.deepEqual([used.status, used.headers['www-authenticate']], [401, 'Basic realm="token"']);
  const unused = await fetchWhole(tokenUrl(), postForm({ ...asForm(), client_secret: 'guess' }));
  assert.deepEqual([unused.status, unused.headers['www-authenticate']], [401, undefined]);
});

for (const [client_id, seconds] of [
  ['half-hour', 1800],
  ['expired', 0],
] as const) {
  test(`states the lifetime of a token even if its client sets exp: ${client_id} [RFC 6749 §5.1]`, async () => {
    const response = await fetchJson(tokenUrl(), post({ ...good, client_id }));
    assert.equal(response['expires_in'], seconds);
  });
}

test('ignores an unknown parameter [RFC 6749 §3.2]', async () => {
  assert.equal((await fetchWhole(tokenUrl(), post({ ...good, extra: true }))).status, 200);
});

const refusals: [string, number, string, () => RequestOptions][] = [
  ['the method is GET', 405, 'invalid_request', () => ({})],
  ['the body is called text', 400, 'invalid_request', () => post(good, { 'Content-Type': 'text/plain' })],
  [
    'the body is called by the name of an inherited property',
    400,
    'invalid_request',
    () => post(good, { 'Content-Type': 'constructor' }),
  ],
  [
    'Authorization and the body name different clients',
    400,
    'invalid_request',
    () => postForm({ ...GRANT, client_id: 'plain' }, basic('machine:hidden')),
  ],
  ['the body is not JSON', 400, 'invalid_request', () => post('{')],
  ['the body is not UTF-8', 400, 'invalid_request', () => post(Buffer.from([0x22, 0xff, 0x22]))],
  ['the body is an array', 400, 'invalid_request', () => post([])],
  ['the body is over 64 KiB', 400, 'invalid_request', () => post(JSON.stringify(good).padEnd(64 * 1024 + 1))],
  [
    'a form has a parameter twice',
    400,
    'invalid_request',
    () => postForm(`${new URLSearchParams(asForm())}&scope=a&scope=b`),
  ],
  [
    'the form is not UTF-8',
    400,
    'invalid_request',
    () => post(Buffer.from([0xff]), { 'Content-Type': FORM }),
  ],
  [
    'the client is authenticated in two ways',
    400,
    'invalid_request',
    () => postForm(asForm(), basic('machine:hidden')),
  ],
  ['Authorization has no secret', 400, 'invalid_request', () => postForm(GRANT, basic('machine'))],
  [
    'Authorization has an incomplete escape',
    400,
    'invalid_request',
    () => postForm(GRANT, basic('machine:%e')),
  ],
  [
    'Authorization has another scheme',
    400,
    'invalid_request',
    () => postForm(GRANT, { Authorization: 'Bearer machine' }),
  ],
  ['client_id is a number', 400, 'invalid_request', () => post({ ...good, client_id: 1 })],
  ['the client is unknown', 401, 'invalid_client', () => post({ ...good, client_id: 'nobody' })],
  ['the secret is wrong', 401, 'invalid_client', () => post({ ...good, client_secret: 'guess' })],
  [
    'the grant type is another',
    400,
    'unsupported_grant_type',
    () => post({ ...good, grant_type: 'password' }),
  ],
  [
    'the client may not use the grant',
    400,
    'unauthorized_client',
    () => post({ ...good, client_id: 'interactive' }),
  ],
  ['the audience is unknown', 403, 'access_denied', () => post({ ...good, audience: 'https://"é' })],
  [
    'the scope is not defined',
    400,
    'invalid_scope',
    () => post({ ...good, scope: 'read:messages read:moon' }),
  ],
  ['the scope is not granted', 400, 'invalid_scope', () => post({ ...good, scope: 'read:admin' })],
  [
    'the scope is malformed',
    400,
    'invalid_scope',
    () => post({ ...good, scope: 'read:messages  write:messages' }),
  ],
  ['the scope is an array', 400, 'invalid_request', () => post({ ...good, scope: ['read:messages'] })],
];

for (const name of ['client_id', 'client_secret', 'grant_type']) {
  refusals.push([`${name} is missing`, 400, 'invalid_request', () => post({ ...good, [name]: undefined })]);
}

for (const [condition, status, code, request] of refusals) {
  test(`answers ${code} when ${condition} [RFC 6749 §5.2]`, async () => {
    const response = await fetchWhole(tokenUrl(), request());
    const { error, error_description: description } = JSON.parse(String(response.body)) as Record<
      string,
      string
    >;
    assert.deepEqual([response.status, error], [status, code]);
    assert.match(description ?? '', /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.equal(response.headers.allow, status === 405 ? 'POST' : undefined);
  });
}

const AS_TEXT = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

/** Node 20 hangs if it exports a generated key while the generator is garbage-collected. */
const imported = (pair: Readonly<Record<'publicKey' | 'privateKey', unknown>>) => ({
  publicKey: createPublicKey(String(pair.publicKey)),
  privateKey: createPrivateKey(String(pair.privateKey)),
});

const makeCurve = () => imported(generateKeyPairSync('ec', { namedCurve: 'P-256', ...AS_TEXT }));

const keyPairs = {
  ES256: makeCurve(),
  RS256: imported(generateKeyPairSync('rsa', { modulusLength: 2048, ...AS_TEXT })),
  EdDSA: imported(generateKeyPairSync('ed25519', AS_TEXT)),
};

function proof(alg: keyof typeof keyPairs, header: object = {}, claims: object = {}): string {
  const { privateKey, publicKey } = keyPairs[alg];
  const standard = { htm: 'POST', htu: tokenUrl(), iat: NOW_SECONDS, jti: 'a' };
  const jwk = publicKey.export({ format: 'jwk' });
  return signJws({ typ: 'dpop+jwt', alg, jwk, ...header }, { ...standard, ...claims }, privateKey, alg);
}

for (const alg of ['ES256', 'RS256', 'EdDSA'] as const) {
  test(`binds the token to the proof's key when the proof is made by ${alg} [RFC 9449 §5]`, async () => {
    const response = await fetchJson(tokenUrl(), post(good, { DPoP: proof(alg) }));
    const { crv, e, kty, n, x, y } = keyPairs[alg].publicKey.export({ format: 'jwk' });
    const jkt = createHash('sha256').update(JSON.stringify({ crv, e, kty, n, x, y })).digest('base64url');
    assert.equal(response['token_type'], 'DPoP');
    assert.deepEqual(claimsOf(response)['cnf'], { jkt });
  });
}

const faulty: Record<string, () => string> = {
  'it is not a JWS': () => 'proof',
  'there are two': () => `${proof('ES256')}, ${proof('ES256')}`,
  'its type is another': () => proof('ES256', { typ: 'JWT' }),
  'its alg is none': () => proof('ES256', { alg: 'none' }),
  'its key does not fit its alg': () => proof('ES256', { alg: 'EdDSA' }),
  'it has no key': () => proof('ES256', { jwk: undefined }),
  'its key is broken': () => proof('ES256', { jwk: { kty: 'EC', crv: 'P-256' } }),
  'its key is private': () => proof('ES256', { jwk: keyPairs.ES256.privateKey.export({ format: 'jwk' }) }),
  'its key did not sign it': () =>
    proof('ES256', {
      jwk: makeCurve().publicKey.export({ format: 'jwk' }),
    }),
  'its method is another': () => proof('ES256', {}, { htm: 'post' }),
  'its address is another': () => proof('ES256', {}, { htu: provider.issuer }),
  'it is too old': () => proof('ES256', {}, { iat: NOW_SECONDS - 61 }),
  'it is from the future': () => proof('ES256', {}, { iat: NOW_SECONDS + 61 }),
  'it has no jti': () => proof('ES256', {}, { jti: undefined }),
};

for (const [condition, make] of Object.entries(faulty)) {
  test(`refuses a proof when ${condition} [RFC 9449 §4.3]`, async () => {
    const response = await fetchWhole(tokenUrl(), post(good, { DPoP: make() }));
    const { error } = JSON.parse(String(response.body)) as Record<string, string>;
    assert.deepEqual([response.status, error], [400, 'invalid_dpop_proof']);
  });
}
