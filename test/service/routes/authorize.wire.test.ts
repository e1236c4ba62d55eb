/* A further access, checked by a handler for the caller of its request (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { claimCheck, scope } from '../../../src/gate/rules/guards.ts';
import { recentLogin } from '../../../src/gate/rules/recent-login.ts';
import { get, post, under, type RouteRequest } from '../../../src/service/routes/route.ts';
import { clock, tokenWith } from '../../support/caller.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';
import { askRaw } from '../../support/wire-response.ts';

const WRITE = needs(scope('write:orders'));
const LOGIN = needs(recentLogin({ maxAgeSeconds: 60 }));

const BROKEN = needs(
  claimCheck('works', () => {
    throw new Error('inside');
  }),
);

const JSON_FIELDS = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };

type Asking = Pick<RouteRequest<unknown>, 'authorize' | 'caller'>;

const write = ({ authorize, caller: own }: Asking) => {
  const { caller, refusal } = authorize(WRITE);
  return refusal ?? { subject: caller.subject, isOwn: caller === own };
};

let seen: unknown;
const reported: unknown[] = [];

let service: RunningRoutes;

before(async () => {
  service = await startRoutes({
    environment: {
      IDP_DPOP_MODE: 'ALLOWED',
      RESOURCE_URL: 'https://api.test/r',
      CORS_ALLOWED_ORIGINS: 'https://app.test',
      ACCESS_LOG: 'true',
    },
    routes: [
      post('/write', needs(scope('read:orders')), write),
      get('/open', open, write),
      get('/deep/{id}', needs(scope('read:orders')), write),
      get('/ruled', open, write),
      get('/optional', optional, write),
      get('/maybe', open, ({ authorize }) => ({ passes: authorize(optional).refusal === undefined })),
      get('/login', authenticated, ({ authorize }) => authorize(LOGIN).refusal ?? {}),
      get('/later', authenticated, async ({ authorize }) => {
        clock.advance(3_600_000);
        return authorize(LOGIN).refusal ?? {};
      }),
      get('/broken', authenticated, ({ authorize }) => authorize(BROKEN).refusal ?? {}),
      get('/thrown', authenticated, ({ authorize }) => {
        throw authorize(WRITE).refusal;
      }),
      get('/response', authenticated, ({ authorize }) => {
        const { refusal } = authorize(WRITE);
        seen = refusal;
        return new Response(refusal!.body, refusal);
      }),
      get('/instead', authenticated, ({ authorize }) => ({ may: authorize(WRITE).refusal === undefined })),
      get('/other-status', authenticated, ({ authorize }) => {
        const { body, headers } = authorize(WRITE).refusal!;
        return new Response(body, { status: 404, headers });
      }),
      get('/own-refusal', authenticated, ({ authorize }) => {
        const { status } = authorize(WRITE).refusal!;
        // It differs in its length and challenges.
        return new Response('{"error":"mine"}', { status, headers: JSON_FIELDS });
      }),
      get('/nested', authenticated, ({ authorize }) => ({ refusal: authorize(WRITE).refusal })),
      get('/wrong/open', authenticated, ({ authorize }) => authorize(open) as object),
      get('/wrong/text', authenticated, ({ authorize }) => authorize('read' as never)),
    ],
    policy: [under('/ruled', authenticated), under('/deep', needs(scope('read:deep')))],
    onError: (_, request) => reported.push(request),
  });
});

after(() => service.stop());

const lastLine = () => service.logs.at(-1);

describe('authorize, for the caller of a request,', { timeout: 30_000 }, () => {
  test('returns the caller of the request, who may pass', async () => {
    const token = tokenWith({ scope: 'read:orders write:orders', sub: 'someone' });
    const { status, body } = await service.ask('/write', { method: 'POST', token });
    assert.deepEqual([status, body], [200, { subject: 'someone', isOwn: true }]);
  });

  test('returns a refusal, which the service sends if the handler returns it, and counts', async () => {
    const token = tokenWith({ scope: 'read:orders' });
    const headers = { Origin: 'https://app.test' };
    const response = await service.ask('/write', { method: 'POST', token, headers });
    assert.deepEqual([response.status, response.body.error], [403, 'insufficient_scope']);
    assert.match(response.challenges.join(), /^Bearer .*scope="write:orders"/);
    assert.equal(response.headers['access-control-allow-origin'], 'https://app.test');
    const lines = service.logs
      .slice(-2)
      .map(({ message, reason, status, route }) => [message, reason, status, route]);
    assert.deepEqual(lines, [
      ['request', 'scope-missing', 403, '/write'],
      ['request refused', 'scope-missing', 403, '/write'],
    ]);
  });

  test('refuses as a missing token does on an open route, even below a rule, and for an anonymous caller', async () => {
    for (const [path, token] of [
      ['/open', undefined],
      ['/open', tokenWith({ scope: 'write:orders' })],
      ['/ruled', tokenWith({ scope: 'write:orders' })],
      ['/optional', undefined],
    ] as const) {
      const { status, body, challenges } = await service.ask(path, token === undefined ? {} : { token });
      assert.deepEqual(
        [status, body.error, lastLine()?.reason],
        [401, 'unauthorized', 'no-credentials'],
        path,
      );
      assert.match(challenges.join(), /^Bearer realm="api", scope="write:orders"/);
    }
    assert.equal(
      (await service.ask('/optional', { token: tokenWith({ scope: 'write:orders' }) })).status,
      200,
    );
    assert.deepEqual((await service.ask('/maybe')).body, { passes: true });
  });

  test('judges a login by the clock of that moment [RFC 9470 §3]', async () => {
    const authTime = Math.floor(clock.now() / 1000);
    const token = tokenWith({ auth_time: authTime, exp: authTime + 36_000 });
    assert.equal((await service.ask('/login', { token })).status, 200);
    const { status, body } = await service.ask('/later', { token });
    assert.deepEqual([status, body.error], [401, 'insufficient_user_authentication']);
  });

  test('is a 500 for a guard that throws, with its line in the log, and tells onError the route [§28]', async () => {
    reported.length = 0;
    const { status } = await service.ask('/broken', { token: tokenWith() });
    assert.deepEqual([status, lastLine()?.message], [500, 'request failed']);
    assert.deepEqual(reported, [{ method: 'GET', route: '/broken' }]);
  });

  test('names the scopes of its access alone, as gate.authorize does [§27]', async () => {
    const token = tokenWith({ scope: 'read:orders read:deep' });
    const { status, challenges } = await service.ask('/deep/1', { token });
    assert.equal(status, 403);
    assert.match(challenges.join(), /^Bearer .*scope="write:orders"/);
  });

  test('returns a refusal that may also be thrown, and that fits a Response', async () => {
    assert.equal((await service.ask('/thrown', { token: tokenWith() })).status, 403);
    const lines = ['Host: a', `Authorization: Bearer ${tokenWith()}`];
    const { status, headers, body } = await askRaw(service.port, 'GET /response HTTP/1.0', ...lines);
    assert.deepEqual([status, body.error], [403, 'insufficient_scope']);
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer .*, DPoP /);
    assert.deepEqual(
      Object.keys(seen as object).filter((name) => /^(?:status|headers|body)$/.test(name)),
      ['status', 'headers', 'body'],
    );
  });

  test('counts no refusal if the handler sends JSON in its place, its fields with another status, or its status with other fields', async () => {
    for (const [path, sent] of [
      ['/instead', 200],
      ['/other-status', 404],
      ['/own-refusal', 403],
    ] as const) {
      const { status } = await service.ask(path, { token: tokenWith() });
      assert.equal(status, sent, path);
      assert.deepEqual([lastLine()?.message, lastLine()?.reason], ['request', undefined], path);
    }
  });

  test('returns a refusal that holds no token [§11]', async () => {
    const token = tokenWith();
    await service.ask('/response', { token });
    const shown = inspect(seen, { depth: null, showHidden: true, getters: true });
    assert.match(shown, /scope-missing/);
    assert.ok(!shown.includes(token.slice(-40)));
  });

  test('is a bug for a refusal inside a body, for open, and for what is no access', async () => {
    for (const path of ['/nested', '/wrong/open', '/wrong/text']) {
      assert.equal((await service.ask(path, { token: tokenWith() })).status, 500, path);
    }
  });
});
