/* The guard `claims`: what passes, what the handler gets, and how often the schema is asked. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { actorOf, claims, decision } from '../../src/decisions.ts';
import { createGate } from '../../src/gate/create-gate.ts';
import { authenticated, needs } from '../../src/gate/rules/access.ts';
import { scope } from '../../src/gate/rules/guards.ts';
import { recentLogin } from '../../src/gate/rules/recent-login.ts';
import { get, under, upstream } from '../../src/service/routes/route.ts';
import type { Schema } from '../../src/service/routes/schema.ts';
import { assertRouteMatrix } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import { rememberToken, tokenWith } from '../support/caller.ts';
import { schemaOf } from '../support/schemas.ts';
import { startRoutes } from '../support/routes.ts';
import { asking, bearer, startPolicy } from './forward-auth-fixture.ts';

interface Employee {
  readonly department: string;
  readonly since: Date;
}

/** Accepts a text `department`, and drops everything else. */
function employee() {
  const asked: unknown[] = [];

  const schema: Schema<Employee> = schemaOf((value) => {
    asked.push(value);
    const { department, iat = 0 } = Object(value);
    return typeof department === 'string'
      ? { value: { department, since: new Date(iat * 1000) } }
      : { issues: [{ message: `SECRET ${JSON.stringify(value)}`, path: ['department'] }] };
  });
  return { schema, asked };
}

const SALES = { department: 'sales', scope: 'read', act: { sub: 'assistant-7' } };

function gateOf(t: TestContext) {
  const issuer = makeIssuer();
  const errors: unknown[] = [];
  const gate = createGate({ ...issuer.options, onError: (error) => errors.push(error) });
  t.after(() => gate.close());

  const request = (members: Record<string, unknown>) =>
    new Request('http://a/', { headers: issuer.bearer(members) });

  return { gate, request, errors };
}

test('gives the handler the output of the schema as caller.claims, and all else of the token as it is', async (t) => {
  const { schema } = employee();
  const app = await startRoutes({
    routes: [
      get('/me', needs(scope('read'), claims(schema)), ({ caller }) => ({
        claims: caller.claims,
        department: caller.claims.department,
        subject: caller.subject,
        scopes: caller.scopes,
        claim: [caller.claim('scope'), caller.claim('iat')],
        login: caller.hasLoggedInWithin(10_000_000_000),
        expires: caller.expiresAtMillis > 0,
        actor: actorOf(caller),
      })),
    ],
  });
  t.after(() => app.stop());
  const { body } = await app.ask('/me', { token: tokenWith({ ...SALES, iat: 1, auth_time: 1 }) });
  assert.deepEqual(body, {
    claims: { department: 'sales', since: '1970-01-01T00:00:01.000Z' },
    department: 'sales',
    subject: 'auth0|user',
    scopes: ['read'],
    claim: ['read', 1],
    login: true,
    expires: true,
    actor: 'assistant-7',
  });
});

test('refuses other claims as 403 claims-refused, with a fixed sentence and nothing of the issues [RFC 6750 §3.1]', async (t) => {
  const { schema } = employee();
  const app = await startRoutes({ routes: [get('/me', needs(claims(schema)), () => ({}))] });
  t.after(() => app.stop());
  const { status, body, challenges } = await app.ask('/me', { token: tokenWith({ department: 7 }) });
  const message = 'the claims do not have the form that this API needs';
  assert.deepEqual([status, body], [403, { error: 'insufficient_scope', message }]);
  assert.deepEqual(challenges, [
    `Bearer realm="api", error="insufficient_scope", error_description="${message}"`,
  ]);
  assert.doesNotMatch(JSON.stringify(app.logs), /SECRET/);
  assert.equal(app.logs.at(-1)?.reason, 'claims-refused');
});

test('asks the schema once for a cached token, whatever the result', async (t) => {
  const { schema, asked } = employee();
  const app = await startRoutes({
    routes: [get('/me', needs(claims(schema)), ({ caller }) => caller.claims)],
    verify: rememberToken,
  });
  t.after(() => app.stop());
  for (const token of [tokenWith(SALES), tokenWith({ department: 7 })]) {
    // The cache admits a token on its second use.
    await app.ask('/me', { token });
    await app.ask('/me', { token });
    const before = asked.length;
    const statuses = [];
    for (const _ of [1, 2, 3]) statuses.push((await app.ask('/me', { token })).status);
    assert.equal(new Set(statuses).size, 1);
    assert.equal(asked.length, before);
  }
});

test('asks each schema about a token that another has accepted, and gives the output of its own [§29]', async (t) => {
  const { gate, request } = gateOf(t);
  const { caller } = await gate.check(request(SALES), needs(claims(employee().schema)));
  assert.ok(caller);
  const named = needs(claims(schemaOf((value: any) => ({ value: { sub: value.sub } }))));
  assert.deepEqual(gate.authorize(caller, named).caller?.claims, { sub: 'test-user' });
  const strict = needs(claims(schemaOf(() => ({ issues: [{ message: 'no' }] }))));
  assert.equal(gate.authorize(caller, strict).refusal?.status, 403);
});

test('gives the schema a copy, which it may change [§29]', async (t) => {
  const { gate, request } = gateOf(t);
  const changing = schemaOf((value: any) => {
    value.act.sub = 'changed';
    value.deep[0].list.push(2);
    return { value };
  });
  const deep = [{ list: [1] }];
  const { caller } = await gate.check(request({ ...SALES, deep }), needs(claims(changing)));
  assert.ok(caller);
  const { act, deep: changed } = Object(caller.claims);
  assert.deepEqual([act, changed], [{ sub: 'changed' }, [{ list: [1, 2] }]]);
  assert.deepEqual([caller.claim('act'), caller.claim('deep')], [SALES.act, deep]);
});

test('admits no caller whose claims the schema refuses, and has a name', async (t) => {
  const { gate, request } = gateOf(t);
  const access = needs(claims(schemaOf(() => ({ issues: [{ message: 'no' }] }))));
  const { caller } = await gate.check(request(SALES), authenticated);
  const refused = { name: 'TypeError', message: 'the claims were not checked' };
  assert.throws(() => access.admit(caller ?? undefined), refused);
  assert.equal(access.name, 'claims of a form');
});

test('gives the schema claims that inherit nothing, however deep they are nested [§29]', async (t) => {
  const { gate, request } = gateOf(t);
  const asked: any[] = [];
  const keeping = schemaOf((value) => {
    asked.push(value);
    return { value: {} };
  });

  const depth = 3_000;
  const nested = JSON.parse('['.repeat(depth) + ']'.repeat(depth));
  const own = JSON.parse('{"__proto__": {"isAdmin": true}, "list": [{"a": 1}]}');
  const { refusal } = await gate.check(request({ nested, own }), needs(claims(keeping)));
  assert.equal(refusal, undefined);

  const [given] = asked;
  assert.deepEqual(['constructor' in given, given.toString, given.isAdmin], [false, undefined, undefined]);
  assert.deepEqual(Object.keys(given.own), ['__proto__', 'list']);
  assert.deepEqual([given.own.isAdmin, given.own.list], [undefined, [{ a: 1 }]]);
  let left = 0;
  for (let each = given.nested; each.length > 0; [each] = each) left += 1;
  assert.equal(left, depth - 1);
});

test('freezes what requests with one token share', async (t) => {
  const { gate, request } = gateOf(t);
  const nested = schemaOf(() => ({ value: { at: new Date(0), list: [{ name: 'a' }, { name: 'b' }] } }));
  const { caller } = await gate.check(request({}), needs(claims(nested)));
  assert.ok(caller);
  const { claims: shown } = caller as { claims: any };
  assert.deepEqual([shown, shown.list, ...shown.list, shown.at].map(Object.isFrozen), [
    true,
    true,
    true,
    true,
    false,
  ]);
});

test('freezes what stands in what the schema has frozen, which requests with one token share, too', async (t) => {
  const { gate, request } = gateOf(t);
  const readonly = schemaOf(() => ({ value: Object.freeze({ roles: Object.freeze([{ name: 'a' }]) }) }));
  const { caller } = await gate.check(request({}), needs(claims(readonly)));
  assert.ok(caller);
  const { claims: shown } = caller as { claims: any };
  assert.throws(() => Object.assign(shown.roles[0], { name: 'admin' }), TypeError);
});

test('freezes an output that contains itself', async (t) => {
  const { gate, request } = gateOf(t);
  const circular = schemaOf(() => {
    const value: { self?: object } = {};
    value.self = value;
    return { value };
  });
  const { caller } = await gate.check(request({}), needs(claims(circular)));
  assert.ok(Object.isFrozen(caller?.claims));
});

for (const [what, result, status] of [
  ['an empty list of issues', { issues: [] }, 403],
  ['issues beside a value', { value: {}, issues: [] }, 403],
  ['issues that are undefined', { value: {}, issues: undefined }, undefined],
  ['a value that it inherits', Object.create({ value: {} }), undefined],
  ['undefined as its value', { value: undefined }, undefined],
] as const) {
  test(`takes a result with ${what} as ${status === 403 ? 'a refusal' : 'passed'}`, async (t) => {
    const { gate, request } = gateOf(t);
    const { refusal } = await gate.check(request({}), needs(claims(schemaOf(() => result))));
    assert.equal(refusal?.status, status);
  });
}

describe('a gate', () => {
  test('admits the caller with the output, in check and authorize, and still knows them as genuine', async (t) => {
    const { gate, request } = gateOf(t);
    const access = needs(claims(employee().schema));
    const { caller } = await gate.check(request({ department: 'sales' }), access);
    assert.equal(caller?.claims.department, 'sales');
    assert.equal(gate.authorize(caller!, authenticated).caller?.subject, 'test-user');
    assert.equal(gate.authorize(caller!, access).caller?.claims.department, 'sales');
    assert.equal(gate.authorize(caller!, needs(scope('x'))).refusal?.status, 403);

    const plain = await gate.check(request({ department: 'sales' }), authenticated);
    assert.equal(gate.authorize(plain.caller!, access).caller?.claims.department, 'sales');
  });

  test('checks logins and decisions of such a caller by the claims of the token', async (t) => {
    const { gate, request } = gateOf(t);
    const told: unknown[] = [];
    const decided = decision('may read', ({ caller }) => told.push(caller.claims.department) > 0);
    const auth_time = Math.floor(Date.now() / 1000);
    const access = needs(claims(employee().schema), decided, recentLogin({ maxAgeSeconds: 60 }));
    const { caller } = await gate.check(request({ department: 'sales', auth_time }), access);
    assert.equal(caller?.claims.department, 'sales');
    assert.equal((await gate.authorize(caller!, access)).caller?.claims.department, 'sales');
    assert.deepEqual(told, ['sales', 'sales']);
  });

  const WAITS = /^claims needs a schema that does not return a promise$/;

  for (const [what, validate, message] of [
    ['returns a promise', async () => ({ value: {} }), WAITS],
    ['rejects', () => Promise.reject(new Error('SECRET')), WAITS],
    [
      'throws',
      () => {
        throw new Error('SECRET');
      },
      /SECRET/,
    ],
    ['returns neither a value nor issues', () => ({}), /^a schema gave neither a value nor issues$/],
    ['returns nothing', () => undefined, /undefined/],
  ] as const) {
    test(`answers 500 when the schema ${what}`, async (t) => {
      const { gate, request, errors } = gateOf(t);
      const { refusal } = await gate.check(request({}), needs(claims(schemaOf(validate as never))));
      assert.equal(refusal?.status, 500);
      assert.doesNotMatch(String(refusal?.body), /SECRET/);
      assert.equal(errors.length, 1);
      assert.match(Object(errors[0]).message, message);
    });
  }
});

test('stands once in a route, and takes a schema', () => {
  const one = claims(employee().schema);
  const other = claims(employee().schema);
  assert.throws(() => needs(one, other as never), /more than one recentLogin or claims/);
  for (const given of [undefined, {}, 'x', { '~standard': { version: 2 } }]) {
    assert.throws(() => claims(given as never), TypeError);
  }
});

test('in forward-auth, passes on the claims of the token, never what two tokens share of a schema', async (t) => {
  const shared = { department: 'sales' };
  const access = needs(claims(schemaOf(() => ({ value: shared }))));
  const policy = await startPolicy({ routes: [get('/me', access, upstream)] });
  t.after(() => policy.stop());
  for (const sub of ['anna', 'bert']) {
    const { headers } = await policy.ask({ forwarded: asking('GET', '/me'), fields: bearer({ sub }) });
    assert.equal(headers.get('x-auth-subject'), sub);
    const encoded = headers.get('x-auth-claims') ?? '';
    assert.equal(JSON.parse(Buffer.from(encoded, 'base64url').toString()).sub, sub);
  }
});

test('the route matrix tests it like any guard', async () => {
  const access = needs(claims(employee().schema));
  await assertRouteMatrix({
    routes: [get('/a/me', access, ({ caller }) => caller.claims)],
    rules: [under('/a', access)],
  });
});
