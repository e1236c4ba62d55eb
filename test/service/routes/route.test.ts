import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimEquals, scope } from '../../../src/gate/guards.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { authenticated, needs, open, optional } from '../../../src/gate/access.ts';
import {
  del,
  get,
  patch,
  post,
  put,
  rowFaults,
  under,
  type PrefixRule,
  type RouteRequest,
  type Row,
} from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import type { Caller } from '../../../src/verify/caller.ts';
import { callerWith } from '../../support/caller.ts';
import { runRow } from '../../support/row.ts';
import { schemaOf } from '../../support/schemas.ts';

const echo = <Admitted>({ caller, parameters, nowMillis }: RouteRequest<Admitted>) => ({
  caller,
  parameters,
  nowMillis,
});

const refused = (action: () => unknown, reason: string) =>
  assert.throws(action, (failure) => failure instanceof Refused && failure.refusal.reason === reason);

const never = () => assert.fail('the handler ran');

test('an open row gives its handler no caller, whoever calls', () => {
  const row = get('/x', open, echo);
  assert.deepEqual(runRow(row, callerWith({}), { a: '1' }, 5), {
    caller: undefined,
    parameters: { a: '1' },
    nowMillis: 5,
  });
  assert.deepEqual([row.pattern, row.access.name, row.access.credentials], ['/x', 'open', 'ignored']);
});

test('an optional row gives its handler the caller or nothing', () => {
  const row = get('/x', optional, echo);
  const caller = callerWith({});
  assert.equal((runRow(row, caller, {}, 5) as { caller: unknown }).caller, caller);
  assert.equal((runRow(row, undefined, {}, 5) as { caller: unknown }).caller, undefined);
  assert.deepEqual([row.access.name, row.access.credentials], ['optional', 'optional']);
});

test('an authenticated row gives its handler the caller, and does not run it without one', () => {
  const caller = callerWith({});
  assert.equal((runRow(get('/x', authenticated, echo), caller, {}, 5) as { caller: unknown }).caller, caller);
  refused(() => runRow(get('/x', authenticated, never), undefined, {}, 5), 'no-credentials');
  assert.deepEqual([authenticated.name, authenticated.credentials], ['authenticated', 'required']);
});

const both = needs(scope('read'), claimEquals('org', 'a1'));

test('a guarded row runs its handler only when every guard passes', () => {
  const caller = callerWith({ scope: 'read', org: 'a1' });
  assert.equal((runRow(get('/x', both, echo), caller, {}, 5) as { caller: unknown }).caller, caller);
  const row = get('/x', both, never);
  refused(() => runRow(row, callerWith({ scope: 'read' }), {}, 5), 'claim-missing');
  refused(() => runRow(row, callerWith({ org: 'a1' }), {}, 5), 'scope-missing');
  refused(() => runRow(row, undefined, {}, 5), 'no-credentials');
});

test('a guarded row refuses by the first guard that does not pass', () => {
  refused(() => runRow(get('/x', both, never), callerWith({})), 'scope-missing');
  const turned = needs(claimEquals('org', 'a1'), scope('read'));
  refused(() => runRow(get('/x', turned, never), callerWith({})), 'claim-missing');
});

test('a guarded row tells its guards by name', () => {
  assert.deepEqual([both.name, both.credentials], ['scope read, claim org equals a1', 'required']);
});

test('a row passes on what its handler returns or throws', async () => {
  const failure = new Error('x');
  assert.deepEqual(
    await runRow(
      get('/x', open, async () => ({ a: 1 })),
      undefined,
      {},
      5,
    ),
    { a: 1 },
  );
  assert.throws(
    () =>
      runRow(
        get('/x', open, () => {
          throw failure;
        }),
        undefined,
        {},
        5,
      ),
    failure,
  );
});

test('no row admits what only looks like a caller', () => {
  const lookalike = Object.create(Object.getPrototypeOf(callerWith({ scope: 'read', org: 'a1' }))) as Caller;
  for (const access of [authenticated, optional, both]) {
    assert.throws(() => runRow(get('/x', access, never), lookalike, {}, 5), {
      name: 'TypeError',
      message: 'a caller that no sender check made',
    });
  }
});

test('a row that is given something else than what rows take, or no handler, cannot be served', () => {
  const schema = schemaOf((value) => ({ value }));
  const callable = Object.assign(() => ({}), schema);
  const make = post as (...parts: unknown[]) => Row;
  for (const parts of [
    [],
    [json()],
    [schema, never],
    [callable, never],
    [json(), never, {}],
    [never, never],
    [null, never],
    [json(), json(), never],
  ]) {
    assert.deepEqual(make('/x', open, ...parts).faults, [
      'a row takes query(), but for GET json(), and a handler, nothing else',
    ]);
  }
});

test('a row for GET that takes a body cannot be served [RFC 9110 §9.3.1]', () => {
  const make = get as (...parts: unknown[]) => Row;
  const { faults, body } = make('/x', open, json(), never);
  assert.deepEqual(faults, ['a row takes query(), but for GET json(), and a handler, nothing else']);
  assert.equal(body, undefined);
});

test('a row or a rule without an access cannot be served, or with a guard in place of one', () => {
  const make = get as (...parts: unknown[]) => Row;
  const rule = under as (...parts: unknown[]) => PrefixRule;
  for (const access of [undefined, null, {}, 'open', scope('a')]) {
    const fault = 'has no access, such as open or needs()';
    assert.deepEqual(rowFaults(make('/x', access, never)), [fault]);
    assert.deepEqual(rule('/x', access).problems, [`under /x: ${fault}`]);
  }
});

test('a row has the method of its function, and what it takes', () => {
  const taken = query(schemaOf((value) => ({ value })));
  const body = json();
  const give = () => ({});
  const rows = [
    get('/x', open, taken, give),
    ...[post, put, patch, del].map((make) => make('/x', open, taken, body, give)),
  ];
  assert.deepEqual(
    rows.map(({ method }) => method),
    ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  );
  for (const row of rows) {
    assert.equal(row.query, taken);
    assert.equal(row.body, row.method === 'GET' ? undefined : body);
    assert.deepEqual([row.handler, row.faults], [give, []]);
  }
});

test('a row and a rule tell the faults of their guards', () => {
  const bad = needs(scope('a b'));
  const fault = 'scope a b: not all are scopes';
  assert.deepEqual(rowFaults(get('/x', bad, () => ({}))), [fault]);
  assert.deepEqual(rowFaults({ ...get('/x', open, never), access: bad as never }), [fault]);
  assert.deepEqual(under('/x', bad).problems, [`under /x: ${fault}`]);
});

test('a row tells what is wrong with all that it takes, and that its handler is missing', () => {
  const make = post as (...parts: unknown[]) => Row;
  const schema = 'a schema must have "~standard" of version 1 with a function "validate"';
  assert.deepEqual(rowFaults(make('/x', open, query({} as never), json({} as never))), [
    schema,
    schema,
    'a row takes query(), but for GET json(), and a handler, nothing else',
  ]);
});

test('a row that is whole can be served', () => {
  assert.deepEqual(post('/x', open, json(), () => ({})).faults, []);
});
