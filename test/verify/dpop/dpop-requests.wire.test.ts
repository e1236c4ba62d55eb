/* Proofs and requests: each proof is accepted once, for its own method and URI, however the service is
   reached, and nothing of it is shown. */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { authenticated, needs } from '../../../src/gate/rules/access.ts';
import { recentLogin } from '../../../src/gate/rules/recent-login.ts';
import { get } from '../../../src/service/routes/route.ts';
import { LocalReplayStore } from '../../../src/verify/dpop/replay.ts';
import { createService } from '../../../src/service/create-service.ts';
import { createProof, createProofKey } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { exchange } from '../../support/client.ts';
import { makeProofKey, PROOF_ALGORITHMS, sealProof } from '../../support/proof.ts';
import { IMPOSSIBLE_HOSTS } from '../../support/spellings.ts';
import { issue, NOW } from '../token/issuer.ts';
import { BOUND, call, outcome, proofFor, startDpop, startWith, uriOf, type Call } from './dpop-service.ts';
import { boundTo, draft, verdictOf, key, openSender, ORIGIN, strangersKey } from '../sender-fixture.ts';

const service = await startDpop();

const outcomeOf = async (what: Call, where = service) => outcome(where, await call(where, what));

test('accepts exactly one of fifty simultaneous uses of a proof [RFC 9449 §11.1, E1]', async () => {
  const proof = proofFor(service);
  const responses = await Promise.all(Array.from({ length: 50 }, () => call(service, { proof })));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, ...Array<number>(49).fill(401)]);
  assert.equal(await outcomeOf({ proof }), '401 proof-replayed');
  const elsewhere = proofFor(service, { path: '/api/profile' });
  assert.equal(await outcomeOf({ path: '/api/profile', proof: elsewhere }), '200');
});

test('refuses a used proof until the last second of its window, even if its iat was in the future [RFC 9449 §11.1]', async () => {
  const own = await startDpop();
  const iat = Math.floor(own.clock.now() / 1000) + 30;
  const proof = proofFor(own, { claims: { iat } });
  const said = [];
  for (const seconds of [0, 0, 300, 30, 1]) {
    own.clock.advance(seconds * 1000);
    // The token is valid for a minute.
    said.push(
      seconds === 0
        ? await outcomeOf({ proof }, own)
        : await verdictOf(openSender({ rules: { publicUrl: uriOf(own, '') } }), proof, {
            token: BOUND,
            nowMillis: own.clock.now(),
          }),
    );
  }
  assert.deepEqual(said, ['200', '401 proof-replayed', 'accepted', 'accepted', 'proof-too-old']);
});

/* The store no longer knows the proofs of a dropped bucket: the size of buckets follows from both
   settings. */
for (const [offset, last] of [
  [12, '401 proof-replayed'],
  [30, '200'],
] as const) {
  test(`sizes the buckets of the replay store by the sum of offset and leeway: answers ${last} to a jti first used at second ${offset} when the clock was set back`, async () => {
    const own = await startDpop();
    own.clock.advance(offset * 1000);
    const token = issue({ cnf: { jkt: key.thumbprint }, exp: NOW + 3_600 });
    const said = [];
    for (const seconds of [0, 400, -380]) {
      own.clock.advance(seconds * 1000);
      said.push(await outcomeOf({ token }, own));
    }
    assert.deepEqual(said, ['200', '200', last]);
  });
}

test('answers 503 with Retry-After when the replay store is full, and forgets no proof [docs/dpop.md]', async () => {
  const small = await startWith(
    openSender({ store: new LocalReplayStore(330, 1), rules: { publicUrl: undefined } }),
  );
  const first = proofFor(small);
  assert.equal(await outcomeOf({ proof: first }, small), '200');
  const { status, headers, body, challenges } = await call(small);
  assert.deepEqual(
    [status, body],
    [
      503,
      { error: 'temporarily_unavailable', message: REFUSALS.temporarily_unavailable['replay-store-full'] },
    ],
  );
  assert.match(String(headers['retry-after']), /^([1-9]|[12]\d|30)$/);
  assert.deepEqual(challenges, []);
  assert.deepEqual(small.logs.filter(({ reason }) => reason === 'replay-store-full').length, 1);
  assert.equal(await outcomeOf({ proof: first }, small), '401 proof-replayed');
});

test('uses one proof for one request under the scope policy [docs/how-a-request-is-checked.md]', async () => {
  const own = await startDpop({ SCOPE_POLICY: 'true' });
  for (const [path, status] of [
    ['/api/admin', 200],
    ['/api/admin/no/such', 404],
  ] as const) {
    const proof = proofFor(own, { path });
    assert.equal((await call(own, { path, proof })).status, status);
    assert.equal(await outcomeOf({ path, proof }, own), '401 proof-replayed');
  }
});

test('accepts for HEAD only a proof whose htm is HEAD, accepts that proof for no other method, and responds without a body [RFC 9449 §4.3(8)]', async () => {
  const { status, text } = await call(service, { method: 'HEAD' });
  assert.deepEqual([status, text], [200, '']);
  assert.equal(await outcomeOf({ method: 'HEAD', claims: { htm: 'GET' } }), '401 proof-htm');
  assert.equal(await outcomeOf({ method: 'GET', claims: { htm: 'HEAD' } }), '401 proof-htm');
});

for (const [what, path, claims, said] of [
  ['a query in the request alone', '/api/private?q=1', { htu: '/api/private' }, '200'],
  ['another query in the proof', '/api/private?q=1', { htu: '/api/private?q=2#f' }, '200'],
  ['escapes in the request alone', '/api/%70riv%61te', { htu: '/api/private' }, '200'],
  ['escapes in the proof alone', '/api/private', { htu: '/api/%70rivate' }, '200'],
  ['another path', '/api/profile', { htu: '/api/private' }, '401 proof-htu'],
  ['a path in another case', '/api/private', { htu: '/API/private' }, '401 proof-htu'],
] as const) {
  test(`answers ${said} to a proof whose htu has ${what} [RFC 9449 §4.3(9), E11]`, async () => {
    assert.equal(await outcomeOf({ path, claims: { htu: uriOf(service, claims.htu) } }), said);
  });
}

const behindProxy = await startDpop({ TRUST_PROXY: 'true' });
const published = await startDpop({ PUBLIC_URL: 'https://api.example/prefix/', TRUST_PROXY: 'true' });
const FORWARDED = { 'X-Forwarded-Proto': 'http, https', 'X-Forwarded-Host': 'evil.test, api.example' };

type Place = [
  what: string,
  where: typeof service,
  htu: string | undefined,
  headers: Record<string, string>,
  said: string,
];

const PLACES: Place[] = [
  ['the Host of the request', service, 'http://other.test:99/api/private', { Host: 'Other.test:99' }, '200'],
  ['a Host that is not in the request', service, 'http://other.test/api/private', {}, '401 proof-htu'],
  [
    'https when the request came by http',
    service,
    `https://127.0.0.1:${service.port}/api/private`,
    {},
    '401 proof-htu',
  ],
  ['a Host with an empty port', service, 'http://other.test/api/private', { Host: 'other.test:' }, '200'],
  ['a Host with a tilde', service, 'http://ho~st/api/private', { Host: 'ho~st' }, '200'],
  ...['[2001:DB8:0:0::1]', '127.1', '[0::1]'].map((host): Place => [
    `the Host ${host}, letter for letter`,
    service,
    `http://${host}/api/private`,
    { Host: host },
    '200',
  ]),
  [
    'the origin of the service when Host names another',
    service,
    undefined,
    { Host: 'evil.test' },
    '401 proof-htu',
  ],
  ['the origin of the service when untrusted fields forward another', service, undefined, FORWARDED, '200'],
  [
    'the origin in untrusted forwarded fields',
    service,
    'https://api.example/api/private',
    FORWARDED,
    '401 proof-htu',
  ],
  ['the last hop under TRUST_PROXY', behindProxy, 'https://api.example/api/private', FORWARDED, '200'],
  [
    'the first hop under TRUST_PROXY',
    behindProxy,
    'http://evil.test/api/private',
    FORWARDED,
    '401 proof-htu',
  ],
  [
    'the origin of the service under TRUST_PROXY when another is forwarded',
    behindProxy,
    undefined,
    FORWARDED,
    '401 proof-htu',
  ],
  [
    'the origin of the service under TRUST_PROXY when nothing is forwarded',
    behindProxy,
    undefined,
    {},
    '200',
  ],
  ['PUBLIC_URL with its prefix', published, 'https://api.example/prefix/api/private', {}, '200'],
  [
    'PUBLIC_URL with its prefix, whatever is forwarded',
    published,
    'https://api.example/prefix/api/private',
    { ...FORWARDED, Host: 'evil.test' },
    '200',
  ],
  ['PUBLIC_URL without its prefix', published, 'https://api.example/api/private', {}, '401 proof-htu'],
  [
    'the forwarded origin when PUBLIC_URL is set',
    published,
    'https://api.example/api/private',
    FORWARDED,
    '401 proof-htu',
  ],
  ['the origin of the service when PUBLIC_URL is set', published, undefined, {}, '401 proof-htu'],
];

for (const [what, where, htu, headers, said] of PLACES) {
  test(`answers ${said} to a proof for ${what} [RFC 9449 §4.3(9), docs/dpop.md]`, async () => {
    assert.equal(await outcomeOf({ claims: htu === undefined ? {} : { htu }, headers }, where), said);
  });
}

test('refuses a proof whose htu is not letter for letter the URI of the request, if its host has no normal form [RFC 9449 §4.3(9)]', async () => {
  for (const host of ['127.1', '[0::1]']) {
    for (const htu of [
      '',
      'x',
      `http://${host}/api/private?`,
      'http://127.0.0.1/api/private',
      'http://[::1]/api/private',
    ]) {
      assert.equal(
        await outcomeOf({ claims: { htu }, headers: { Host: host } }),
        '401 proof-htu',
        `${host} ${htu}`,
      );
    }
  }
});

test('refuses a request whose Host or forwarded origin is invalid [docs/how-a-request-is-checked.md, docs/dpop.md, E4]', async () => {
  for (const host of IMPOSSIBLE_HOSTS.filter((spelling) => !/^$|,/.test(spelling))) {
    assert.equal(await outcomeOf({ headers: { Host: host } }), '400 host-refused');
    assert.equal(
      await outcomeOf({ headers: { 'X-Forwarded-Host': host } }, behindProxy),
      '400 forwarded-refused',
    );
    assert.equal(await outcomeOf({ headers: { 'X-Forwarded-Host': host } }), '200');
  }
  assert.equal(
    await outcomeOf({ headers: { 'X-Forwarded-Proto': 'gopher' } }, behindProxy),
    '400 forwarded-refused',
  );
});

test('refuses a target that is not a path, or a path that begins with another host, whatever the proof says [docs/how-a-request-is-checked.md, E5]', async () => {
  for (const [target, status] of [
    ['http://evil.test/api/private', 400],
    ['//evil.test/api/private', 404],
    ['/api/../api/private', 404],
    ['/api/%2e/private', 404],
  ] as const) {
    for (const htu of [target, `http://evil.test/api/private`, uriOf(service, '/api/private')]) {
      const fields = `Host: 127.0.0.1:${service.port}\r\nAuthorization: DPoP ${BOUND}\r\nDPoP: ${proofFor(service, { claims: { htu } })}\r\nConnection: close`;
      assert.match(
        await exchange(service.port, `GET ${target} HTTP/1.1\r\n${fields}\r\n\r\n`),
        new RegExp(`^HTTP/1.1 ${status} `),
      );
    }
  }
});

for (const [ageSeconds, status] of [
  [0, 200],
  [3_600, 401],
] as const) {
  test(`answers ${status} to a proof whose token is from a login ${ageSeconds} s ago, when 60 s are allowed [RFC 9470 §3]`, async (t) => {
    const issuer = makeIssuer();
    const routes = [get('/recent', needs(recentLogin({ maxAgeSeconds: 60 })), () => ({}))];
    const settings = { ...issuer.options, dpopMode: 'REQUIRED', host: '127.0.0.1', port: 0 } as const;
    const own = createService({ routes }, settings);
    const url = await own.listen();
    t.after(() => own.stop());
    const signer = createProofKey();
    const token = issuer.boundToken(signer, { auth_time: Math.floor(Date.now() / 1000) - ageSeconds });
    const proof = createProof(signer, { method: 'GET', url: `${url}/recent` }, token);
    const response = await fetch(`${url}/recent`, {
      headers: { authorization: `DPoP ${token}`, dpop: proof, connection: 'close' },
    });
    assert.equal(response.status, status);
    assert.equal(
      JSON.parse(await response.text()).error,
      status === 200 ? undefined : 'insufficient_user_authentication',
    );
  });
}

test('accepts a proof only for the path that it names, even where a "#" ends the URI but not the path [RFC 9112 §3.2.1, E5]', async (t) => {
  const issuer = makeIssuer();
  const routes = [
    get('/a/{id}', authenticated, () => ({ route: 'one' })),
    get('/a/{id}/b', authenticated, () => ({ route: 'other' })),
  ];
  const own = createService(
    { routes },
    { ...issuer.options, dpopMode: 'ALLOWED', host: '127.0.0.1', port: 0 },
  );
  const url = await own.listen();
  t.after(() => own.stop());
  const signer = createProofKey();
  const token = issuer.boundToken(signer);

  for (const [target, status] of [
    ['/a/1', 200],
    ['/a/1#', 401],
    ['/a/1#/b', 401],
  ] as const) {
    const proof = createProof(signer, { method: 'GET', url: `${url}/a/1` }, token);
    const fields = `Host: ${new URL(url).host}\r\nAuthorization: DPoP ${token}\r\nDPoP: ${proof}\r\nConnection: close`;
    const response = await exchange(Number(new URL(url).port), `GET ${target} HTTP/1.1\r\n${fields}\r\n\r\n`);
    assert.match(response, new RegExp(`^HTTP/1.1 ${status} `), target);
  }
});

test('refuses a bad token before its proof, and leaves the proof unused [docs/dpop.md, E15]', async () => {
  let calls = 0;
  const watched = await startWith((...facts) => {
    calls += 1;
    return openSender({ rules: { publicUrl: undefined } })(...facts);
  });
  for (const [token, reason] of [
    ['garbage', 'token-malformed'],
    [`${BOUND.slice(0, -4)}AAAA`, 'signature-mismatch'],
    [issue({ cnf: { jkt: key.thumbprint }, exp: 1 }), 'expired'],
  ] as const) {
    for (const proof of [undefined, 'x', proofFor(watched, { token })]) {
      assert.equal(await outcomeOf({ token, proof }, watched), `401 ${reason}`);
    }
  }
  assert.equal(calls, 0);
  assert.equal(await outcomeOf({}, watched), '200');
});

test('refuses a stolen token, with or without a stolen proof or another key [RFC 9449 §2, E7]', async () => {
  const stolen = proofFor(service);
  assert.equal(await outcomeOf({ proof: stolen }), '200');
  const tries: Call[] = [
    { proof: undefined },
    { proof: stolen },
    { signer: strangersKey },
    { path: '/api/profile', proof: stolen },
    { method: 'HEAD', proof: stolen },
    { token: issue({ cnf: { jkt: key.thumbprint }, jti: 'another' }), proof: stolen },
    { header: { jwk: strangersKey.jwk } },
    { signer: strangersKey, header: { jwk: key.jwk } },
    { scheme: 'Bearer', proof: undefined },
    { proof: BOUND },
  ];
  for (const attempt of tries) assert.equal((await call(service, attempt)).status, 401);
});

test("imports a proof's key on its first two uses, then keeps it cached until many other keys have been used twice [docs/dpop.md, E15]", async (context) => {
  const sender = openSender();
  const imports = context.mock.method(crypto, 'createPublicKey');
  syncBuiltinESMExports();
  const importsOf = async (signer: typeof key, token = boundTo(signer.thumbprint)) => {
    const proof = sealProof(draft(signer, token));
    const before = imports.mock.callCount();
    assert.equal(await verdictOf(sender, proof, { token }), 'accepted');
    return imports.mock.callCount() - before;
  };
  const signers = PROOF_ALGORITHMS.map((alg) => makeProofKey(alg));
  for (const signer of signers) {
    assert.deepEqual(
      [await importsOf(signer), await importsOf(signer), await importsOf(signer)],
      [1, 1, 0],
      signer.alg,
    );
  }
  for (const signer of signers) assert.equal(await importsOf(signer), 0, signer.alg);
  // Any caller can send such keys, even ones that no token names, and each is looked up in the cache.
  const token = boundTo(key.thumbprint);
  for (let times = 1; times <= 2; times += 1) {
    for (let index = 0; index < 1200; index += 1) {
      const signer = makeProofKey('EdDSA');
      for (let time = 1; time <= times; time += 1) {
        await verdictOf(sender, sealProof(draft(signer, token)), { token });
      }
    }

    assert.equal(await importsOf(signers[0]!), times - 1, `after keys that were used ${times} times`);
  }
  context.mock.reset();
  syncBuiltinESMExports();
});

test('shows nothing of a proof in responses or logs [docs/logs-and-metrics.md]', async () => {
  const own = await startDpop();
  const proofs = [
    proofFor(own),
    proofFor(own, { claims: { jti: 'leak-jti', htu: `${ORIGIN}/leak-htu` } }),
    proofFor(own, { header: { alg: 'leak-alg' } }),
    proofFor(own, { claims: { htm: 'leak-htm' } }),
    proofFor(own, { header: { typ: 'leak-typ' } }),
    proofFor(own, { claims: { nonce: 'leak-nonce' } }),
    'leak-text',
  ];
  let shown = '';
  for (const proof of [...proofs, ...proofs]) {
    const { text, rawHeaders } = await call(own, { proof });
    shown += text + rawHeaders.join('\n');
  }
  shown += JSON.stringify(own.logs);
  assert.ok(own.logs.length >= 2 * proofs.length - 2);
  for (const proof of proofs) {
    for (const part of proof.split('.')) assert.equal(shown.includes(part), false);
  }
  assert.equal(shown.includes('leak-'), false);
  for (const secret of [key.thumbprint, String(key.jwk.x), String(key.jwk.y), BOUND]) {
    assert.equal(shown.includes(secret), false);
  }
});
