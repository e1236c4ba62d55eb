/* Tenants over a socket: what handlers, clients, metadata, logs and metrics see of them, beside proofs,
   certificates, revocations and forward-auth. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { clientCertificates } from '../../../src/certificates.ts';
import {
  authenticated,
  claimCheck,
  createGate,
  createService,
  get,
  needs,
  upstream,
  type ServiceOptions,
} from '../../../src/gatehouse.ts';
import { keyAccess } from '../../../src/key-access.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { tenants, type TenantsOptions } from '../../../src/tenants.ts';
import { createProofKey, createTestIssuer } from '../../../src/testing.ts';
import { systemClock } from '../../../src/verify/base/clock.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { createTestLog } from '../../support/settings.ts';
import { client, otherClient, written } from '../certificates-fixture.ts';
import { startFakeStore } from '../fake-store.ts';
import { directoryFor, startCluster, TOKEN } from '../key-access-fixture.ts';
import { asking, bearer, issuer as ofPolicies, startPolicy } from '../forward-auth-fixture.ts';
import { storeWith } from '../redis/revocations-fixture.ts';

const TEMPLATE = 'https://login.test/{tenant}/v2.0';

const issuerFor = (tenant: string) => TEMPLATE.replace('{tenant}', tenant);

const issuer = createTestIssuer();
const key = createProofKey();

const partOf = (more: Partial<TenantsOptions> = {}) =>
  tenants({ issuer: TEMPLATE, list: ['contoso', 'fabrikam'], ...more });

const claimsOf = (tenant: string) => ({ iss: issuerFor(tenant), tid: tenant });

const ofContoso = needs(claimCheck('a user of contoso', (claim) => claim('iss') === issuerFor('contoso')));

const ROUTES = {
  routes: [
    get('/me', authenticated, ({ caller: { tenant, issuer: iss, issuerName, subject } }) => {
      return { tenant: tenant ?? 'none', iss, issuerName, subject };
    }),
    get('/ours', ofContoso, () => ({})),
  ],
};

interface Started {
  readonly logs: readonly Record<string, any>[];
  ask(path: string, headers?: Record<string, string>): Promise<{ response: Response; body: any }>;
}

async function start(t: TestContext, given: Partial<ServiceOptions> = {}): Promise<Started> {
  const { log, logs } = createTestLog(systemClock, 'debug', true);
  const options = { ...issuer.options, tenants: partOf(), log, host: '127.0.0.1', port: 0, ...given };
  const service = createService(ROUTES, options);
  const url = await service.listen();
  t.after(() => service.stop());

  return {
    logs,
    async ask(path, headers = {}) {
      const response = await fetch(url + path, { headers });
      return { response, body: await response.json() };
    },
  };
}

test('tells a handler the tenant, the filled issuer and the configured name [§23]', async (t) => {
  const partner = createTestIssuer({ domain: 'partner.test' });
  const { domain, audience } = partner.options;
  const { ask } = await start(t, {
    issuers: { partner: { domain, audience } },
    fetchKeys: (_, name) => (name === 'idp' ? issuer : partner).options.fetchKeys(),
  });
  const { body } = await ask('/me', issuer.bearer(claimsOf('contoso')));
  assert.deepEqual(body, {
    tenant: 'contoso',
    iss: issuerFor('contoso'),
    issuerName: 'idp',
    subject: 'test-user',
  });
  const { body: other } = await ask('/me', partner.bearer());
  assert.deepEqual([other.tenant, other.iss, other.issuerName], ['none', 'https://partner.test/', 'partner']);
});

test('guards a route on the tenant [§23]', async (t) => {
  const { ask } = await start(t);
  assert.equal((await ask('/ours', issuer.bearer(claimsOf('contoso')))).response.status, 200);
  assert.equal((await ask('/ours', issuer.bearer(claimsOf('fabrikam')))).response.status, 403);
});

test('answers 401 with the sentence of each reason, and logs no text of a token [§23]', async (t) => {
  const { ask, logs } = await start(t);
  for (const [reason, claims, sentence] of [
    ['issuer-mismatch', claimsOf('stranger'), 'the token has another issuer \\(iss\\)'],
    [
      'tenant-mismatch',
      { ...claimsOf('contoso'), tid: 'stranger' },
      'the tenant that the token names is not that of its issuer',
    ],
  ] as const) {
    const { response, body } = await ask('/me', issuer.bearer(claims));
    assert.deepEqual([response.status, body.error], [401, 'invalid_token']);
    assert.match(
      response.headers.get('www-authenticate') ?? '',
      new RegExp(`error_description="${sentence}"`),
    );
    const line = logs.findLast(({ message }) => message === 'request refused');
    assert.equal(line?.reason, reason);
    // What this side expects.
    assert.deepEqual(line?.expectedIssuer, reason === 'issuer-mismatch' ? [TEMPLATE] : undefined);
  }
  assert.doesNotMatch(JSON.stringify(logs), /stranger|contoso|fabrikam/);
});

test('answers 401 when the key is for another tenant, and names kid and issuer [§23, J6]', async (t) => {
  const { keys } = await issuer.options.fetchKeys();
  const fetchKeys = async () => ({ keys: keys.map((jwk) => ({ ...jwk, issuer: issuerFor('fabrikam') })) });
  const { ask, logs } = await start(t, { fetchKeys });
  assert.equal((await ask('/me', issuer.bearer(claimsOf('fabrikam')))).response.status, 200);
  const { response } = await ask('/me', issuer.bearer(claimsOf('contoso')));
  assert.equal(response.status, 401);
  assert.match(
    response.headers.get('www-authenticate') ?? '',
    /error="invalid_token", error_description="the signing key of the token is not for its issuer"/,
  );
  const line = logs.find(({ message, status }) => message === 'request' && status === 401);
  assert.deepEqual([line?.reason, line?.issuer, line?.kid], ['key-issuer-mismatch', 'idp', keys[0]?.kid]);
});

test('counts what it does under the name of the issuer alone [§23]', async (t) => {
  const metrics = createMetrics();
  const { ask } = await start(t, { metrics, jwksUri: 'https://login.test/{tenant}/keys' });
  for (const tenant of ['contoso', 'fabrikam', 'stranger']) {
    await ask('/me', issuer.bearer(claimsOf(tenant)));
  }
  const text = metrics.text();
  assert.match(text, /^gatehouse_key_fetches_total\{issuer="idp",result="ok"\} 2$/m);
  assert.match(text, /^gatehouse_keys_usable\{issuer="idp"\} 2$/m);
  assert.match(text, /^gatehouse_keys_age_seconds\{issuer="idp"\} \d+(?:\.\d+)?$/m);
  for (const reason of ['key-issuer-mismatch', 'tenant-mismatch']) {
    assert.match(text, new RegExp(`^gatehouse_refusals_total\\{reason="${reason}"\\} 0$`, 'm'));
  }
  assert.doesNotMatch(text, /contoso|fabrikam|stranger|tenant="/);
});

const SERVER = 'https://login.test/organizations/v2.0';

test('names the authorization server in place of the template in the metadata [§13, §23]', async (t) => {
  const metadata = () => resourceMetadata({ url: 'https://api.test' });
  const authorizationServer = SERVER;
  const fixed = { domain: 'partner.test', audience: 'x' };
  const second = { domain: 'x.test', audience: 'x', jwksUri: 'https://x.test/keys' };
  const ofSecond = tenants({ issuer: 'https://x.test/{tenant}', list: ['*'], authorizationServer });
  const { ask } = await start(t, {
    tenants: partOf({ authorizationServer }),
    metadata: metadata(),
    issuers: { fixed, second: { ...second, tenants: ofSecond } },
  });
  const { body } = await ask('/.well-known/oauth-protected-resource');
  assert.deepEqual(body.authorization_servers, [SERVER, 'https://partner.test/']);
  assert.doesNotMatch(JSON.stringify(body), /\{tenant/);
});

test('checks the proof of a bound token of a tenant [§8, §23]', async (t) => {
  const options = { dpopMode: 'REQUIRED', publicUrl: 'https://api.test' } as const;
  const { ask } = await start(t, options);
  const token = issuer.boundToken(key, claimsOf('contoso'));
  const request = { method: 'GET', url: 'https://api.test/me' };
  const headers = { authorization: `DPoP ${token}`, dpop: issuer.proof(key, request, token) };
  const { response, body } = await ask('/me', headers);
  assert.deepEqual([response.status, body.tenant], [200, 'contoso']);
  assert.equal((await ask('/me', headers)).response.status, 401);
  assert.equal((await ask('/me', issuer.bearer(claimsOf('contoso')))).response.status, 401);
});

test('checks the certificate of a bound token of a tenant [§21, §23]', async (t) => {
  const source = { source: 'rfc9440', proxies: 'any' } as const;
  const { ask } = await start(t, { clientCertificates: clientCertificates(source) });
  const cnf = { 'x5t#S256': client.thumbprint };

  const statusWith = async (certificate: string | undefined) => {
    const field: Record<string, string> = certificate === undefined ? {} : { 'client-cert': certificate };
    const bound = issuer.bearer({ ...claimsOf('contoso'), cnf });
    return (await ask('/me', { ...bound, ...field })).response.status;
  };

  assert.deepEqual(
    [
      await statusWith(written('rfc9440', client.der)),
      await statusWith(written('rfc9440', otherClient.der)),
      await statusWith(undefined),
    ],
    [200, 401, 401],
  );
});

test("revokes a subject of one tenant, and not that of another's [§24]", async (t) => {
  const store = await startFakeStore(t, storeWith(new Map()));
  const revocations = createRevocations({ store: `redis://:secret@127.0.0.1:${store.port}` });
  t.after(revocations.close);
  await Part.contentOf(revocations).firstOutcome;
  const { ask } = await start(t, { revocations });
  const [contoso, fabrikam] = ['contoso', 'fabrikam'].map((tenant) => issuer.bearer(claimsOf(tenant)));
  assert.equal((await ask('/me', contoso)).response.status, 200);
  await revocations.revoke({ subject: 'test-user', issuer: issuerFor('contoso') });
  assert.equal((await ask('/me', contoso)).response.status, 401);
  assert.equal((await ask('/me', fabrikam)).response.status, 200);
  // A subject is one of a tenant.
  await assert.rejects(revocations.revoke({ subject: 'test-user' }), {
    name: 'TypeError',
    message: /issuer/,
  });
});

test('tells a server behind forward-auth the issuer of the tenant [§19, §23]', async (t) => {
  const routes = { routes: [get('/orders', authenticated, upstream)] };
  const policy = await startPolicy(routes, { tenants: partOf() }, ofPolicies.options.fetchKeys);
  t.after(() => policy.stop());
  const { status, headers } = await policy.ask({
    forwarded: asking('GET', '/orders'),
    fields: bearer(claimsOf('fabrikam')),
  });
  assert.deepEqual([status, headers.get('x-auth-issuer')], [200, issuerFor('fabrikam')]);
});

test('serves a gate as well', async (t) => {
  const gate = createGate({ ...issuer.options, tenants: partOf() });
  t.after(gate.close);

  const request = (tenant: string) => ({
    method: 'GET',
    url: '/x',
    rawHeaders: ['Host', 'api.test', 'Authorization', issuer.bearer(claimsOf(tenant)).authorization],
  });

  const verdict = await gate.check(request('contoso'), authenticated);
  assert.equal('caller' in verdict && verdict.caller?.tenant, 'contoso');
  assert.ok('refusal' in (await gate.check(request('stranger'), authenticated)));
});

for (const [what, path, asked] of [
  ['shared', 'common/keys', ['/common/keys']],
  ['own', '{tenant}/keys', ['/contoso/keys', '/fabrikam/keys']],
] as const) {
  test(`fetches ${what} keys from addresses of the options alone, each with the token of keyAccess [§23, §25, J6]`, async (t) => {
    const keys = await issuer.options.fetchKeys();
    const documents = ['common', 'contoso', 'fabrikam', 'stranger'].map((name) => [`/${name}/keys`, keys]);
    const server = await startCluster(
      t,
      () => Object.fromEntries(documents),
      () => TOKEN,
      'provider',
    );
    const jwksUri = `https://localhost:${server.port}/${path}`;
    const access = keyAccess({ tokenFile: directoryFor(t)('token', TOKEN) });
    const { ask } = await start(t, { jwksUri, keyAccess: access, fetchKeys: undefined });
    for (const [tenant, status] of [
      ['stranger', 401],
      ['contoso', 200],
      ['fabrikam', 200],
      ['common', 401],
    ] as const) {
      assert.equal((await ask('/me', issuer.bearer(claimsOf(tenant)))).response.status, status);
    }
    assert.deepEqual(
      server.asked.map((one) => one.path),
      asked,
    );
  });
}
