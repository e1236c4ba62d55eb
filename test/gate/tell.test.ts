/* What a hook is told, and what happens when it fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddressOf, createTell } from '../../src/gate/tell.ts';
import type { RequestRecord } from '../../src/gate/decide.ts';
import type { Fields } from '../../src/verify/base/events.ts';
import { TestClock } from '../support/clock.ts';

const TRACE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

const request = {
  method: 'GET',
  url: '/orders/7?access_token=secret',
  rawHeaders: ['Host', 'a', 'Authorization', 'Bearer secret', 'DPoP', 'secret', 'traceparent', TRACE],
  socket: { remoteAddress: '192.0.2.1' },
};

/** A hook that does this, and what it and the log were told. */
function telling(does: () => unknown = () => {}) {
  const events: object[] = [];
  const lines: [string, Fields][] = [];
  const errors: unknown[] = [];
  const clock = new TestClock(0);

  const hook = (event: object) => {
    events.push(event);
    return does();
  };

  const log = (message: string, fields: Fields, error: unknown) => {
    lines.push([message, fields]);
    errors.push(error);
  };

  const tell = createTell<{ status: number }>(hook, { trustProxy: false }, clock, log);

  const tellOf = async (asked = {}, record: RequestRecord = {}) =>
    tell?.(asked as never, record, { status: 1 });

  return { tellOf, clock, events, lines, errors };
}

test('tells of a request what it said of itself, without its query, token or proof [§28]', async () => {
  const { tellOf, events } = telling();
  await tellOf(request, { reason: 'not_found' });
  assert.deepEqual(events, [
    {
      method: 'GET',
      path: '/orders/7',
      reason: 'not_found',
      caller: null,
      clientAddress: '192.0.2.1',
      traceparent: TRACE,
      status: 1,
    },
  ]);
  assert.doesNotMatch(JSON.stringify(events), /secret/);
});

test('tells null for what there is not [§28]', async () => {
  const { tellOf, events } = telling();
  for (const url of [undefined, '*', 'https://a.test/x']) await tellOf({ url, rawHeaders: [] });
  const nothing = {
    method: null,
    path: null,
    reason: null,
    caller: null,
    clientAddress: null,
    traceparent: null,
  };
  assert.deepEqual(events, Array(3).fill({ ...nothing, status: 1 }));
});

test('tells the path as the client sent it where a framework has rewritten it', async () => {
  const { tellOf, events } = telling();
  await tellOf({ url: '/7', originalUrl: '/orders/7?a', rawHeaders: [] });
  assert.equal(Object(events[0]).path, '/orders/7');
  await tellOf({ url: '/orders/8#a?b', rawHeaders: [] });
  assert.equal(Object(events[1]).path, '/orders/8#a');
});

test('calls a hook after what the caller does at once', async () => {
  const { tellOf, events } = telling();
  const told = tellOf(request);
  assert.deepEqual(events, []);
  await told;
  assert.equal(events.length, 1);
});

const failing = () => {
  throw new RangeError('secret');
};

for (const [how, does] of [
  ['throws', failing],
  ['rejects', async () => failing()],
] as const) {
  test(`a hook that ${how} is logged at most once a minute, without its message [§28]`, async () => {
    const { tellOf, clock, events, lines, errors } = telling(does);
    const counts: number[] = [];
    for (const millis of [0, 0, 59_999, 1]) {
      clock.advance(millis);
      await tellOf(request);
      counts.push(lines.length);
    }
    assert.deepEqual([events.length, counts], [4, [1, 1, 1, 2]]);
    assert.deepEqual(
      lines.map(([message, { reason, error }]) => [message, reason, error]),
      Array(2).fill(['hook failed', 'bug', 'RangeError']),
    );
    assert.match(String(lines[0]?.[1].frames), /tell\.test\.[jt]s:\d+:\d+/);
    assert.doesNotMatch(JSON.stringify(lines), /secret/);
    // For a log that tells messages.
    assert.deepEqual(errors.map(String), Array(2).fill('RangeError: secret'));
  });
}

for (const [what, forwarded, trusted, address] of [
  ['the peer', [], true, '192.0.2.1'],
  ['the peer, whatever a client says, when no proxy is trusted', ['198.51.100.1'], false, '192.0.2.1'],
  ['what the nearest proxy says', ['203.0.113.9, 198.51.100.1'], true, '198.51.100.1'],
  ['the last of several fields', ['198.51.100.1', '203.0.113.9,2001:db8::1'], true, '2001:db8::1'],
  ['the peer when the last element is no IP address', ['198.51.100.1, unknown'], true, '192.0.2.1'],
  ['the peer when the last element has a port', ['198.51.100.1:80'], true, '192.0.2.1'],
  ['the peer when the last element is empty', ['198.51.100.1,'], true, '192.0.2.1'],
] as const) {
  test(`the address of a client is that of ${what} [§28]`, () => {
    const rawHeaders = forwarded.flatMap((value) => ['X-Forwarded-For', value]);
    assert.equal(clientAddressOf({ ...request, rawHeaders }, trusted), address);
  });
}

test('an IPv4 address that a socket maps to IPv6 is an IPv4 address [RFC 4291 §2.5.5.2]', () => {
  const addressOf = (remoteAddress?: string) =>
    clientAddressOf({ rawHeaders: [], socket: { remoteAddress } }, false);

  assert.equal(addressOf('::ffff:192.0.2.1'), '192.0.2.1');
  assert.equal(addressOf('::ffff:1:2'), '::ffff:1:2');
  assert.equal(addressOf('2001:db8::1'), '2001:db8::1');
  assert.equal(addressOf('2001:db8::ffff:192.0.2.1'), '2001:db8::ffff:192.0.2.1');
  assert.equal(addressOf(), undefined);
  assert.equal(clientAddressOf({ rawHeaders: [] }, true), undefined);
});

test('never rejects, even if a member of a request throws [§28]', async () => {
  const { tellOf, events, lines } = telling();
  const hostile = {
    rawHeaders: [],
    get url(): string {
      throw new Error('inside');
    },
  };
  await tellOf(hostile);
  assert.deepEqual([events, lines.map(([message]) => message)], [[], ['hook failed']]);
});
