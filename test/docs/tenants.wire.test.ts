/* docs/tenants.md, used as it is written: its settings, its code, and its decision for every tenant. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { createService, loadSettings, Routes, Service } from '../../src/gatehouse.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { signJws } from '../idp/tokens.ts';
import { directoryFor } from '../options/key-access-fixture.ts';
import { entraKey } from '../options/tenants/tenants-fixture.ts';
import { ROOT, samplesUnder } from './pages.ts';

const PAGE = 'docs/tenants.md';

const LOGIN = 'https://login.microsoftonline.com';
const AUDIENCE = '11111111-2222-3333-4444-555555555555';
const CONTOSO = '7a1c2f3e-0d4b-4c58-9a60-1b2c3d4e5f60';
const FABRIKAM = 'c0ffee00-1111-4222-8333-444455556666';
const STRANGER = '5a5a5a5a-0000-4000-8000-000000000000';
const CONSUMERS = '9188040d-6c67-4c5b-b112-36a304b66dad';

const key = makeSigningKey();
const consumerKey = makeSigningKey();

/** The shape of the common key set of Entra. */
const KEYS = {
  keys: [entraKey(key, `${LOGIN}/{tenantid}/v2.0`), entraKey(consumerKey, `${LOGIN}/${CONSUMERS}/v2.0`)],
};

/** As Entra issues it for an API with tokens of version 2. */
function entraToken(tenant: string, claims: object = {}, { kid, privateKey } = key) {
  const now = Math.floor(Date.now() / 1000);
  const usual = {
    aud: AUDIENCE,
    iss: `${LOGIN}/${tenant}/v2.0`,
    iat: now,
    nbf: now,
    exp: now + 3600,
    azp: '99999999-8888-7777-6666-555555555555',
    oid: '0b0b0b0b-1111-2222-3333-444444444444',
    scp: 'access_as_user',
    sub: 'hKx3T2',
    tid: tenant,
    ver: '2.0',
  };
  return signJws({ typ: 'JWT', alg: 'RS256', kid }, { ...usual, ...claims }, privateKey, 'RS256');
}

const CALLS = [
  ['a user of one tenant', entraToken(CONTOSO), 200],
  ['a user of the other', entraToken(FABRIKAM), 200],
  ['a user of another tenant', entraToken(STRANGER), 401],
  ['a tenant in tid alone', entraToken(STRANGER, { tid: CONTOSO }), 401],
  ['another tid', entraToken(CONTOSO, { tid: STRANGER }), 401],
  ['the key of consumers', entraToken(CONTOSO, {}, consumerKey), 401],
  [
    'a token of version 1',
    entraToken(CONTOSO, { iss: `https://sts.windows.net/${CONTOSO}/`, ver: '1.0' }),
    401,
  ],
  ['another audience', entraToken(CONTOSO, { aud: 'api://other' }), 401],
] as const;

async function callAll(origin: string, path: string) {
  for (const [what, token, status] of CALLS) {
    const response = await fetch(origin + path, { headers: { Authorization: `Bearer ${token}` } });
    const text = await response.text();
    assert.equal(response.status, status, `${what}: ${text}`);
  }
}

const SOURCES: Readonly<Record<string, string>> = {
  'gatehouse-http': 'src/gatehouse.ts',
  'gatehouse-http/tenants': 'src/tenants.ts',
  'gatehouse-http/decisions': 'src/decisions.ts',
};

/** The sample as a module with what the page leaves to the reader. */
async function importSample(t: TestContext, heading: string, change: (text: string) => string) {
  const write = directoryFor(t);
  const [sample = ''] = samplesUnder(PAGE, heading, 'ts');
  let text = change(sample);
  for (const [name, file] of Object.entries(SOURCES)) {
    text = text.replace(`'${name}'`, JSON.stringify(new URL(file, ROOT).href));
  }
  write('keys.mjs', `export const fetchKeys = async () => (${JSON.stringify(KEYS)});\n`);
  write('customers.mjs', `export const customers = new Set(['${CONTOSO}']);\n`);
  return import(pathToFileURL(write('sample.mjs', text)).href);
}

interface Main {
  createService: typeof createService;
  loadSettings: typeof loadSettings;
}

const importMain = (): Promise<Main> => import(new URL('src/gatehouse.ts', ROOT).href);

/** The settings of the page. */
const environment = Object.fromEntries(
  (samplesUnder(PAGE, 'Settings', 'sh')[0] ?? '')
    .trim()
    .split('\n')
    .map((line) => line.split('=')),
);

async function listen(t: TestContext, service: Service) {
  const origin = await service.listen();
  t.after(() => service.stop());
  return origin;
}

test('accepts the two tenants of the settings on the page, and no others [§23, J6]', async (t) => {
  const { createService: create, loadSettings: loadThem } = await importMain();
  const options = await loadThem({ ...environment, LOG_LEVEL: 'silent' }, '/nonexistent');
  const asked: unknown[] = [];

  const fetchKeys: NonNullable<typeof options.fetchKeys> = async ({ jwksUri }, _, tenant) => {
    asked.push([jwksUri, tenant]);
    return KEYS;
  };

  const { get, needs, scope } = await import('../../src/gatehouse.ts');
  const routes = [
    get('/me', needs(scope('access_as_user')), ({ caller }) => ({ tenant: caller.tenant ?? '' })),
  ];
  const service = create({ routes }, { ...options, fetchKeys, port: 0, host: '127.0.0.1' });
  await callAll(await listen(t, service), '/me');
  assert.deepEqual(asked, [[`${LOGIN}/common/discovery/v2.0/keys`, undefined]]);
});

test('accepts the two tenants of the code on the page, and no others [§23]', async (t) => {
  const { service } = await importSample(t, 'Settings', (text) =>
    text
      .replace(
        /^createService\(/m,
        "import { fetchKeys } from './keys.mjs';\nexport const service = createService(",
      )
      .replace('tenants: tenants(', "fetchKeys, port: 0, host: '127.0.0.1', tenants: tenants("),
  );
  const origin = await listen(t, service);
  await callAll(origin, '/me');
  const headers = { Authorization: `Bearer ${entraToken(FABRIKAM)}` };
  const body = await (await fetch(`${origin}/me`, { headers })).json();
  assert.deepEqual(body, { tenant: FABRIKAM, user: 'hKx3T2' });
});

test('asks the decision on the page about the tenant of each request [§23, §26]', async (t) => {
  const { routes }: { routes: Routes['routes'] } = await importSample(t, 'Every tenant', (text) => text);
  const { createService: create, loadSettings: loadThem } = await importMain();
  const every = { ...environment, IDP_TENANTS: '*', LOG_LEVEL: 'silent' };
  const options = await loadThem(every, '/nonexistent');
  const service = create({ routes }, { ...options, fetchKeys: async () => KEYS, port: 0, host: '127.0.0.1' });
  const origin = await listen(t, service);
  for (const [tenant, status] of [
    [CONTOSO, 200],
    [STRANGER, 403],
    ['not/one', 401],
  ] as const) {
    const headers = { Authorization: `Bearer ${entraToken(tenant)}` };
    assert.equal((await fetch(`${origin}/orders`, { headers })).status, status, tenant);
  }
});
