/* Where a gate, a service and a policy differ on purpose. The rest of the way is the same: one decision. Each
   gets the same request: method, target and fields as sent. */
import { strict as assert } from 'node:assert';
import { after, before, describe, test } from 'node:test';
import { cors } from '../src/cors.ts';
import {
  authenticated,
  createService,
  get,
  needs,
  open,
  recentLogin,
  scope,
  under,
  type Access,
  type Service,
} from '../src/gatehouse.ts';
import { createGate, type Gate } from '../src/gate.ts';
import { upstream } from '../src/service/routes/route.ts';
import {
  asking,
  bearer,
  bound,
  issuer,
  startPolicy,
  type Fields,
  type Policy,
} from './options/forward-auth-fixture.ts';
import { exchange } from './support/client.ts';
import { parseResponse } from './support/wire-response.ts';

const ORIGIN = 'https://app.test';
const LOGIN = needs(recentLogin({ maxAgeSeconds: 60 }));
const RULES = [under('/admin', needs(scope('admin'))), under('/fresh', LOGIN)];

interface Answer {
  /** 200 where the request is let in. */
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly error?: string | undefined;
}

/** What the three say of one request. `access` is what the gate is asked to check. */
interface Asked {
  readonly method?: string;
  readonly target: string;
  readonly fields?: Fields;
  readonly access?: Access<unknown>;
}

describe('a gate, a service and a policy', () => {
  let gate: Gate;
  let service: Service;
  let port = 0;
  let policy: Policy;

  before(async () => {
    const options = { ...issuer.options, log: undefined, publicUrl: 'https://api.example' };
    gate = createGate({ ...options, cors: cors({ origins: [ORIGIN] }) });
    const routes = [get('/orders/{id}', authenticated, () => ({})), get('/admin', open, () => ({}))];
    const served = { ...options, cors: cors({ origins: [ORIGIN] }), port: 0, host: '127.0.0.1' };
    service = createService({ routes, rules: RULES }, served);
    port = Number(new URL(await service.listen()).port);
    const asked = [get('/orders/{id}', authenticated, upstream), get('/admin', open, upstream)];
    policy = await startPolicy({ routes: asked, rules: RULES }, { cors: cors({ origins: [ORIGIN] }) });
  });

  after(async () => {
    gate.close();
    await Promise.all([service.stop(), policy.stop()]);
  });

  async function ofGate({
    method = 'GET',
    target,
    fields = [],
    access = authenticated,
  }: Asked): Promise<Answer> {
    const rawHeaders = ['Host', 'api.example', ...fields.flat()];
    const { refusal } = await gate.check({ method, url: target, rawHeaders }, access);
    if (refusal === undefined) return { status: 200, headers: new Map() };

    const names = refusal.headers.map(([name, value]) => [name.toLowerCase(), value] as const);
    const { error } = JSON.parse(refusal.body ?? '{}');
    return { status: refusal.status, headers: new Map(names), error };
  }

  async function ofService({ method = 'GET', target, fields = [] }: Asked): Promise<Answer> {
    const lines = [['Host', 'api.example'], ['Connection', 'close'], ...fields];
    const head = [`${method} ${target} HTTP/1.1`, ...lines.map((line) => line.join(': '))].join('\r\n');
    const { status, headers, body } = parseResponse(await exchange(port, `${head}\r\n\r\n`));
    return { status, headers, error: body?.error };
  }

  async function ofPolicy({ method = 'GET', target, fields = [] }: Asked): Promise<Answer> {
    const { status, headers, body } = await policy.ask({ forwarded: asking(method, target), fields });
    return { status, headers, error: body?.error };
  }

  /** Status and word of each. */
  async function tell(asked: Asked): Promise<string[]> {
    const answers = [await ofGate(asked), await ofService(asked), await ofPolicy(asked)];
    return answers.map(({ status, error }) => (error === undefined ? `${status}` : `${status} ${error}`));
  }

  test('let the same caller in, and refuse the same token', async () => {
    assert.deepEqual(await tell({ target: '/orders/1', fields: bearer() }), ['200', '200', '200']);
    const expired = { target: '/orders/1', fields: bearer({ exp: 1 }) };
    assert.deepEqual(await tell(expired), Array(3).fill('401 invalid_token'));
  });

  test('a gate refuses dot segments, which its server might resolve; for the others no route has them [RFC 3986 §5.2.4]', async () => {
    const asked = { target: '/orders/../admin', fields: bearer() };
    assert.deepEqual(await tell(asked), ['400 invalid_request', '404 not_found', '403 insufficient_scope']);
  });

  test('only a policy refuses an escaped slash, which the server behind it may read as a slash [I2]', async () => {
    const asked = { target: '/orders/a%2Fb', fields: bearer() };
    assert.deepEqual(await tell(asked), ['200', '200', '403 insufficient_scope']);
  });

  test('a service says 405 and a policy 403 for a method without a route; a gate leaves methods to its server', async () => {
    const asked = { method: 'DELETE', target: '/orders/1', fields: bearer() };
    assert.deepEqual(await tell(asked), ['200', '405 method_not_allowed', '403 insufficient_scope']);
    assert.equal((await ofService(asked)).headers.get('allow'), 'GET, HEAD');
  });

  test('a service says 404 and 405 only to whom the rules let in', async () => {
    for (const [method, target] of [
      ['DELETE', '/admin'],
      ['GET', '/admin/nowhere'],
    ] as const) {
      const stranger = await ofService({ method, target });
      const caller = await ofService({ method, target, fields: bearer({ scope: 'other' }) });
      assert.deepEqual([stranger.status, caller.status], [401, 403]);
    }
    const admin = await ofService({ target: '/admin/nowhere', fields: bearer({ scope: 'admin' }) });
    assert.equal(admin.status, 404);
  });

  test('no one must log in again for a path that a service or policy does not serve; a gate cannot know [RFC 9470 §3]', async () => {
    const asked = { target: '/fresh/nowhere', fields: bearer({ auth_time: 1 }), access: LOGIN };
    const told = ['401 insufficient_user_authentication', '404 not_found', '403 insufficient_scope'];
    assert.deepEqual(await tell(asked), told);
  });

  test('only a gate refuses HTTP/2 pseudo fields and a list of fields that may be cut off [RFC 9113 §8.3.1]', async () => {
    const pseudo = await ofGate({ target: '/', fields: [[':authority', 'api.example']], access: open });
    const cutOff = Array.from({ length: 1_000 }, () => ['X', ''] as const);
    const long = await ofGate({ target: '/', fields: cutOff, access: open });
    assert.deepEqual([pseudo.status, long.status], [400, 431]);
  });

  test('a gate with an open access checks the form alone; the others check Host and path first', async () => {
    const request = { method: 'GET', url: '*', rawHeaders: ['Host', 'a b'] };
    assert.equal((await gate.check(request, open)).refusal, undefined);
    assert.equal((await gate.check(request, authenticated)).refusal?.status, 400);
    assert.equal((await ofService({ target: '*' })).status, 400);
  });

  test('a service answers preflights, a policy says pass to those of its routes, a gate leaves them to its server [Fetch §3.3.2]', async () => {
    const fields = [
      ['Origin', ORIGIN],
      ['Access-Control-Request-Method', 'GET'],
    ] as const;
    const asked = { method: 'OPTIONS', target: '/orders/1', fields };
    assert.deepEqual(await tell(asked), ['401 unauthorized', '204', '204']);
    assert.deepEqual(await tell({ ...asked, target: '/nowhere' }), [
      '401 unauthorized',
      '204',
      '403 insufficient_scope',
    ]);
  });

  test('a policy joins its challenges in one field, for proxies that pass on only one [RFC 9110 §11.6.1]', async () => {
    const asked = { target: '/orders/1' };
    const { refusal } = await gate.check(
      { method: 'GET', url: '/orders/1', rawHeaders: ['Host', 'a'] },
      authenticated,
    );
    const challenges = refusal?.headers.filter(([name]) => name === 'WWW-Authenticate');
    const service_ = (await ofService(asked)).headers.get('www-authenticate')?.split('\n');
    const policy_ = (await ofPolicy(asked)).headers.get('www-authenticate')?.split('\n');
    assert.deepEqual([challenges?.length, service_?.length, policy_?.length], [2, 2, 1]);
  });

  test('a proof covers the URL of the request; for a policy, that of the request that it is asked about [RFC 9449 §4.3(9)]', async () => {
    const fields = () => bound('GET', 'https://api.example/orders/1');
    const answers = [
      await ofGate({ target: '/orders/1', fields: fields() }),
      await ofService({ target: '/orders/1', fields: fields() }),
      await ofPolicy({ target: '/orders/1', fields: fields() }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
  });

  test('only a policy tells who the caller is, in fields for the server behind it', async () => {
    const asked = { target: '/orders/1', fields: bearer({ sub: 'user-1' }) };
    assert.equal((await ofPolicy(asked)).headers.get('x-auth-subject'), 'user-1');
    assert.equal((await ofService(asked)).headers.has('x-auth-subject'), false);
  });
});
