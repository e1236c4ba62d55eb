/* The gate in front of an existing server: what it admits, what it refuses, and what it does not touch. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  claimCheck,
  createGate,
  needs,
  open,
  optional,
  scope,
  type GateRequest,
} from '../../../src/gatehouse.ts';
import type { Judged, Tell, VerdictEvent } from '../../../src/gate/events.ts';
import { createGateMethods } from '../../../src/gate/create-gate.ts';
import { cors } from '../../../src/options/cors.ts';
import { resourceMetadata } from '../../../src/options/resource-metadata.ts';
import { createProof, createProofKey, createTestIssuer } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { nonceAt } from '../../support/proof.ts';
import { createRoutes } from '../../support/routes.ts';
import { clock } from '../../support/caller.ts';
import { captureLog } from '../../support/captured.ts';

const issuer = makeIssuer();
const access = needs(scope('read:orders'));
const READER = { scope: 'read:orders' };

const openGate = (settings: object = {}) => createGate({ ...issuer.options, ...settings });

const requestWith = (...rawHeaders: string[]): GateRequest => ({
  method: 'GET',
  url: '/orders',
  rawHeaders: ['Host', 'api.test', ...rawHeaders],
});

const bearer = (claims: object = {}) => ['Authorization', issuer.bearer({ ...claims }).authorization];

/** A host server with the gate. Returns its URL. */
async function serve(t: TestContext, handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(handler).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('an access with invalid scopes throws for the first of them, before the gate is called', async () => {
  const gate = await openGate();
  const wrong = (name: string) => new TypeError(`${name}: needs scopes, each as its own argument`);
  assert.throws(() => gate.check(requestWith(), needs(scope('a b'), scope('"'))), wrong('scope a b'));
  await assert.rejects(async () => gate.check(requestWith(), needs(scope('"'))), wrong('scope "'));
  gate.close();
});

test('the gate admits a caller who passes, and leaves the response to the host', async (t) => {
  const gate = await openGate();
  const url = await serve(t, async (request, response) => {
    const admission = await gate.admit(request, response, access);
    if (admission !== undefined) response.end(admission.caller.subject);
  });
  const response = await fetch(url, { headers: issuer.bearer(READER) });
  assert.deepEqual([response.status, await response.text()], [200, 'test-user']);
  assert.equal(response.headers.get('cache-control'), null);
});

test('the gate answers a refused caller with every challenge, and replaces the fields of its reply that the host has set', async (t) => {
  const gate = await openGate({ dpopMode: 'ALLOWED' });
  const url = await serve(t, async (request, response) => {
    response.setHeader('X-Powered-By', 'the host');
    response.setHeader('Cache-Control', 'public');
    response.setHeader('WWW-Authenticate', 'Basic');
    await gate.admit(request, response, access);
  });
  const refused = await fetch(url);
  const challenges = refused.headers.get('www-authenticate') ?? '';
  assert.deepEqual(
    [refused.status, await refused.json()],
    [401, { error: 'unauthorized', message: 'Authentication required' }],
  );
  assert.match(challenges, /^Bearer realm="api", DPoP algs=/);
  assert.equal(refused.headers.get('cache-control'), 'no-store');
  const forbidden = await fetch(url, { headers: issuer.bearer() });
  assert.deepEqual([forbidden.status, Object(await forbidden.json()).error], [403, 'insufficient_scope']);
});

test('the gate neither throws nor admits if the host has responded before access was checked', async (t) => {
  const gate = await openGate();
  const admissions: unknown[] = [];
  const url = await serve(t, async (request, response) => {
    const admission = gate.admit(request, response, access);
    response.end('late');
    admissions.push(await admission.catch((failure: unknown) => failure));
  });
  for (const headers of [{}, issuer.bearer(READER)]) await (await fetch(url, { headers })).text();
  assert.deepEqual(admissions, [undefined, undefined]);
});

test('admit refuses a response that is not of Node before it gives a verdict, and names what to use', async () => {
  const gate = await openGate();
  const error = new TypeError(
    "admit needs Node's response, such as Fastify's reply.raw; without one, use check",
  );
  for (const response of [new Response(), { raw: {}, header() {} }, undefined]) {
    for (const judgedBy of [access, open]) {
      await assert.rejects(gate.admit(requestWith(), response as never, judgedBy), error);
    }
  }
});

test('the gate logs an error, and tells one verdict, if the host has responded before access was checked [§28]', async () => {
  const { way, logs } = await createRoutes({ routes: [] });
  const told: unknown[] = [];
  const tell: Tell<Judged> = async (_request, _record, judged) => void told.push(judged);
  const { admit } = createGateMethods({ ...way, clock, tell });
  const response = { headersSent: true } as ServerResponse;
  for (const judgedBy of [access, open]) {
    assert.equal(await admit(requestWith(), response, judgedBy), undefined);
  }
  assert.deepEqual(told, Array(2).fill({ admitted: false, status: 500 }));
  assert.deepEqual(
    logs.map(({ level, message, reason, sentence }) => [level, message, reason, sentence]),
    Array(2).fill([
      'error',
      'request failed',
      'bug',
      'the response began before admit was done; await admit, or raise the time limits of your server',
    ]),
  );
});

test('the gate adds the current nonce to the response of the host if the proof has the previous one [RFC 9449 §9]', async (t) => {
  // A nonce of the previous slot is over when the next one begins.
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const secret = 'a'.repeat(32);
  const gate = await openGate({ dpopMode: 'ALLOWED', dpopNonceSecret: secret });
  const url = await serve(t, async (request, response) => {
    // Such as of another middleware.
    response.setHeader('dpop-nonce', 'old');
    if ((await gate.admit(request, response, access)) !== undefined) response.end();
  });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  const nonce = nonceAt(secret, Date.now() - 60_000);
  const dpop = createProof(key, { method: 'GET', url: `${url}/` }, token, { nonce });
  const admitted = await fetch(url, { headers: { authorization: `DPoP ${token}`, dpop } });
  assert.equal(admitted.status, 200);
  const fresh = admitted.headers.get('dpop-nonce') ?? nonce;
  assert.notEqual(fresh, nonce);
  assert.doesNotMatch(fresh, /old/);
});

test('admit never rejects, whenever the host responds without awaiting it, and tells one verdict each time', async (t) => {
  // A nonce of the previous slot is over when the next one begins.
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const secret = 'a'.repeat(32);
  const told: unknown[] = [];
  const gate = await openGate({
    dpopMode: 'ALLOWED',
    dpopNonceSecret: secret,
    onVerdict: ({ admitted }: VerdictEvent) => told.push(admitted),
  });
  const failures: unknown[] = [];
  let turnsBefore = 0;
  const url = await serve(t, async (request, response) => {
    const admission = gate.admit(request, response, access).catch((error: unknown) => failures.push(error));
    for (let turn = 0; turn < turnsBefore; turn += 1) await undefined;
    response.end();
    await admission;
  });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);
  const nonce = nonceAt(secret, Date.now() - 60_000);
  const COUNT = 12;
  for (turnsBefore = 0; turnsBefore < COUNT; turnsBefore += 1) {
    const dpop = createProof(key, { method: 'GET', url: `${url}/` }, token, { nonce });
    await (await fetch(url, { headers: { authorization: `DPoP ${token}`, dpop } })).text();
  }
  assert.deepEqual([failures, told.length], [[], COUNT]);
  assert.ok(told.includes(true) && told.includes(false));
});

test('the gate checks a plain object that describes a request, as frameworks pass it', async () => {
  const gate = await openGate();
  const admitted = await gate.check(requestWith(...bearer(READER)), access);
  assert.ok(!admitted.refusal);
  assert.deepEqual([admitted.caller.subject, admitted.headers], ['test-user', []]);
  const verdict = await gate.check(requestWith(...bearer(READER), ...bearer(READER)), access);
  assert.ok(verdict.refusal);
  assert.equal(verdict.refusal.status, 400);
});

test('the gate reads no credentials if the access ignores them, and allows their absence if they are optional', async () => {
  const gate = await openGate();
  assert.deepEqual(await gate.check(requestWith('Authorization', 'Basic eA=='), open), {
    caller: undefined,
    headers: [],
  });
  assert.deepEqual(await gate.check(requestWith(), optional), { caller: undefined, headers: [] });
  const verdict = await gate.check(requestWith('Authorization', 'Basic eA=='), optional);
  assert.equal(verdict.refusal?.status, 401);
});

for (const [what, request] of [
  ['has no Host', { method: 'GET', url: '/orders', rawHeaders: [] }],
  ['has two Hosts', requestWith('Host', 'other.test')],
  ['is for no path', { ...requestWith(), method: 'OPTIONS', url: '*' }],
] as const) {
  test(`the gate leaves a request that ${what} to the host if the access ignores credentials`, async (t) => {
    const gate = await openGate();
    t.after(gate.close);
    assert.equal((await gate.check(request, open)).refusal, undefined);
    assert.notEqual((await gate.check(request, optional)).refusal, undefined);
  });
}

for (const [what, pairs, maxHeadersCount, status] of [
  ['as many fields as Node keeps by default', 1_000, null, 431],
  ['one field fewer than Node keeps by default', 999, null, 200],
  ['as many fields as its server keeps', 50, 50, 431],
  ['many fields where its server keeps all', 1_500, 0, 200],
] as const) {
  test(`the gate answers 431 only if Node may have dropped a field: ${status} with ${what}`, async () => {
    const gate = await openGate();
    const { rawHeaders } = requestWith(...bearer(READER));
    const filling = Array.from({ length: pairs - rawHeaders.length / 2 }, () => ['X', 'x']).flat();
    const socket = { server: { maxHeadersCount } };
    const request = { ...requestWith(), rawHeaders: [...rawHeaders, ...filling], socket };
    const verdict = await gate.check(request, access);
    assert.equal(verdict.refusal ? verdict.refusal.status : 200, status);
  });
}

test('the gate compares a proof with the URL that the client sent, not with what a framework made of it [RFC 9449 §4.3(9)]', async () => {
  const gate = await openGate({ dpopMode: 'REQUIRED' });
  const key = createProofKey();
  const token = issuer.boundToken(key, READER);

  const present = (claims: object) => {
    const proof = issuer.proof(key, { method: 'GET', url: 'http://api.test/api/orders?x=1' }, token, {
      ...claims,
    });
    return requestWith('Authorization', `DPoP ${token}`, 'DPoP', proof);
  };

  const mounted = { ...present({}), url: '/orders', originalUrl: '/api/orders?x=1' };
  assert.ok('caller' in (await gate.check(mounted, access)));
  const replayed = await gate.check(mounted, access);
  assert.equal(replayed.refusal?.status, 401);
  const rewritten = await gate.check({ ...present({}), url: '/orders' }, access);
  assert.equal(rewritten.refusal?.status, 401);
});

test('the gate lets a listed origin read its refusals', async () => {
  const gate = await openGate({ cors: cors({ origins: ['https://app.test'] }) });
  const verdict = await gate.check(requestWith('Origin', 'https://app.test'), access);
  const fields = verdict.refusal ? Object.fromEntries(verdict.refusal.headers) : {};
  assert.deepEqual([fields['Access-Control-Allow-Origin'], fields.Vary], ['https://app.test', 'Origin']);
});

test('the gate gives no cross-origin fields to the response of an admitted request, which are for the host to set [§9]', async (t) => {
  const gate = openGate({ cors: cors({ origins: ['https://app.test'] }) });
  t.after(gate.close);
  const verdict = await gate.check(requestWith('Origin', 'https://app.test', ...bearer(READER)), access);
  assert.deepEqual(verdict.headers, []);
});

test('the gate lets an origin with one label in place of the * read its refusals, under its own name', async (t) => {
  const gate = await openGate({
    cors: cors({ origins: ['https://*.preview.test', 'capacitor://localhost'] }),
  });
  t.after(gate.close);

  const allowed = async (origin: string) => {
    const verdict = await gate.check(requestWith('Origin', origin), access);
    const fields = verdict.refusal ? Object.fromEntries(verdict.refusal.headers) : {};
    return [fields['Access-Control-Allow-Origin'], fields.Vary];
  };

  for (const origin of ['https://pr-7.preview.test', 'capacitor://localhost']) {
    assert.deepEqual(await allowed(origin), [origin, 'Origin']);
  }
  for (const origin of ['https://a.b.preview.test', 'https://*.preview.test', 'null']) {
    assert.deepEqual(await allowed(origin), [undefined, 'Origin'], origin);
  }
});

test('the gate is ready once it has keys, and several gates are independent', async () => {
  const other = makeIssuer();
  const gate = await openGate();
  const theirs = createGate(other.options);
  await gate.check(requestWith(...bearer(READER)), access);
  assert.equal(gate.isReady(), true);
  const verdict = await theirs.check(requestWith(...bearer(READER)), access);
  assert.equal(verdict.refusal?.status, 401);
  gate.close();
  theirs.close();
});

test('at most a thousand requests wait for the keys of an issuer at each gate [§7]', async () => {
  const fetched = new EventEmitter();
  const waiting = () => once(fetched, 'keys').then(() => issuer.options.fetchKeys());
  const gates = [
    createGate({ ...issuer.options, fetchKeys: waiting }),
    createGate({ ...issuer.options, fetchKeys: waiting }),
  ];

  const ask = async (gate = gates[0]!) => {
    const verdict = await gate.check(requestWith(...bearer(READER)), access);
    return verdict.refusal ? verdict.refusal.status : 200;
  };

  const asked = gates.flatMap((gate) => Array.from({ length: 1_000 }, () => ask(gate)));
  assert.deepEqual(await Promise.all(gates.map(ask)), [503, 503]);
  fetched.emit('keys');
  assert.deepEqual(new Set(await Promise.all(asked)), new Set([200]));
  for (const gate of gates) gate.close();
});

const found = () => ({
  metadata: resourceMetadata({ url: 'https://api.test/mcp' }),
  cors: cors({ origins: ['https://app.test'] }),
});

const METADATA = '/.well-known/oauth-protected-resource/mcp';

test('the refusals of the gate name the metadata and the scopes of its access [RFC 9728 §5.1]', async () => {
  const gate = await openGate(found());
  const verdict = await gate.check(requestWith(), access);
  assert.equal(
    verdict.refusal?.headers.find(([name]) => name === 'WWW-Authenticate')?.[1],
    `Bearer realm="api", scope="read:orders", resource_metadata="https://api.test${METADATA}"`,
  );
});

test('a 403 from the gate names every scope of its access [RFC 6750 §3]', async () => {
  const gate = await openGate(found());
  const both = needs(scope('read:orders'), scope('pay'));
  const request = requestWith(...bearer({ scope: 'read:orders' }));
  const verdict = await gate.check(request, both);
  assert.ok(verdict.refusal);
  const { status, headers } = verdict.refusal;
  assert.equal(status, 403);
  assert.match(headers.join('\n'), /, scope="read:orders pay", /);
});

test('the gate serves the metadata itself, to every origin [RFC 9728 §3.1]', async (t) => {
  const gate = await openGate(found());
  const url = await serve(t, async (request, response) => {
    const admission = await gate.admit(request, response, access);
    if (admission !== undefined) response.end(admission.caller.subject);
  });
  for (const path of [METADATA, `${METADATA}/?x`]) {
    const response = await fetch(url + path, { headers: { origin: 'https://app.test' } });
    assert.deepEqual(
      [
        response.status,
        response.headers.get('access-control-allow-origin'),
        Object(await response.json()).resource,
      ],
      [200, '*', 'https://api.test/mcp'],
    );
  }
  const refused = await fetch(url + METADATA, { method: 'POST' });
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD']);
  assert.equal((await fetch(`${url}/mcp`, { headers: issuer.bearer(READER) })).status, 200);
});

test('the gate answers a preflight of the metadata in a form that new Response() accepts [RFC 9728 §3.1]', async () => {
  const gate = await openGate(found());
  const asking = requestWith('Origin', 'https://app.test', 'Access-Control-Request-Method', 'GET');
  const verdict = await gate.check({ ...asking, method: 'OPTIONS', url: METADATA }, access);
  assert.ok(verdict.refusal);
  assert.equal(new Response(verdict.refusal.body, verdict.refusal).status, 204);
});

test('the gate serves the metadata where a framework has cut the path from the URL [RFC 9728 §3.1]', async () => {
  const gate = await openGate(found());
  const mounted = { ...requestWith(), url: '/', originalUrl: `${METADATA}?x` };
  const verdict = await gate.check(mounted, access);
  assert.equal(verdict.refusal?.status, 200);
});

test('the gate serves no metadata without the part', async () => {
  const gate = await openGate();
  const verdict = await gate.check({ ...requestWith(...bearer(READER)), url: METADATA }, access);
  assert.ok(!verdict.refusal);
});

const DOTS = ['/x/../admin', '../admin', '/.', '/a/./b', '/%2e%2e/admin', '/a/.%2E', '/a/%2e?x', '/..'];
/** To URL, a backslash is a slash, and `#` ends a path. */
const DOTS_OF_URL = ['/x\\../admin', '/..\\admin', '/a/..#x'];

for (const url of [...DOTS, ...DOTS_OF_URL]) {
  test(`the gate refuses the path ${url}, whatever the access, since a server may keep its dot segments, which the URI of a proof does not have [RFC 3986 §5.2.4]`, async (t) => {
    const gate = await openGate({ dpopMode: 'ALLOWED' });
    t.after(gate.close);
    for (const asked of [open, optional, access]) {
      for (const request of [{ url }, { url: '/good', originalUrl: url }]) {
        const verdict = await gate.check({ ...requestWith(...bearer(READER)), ...request }, asked);
        assert.ok(verdict.refusal);
        assert.equal(verdict.refusal.status, 400);
        assert.match(
          String(verdict.refusal.body),
          /"invalid_request","message":".* a path that can be served"/,
        );
      }
    }
  });
}

for (const url of ['/a/.\t./admin', '/a\t', '/a?b\t', '/a\0', '/a\f', '/a b', '/a\x7f']) {
  test(`the gate refuses the target ${JSON.stringify(url)}, whatever the access, since a URL would drop a tab [RFC 9112 §3.2]`, async (t) => {
    const gate = await openGate();
    t.after(gate.close);
    for (const asked of [open, optional, access]) {
      const verdict = await gate.check({ ...requestWith(...bearer(READER)), url }, asked);
      assert.equal(verdict.refusal?.status, 400);
    }
  });
}

test('the gate admits dots within a segment, and an encoded slash [RFC 3986 §3.3]', async (t) => {
  const gate = await openGate();
  t.after(gate.close);
  for (const url of ['/a.b', '/...', '/a/..b', '/%2e%2e%2fadmin', '/a?../b', '/?/../a']) {
    const verdict = await gate.check({ ...requestWith(...bearer(READER)), url }, access);
    assert.ok(!verdict.refusal, url);
  }
});

test('the gate refuses HTTP/2, in which :authority and Host can disagree [RFC 9113 §8.3.1]', async (t) => {
  const gate = await openGate();
  t.after(gate.close);
  for (const field of [':authority', ':path', ':']) {
    for (const asked of [open, optional, access]) {
      const verdict = await gate.check(requestWith(...bearer(READER), field, 'api.test'), asked);
      assert.ok(verdict.refusal);
      assert.equal(verdict.refusal.status, 400);
    }
  }
  const verdict = await gate.check(requestWith(...bearer(READER), 'X-A', ':authority'), access);
  assert.ok(!verdict.refusal);
});

test('the gate accepts a request without Host only if it is HTTP/1.0 [RFC 9112 §3.2]', async (t) => {
  const gate = await openGate();
  t.after(gate.close);
  const request = { method: 'GET', url: '/', rawHeaders: bearer(READER) };
  assert.ok('caller' in (await gate.check({ ...request, httpVersion: '1.0' }, access)));
  for (const httpVersion of [undefined, '1.1', '2.0', '']) {
    assert.ok('refusal' in (await gate.check({ ...request, httpVersion }, access)));
  }
});

test('a bug in a guard is passed to onError once, whatever onError does with it', async () => {
  const bug = new Error('a bug');
  const faulty = claimCheck('is good', () => {
    throw bug;
  });
  for (const answer of [
    () => 'thanks',
    () => assert.fail('in onError'),
    async () => assert.fail('later in onError'),
  ]) {
    const passed: unknown[] = [];

    const onError = (error: unknown, about: unknown) => {
      passed.push(error, about);
      return answer();
    };

    const gate = createGate({ ...issuer.options, log: undefined, onError });
    const verdict = await gate.check(requestWith(...bearer()), needs(faulty));
    assert.ok(verdict.refusal);
    assert.equal(verdict.refusal.status, 500);
    await gate.check(requestWith(), access);
    await new Promise(setImmediate);
    assert.deepEqual(passed, [bug, { method: 'GET', route: null }]);
    gate.close();
  }
});

test('a claim check that returns a promise is a 500 whose log line names decision, and its rejection ends no process', async (t) => {
  const rejections: unknown[] = [];
  const note = (error: unknown) => rejections.push(error);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  const gate = createGate(issuer.options);
  t.after(gate.close);
  const logged = captureLog(t);
  for (const check of [async () => true, async () => assert.fail('later')]) {
    const guard = claimCheck('is good', check as never);
    const { refusal } = await gate.check(requestWith(...bearer()), needs(guard));
    assert.equal(refusal?.status, 500);
  }
  const lines = await logged();
  assert.deepEqual(rejections, []);
  const failed = lines.filter(({ message }) => message === 'request failed');
  assert.equal(failed.length, 2);
  for (const { error, sentence } of failed) {
    assert.equal(error, 'TypeError');
    assert.match(sentence, /returns true or false; to wait, write a decision$/);
  }
});

test('the frames of a bug are logged although onError reads its stack, which it sees as Node formats it', async (t) => {
  const faulty = claimCheck('is good', () => {
    throw new RangeError('eyJh');
  });
  let stack = '';

  const onError = (error: unknown) => {
    stack = String(Object(error).stack);
  };

  const gate = createGate({ ...issuer.options, onError });
  t.after(gate.close);
  const logged = captureLog(t);
  await gate.check(requestWith(...bearer()), needs(faulty));
  const lines = await logged();
  const { error, frames } = lines.find(({ message }) => message === 'request failed') ?? {};
  assert.equal(error, 'RangeError');
  assert.match(String(frames?.[0]), /gate\.wire\.test\.[jt]s:\d+:\d+$/);
  assert.match(stack, /^RangeError: eyJh\n    at .*gate\.wire\.test\.[jt]s:\d+:\d+/);
  assert.doesNotMatch(JSON.stringify(lines), /eyJh/);
});

for (const algorithm of ['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const) {
  test(`the gate verifies the tokens of a test issuer that signs with ${algorithm}, and no others [RFC 8725 §3.1]`, async (t) => {
    const other = createTestIssuer({ algorithm });
    const gate = createGate(other.options);
    t.after(gate.close);
    const token = other.bearer(READER).authorization;
    const verdict = await gate.check(requestWith('Authorization', token), access);
    assert.ok(!verdict.refusal);
    assert.equal(verdict.caller.subject, 'test-user');
    const foreign = createTestIssuer({ algorithm: algorithm === 'RS256' ? 'ES256' : 'RS256' });
    const refused = await gate.check(
      requestWith('Authorization', foreign.bearer(READER).authorization),
      access,
    );
    assert.ok(refused.refusal);
    assert.match(JSON.stringify(refused.refusal.headers), /an algorithm that this API accepts/);
  });
}

test('a test issuer signs only with the six supported algorithms', () => {
  for (const algorithm of ['HS256', 'none', 'rs256', 'Ed25519', 'constructor', '', ['RS256']]) {
    assert.throws(() => createTestIssuer({ algorithm: algorithm as never }), {
      name: 'TypeError',
      message: 'createTestIssuer: algorithm: must be one of RS256, PS256, ES256, ES384, ES512, EdDSA',
    });
  }
});

test('the challenges and the metadata name the configured proof algorithms, in their order [RFC 9449 §7.1]', async (t) => {
  const dpopAlgorithms = ['EdDSA', 'ES256'] as const;
  const gate = await openGate({
    dpopMode: 'REQUIRED',
    dpopAlgorithms,
    metadata: resourceMetadata({ url: 'https://api.test' }),
  });
  t.after(gate.close);
  const refused = await gate.check(requestWith(), access);
  assert.ok(refused.refusal);
  assert.match(JSON.stringify(refused.refusal.headers), /algs=\\"EdDSA ES256\\"/);
  const url = '/.well-known/oauth-protected-resource';
  const document = await gate.check({ ...requestWith(), url }, access);
  assert.ok(document.refusal);
  const { dpop_signing_alg_values_supported: listed } = JSON.parse(String(document.refusal.body));
  assert.deepEqual(listed, dpopAlgorithms);
});

const MALFORMED: readonly (readonly [what: string, url: string, rawHeaders: string[]])[] = [
  ['without Host', '/orders', []],
  ['with two Host fields', '/orders', ['Host', 'a.test', 'Host', 'b.test']],
  ['with a target in absolute form', 'http://a.test/orders', ['Host', 'a.test']],
];

for (const [what, url, rawHeaders] of MALFORMED) {
  test(`the gate refuses a request ${what}, whatever its credentials [RFC 9112 §3.2]`, async (t) => {
    const gate = await openGate();
    t.after(gate.close);
    for (const credentials of [[], bearer(READER)]) {
      const request = { method: 'GET', url, rawHeaders: [...rawHeaders, ...credentials], httpVersion: '1.1' };
      for (const wanted of [access, optional]) {
        const { refusal } = await gate.check(request, wanted);
        assert.equal(refusal?.status, 400);
      }
    }
  });
}
