/* Tokens over HTTP with a real provider: no route without the checks, and no connection to an address from a
   token. */
import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { after, before, test } from 'node:test';
import { routesOf } from '../../../src/profiles/routes.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { rawJws, signJws } from '../../idp/tokens.ts';
import { settingsWith } from '../../support/caller.ts';
import { claimsForAll } from '../../support/demands.ts';
import { startService, type TestService } from '../../support/service.ts';
import type { Environment } from '../../support/settings.ts';
import { sameSpellings } from '../../support/spellings.ts';
import { foreignKey, type Members } from './issuer.ts';

const ENVIRONMENTS: readonly Environment[] = [{ PROFILE: 'A', SCOPE_POLICY: 'true' }, { PROFILE: 'B' }];

let provider: Provider;
let services: TestService[];
/** An address that tokens name, and how often it was requested. */
let trap: Server;
let visits = 0;
let address = '';

before(async () => {
  provider = await startProvider();
  services = await Promise.all(ENVIRONMENTS.map((environment) => startService({ provider, environment })));
  trap = createServer((socket) => {
    visits += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(trap, 'listening');
  address = `127.0.0.1:${(trap.address() as AddressInfo).port}`;
});

after(async () => {
  await Promise.all(services.map((service) => service.stop()));
  trap.close();
  await provider.stop();
});

const guards = ENVIRONMENTS.flatMap((environment) =>
  routesOf(settingsWith(environment)).routes.flatMap(({ access }) => access.guards),
);

/** Claims that pass every guard of both profiles, with a recent login. */
const everything = { ...claimsForAll(guards), auth_time: Math.floor(Date.now() / 1000) };

/** Every route that reads credentials: its method, and a path. */
const asked = (service: TestService) =>
  routesOf(service.settings)
    .routes.filter(({ access }) => access.credentials !== 'ignored')
    .map(({ method, pattern }) => ({ method, path: pattern.replace(/\{\w+\}/g, 'any') }));

/** The status of the route itself, which may lack the parameter or need a body. */
const isAdmitted = (status: number) => status !== 401 && status !== 403;

/** The token with one flipped bit in its last part, in canonical spelling. */
function flip(token: string): string {
  const start = token.lastIndexOf('.') + 1;
  const signature = Buffer.from(token.slice(start), 'base64url');
  signature[100]! ^= 1;
  return token.slice(0, start) + signature.toString('base64url');
}

test('refuses a token with a flipped bit in its signature on every route that reads tokens, with every method [D6]', async () => {
  const token = provider.issue(everything);
  for (const service of services) {
    for (const { method, path } of asked(service)) {
      assert.ok(isAdmitted((await service.ask(path, { method, token })).status), path);
      const spellings = [path, ...sameSpellings(path)];
      for (const spelled of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        for (const spelling of spellings) {
          assert.equal(
            (await service.ask(spelling, { method: spelled, token: flip(token) })).status,
            401,
            `${spelled} ${spelling}`,
          );
          assert.equal(service.logs.at(-1)?.reason, 'signature-mismatch');
        }
      }
    }
  }
});

test('serves every route though claims are nested five thousand levels deep [RFC 8259 §9, C9]', async () => {
  const [header = '', payload = ''] = provider
    .issue(everything)
    .split('.')
    .map((part) => Buffer.from(part, 'base64url').toString());
  const deep = `${payload.slice(0, -1)},"email":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
  const token = rawJws(header, deep, (input) => sign('sha256', input, provider.signingKey.privateKey));
  for (const service of services) {
    for (const { method, path } of asked(service)) {
      for (const each of [token, provider.issue(everything)]) {
        assert.ok(isAdmitted((await service.ask(path, { method, token: each })).status), path);
      }
    }
  }
});

test('opens no socket to an address that a token names [RFC 8725 §3.10, B2, D4]', async () => {
  const [, service] = services as [TestService, TestService];
  const fetched = provider.counts;
  const addresses: readonly Members[] = [
    { jku: `https://${address}/jwks.json` },
    { x5u: `https://${address}/key.pem` },
    { jku: `http://${address}/`, x5u: `http://${address}/` },
  ];
  for (const header of addresses) {
    const [, payload = ''] = provider.issue().split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const foreign = signJws(
      { alg: 'RS256', kid: provider.signingKey.kid, ...header },
      claims,
      foreignKey.privateKey,
    );
    assert.equal((await service.ask('/api/private', { token: foreign })).status, 401);
    assert.equal(service.logs.at(-1)?.reason, 'signature-mismatch');
    assert.equal((await service.ask('/api/private', { token: provider.issue({}, header) })).status, 200);
  }
  for (const iss of [
    `https://${address}/`,
    `https://${provider.domain}@${address}/`,
    `https://${address}#${provider.domain}/`,
  ]) {
    assert.equal(
      (await service.ask('/api/private', { token: provider.issue({ iss, tid: address }) })).status,
      401,
    );
    assert.equal(service.logs.at(-1)?.reason, 'issuer-mismatch');
  }
  assert.equal(visits, 0);
  assert.deepEqual(provider.counts, fetched);
});

/** RFC 6750 §3 */
const CHALLENGE =
  /^Bearer realm="api", error="invalid_token", error_description="[\x20-\x21\x23-\x5b\x5d-\x7e]+"$/;

const strange = [
  '\r\nX-Injected: 1',
  'quo"te',
  'back\\slash',
  '\u4e2d\u00e9',
  '\0',
  "' OR 1=1 --",
  'x'.repeat(2_000),
];

test('repeats nothing of a token in responses and logs, and never fails because of it [RFC 6750 §3, C3, G1]', async () => {
  for (const service of services) {
    for (const text of strange) {
      const tokens = [
        provider.issue({}, { alg: text }),
        provider.issue({}, { typ: text }),
        provider.issue({}, { kid: text }),
        provider.issue({}, { crit: [text] }),
        provider.issue({ iss: text }),
        provider.issue({ aud: text }),
        provider.issue({ typ: text }),
        provider.issue({ token_use: text }),
      ];
      for (const token of tokens) {
        const { status, challenges, rawHeaders, text: body } = await service.ask('/api/private', { token });
        assert.equal(status, 401);
        assert.match(challenges[0] ?? '', CHALLENGE);
        const written = JSON.stringify([rawHeaders, body, service.logs]);
        for (const secret of [JSON.stringify(text).slice(1, -1), ...token.split('.')]) {
          assert.equal(written.includes(secret), false, secret);
        }
      }
    }
  }
});

test('gives the same response to the same request ten times [C11]', async () => {
  const good = provider.issue();
  for (let time = 1; time <= 10; time += 1) {
    for (const service of services) {
      assert.equal((await service.ask('/api/private', { token: good })).status, 200);
      assert.equal((await service.ask('/api/private', { token: flip(good) })).status, 401);
    }
  }
});

test('refuses an ID token of the same provider [B5]', async () => {
  const idToken = { aud: 'client-id', nonce: 'n', at_hash: 'x', email: 'a@b.test', auth_time: 1 };
  const [, service] = services as [TestService, TestService];
  assert.equal((await service.ask('/api/private', { token: provider.issue(idToken) })).status, 401);
  assert.equal(service.logs.at(-1)?.reason, 'audience-mismatch');
  const forBoth = provider.issue({ ...idToken, aud: [provider.audience, 'client-id'] });
  assert.equal((await service.ask('/api/private', { token: forBoth })).status, 401);
  assert.equal(service.logs.at(-1)?.reason, 'id-token');
});
