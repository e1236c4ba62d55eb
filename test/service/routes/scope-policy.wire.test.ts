/* The scope policy of profile A, checked first for every well-formed path that it covers
   (docs/how-a-request-is-checked.md). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { startService, type TestService } from '../../support/service.ts';
import { askRaw } from '../../support/wire-response.ts';
import { pathSlips } from '../../support/spellings.ts';

let provider: Provider;
let policed: TestService;
let free: TestService;

before(async () => {
  provider = await startProvider();
  policed = await startService({
    provider,
    environment: { PROFILE: 'A', SCOPE_POLICY: 'TRUE', IDP_DPOP_MODE: 'DISABLED' },
  });
  free = await startService({ provider, environment: { PROFILE: 'A' } });
});

after(async () => {
  await policed.stop();
  await free.stop();
  await provider.stop();
});

const raw = (running: TestService, method: string, target: string, token?: string) =>
  askRaw(
    running.port,
    `${method} ${target} HTTP/1.1`,
    'Host: a',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
  );

const PATHS = {
  admin: [
    '/api/admin',
    '/api/admin/x',
    '/api/admin/x/y/z',
    '/api/admin?x=/api/public',
    '/api/admin/x?y',
    '/%61pi/%61dmin',
    '/api/admi%6E/x',
    '/api/admin/%2F',
    '/api/admin/..;',
    '/api/admin/%252e%252e',
    '/api/admin/%00',
    '/api/admin/;x',
  ],
  users: ['/api/users', '/api/users/7', '/api/%75sers/7/roles', '/api/users/%2e%2e%2fpublic'],
};

const GOOD = { admin: ['admin', 'x admin'], users: ['read:users', 'write:users', 'read:users write:users'] };

const BAD = {
  admin: ['', 'administrator', 'read:users', 'admin:access', 'ADMIN', 'SCOPE_admin'],
  users: ['', 'admin', 'users', 'read:users:7', 'read', 'SCOPE_read:users'],
};

const DESCRIPTIONS = {
  admin: ['the token lacks a required scope', 'admin'],
  users: ['the token has none of the required scopes', 'read:users write:users'],
};

for (const group of ['admin', 'users'] as const) {
  for (const target of PATHS[group]) {
    test(`applies the scope policy of /api/${group} to ${target} first, whatever the method`, async () => {
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'PROPFIND']) {
        const anonymous = await raw(policed, method, target);
        assert.deepEqual([anonymous.status, anonymous.body.error], [401, 'unauthorized']);
        const expired = await raw(policed, method, target, provider.issue({ scope: GOOD[group][0], exp: 1 }));
        assert.deepEqual([expired.status, expired.body.error], [401, 'invalid_token']);
        const poor = await raw(policed, method, target, provider.issue({ scope: 'other' }));
        assert.deepEqual([poor.status, poor.body.error], [403, 'insufficient_scope']);
      }
    });
  }

  for (const scope of GOOD[group]) {
    test(`admits the scope "${scope}" to /api/${group}, then responds as if there were no policy`, async () => {
      const token = provider.issue({ scope });
      assert.equal((await raw(policed, 'GET', `/api/${group}`, token)).status, 200);
      assert.equal((await raw(policed, 'GET', `/api/${group}/x`, token)).status, 404);
      const other = await raw(policed, 'POST', `/api/${group}`, token);
      assert.deepEqual([other.status, other.headers.get('allow')], [405, 'GET, HEAD']);
      assert.equal((await raw(policed, 'POST', `/api/${group}/x`, token)).status, 404);
    });
  }

  for (const scope of BAD[group]) {
    test(`refuses the scope "${scope}" at /api/${group} and names the required scopes [RFC 6750 §3.1]`, async () => {
      for (const path of [`/api/${group}`, `/api/${group}/x`]) {
        const { status, body, challenges } = await policed.ask(path, { token: provider.issue({ scope }) });
        const [description, wanted] = DESCRIPTIONS[group];
        assert.deepEqual([status, body], [403, { error: 'insufficient_scope', message: description }]);
        const error = `error="insufficient_scope", error_description="${description}", scope="${wanted}"`;
        assert.deepEqual(challenges, [`Bearer realm="api", ${error}`]);
      }
    });
  }

  const slips = [...pathSlips(`/api/${group}`), `/${group}`];
  for (const target of slips) {
    test(`finds nothing at ${target}, with or without a policy [G2]`, async () => {
      for (const running of [policed, free]) {
        for (const token of [undefined, provider.issue({ scope: GOOD[group][0] }), 'x.y.z']) {
          const { status, body, headers } = await raw(running, 'GET', target, token);
          assert.deepEqual(
            [status, body.error, headers.get('www-authenticate')],
            [404, 'not_found', undefined],
          );
        }
      }
    });
  }
}

test('does not affect routes and paths outside /api/admin and /api/users', async () => {
  assert.equal((await policed.ask('/api/public')).status, 200);
  assert.equal((await policed.ask('/api')).status, 404);
  assert.equal((await policed.ask('/api/nowhere', { token: 'x' })).status, 404);
  assert.equal((await policed.ask('/api/private', { token: provider.issue() })).status, 200);
  assert.equal((await policed.ask('/api/public', { method: 'POST' })).status, 405);
});

test('a policy that is off grants nothing: the paths of its routes are 404 [docs/profiles.md]', async () => {
  for (const path of ['/api/admin', '/api/admin/x', '/api/users', '/api/users/7']) {
    assert.equal((await free.ask(path)).status, 404);
  }
});
