/* What callers get with tokens that their issuer is asked about: who passes and who is refused, how, and while
   the issuer does not say (docs/introspection.md). */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { clientCertificates } from '../../../src/certificates.ts';
import {
  authenticated,
  claimEquals,
  createGate,
  createService,
  get,
  needs,
  open,
  optional,
  scope,
  upstream,
  type Caller,
  type ServiceOptions,
} from '../../../src/gatehouse.ts';
import { introspection, type IntrospectionOptions } from '../../../src/introspection.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { createProofKey, createTestIssuer } from '../../../src/testing.ts';
import { until } from '../../support/watch.ts';
import { client, otherClient, written } from '../certificates-fixture.ts';
import { startFakeStore } from '../fake-store.ts';
import { asking, issuer as FORWARDED, startPolicy } from '../forward-auth-fixture.ts';
import { keyFor, storeWith } from '../redis/revocations-fixture.ts';

const issuer = createTestIssuer();

const part = (change: Partial<IntrospectionOptions> = {}) =>
  introspection({ tokens: ['opaque'], clientId: 'orders-api', clientSecret: 'secret-word', ...change });

function shown({ subject, issuer: iss, issuerName, scopes, expiresAtMillis, claims }: Caller) {
  return { subject, issuer: iss, issuerName, scopes, expiresAtMillis, claims };
}

const routes = [
  get('/open', open, () => ({})),
  get('/optional', optional, ({ caller }) => ({ subject: caller?.subject ?? null })),
  get('/private', authenticated, ({ caller }) => shown(caller)),
  get('/scoped', needs(scope('read:orders')), () => ({})),
  get('/claimed', needs(claimEquals('org_id', 'org_1')), () => ({})),
];

interface Running {
  readonly url: string;
  readonly logs: readonly (readonly [level: string, message: string, fields: any])[];
}

async function start(t: TestContext, given: Partial<ServiceOptions> = {}): Promise<Running> {
  const logs: [string, string, object][] = [];
  const log: ServiceOptions['log'] = (...line) => void logs.push(line);
  const options = { ...issuer.options, introspection: part(), log, host: '127.0.0.1', port: 0, ...given };
  const service = createService({ routes }, options);
  t.after(service.stop);
  return { url: await service.listen(), logs };
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  const body: any = await response.json();
  const { status } = response;
  return { status, body, challenge: response.headers.get('www-authenticate'), response };
}

const outcome = async ({ url, logs }: Running, path: string, headers: Record<string, string>) => {
  const { status } = await ask(url + path, headers);
  return status === 200 ? '200' : `${status} ${logs.at(-1)?.[2].reason}`;
};

describe('a service', () => {
  test('shows a handler an ordinary caller, whose claims are what the issuer said [§22]', async (t) => {
    const { url } = await start(t);
    const exp = Math.floor(Date.now() / 1000) + 99;
    const { status, body } = await ask(`${url}/private`, bearer(issuer.opaqueToken({ scope: 'a b', exp })));
    assert.equal(status, 200);
    const { claims, ...caller } = body;
    assert.deepEqual(caller, {
      subject: 'test-user',
      issuer: 'https://issuer.test/',
      issuerName: 'idp',
      scopes: ['a', 'b'],
      expiresAtMillis: exp * 1000,
    });
    const usual = { iss: 'https://issuer.test/', aud: 'https://api.test', sub: 'test-user' };
    assert.deepEqual(claims, { active: true, ...usual, exp, scope: 'a b' });
  });

  test('has the configured issuer where the answer has none [§22]', async (t) => {
    const { url } = await start(t);
    const { body } = await ask(`${url}/private`, bearer(issuer.opaqueToken({ iss: undefined })));
    assert.equal(body.issuer, 'https://issuer.test/');
  });

  test('refuses an inactive token with 401, and tells nothing of it [§22]', async (t) => {
    const { url, logs } = await start(t);
    const { status, body, challenge } = await ask(`${url}/private`, bearer('secret-token'));
    assert.deepEqual([status, body.error], [401, 'invalid_token']);
    assert.match(
      challenge ?? '',
      /error="invalid_token", error_description="the token is not active at its issuer"/,
    );
    const [level, message, fields] = logs.at(-1)!;
    assert.deepEqual(
      [level, message, fields.reason, fields.issuer],
      ['debug', 'request refused', 'token-inactive', 'idp'],
    );
    assert.doesNotMatch(JSON.stringify([logs, body, challenge]), /secret/);
  });

  test('leaves what a test says of an opaque token as it is', async (t) => {
    const running = await start(t);
    const roles = ['reader'];
    assert.equal(await outcome(running, '/private', bearer(issuer.opaqueToken({ roles }))), '200');
    roles.push('writer');
    assert.deepEqual(roles, ['reader', 'writer']);
  });

  test('takes what contains itself from introspect, and freezes no function in it', async (t) => {
    const never = () => {};
    const itself: Record<string, unknown> = { active: true, aud: 'https://api.test', sub: 'a', exp: 2 ** 33 };
    itself.itself = itself;
    itself.code = never;
    const running = await start(t, { introspect: async () => itself });
    assert.equal(await outcome(running, '/scoped', bearer('opaque')), '403 scope-missing');
    assert.ok(!Object.isFrozen(never));
  });

  test('decides anew on the same answer for each route and guard [§22, J5]', async (t) => {
    let questions = 0;

    const introspect: ServiceOptions['introspect'] = (token) => {
      questions += 1;
      return issuer.options.introspect(token);
    };

    const running = await start(t, { introspect });
    const token = bearer(issuer.opaqueToken({ scope: 'read:orders', org_id: 'org_2' }));
    assert.equal(await outcome(running, '/scoped', token), '200');
    assert.equal(await outcome(running, '/claimed', token), '403 claim-missing');
    assert.equal(await outcome(running, '/private', token), '200');
    const other = bearer(issuer.opaqueToken({ org_id: 'org_1' }));
    assert.equal(await outcome(running, '/claimed', other), '200');
    assert.equal(await outcome(running, '/scoped', other), '403 scope-missing');
    assert.equal(questions, 2);
  });

  test('answers 503 to exactly the requests that need an answer while there is none [§22]', async (t) => {
    const introspect = () => Promise.reject(new Error('secret'));
    const running = await start(t, { introspect });
    const { url, logs } = running;
    for (const path of ['/private', '/optional', '/scoped']) {
      const { status, body, challenge, response } = await ask(url + path, bearer('secret-token'));
      assert.deepEqual([status, body.error, challenge], [503, 'temporarily_unavailable', null]);
      assert.equal(body.message, 'The token cannot be checked at the moment');
      assert.equal(response.headers.get('retry-after'), '1');
    }
    assert.equal((await ask(`${url}/open`, bearer('secret-token'))).status, 200);
    assert.equal((await ask(`${url}/optional`)).status, 200);
    assert.equal((await ask(`${url}/private`)).status, 401);
    assert.equal((await ask(`${url}/private`, issuer.bearer())).status, 200);
    assert.equal((await ask(`${url}/private`, bearer(`${issuer.token().slice(0, -8)}AAAAAAAA`))).status, 401);
    assert.equal((await ask(`${url}/private`, bearer('a.b.c.d.e'))).status, 401);
    assert.equal((await ask(`${url}/readyz`)).status, 200);
    assert.doesNotMatch(JSON.stringify(logs), /secret/);
  });

  test('counts introspection requests, and tokens by what let them in [§22]', async (t) => {
    const metrics = createMetrics();

    const introspect = (token: string) =>
      token === 'down' ? Promise.reject(new Error('down')) : issuer.options.introspect(token);

    const { url } = await start(t, { metrics, introspect });

    const figures = () =>
      metrics
        .text()
        .match(/^gatehouse_(?:introspections|tokens)_total\{.*$/gm)
        ?.map((line) => line.replace('gatehouse_', ''));

    const expected = (active: number, inactive: number, failed: number, kept: number) => [
      `tokens_total{result="remembered"} ${kept}`,
      'tokens_total{result="verified"} 0',
      `tokens_total{result="introspected"} ${active}`,
      `introspections_total{issuer="idp",result="active"} ${active}`,
      `introspections_total{issuer="idp",result="inactive"} ${inactive}`,
      `introspections_total{issuer="idp",result="failed"} ${failed}`,
      'introspections_total{issuer="idp",result="shed"} 0',
    ];

    assert.deepEqual(figures()?.sort(), expected(0, 0, 0, 0).sort());
    const token = issuer.opaqueToken();
    for (const one of [token, token, 'inactive', 'down']) await ask(`${url}/private`, bearer(one));
    assert.deepEqual(figures()?.sort(), expected(1, 1, 1, 1).sort());
  });
});

test('has no metrics of introspection without it', (t) => {
  const metrics = createMetrics();
  const gate = createGate({ ...issuer.options, metrics });
  t.after(gate.close);
  assert.doesNotMatch(metrics.text(), /introspections|"introspected"/);
});

describe('an opaque token that is bound to a key [RFC 9449 §6.2, §7.1]', () => {
  const key = createProofKey();
  const cnf = { jkt: key.thumbprint };

  test('passes with a proof whose ath is over the opaque token, and in no other way [§8, §22]', async (t) => {
    const running = await start(t);
    const url = `${running.url}/private`;
    const token = issuer.opaqueToken({ cnf, token_type: 'DPoP' });
    const other = issuer.opaqueToken({ cnf });

    const fields = (signer = key, ofToken = token) => ({
      Authorization: `DPoP ${token}`,
      DPoP: issuer.proof(signer, { method: 'GET', url }, ofToken),
    });

    const good = fields();
    assert.equal(await outcome(running, '/private', good), '200');
    assert.equal(await outcome(running, '/private', good), '401 proof-replayed');
    assert.equal(await outcome(running, '/private', fields(key, other)), '401 proof-ath');
    assert.equal(await outcome(running, '/private', fields(createProofKey())), '401 key-mismatch');
    assert.equal(await outcome(running, '/private', { Authorization: `DPoP ${token}` }), '401 proof-missing');
    assert.equal(await outcome(running, '/private', bearer(token)), '401 bound-token');
  });

  test('is refused if the issuer forgets its binding, as Bearer and as DPoP [§22]', async (t) => {
    const running = await start(t);
    const token = issuer.opaqueToken({ token_type: 'DPoP' });
    assert.equal(await outcome(running, '/private', bearer(token)), '401 not-bound');
    assert.equal(await outcome(running, '/private', { Authorization: `DPoP ${token}` }), '401 not-bound');
  });
});

test('an opaque token that is bound to a certificate passes with that alone [RFC 8705 §3.2, J2]', async (t) => {
  const running = await start(t, {
    clientCertificates: clientCertificates({ source: 'pem', proxies: ['127.0.0.1'] }),
  });
  const token = bearer(issuer.opaqueToken({ cnf: { 'x5t#S256': client.thumbprint } }));
  const shown = (der: Buffer) => ({ ...token, 'X-Client-Cert': written('pem', der) });
  assert.equal(await outcome(running, '/private', shown(client.der)), '200');
  assert.equal(await outcome(running, '/private', shown(otherClient.der)), '401 certificate-mismatch');
  assert.equal(await outcome(running, '/private', token), '401 certificate-missing');
});

test('an opaque token is revoked like any other, and an inactive one never reaches the store [§24, J8]', async (t) => {
  const entries = new Map([[keyFor('jti', 'secret-id', 'https://issuer.test/'), '']]);
  const store = await startFakeStore(t, storeWith(entries));
  const revocations = createRevocations({ store: `redis://127.0.0.1:${store.port}` });
  t.after(revocations.close);
  const running = await start(t, { revocations });
  await until(
    'the store is ready',
    () => running.logs.some(([, message]) => message === 'revocation store ready'),
    20,
  );
  for (const iss of ['https://issuer.test/', undefined]) {
    const token = bearer(issuer.opaqueToken({ iss, jti: 'secret-id' }));
    assert.equal(await outcome(running, '/private', token), '401 revoked');
  }
  const before = store.commands.length;
  assert.equal(await outcome(running, '/private', bearer('inactive')), '401 token-inactive');
  assert.equal(store.commands.length, before);
  assert.equal(await outcome(running, '/private', bearer(issuer.opaqueToken({ jti: 'other' }))), '200');
});

test('a JWT is introspected before the store is asked whether it is revoked [§24]', async (t) => {
  const store = await startFakeStore(t, storeWith(new Map()));
  const revocations = createRevocations({ store: `redis://127.0.0.1:${store.port}` });
  t.after(revocations.close);
  const introspect = async () => ({ active: false });
  const running = await start(t, { introspection: part({ tokens: ['jwt'] }), introspect, revocations });
  await until(
    'the store is ready',
    () => running.logs.some(([, message]) => message === 'revocation store ready'),
    20,
  );
  const before = store.commands.length;
  assert.equal(await outcome(running, '/private', issuer.bearer()), '401 token-inactive');
  assert.equal(store.commands.length, before);
});

test('of several issuers, each is asked about its own tokens alone [§22]', async (t) => {
  const partner = createTestIssuer({ domain: 'partner.test', audience: 'orders-api' });
  const other = createTestIssuer({ domain: 'other.test', audience: 'orders-api' });
  const asked: string[] = [];

  const introspect: ServiceOptions['introspect'] = async (token, name) => {
    asked.push(name);
    return { ...(await issuer.options.introspect(token)), ...(name === 'partner' && { active: false }) };
  };

  const { domain, audience } = partner.options;
  const byName: Readonly<Record<string, typeof issuer>> = { idp: issuer, partner };
  const running = await start(t, {
    introspect,
    fetchKeys: (_, name) => (byName[name] ?? other).options.fetchKeys(),
    issuers: {
      partner: { domain, audience, introspection: part({ tokens: ['jwt'] }) },
      other: { domain: other.options.domain, audience },
    },
  });
  assert.equal(await outcome(running, '/private', issuer.bearer()), '200');
  assert.equal(await outcome(running, '/private', other.bearer()), '200');
  assert.deepEqual(asked, []);
  assert.equal(await outcome(running, '/private', partner.bearer()), '401 token-inactive');
  assert.equal(await outcome(running, '/private', bearer(issuer.opaqueToken())), '200');
  assert.deepEqual(asked, ['partner', 'idp']);
});

test('a policy for a proxy passes on what the issuer said of an opaque token [§18, §22]', async (t) => {
  const policyRoutes = { routes: [get('/a', authenticated, upstream)] };
  const given = { introspection: part(), introspect: FORWARDED.options.introspect };
  const policy = await startPolicy(policyRoutes, given);
  t.after(policy.stop);
  const fieldsFor = (token: string) => [['Authorization', `Bearer ${token}`]] as const;
  const token = FORWARDED.opaqueToken({ scope: 'a b' });
  const { status, headers } = await policy.ask({ forwarded: asking('GET', '/a'), fields: fieldsFor(token) });
  assert.equal(status, 200);
  assert.deepEqual(
    ['x-auth-subject', 'x-auth-scope', 'x-auth-issuer'].map((name) => headers.get(name)),
    ['test-user', 'a b', 'https://issuer.test/'],
  );
  const refused = await policy.ask({ forwarded: asking('GET', '/a'), fields: fieldsFor('inactive') });
  assert.equal(refused.status, 401);
});
