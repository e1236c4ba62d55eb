/* Uses the package in a project, whatever runs this: prints a line of JSON, how many answers came and which of them
   are wrong. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import {
  authenticated,
  created,
  createGate,
  createService,
  get,
  json,
  needs,
  open,
  post,
  scope,
} from 'gatehouse-http';
import { createMetrics } from 'gatehouse-http/metrics';
import { assertRouteMatrix, createProofKey, createTestIssuer } from 'gatehouse-http/testing';

let responses = 0;
const problems = [];

function expect(what, found, expected) {
  responses += 1;
  if (found !== expected) problems.push(`${what}: ${found} instead of ${expected}`);
}

/** What throws is a problem, and the rest goes on. */
async function attempt(what, act) {
  try {
    await act();
  } catch (failure) {
    problems.push(`${what}: ${failure}`);
  }
}

/** Status and `error` of a response. */
async function ask(url, request = {}) {
  const response = await fetch(url, request);
  const { error } = await response.json();
  return [response.status, error].filter(Boolean).join(' ');
}

/** More than a socket keeps before its client reads. */
const EXPORT_BYTES = 20_000_000;

const routes = [
  get('/open', open, () => ({})),
  get('/me', authenticated, ({ caller }) => ({ subject: caller.subject })),
  get('/orders/{id}', needs(scope('read:orders')), ({ parameters }) => parameters),
  post('/orders', needs(scope('write:orders')), json(), ({ body }) => created('/orders/2', body)),
  get('/bug', open, () => Promise.reject(new Error('x'))),
  get('/export', open, () => new Response(new Blob([new Uint8Array(EXPORT_BYTES)]).stream())),
];

const issuer = createTestIssuer();
const { log: _, ...options } = issuer.options;

async function useService() {
  const metrics = createMetrics();
  const service = createService({ routes }, { ...options, metrics, host: '127.0.0.1', port: 0 });
  const url = await service.listen();
  const bearer = (claims) => ({ headers: issuer.bearer(claims) });
  expect('an open route', await ask(`${url}/open`), '200');
  expect('readiness', await ask(`${url}/readyz`), '200');
  expect('a token', await ask(`${url}/me`, bearer()), '200');
  expect('no token', await ask(`${url}/me`), '401 unauthorized');
  expect('an expired token', await ask(`${url}/me`, bearer({ exp: 1 })), '401 invalid_token');
  expect('a scope', await ask(`${url}/orders/1`, bearer({ scope: 'read:orders' })), '200');
  expect('a missing scope', await ask(`${url}/orders/1`, bearer()), '403 insufficient_scope');
  const { headers } = bearer({ scope: 'write:orders' });
  const order = (body, type = 'application/json') =>
    ask(`${url}/orders`, { method: 'POST', body, headers: { ...headers, 'Content-Type': type } });
  expect('a body', await order('{"item":"tea"}'), '201');
  expect('a body of 60 kB', await order(JSON.stringify({ item: 'x'.repeat(60_000) })), '201');
  expect('a body that is too large', (await order('x'.repeat(2_000_000))).slice(0, 3), '413');
  expect('a body that is no JSON', (await order('{')).slice(0, 3), '400');
  expect('a body of another kind', (await order('{}', 'text/plain')).slice(0, 3), '415');
  expect('a bug', (await ask(`${url}/bug`)).slice(0, 3), '500');
  expect('a stream', (await (await fetch(`${url}/export`)).arrayBuffer()).byteLength, EXPORT_BYTES);
  expect('no path', await ask(`${url}/nowhere`), '404 not_found');
  expect('another method', await ask(`${url}/open`, { method: 'DELETE' }), '405 method_not_allowed');

  const key = createProofKey();
  const bound = issuer.boundToken(key);
  const DPoP = issuer.proof(key, { method: 'GET', url: `${url}/me` }, bound);
  const byProof = { headers: { Authorization: `DPoP ${bound}`, DPoP } };
  expect('a proof', await ask(`${url}/me`, byProof), '200');
  expect('a used proof', await ask(`${url}/me`, byProof), '401 invalid_dpop_proof');
  expect('metrics', /_count\{http_route="\/bug".*status_code="500"\} 1$/m.test(metrics.text()), true);

  const outcome = await service.stop();
  expect('the end of a service', outcome, 'drained');
  const isGone = await fetch(`${url}/open`).then(
    () => false,
    () => true,
  );
  expect('a stopped service takes no connection', isGone, true);
}

/** Off its curve, or no point at all. */
const BAD_KEYS = [
  { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) },
  { kty: 'EC', crv: 'P-256', x: 'A'.repeat(40), y: 'A'.repeat(43) },
  { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32, 2).toString('base64url') },
];

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A proof that names a key which nobody can have. */
function proofOf(jwk, url, token) {
  const alg = jwk.kty === 'EC' ? 'ES256' : 'EdDSA';
  const ath = createHash('sha256').update(token).digest('base64url');
  const claims = { jti: 'x', iat: Math.floor(Date.now() / 1000), htm: 'GET', htu: url, ath };
  const signature = Buffer.alloc(64, 1).toString('base64url');
  return [encode({ typ: 'dpop+jwt', alg, jwk }), encode(claims), signature].join('.');
}

/** One bad key of a provider spoils no other, and that of a client is its fault. */
async function useBadKeys() {
  const fetchKeys = async () => {
    const { keys } = await options.fetchKeys();
    return { keys: [...BAD_KEYS.map((key, index) => ({ ...key, kid: `bad-${index}` })), ...keys] };
  };
  const gate = createGate({ ...options, algorithms: ['RS256', 'ES256', 'EdDSA'], fetchKeys });
  const url = 'http://api.example.com/me';
  const check = async (headers) => {
    const { refusal } = await gate.check(new Request(url, { headers }), authenticated);
    return refusal === undefined ? 'granted' : `${refusal.status} ${JSON.stringify(refusal.headers)}`;
  };
  expect('an unusable key beside a usable one', await check(issuer.bearer()), 'granted');

  const token = issuer.boundToken(createProofKey());
  for (const jwk of BAD_KEYS) {
    const refusal = await check({ authorization: `DPoP ${token}`, dpop: proofOf(jwk, url, token) });
    const isRight = /^401 .*(has no public key|signature does not match)/.test(refusal);
    expect(`a proof with ${JSON.stringify(jwk)}, ${refusal}`, isRight, true);
  }
  gate.close();
}

async function useGate() {
  const gate = createGate(options);
  const server = createServer(async (request, response) => {
    const admission = await gate.admit(request, response, needs(scope('read:orders')));
    if (admission !== undefined) response.end(JSON.stringify({ for: admission.caller.subject }));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${server.address().port}/`;
  expect('the gate, a scope', await ask(url, { headers: issuer.bearer({ scope: 'read:orders' }) }), '200');
  expect('the gate, no scope', await ask(url, { headers: issuer.bearer() }), '403 insufficient_scope');
  expect('the gate, no token', await ask(url), '401 unauthorized');
  gate.close();
  server.closeAllConnections();
  server.close();
}

await attempt('createService', useService);
await attempt('createGate', useGate);
await attempt('bad keys', useBadKeys);
await attempt('assertRouteMatrix', () => assertRouteMatrix({ routes }));
console.log(JSON.stringify({ responses, problems }));
// Else it ends by itself: nothing of what was stopped keeps it alive.
if (problems.length > 0) process.exit(1);
