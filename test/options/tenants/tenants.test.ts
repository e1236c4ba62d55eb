/* Tokens of tenants: whose they are, which key may sign them, and what they must say of their tenant. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { readGateOptions } from '../../../src/gate/options.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { overlappingSettings } from '../../../src/options/tenants/tenants.ts';
import { tenants } from '../../../src/tenants.ts';
import { makeSigningKey } from '../../idp/keys.ts';
import { signJws } from '../../idp/tokens.ts';
import { AUDIENCE, CAPACITIES, foreignKey, signingKey } from '../../verify/token/issuer.ts';
import {
  entraKey,
  GOOD_KEYS,
  issuerFor,
  NOW,
  openTenants,
  OWN,
  SHARED,
  TEMPLATE,
  tokenOf,
} from './tenants-fixture.ts';

test('accepts the tokens of the listed tenants, each with its own issuer and name [§23]', async () => {
  const stand = openTenants();
  for (const tenant of ['a', 'b']) {
    const { issuer, name, tenant: named } = await stand.issuerOf(tokenOf(tenant));
    assert.deepEqual([issuer, name, named], [issuerFor(tenant), 'idp', tenant]);
  }
  assert.deepEqual(stand.fetches, ['idp']);
});

for (const [what, iss] of [
  ['a tenant that is not listed', issuerFor('c')],
  ['a tenant in another case', issuerFor('A')],
  ['the template itself', TEMPLATE],
  ['the template of the provider', 'https://login.test/{tenantid}/v2.0'],
  ['a slash more', `${issuerFor('a')}/`],
  ['the scheme in capitals', 'HTTPS://login.test/a/v2.0'],
  ['another host of the same length', 'https://1ogin.test/a/v2.0'],
  ['another ending of the same length', 'https://login.test/a/v3.0'],
  ['another host', 'https://login.test.evil.test/a/v2.0'],
  ['another host before it', 'https://evil.test/https://login.test/a/v2.0'],
  ['the list in place of a tenant', issuerFor('a,b')],
  ['a list of issuers', [issuerFor('a')]],
  ['no issuer', undefined],
  ['null', null],
] as const) {
  test(`refuses ${what} before any key is looked up, with one issuer and with two [§23, J6]`, async () => {
    const partner = { partner: { domain: 'partner.test', audience: 'x' } };
    for (const jwksUri of [SHARED, OWN]) {
      for (const issuers of [undefined, partner]) {
        const stand = openTenants({ jwksUri, options: { issuers } });
        // Not even its key is known.
        const token = tokenOf('a', { claims: { iss }, header: { kid: 'unknown' } });
        assert.equal(await stand.verdict(token), 'issuer-mismatch');
        assert.deepEqual(stand.fetches, []);
      }
    }
  });
}

test('accepts every word of the form with *, and no other [§23]', async () => {
  const stand = openTenants({ list: ['*'] });
  assert.equal((await stand.issuerOf(tokenOf('Any-1'))).tenant, 'Any-1');
  for (const word of ['', '-a', 'a/b', 'a%2Fb', '*', '{tenant}', 'a'.repeat(65)]) {
    assert.equal(await stand.verdict(tokenOf(word)), 'issuer-mismatch');
  }
  assert.deepEqual(stand.fetches, ['idp']);
});

test('lets a fixed issuer win over *, with its own settings and keys [§23]', async () => {
  const own = { domain: 'login.test', issuer: issuerFor('own'), audience: 'own-api' };
  const stand = openTenants({
    list: ['*'],
    options: { issuers: { own } },
    fetchKeys: async (_, name) => (name === 'own' ? { keys: [foreignKey.publicJwk] } : GOOD_KEYS),
  });
  await stand.issuers[1]?.keys.refresh();
  const ofOwn = { header: { kid: foreignKey.kid }, key: foreignKey.privateKey };
  const good = await stand.issuerOf(tokenOf('own', { ...ofOwn, claims: { aud: 'own-api' } }));
  assert.deepEqual([good.name, good.tenant], ['own', undefined]);
  assert.equal(await stand.verdict(tokenOf('own', ofOwn)), 'audience-mismatch');
  assert.equal(await stand.verdict(tokenOf('own')), 'key-unknown');
  assert.equal((await stand.issuerOf(tokenOf('other'))).name, 'idp');
});

const ELSEWHERE = 'https://other.test/{tenant}';

test('tells the tenants of two providers apart, whose keys verify no token of the other [§14, §23]', async () => {
  const second = { domain: 'x.test', audience: AUDIENCE, jwksUri: SHARED };
  const stand = openTenants({
    options: { issuers: { second: { ...second, tenants: tenants({ issuer: ELSEWHERE, list: ['a'] }) } } },
    fetchKeys: async (_, name) => (name === 'idp' ? GOOD_KEYS : { keys: [foreignKey.publicJwk] }),
  });
  for (const issuer of stand.issuers) await issuer.keys.refresh();
  const ofSecond = { claims: { iss: 'https://other.test/a' } };
  const foreign = { header: { kid: foreignKey.kid }, key: foreignKey.privateKey };
  assert.equal((await stand.issuerOf(tokenOf('a', { ...ofSecond, ...foreign }))).name, 'second');
  assert.equal(await stand.verdict(tokenOf('a', ofSecond)), 'key-unknown');
  assert.equal(await stand.verdict(tokenOf('a', foreign)), 'key-unknown');
  assert.equal((await stand.issuerOf(tokenOf('a'))).name, 'idp');
});

test('keeps two tenants apart over 2,000 interleaved tokens, cached or not [G10]', async () => {
  for (const cacheEntries of CAPACITIES) {
    const stand = openTenants({ cacheEntries });
    const tokens = ['a', 'b'].map((tenant) => [tenant, tokenOf(tenant)] as const);
    await stand.verdict(tokens[0]![1]);
    for (let count = 0; count < 1_000; count += 1) {
      const found = await Promise.all(tokens.map(([, token]) => stand.issuerOf(token)));
      assert.deepEqual(
        found.map(({ tenant, issuer }) => [tenant, issuer]),
        tokens.map(([tenant]) => [tenant, issuerFor(tenant)]),
      );
    }
  }
});

const CONSUMERS = '9188040d-6c67-4c5b-b112-36a304b66dad';
const CONTOSO = '7a1c2f3e-0d4b-4c58-9a60-1b2c3d4e5f60';
const FABRIKAM = 'c0ffee00-1111-4222-8333-444455556666';

const ENTRA = 'https://login.microsoftonline.com/{tenant}/v2.0';

const consumerKey = makeSigningKey();

/** The shape of the common key set: keys for every organisation, and some for consumers alone. */
const ENTRA_KEYS = {
  keys: [
    entraKey(signingKey, 'https://login.microsoftonline.com/{tenantid}/v2.0'),
    entraKey(foreignKey, 'https://login.microsoftonline.com/{tenantid}/v2.0'),
    entraKey(consumerKey, `https://login.microsoftonline.com/${CONSUMERS}/v2.0`),
  ],
};

const entraToken = (tenant: string, { kid, privateKey } = signingKey, claims = {}) =>
  tokenOf(tenant, {
    claims: { iss: ENTRA.replace('{tenant}', tenant), ver: '2.0', ...claims },
    header: { kid },
    key: privateKey,
  });

const openEntra = (list: readonly string[], cacheEntries = 100) =>
  openTenants({ list, part: { issuer: ENTRA }, cacheEntries, fetchKeys: async () => ENTRA_KEYS });

test("accepts organisations by Entra's common keys, and refuses the key of consumers for them [§23, J6]", async () => {
  for (const cacheEntries of CAPACITIES) {
    const stand = openEntra([CONTOSO, FABRIKAM, CONSUMERS], cacheEntries);
    for (let sight = 1; sight <= 3; sight += 1) {
      assert.equal(await stand.verdict(entraToken(CONTOSO)), 'accepted');
      assert.equal(await stand.verdict(entraToken(FABRIKAM, foreignKey)), 'accepted');
      assert.equal(await stand.verdict(entraToken(CONSUMERS, consumerKey)), 'accepted');
      assert.equal(await stand.verdict(entraToken(CONTOSO, consumerKey)), 'key-issuer-mismatch');
      assert.equal(await stand.verdict(entraToken(FABRIKAM, consumerKey)), 'key-issuer-mismatch');
    }
  }
});

test('refuses consumers with * of organisations by their own key alone [§23, J6]', async () => {
  const stand = openEntra(['*']);
  assert.equal(await stand.verdict(entraToken(CONSUMERS, consumerKey)), 'accepted');
  const iss = 'https://login.microsoftonline.com/organizations/v2.0';
  assert.equal(await stand.verdict(entraToken('organizations', consumerKey, { iss })), 'key-issuer-mismatch');
});

for (const [what, issuer, verdict] of [
  ['none', undefined, 'accepted'],
  ['null, which counts as absent', null, 'accepted'],
  ['the issuer of the tenant', issuerFor('a'), 'accepted'],
  ['a template with {tenantid}', 'https://login.test/{tenantid}/v2.0', 'accepted'],
  ['a template with {tenant}', TEMPLATE, 'accepted'],
  ['the issuer of another tenant', issuerFor('b'), 'key-issuer-mismatch'],
  ['a template of another host', 'https://other.test/{tenantid}/v2.0', 'key-issuer-mismatch'],
  ['the tenant in another case', issuerFor('A'), 'key-issuer-mismatch'],
  ['another place for it', 'https://login.test/{TenantId}/v2.0', 'key-issuer-mismatch'],
  ['a slash more', `${TEMPLATE}/`, 'key-issuer-mismatch'],
  ['empty text', '', 'key-issuer-mismatch'],
] as const) {
  test(`takes a key whose issuer is ${what}: ${verdict} [§23, J6]`, async () => {
    for (const cacheEntries of CAPACITIES) {
      const keys = { keys: [entraKey(signingKey, issuer)] };
      for (const jwksUri of [SHARED, OWN]) {
        const stand = openTenants({ jwksUri, cacheEntries, fetchKeys: async () => keys });
        for (let sight = 1; sight <= 3; sight += 1) assert.equal(await stand.verdict(tokenOf('a')), verdict);
      }
    }
  });
}

for (const [what, issuer] of [
  ['a number', 7],
  ['a list', [issuerFor('a')]],
  ['an object', {}],
  ['false', false],
] as const) {
  test(`skips a key whose issuer is ${what}, with the reason key-issuer [§23]`, async () => {
    const keys = { keys: [entraKey(signingKey, issuer), entraKey(foreignKey)] };
    const stand = openTenants({ fetchKeys: async () => keys });
    await stand.issuers[0]?.keys.refresh();
    assert.equal(await stand.verdict(tokenOf('a')), 'key-unknown');
    const [skipped] = stand.logs.filter(({ message }) => message === 'signing key skipped');
    assert.deepEqual([skipped?.reason, skipped?.kid], ['key-issuer', signingKey.kid]);

    const alone = openTenants({ fetchKeys: async () => ({ keys: keys.keys.slice(0, 1) }) });
    assert.equal(await alone.verdict(tokenOf('a')), 'keys-unavailable');
    assert.match(JSON.stringify(alone.logs), /"no-usable-key","code":"key-issuer"/);
  });
}

test('reports another fault of a key before its issuer', async () => {
  const keys = { keys: [{ ...entraKey(signingKey, 7), use: 'enc' }, entraKey(foreignKey)] };
  const stand = openTenants({ fetchKeys: async () => keys });
  await stand.issuers[0]?.keys.refresh();
  assert.equal(stand.logs.find(({ message }) => message === 'signing key skipped')?.reason, 'use');
});

test('looks at the issuer of a key for tenants alone [§23]', async () => {
  const keys = { keys: [entraKey(foreignKey, 7), entraKey(signingKey, issuerFor('b'))] };
  const fixed = { domain: 'fixed.test', audience: AUDIENCE };
  const stand = openTenants({ options: { issuers: { fixed } }, fetchKeys: async () => keys });
  await stand.issuers[1]?.keys.refresh();
  const iss = 'https://fixed.test/';
  const foreign = { header: { kid: foreignKey.kid }, key: foreignKey.privateKey };
  assert.equal(await stand.verdict(tokenOf('a', { claims: { iss } })), 'accepted');
  assert.equal(await stand.verdict(tokenOf('a', { claims: { iss }, ...foreign })), 'accepted');
});

test('asks for the issuer of a key anew for a cached token [§23, J6]', async () => {
  let issuer = TEMPLATE;
  const stand = openTenants({ fetchKeys: async () => ({ keys: [entraKey(signingKey, issuer)] }) });
  const token = tokenOf('a');
  for (let sight = 1; sight <= 3; sight += 1) assert.equal(await stand.verdict(token), 'accepted');
  assert.ok(stand.counts.includes('token remembered'));

  issuer = issuerFor('b');
  await stand.issuers[0]?.keys.refresh();
  assert.equal(await stand.verdict(token), 'key-issuer-mismatch');
  issuer = TEMPLATE;
  await stand.issuers[0]?.keys.refresh();
  assert.equal(await stand.verdict(token), 'accepted');
});

test('refuses the algorithm before the issuer of the key, and that before the signature [§23]', async () => {
  const keys = { keys: [entraKey(signingKey, issuerFor('b'))] };
  const stand = openTenants({
    options: { algorithms: ['RS256', 'PS256'] },
    fetchKeys: async () => keys,
  });
  await stand.issuers[0]?.keys.refresh();
  assert.equal(await stand.verdict(tokenOf('a', { header: { alg: 'PS256' } })), 'algorithm-refused');
  assert.equal(await stand.verdict(tokenOf('a', { key: foreignKey.privateKey })), 'key-issuer-mismatch');
  assert.equal(await stand.verdict(tokenOf('b', { key: foreignKey.privateKey })), 'signature-mismatch');
});

for (const [what, claims, verdict] of [
  ['the tenant', { tid: 'a' }, 'accepted'],
  ['absent', { tid: undefined }, 'accepted'],
  ['another tenant', { tid: 'b' }, 'tenant-mismatch'],
  ['the tenant in another case', { tid: 'A' }, 'tenant-mismatch'],
  ['null', { tid: null }, 'tenant-mismatch'],
  ['empty', { tid: '' }, 'tenant-mismatch'],
  ['a list of the tenant', { tid: ['a'] }, 'tenant-mismatch'],
  ['false', { tid: false }, 'tenant-mismatch'],
] as const) {
  test(`takes a token whose tenant claim is ${what}: ${verdict} [§23, J6]`, async () => {
    for (const list of [['a', 'b'], ['*']]) {
      assert.equal(await openTenants({ list }).verdict(tokenOf('a', { claims })), verdict);
    }
  });
}

test('reads the tenant claim that the options name, without the namespace [§23]', async () => {
  const part = { claim: 'org' };
  const options = { claimNamespace: 'https://login.test/claims/' };
  const stand = openTenants({ part, options });
  const verdict = (claims: object) => stand.verdict(tokenOf('a', { claims: { tid: 'b', ...claims } }));
  assert.equal(await verdict({}), 'accepted');
  assert.equal(await verdict({ org: 'b' }), 'tenant-mismatch');
  assert.equal(await verdict({ org: 'a', 'https://login.test/claims/org': 'b' }), 'accepted');
});

test('refuses the tenant after the issuer and before the audience [§23]', async () => {
  const stand = openTenants();
  const claims = { tid: 'b', aud: 'x' };
  assert.equal(await stand.verdict(tokenOf('a', { claims })), 'tenant-mismatch');
  const key = foreignKey.privateKey;
  assert.equal(await stand.verdict(tokenOf('a', { claims, key })), 'signature-mismatch');
});

test('looks at the tenant claim of no other issuer [§23]', async () => {
  const fixed = { domain: 'fixed.test', audience: AUDIENCE };
  const stand = openTenants({ options: { issuers: { fixed } } });
  await stand.issuers[1]?.keys.refresh();
  const claims = { iss: 'https://fixed.test/', tid: 7 };
  assert.equal(await stand.verdict(tokenOf('a', { claims })), 'accepted');
});

test('counts the fetches of a shared key set', async () => {
  const stand = openTenants();
  await stand.verdict(tokenOf('a'));
  assert.deepEqual(stand.counts, ['key fetch ok idp', 'token verified']);
});

test('imports keys for the algorithms of the issuer [§17]', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keys = [
    { ...publicKey.export({ format: 'jwk' }), kid: 'ec', issuer: TEMPLATE },
    signingKey.publicJwk,
  ];
  for (const jwksUri of [SHARED, OWN]) {
    const stand = openTenants({
      jwksUri,
      options: { algorithms: ['ES256'] },
      fetchKeys: async () => ({ keys }),
    });
    const claims = { iss: issuerFor('a'), sub: 'user', aud: AUDIENCE, exp: NOW + 60 };
    const token = signJws({ alg: 'ES256', kid: 'ec' }, claims, privateKey, 'ES256');
    assert.equal(await stand.verdict(token), 'accepted');
    assert.equal(await stand.verdict(tokenOf('a')), 'algorithm-refused');
    assert.equal(stand.logs.find(({ message }) => message === 'signing key skipped')?.reason, 'algorithm');
  }
});

const GIVEN = { domain: 'login.test', audience: AUDIENCE };

const part = (more: object = {}) => tenants({ issuer: TEMPLATE, list: ['a', 'b', 'a'], ...more });

const other = (options: object) => ({ other: { ...GIVEN, ...options } });

for (const [what, options, problem] of [
  [
    'the option issuer beside them',
    { issuer: issuerFor('a') },
    /^issuer: is already set by tenants\(\{ issuer \}\)/,
  ],
  [
    'no URL of the keys',
    { jwksUri: undefined },
    /^jwksUri: is required by tenants, which turn discovery off/,
  ],
  [
    'a key set for each of every tenant',
    { tenants: part({ list: ['*'] }), jwksUri: OWN },
    /^jwksUri: must not contain \{tenant\} if the list is \*:/,
  ],
  [
    'resource metadata without an authorization server',
    { metadata: resourceMetadata({ url: 'https://api.test' }) },
    /^tenants: authorizationServer: is required by the metadata document/,
  ],
  [
    'a fixed issuer that their list yields',
    { issuers: other({ issuer: issuerFor('b') }) },
    /^issuers\.other: issuer: is also the issuer/,
  ],
  [
    'an equal template',
    { issuers: other({ jwksUri: SHARED, tenants: part({ list: ['c'] }) }) },
    /^issuers\.other: issuer: is also the issuer/,
  ],
  [
    'a template that yields one of their issuers',
    {
      issuers: other({
        jwksUri: SHARED,
        tenants: part({ issuer: 'https://login.test/a/{tenant}', list: ['*'] }),
      }),
    },
    /^issuers\.other: issuer: is also the issuer/,
  ],
  [
    'a further issuer with tenants and no URL of the keys',
    { issuers: other({ tenants: part({ issuer: ELSEWHERE }) }) },
    /^issuers\.other: jwksUri: is required by tenants/,
  ],
  [
    'a further issuer with a URL of the keys for each tenant, of which it has none',
    { issuers: other({ issuer: 'https://x.test/', jwksUri: OWN }) },
    /^issuers\.other: jwksUri: must have no brace without the option tenants/,
  ],
  ['a part that is none', { tenants: { list: ['a'] } }, /^tenants: must be a part that tenants\(/],
] as const) {
  test(`refuses tenants with ${what}, and names the option [§23]`, () => {
    const given = { ...GIVEN, jwksUri: SHARED, tenants: part(), ...options };
    assert.throws(() => readGateOptions(given as never), { name: 'TypeError', message: problem });
  });
}

test('refuses a fixed issuer before the tenants that yield it, too [§23]', () => {
  const issuers = { tenants: { ...GIVEN, jwksUri: SHARED, tenants: part() } };
  const given = { ...GIVEN, issuer: issuerFor('a'), issuers };
  assert.throws(() => readGateOptions(given), { message: /^issuers\.tenants: issuer: is also the issuer/ });
  const beside = { tenants: { ...GIVEN, jwksUri: SHARED, tenants: part({ list: ['*'] }) } };
  assert.doesNotThrow(() => readGateOptions({ ...given, issuers: beside }));
});

test('finds the settings of issuers that could accept a token of an earlier one [§23]', () => {
  const idp = { issuer: TEMPLATE, tenantList: ['a', 'b'] };
  const fixed = (tenant: string) => ({ issuer: issuerFor(tenant) });
  assert.deepEqual(overlappingSettings({ idp, own: fixed('b'), other: fixed('c') }), ['own']);
  assert.deepEqual(overlappingSettings({ own: fixed('b'), idp }), ['idp']);

  // What has a problem of its own is absent.
  const broken = { tenantList: ['a'] };
  assert.deepEqual(overlappingSettings({ broken, idp, other: { issuer: ELSEWHERE, tenantList: ['a'] } }), []);
});

test('takes a list of up to 1,000 tenants [§23]', () => {
  const list = Array.from({ length: 1_000 }, (_, index) => `t${index}`);
  assert.doesNotThrow(() => part({ list }));
  assert.throws(() => part({ list: [...list, 'a'] }), { message: `tenants: list: ${LIST}` });
});

test('needs no URL of the keys beside fetchKeys, which takes its place [§11]', () => {
  const fetchKeys = async () => GOOD_KEYS;
  assert.doesNotThrow(() => readGateOptions({ ...GIVEN, tenants: part(), fetchKeys }));
});

test('has the template as its issuer, and the number of different tenants', () => {
  const values = readGateOptions({ ...GIVEN, jwksUri: SHARED, tenants: part() });
  assert.equal(values.issuers.idp?.issuer, TEMPLATE);
});

test('knows the tenants for revocations, given as a template or as a part [§24]', async (t) => {
  for (const options of [
    { domain: 'x.test', issuer: TEMPLATE },
    { domain: 'x.test', issuers: { other: { domain: 'y.test', issuer: TEMPLATE } } },
    { domain: 'x.test', issuers: { other: { domain: 'y.test', jwksUri: SHARED, tenants: part() } } },
  ]) {
    const revocations = createRevocations({ store: 'redis://127.0.0.1:1', ...options });
    t.after(revocations.close);
    const what = { session: 's', issuer: issuerFor('a') };
    await assert.rejects(revocations.revoke(what), { message: /revocation store unavailable/ });
    for (const issuer of [TEMPLATE, `${issuerFor('a')}/`]) {
      await assert.rejects(revocations.revoke({ session: 's', issuer }), { name: 'TypeError' });
    }
  }
  assert.throws(
    () => createRevocations({ store: 'redis://127.0.0.1:1', domain: 'x.test', issuer: 'https://x/{a}' }),
    {
      message: /^revocations: issuer: may have braces only/,
    },
  );
});

const LIST =
  'must be a list of 1 to 1,000 tenants, each 1 to 64 letters, digits and ._- that begin with a letter or ' +
  'digit; or * alone, for every tenant of the provider';

for (const [given, message] of [
  [
    { list: ['a'] },
    'issuer: is missing; write the issuers (iss) of the tenants, with {tenant} as one segment',
  ],
  [
    { issuer: TEMPLATE },
    "list: is missing; list the tenants, or write ['*'] for every tenant of the provider",
  ],
  [{ issuer: 7, list: ['a'] }, 'issuer: must be text'],
  [
    { issuer: issuerFor('a'), list: ['a'] },
    'issuer: must have {tenant} as one whole segment of its path; for a single issuer, use the option issuer',
  ],
  [
    { issuer: 'https://login.test/{tenantid}', list: ['a'] },
    'issuer: may have braces only as {tenant}, once, as a whole segment of the path of an issuer with tenants',
  ],
  [{ issuer: TEMPLATE, list: 'a' }, `list: ${LIST}`],
  [{ issuer: TEMPLATE, list: [] }, `list: ${LIST}`],
  [{ issuer: TEMPLATE, list: ['a', '*'] }, `list: ${LIST}`],
  [{ issuer: TEMPLATE, list: [['*']] }, `list: ${LIST}`],
  [{ issuer: TEMPLATE, list: [, 'a'] }, `list: ${LIST}`],
] as const) {
  test(`says what is wrong with ${JSON.stringify(given)} in code: ${message} [§23]`, () => {
    assert.throws(() => tenants(given as never), { name: 'TypeError', message: `tenants: ${message}` });
  });
}

test('takes 1 to 1,000 words as tenants in code, and counts one that is listed twice once [§23]', async () => {
  const most = Array.from({ length: 1_000 }, (_, index) => `t${index}`);
  for (const list of [['a'], most, [...most, 't0'], ['*', '*']]) {
    const stand = openTenants({ list });
    assert.equal((await stand.issuerOf(tokenOf(list[0] === '*' ? 'b' : list[0]!))).name, 'idp');
  }
  for (const list of [[...most, 'more'], ['*', '*', 'a'], ['a', undefined as never], Array<string>(2)]) {
    assert.throws(() => tenants({ issuer: TEMPLATE, list }), new TypeError(`tenants: list: ${LIST}`));
  }
});

for (const [options, message] of [
  [{ issuer: issuerFor('a') }, 'issuer: is already set by tenants({ issuer }); remove it here'],
  [
    { jwksUri: undefined },
    'jwksUri: is required by tenants, which turn discovery off; set the URL of their key set',
  ],
  [
    { tenants: part({ list: ['*'] }), jwksUri: OWN },
    'jwksUri: must not contain {tenant} if the list is *: unauthenticated clients could cause key fetches; list the tenants, or name one key set',
  ],
  [
    { jwksUri: 'https://login.test/{x}' },
    'jwksUri: may have braces only as {tenant}, once, as a whole segment of the path of an issuer with tenants',
  ],
  [
    { metadata: resourceMetadata({ url: 'https://api.test' }) },
    'tenants: authorizationServer: is required by the metadata document; set the URL where clients of every tenant get tokens',
  ],
  [
    {
      tenants: part({ authorizationServer: 'https://login.test/' }),
      metadata: resourceMetadata({ url: 'https://api.test' }),
      issuers: other({
        jwksUri: SHARED,
        tenants: tenants({ issuer: 'https://other.test/{tenant}', list: ['a'] }),
      }),
    },
    'issuers.other: tenants: authorizationServer: is required by the metadata document; set the URL where clients of every tenant get tokens',
  ],
  [
    { issuers: other({ issuer: issuerFor('b') }) },
    'issuers.other: issuer: is also the issuer (iss) of another; give each its own',
  ],
  [
    { issuers: other({ issuer: 'https://x.test/', jwksUri: OWN }) },
    'issuers.other: jwksUri: must have no brace without the option tenants; write it as the provider shows it',
  ],
] as const) {
  test(`says what does not fit in code: ${message} [§23]`, () => {
    const given = { ...GIVEN, jwksUri: SHARED, tenants: part(), ...options };
    assert.throws(() => readGateOptions(given as never), { name: 'TypeError', message });
  });
}
