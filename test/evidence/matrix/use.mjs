/* Uses the package in a project, whatever runs this: prints a line of JSON, how many answers came and which of them
   are wrong. */
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

const routes = [
  get('/open', open, () => ({})),
  get('/me', authenticated, ({ caller }) => ({ subject: caller.subject })),
  get('/orders/{id}', needs(scope('read:orders')), ({ parameters }) => parameters),
  post('/orders', needs(scope('write:orders')), json(), ({ body }) => created('/orders/2', body)),
  get('/bug', open, () => Promise.reject(new Error('x'))),
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
await attempt('assertRouteMatrix', () => assertRouteMatrix({ routes }));
console.log(JSON.stringify({ responses, problems }));
// Else it ends by itself: nothing of what was stopped keeps it alive.
if (problems.length > 0) process.exit(1);
