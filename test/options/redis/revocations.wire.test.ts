/* Revoked tokens over a store that does what a test says: which entries are asked for, which tokens they
   refuse, and that no fault of the store lets a token pass. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeRevocations } from '../../../src/options/redis/revocations.ts';
import { createGate } from '../../../src/gate.ts';
import type { LogPart } from '../../../src/gate/options.ts';
import { introspection } from '../../../src/introspection.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { tenants } from '../../../src/tenants.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { TestClock } from '../../support/clock.ts';
import { until } from '../../support/watch.ts';
import { deliver, startFakeStore, type Say } from '../fake-store.ts';
import { issue, ISSUER, NOW } from '../../verify/token/issuer.ts';
import { except, keyFor, openStand, startStand, storeWith } from './revocations-fixture.ts';

/** `AUTH`, `PING`, and the question that shows whether the store responds. */
const GREETING = 3;
const RETRY_MILLIS = 2_000;
/** The longest pause after the first loss. */
const PAUSE_MILLIS = 50;
const PATIENCE_SECONDS = 20;

const FULL = { jti: 'token 1', sid: 'session 1', sub: 'user 1', client_id: 'app 1', iat: NOW - 10 };

const seconds = (value: number) => String(value);

/** Those that keep the process alive. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('the question', () => {
  test('names the entries of every kind whose claim is text, under the documented keys', async (t) => {
    const { store, verdict } = await startStand(t);
    assert.equal(await verdict(issue(FULL)), 'accepted');
    const keys = [
      keyFor('jti', 'token 1'),
      keyFor('sid', 'session 1'),
      keyFor('sub', 'user 1'),
      keyFor('client', 'app 1'),
    ];
    assert.deepEqual(store.commands.at(-1), ['MGET', ...keys]);
  });

  for (const [what, claims, kinds] of [
    ['no claim but sub', {}, [['sub', 'auth0|user']]],
    ['a sub in capitals, with blanks and an accent', { sub: ' U e\u0301 ' }, [['sub', ' U e\u0301 ']]],
    [
      'azp alone',
      { azp: 'app 2' },
      [
        ['sub', 'auth0|user'],
        ['client', 'app 2'],
      ],
    ],
    [
      'an empty client_id beside azp',
      { client_id: '', azp: 'app 2' },
      [
        ['sub', 'auth0|user'],
        ['client', 'app 2'],
      ],
    ],
    [
      'a client_id of another type beside azp',
      { client_id: 7, azp: 'app 2' },
      [
        ['sub', 'auth0|user'],
        ['client', 'app 2'],
      ],
    ],
    [
      'another client_id than azp',
      { client_id: 'app 1', azp: 'app 2' },
      [
        ['sub', 'auth0|user'],
        ['client', 'app 1'],
      ],
    ],
    ['claims of other types', { jti: 7, sid: '', client_id: ['app'], azp: null }, [['sub', 'auth0|user']]],
    [
      'claims in a namespace',
      { 'https://api.test/jti': 'x', 'https://api.test/sid': 'y' },
      [['sub', 'auth0|user']],
    ],
  ] as const) {
    test(`asks only for what a token has, with ${what}`, async (t) => {
      const { store, verdict } = await startStand(t, { rules: { claimNamespace: 'https://api.test/' } });
      assert.equal(await verdict(issue(claims)), 'accepted');
      assert.deepEqual(store.commands.at(-1), ['MGET', ...kinds.map(([kind, value]) => keyFor(kind, value))]);
    });
  }

  test('is asked again for a token in the cache, and counts from the next request', async (t) => {
    const { entries, verdict } = await startStand(t);
    const token = issue(FULL);
    for (let sight = 1; sight <= 3; sight += 1) assert.equal(await verdict(token), 'accepted');
    entries.set(keyFor('jti', 'token 1'), '');
    assert.equal(await verdict(token), 'revoked');
    entries.clear();
    assert.equal(await verdict(token), 'accepted');
  });

  for (const [what, token, reason] of [
    ['forged', `${issue(FULL).slice(0, -4)}AAAA`, 'signature-mismatch'],
    ['expired', issue({ ...FULL, exp: NOW }), 'expired'],
    ['for another audience', issue({ ...FULL, aud: 'other' }), 'audience-mismatch'],
  ] as const) {
    test(`is not asked for a token that is ${what} [J8]`, async (t) => {
      const { store, verdict } = await startStand(t);
      assert.equal(await verdict(token), reason);
      assert.equal(store.commands.length, GREETING);
    });
  }

  test('is not asked for a token in the cache that has expired', async (t) => {
    const { store, clock, verdict } = await startStand(t);
    const token = issue(FULL);
    assert.deepEqual([await verdict(token), await verdict(token)], ['accepted', 'accepted']);
    clock.advance(61_000);
    const asked = store.commands.length;
    assert.equal(await verdict(token), 'expired');
    assert.equal(store.commands.length, asked);
  });

  test('has whole replies of up to 64 KiB each, although several arrive at once', async (t) => {
    const { entries, verdict } = await startStand(t);
    for (const kind of ['jti', 'sid'] as const) entries.set(keyFor(kind, FULL[kind]), 'x'.repeat(20_000));
    const asked = Array.from({ length: 9 }, () => verdict(issue(FULL)));
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(['revoked']));
  });

  test('sends the questions of one turn in one write', async (t) => {
    const { store, verdict } = await startStand(t);
    const token = issue(FULL);
    await verdict(token);
    const before = store.pieces.length;
    const verdicts = Array.from({ length: 50 }, () => verdict(token));
    assert.deepEqual(new Set(await Promise.all(verdicts)), new Set(['accepted']));
    assert.equal(store.pieces.length, before + 1);
  });
});

describe('an entry', () => {
  for (const kind of ['jti', 'sid'] as const) {
    for (const content of ['', '1', 'x', seconds(NOW - 100), '9'.repeat(40), '\r\n', 'é']) {
      test(`of ${kind} refuses its token, whatever it holds: ${JSON.stringify(content)}`, async (t) => {
        const { entries, verdict } = await startStand(t);
        entries.set(keyFor(kind, FULL[kind]), content);
        assert.equal(await verdict(issue(FULL)), 'revoked');
        assert.equal(await verdict(issue({ ...FULL, [kind]: 'other' })), 'accepted');
      });
    }
  }

  for (const [what, iat, content, verdictOfToken] of [
    ['a token that was issued before', NOW - 10, seconds(NOW - 5), 'revoked'],
    ['a token of the same second', NOW - 10, seconds(NOW - 10), 'revoked'],
    ['a token that was issued later', NOW - 10, seconds(NOW - 11), 'accepted'],
    ['a token of a later part of the second', NOW - 9.5, seconds(NOW - 10), 'accepted'],
    ['a token without iat', undefined, seconds(0), 'revoked'],
    ['a token from a minute ahead', NOW + 60, seconds(NOW - 10), 'accepted'],
    ['a token from more than a minute ahead', NOW + 60.5, seconds(NOW - 10), 'revoked'],
    ['a token under an entry that is no number', NOW - 10, 'x', 'revoked'],
    ['a token under an entry that only ends in a number', NOW - 10, 'x$5', 'revoked'],
    ['a token under an empty entry', NOW - 10, '', 'revoked'],
    ['a token under a negative entry', NOW - 10, '-1', 'revoked'],
    ['a token under an entry with a fraction', NOW - 10, '1.5', 'revoked'],
    ['a token under an entry with a blank', NOW - 10, '1 ', 'revoked'],
    ['a token under an entry that begins with a blank', NOW - 10, ' 1', 'revoked'],
    ['a token under an entry with a line feed', NOW - 10, '1\n', 'revoked'],
    ['a token under an entry of 15 digits', NOW - 10, '000000000000001', 'accepted'],
    ['a token under an entry of 16 digits', NOW - 10, '0000000000000001', 'revoked'],
  ] as const) {
    for (const [kind, value] of [
      ['sub', 'user 1'],
      ['client', 'app 1'],
    ] as const) {
      test(`of ${kind} says ${verdictOfToken} of ${what} [J20]`, async (t) => {
        const { entries, verdict } = await startStand(t);
        entries.set(keyFor(kind, value), content);
        assert.equal(await verdict(issue({ ...FULL, iat })), verdictOfToken);
      });
    }
  }

  test('adds the clock tolerance to the minute in which tokens may be ahead', async (t) => {
    const { entries, verdict } = await startStand(t, { rules: { clockToleranceSeconds: 30 } });
    entries.set(keyFor('sub', 'user 1'), seconds(NOW - 10));
    assert.equal(await verdict(issue({ ...FULL, iat: NOW + 90 })), 'accepted');
    assert.equal(await verdict(issue({ ...FULL, iat: NOW + 91 })), 'revoked');
  });

  test('of another issuer, or of another kind, refuses nothing', async (t) => {
    const { entries, verdict } = await startStand(t);
    entries.set(keyFor('sub', 'user 1', 'https://other.test/'), seconds(NOW));
    for (const kind of ['jti', 'sid', 'client']) entries.set(keyFor(kind, 'user 1'), seconds(NOW));
    assert.equal(await verdict(issue(FULL)), 'accepted');
  });
});

describe('a store that does not tell', () => {
  const UNAVAILABLE = 'revocation-store-unavailable';

  const faults: readonly (readonly [what: string, reply: Say | string, reason: string, ends: boolean])[] = [
    ['may not read', '-NOPERM x\r\n', 'NOPERM', false],
    ['has no memory', '-OOM x\r\n', 'OOM', false],
    ['is loading', '-LOADING x\r\n', 'LOADING', false],
    ['has no master', '-MASTERDOWN x\r\n', 'MASTERDOWN', false],
    ['is part of a cluster', '-CROSSSLOT x\r\n', 'CROSSSLOT', false],
    ['is part of a cluster, and has not this slot', '-MOVED 1 127.0.0.1:1\r\n', 'MOVED', false],
    ['replies a status', '+OK\r\n', 'reply-refused', true],
    ['replies a null', '$-1\r\n', 'reply-refused', true],
    ['replies a string', '$1\r\n1\r\n', 'reply-refused', true],
    ['replies an empty list', '*0\r\n', 'reply-refused', true],
    ['replies too short a list', '*3\r\n$-1\r\n$-1\r\n$-1\r\n', 'reply-refused', true],
    ['replies too long a list', `*5\r\n${'$-1\r\n'.repeat(5)}`, 'reply-refused', true],
    ['replies a list of numbers', `*4\r\n${':0\r\n'.repeat(4)}`, 'reply-refused', true],
    ['replies a list with a status', '*4\r\n$-1\r\n$-1\r\n$-1\r\n+OK\r\n', 'reply-refused', true],
    ['replies a list with an error', '*4\r\n$-1\r\n$-1\r\n$-1\r\n-ERR x\r\n', 'reply-refused', true],
    ['replies a list of lists', '*1\r\n*4\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n', 'reply-refused', true],
    ['replies no RESP2', '%1\r\n', 'reply-refused', true],
    ['ends the connection', (_, socket) => void socket.destroy(), 'closed', true],
    [
      'ends the connection after half a reply',
      (_, socket) => void socket.end('*4\r\n$-1\r\n$-1\r\n'),
      'closed',
      true,
    ],
  ];

  for (const [what, reply, reason, ends] of faults) {
    test(`lets no token pass when it ${what}, and lets tokens pass again afterwards [J7]`, async (t) => {
      const { store, clock, verdict, logged, logs, counts, isUp } = await startStand(t);
      const good = store.say;
      const idle = clock.pending.length;
      store.say = except('MGET', reply);
      const token = issue(FULL);
      const asked = store.commands.length;
      assert.equal(await verdict(token), UNAVAILABLE);
      assert.equal(store.commands.length, asked + 1);
      const line = await logged('revocation store lost');
      assert.deepEqual([line.level, line.reason, isUp()], ['warn', reason, false]);
      if (ends) assert.equal(await verdict(token), UNAVAILABLE);

      store.say = good;
      if (ends) {
        await until('the pause has begun', () => clock.pending.length > idle, PATIENCE_SECONDS);
        clock.advance(RETRY_MILLIS);
        await logged('revocation store ready', 2);
      }
      assert.equal(await verdict(token), 'accepted');
      assert.equal(isUp(), true);
      assert.equal(store.sockets.length, ends ? 2 : 1);
      assert.equal(counts.filter((one) => one === 'revocation check clear').length, 1);
      assert.deepEqual(
        logs.map(({ message }) => message),
        ['revocation store ready', 'revocation store lost', 'revocation store ready'],
      );
      assert.doesNotMatch(JSON.stringify(logs), /secret|redis:|user 1/);
    });
  }

  test('keeps a token waiting for at most a second, and later ones not at all [J7]', async (t) => {
    const { store, clock, verdict, logged } = await startStand(t);
    store.say = except('MGET', () => undefined);
    const verdicts = [verdict(issue(FULL)), verdict(issue(FULL))];
    await store.received(GREETING + 2);
    clock.advance(600);
    await deliver(store, '*4\r\n$-1\r\n$-1\r\n$-1\r\n');
    clock.advance(400);
    assert.deepEqual(await Promise.all(verdicts), [UNAVAILABLE, UNAVAILABLE]);
    assert.equal((await logged('revocation store lost')).reason, 'timeout');
    assert.equal(await verdict(issue(FULL)), UNAVAILABLE);
    assert.equal(store.commands.length, GREETING + 2);
  });

  test('lets no token pass before it has been heard of [J7]', async (t) => {
    const { store, verdict, logs, isUp } = await openStand(t, { say: () => undefined });
    await store.received(1);
    assert.equal(await verdict(issue(FULL)), UNAVAILABLE);
    assert.deepEqual([logs, isUp()], [[], false]);
  });

  for (const [what, say] of [
    ['responds', storeWith(new Map())],
    ['does not', except('PING', '-LOADING x\r\n')],
  ] as const) {
    test(`is waited for by a service that starts until it is known that it ${what}`, async (t) => {
      const { revocations, logs } = await openStand(t, { say });
      const content = Part.contentOf(revocations);
      await content.firstOutcome;
      assert.deepEqual([content.kind, logs.length], ['redis', 1]);
    });
  }

  test('is told to a gate that is made later, and to none that is closed', async (t) => {
    const { options } = makeIssuer();
    const issuers = [ISSUER, `https://${options.domain}/`];
    const { store, revocations, logged } = await startStand(t, { issuers });
    const told: string[] = [];

    const gateWith = (name: string) => {
      const log = (event: string) => void (event.startsWith('revocation') && told.push(`${name}: ${event}`));
      const part: LogPart = Part.make('log', { log, level: 'info', isAccessLogged: false });
      const gate = createGate({ ...options, revocations, log: part });
      t.after(gate.close);
      return gate;
    };

    const first = gateWith('first');
    gateWith('second');
    first.close();
    store.sockets[0]?.destroy();
    await logged('revocation store lost');
    const ready = ['first: revocation store ready', 'second: revocation store ready'];
    assert.deepEqual(told, [...ready, 'second: revocation store lost']);
  });

  test('is told once to a log that gates share, for as long as one of them is open [§15]', async (t) => {
    const { options } = makeIssuer();
    const issuers = [ISSUER, `https://${options.domain}/`];
    const { store, revocations, logged } = await startStand(t, { issuers });
    const told: string[] = [];
    const log = (event: string) => void (event.startsWith('revocation') && told.push(event));
    const part: LogPart = Part.make('log', { log, level: 'info', isAccessLogged: false }, true);
    const gates = [1, 2, 3].map(() => createGate({ ...options, revocations, log: part }));
    for (const { close } of gates) t.after(close);
    gates[0]!.close();
    store.sockets[0]?.destroy();
    await logged('revocation store lost');
    const ready = gates.map(() => 'revocation store ready');
    assert.deepEqual(told, [...ready, 'revocation store lost']);
  });

  test('lets no token pass after the revocations are closed', async (t) => {
    const { store, revocations, verdict } = await startStand(t);
    revocations.close();
    assert.equal(await verdict(issue(FULL)), UNAVAILABLE);
    assert.equal(store.commands.length, GREETING);
  });

  test('is logged as lost when its user may greet and not read, and as ready once it may', async (t) => {
    const say = except('MGET', '-NOPERM x\r\n');
    const { store, logged, verdict, isUp } = await openStand(t, { say });
    assert.equal((await logged('revocation store lost')).reason, 'NOPERM');
    assert.equal(await verdict(issue(FULL)), UNAVAILABLE);
    assert.equal(isUp(), false);
    store.say = storeWith(new Map());
    assert.equal(await verdict(issue(FULL)), 'accepted');
    await logged('revocation store ready');
  });
});

describe('writers', () => {
  for (const [what, revocation, kind, value, content, keep] of [
    ['a token', { tokenId: 't' }, 'jti', 't', NOW, 86_400],
    ['a session', { session: 's', keepSeconds: 60 }, 'sid', 's', NOW, 60],
    ['a subject, as it is written', { subject: ' U e\u0301' }, 'sub', ' U e\u0301', NOW, 86_400],
    ['a client', { client: 'c', keepSeconds: 31_536_000 }, 'client', 'c', NOW, 31_536_000],
    ['a subject before a time', { subject: 'u', before: new Date(1_001) }, 'sub', 'u', 2, 86_400],
    ['a client before 1970', { client: 'c', before: new Date(0) }, 'client', 'c', 0, 86_400],
  ] as const) {
    test(`revoke ${what}, and restore it`, async (t) => {
      const { store, revocations, entries } = await startStand(t);
      await revocations.revoke(revocation);
      const key = keyFor(kind, value);
      assert.deepEqual(store.commands.at(-1), ['SET', key, String(content), 'EX', String(keep)]);
      const { before: _, keepSeconds: __, ...same } = { before: 0, keepSeconds: 0, ...revocation };
      await revocations.restore(same);
      assert.deepEqual(store.commands.at(-1), ['DEL', key]);
      assert.equal(entries.size, 0);
      await revocations.restore(same);
    });
  }

  const NO_ISSUER = /^revoke: issuer: must be the issuer \(iss\) of the tokens, as in the options$/;

  const wrong: readonly (readonly [what: unknown, problem: RegExp])[] = [
    [undefined, /^revoke: must be an object/],
    ['t', /^revoke: must be an object/],
    [{}, /^revoke: must have exactly one of tokenId, session, subject and client$/],
    [{ tokenId: 't', session: 's' }, /^revoke: must have exactly one of/],
    [{ tokenId: undefined }, /^revoke: must have exactly one of/],
    [{ tokenId: '' }, /^revoke: tokenId: is empty/],
    [{ subject: 7 }, /^revoke: subject: must be text$/],
    [{ subject: 'u', client: null }, /^revoke: client: must be text$/],
    [{ jti: 't' }, /^revoke: jti: is no option/],
    [{ subject: 'u', issuer: 'https://other.test/' }, NO_ISSUER],
    [{ subject: 'u', before: NOW }, /^revoke: before: must be a Date, and no earlier than 1970$/],
    [{ subject: 'u', before: { getTime: () => 0 } }, /^revoke: before: must be a Date/],
    [{ subject: 'u', before: new Date(NaN) }, /^revoke: before: must be a Date/],
    [{ subject: 'u', before: new Date(-1) }, /^revoke: before: must be a Date/],
    [
      { tokenId: 't', before: new Date(0) },
      /^revoke: before: is for a subject or a client alone; remove it$/,
    ],
    [{ session: 's', before: new Date(0) }, /^revoke: before: is for a subject or a client alone/],
    [{ subject: 'u', keepSeconds: 59 }, /^revoke: keepSeconds: must be a whole number from 60 to 31536000$/],
    [{ subject: 'u', keepSeconds: 31_536_001 }, /^revoke: keepSeconds: must be a whole number/],
    [{ subject: 'u', keepSeconds: '60' }, /^revoke: keepSeconds: must be a whole number/],
  ];

  for (const [what, problem] of wrong) {
    test(`reject ${JSON.stringify(what)} with a TypeError, and write nothing`, async (t) => {
      const { store, revocations } = await startStand(t);
      await assert.rejects(revocations.revoke(what as never), { name: 'TypeError', message: problem });
      assert.equal(store.commands.length, GREETING);
    });
  }

  for (const [what, problem] of [
    [undefined, /^restore: must be an object/],
    [{ subject: 'u', before: new Date(0) }, /^restore: before: is no option/],
    [{ subject: 'u', keepSeconds: 60 }, /^restore: keepSeconds: is no option/],
    [{ tokenId: 't', session: 's' }, /^restore: must have exactly one of/],
    [{ subject: 'u', issuer: 'https://other.test/' }, /^restore: issuer: must be the issuer/],
  ] as const) {
    test(`reject ${JSON.stringify(what)} to restore, which takes kind and issuer alone`, async (t) => {
      const { store, revocations } = await startStand(t);
      await assert.rejects(revocations.restore(what as never), { name: 'TypeError', message: problem });
      assert.equal(store.commands.length, GREETING);
    });
  }

  const UNAVAILABLE = { name: 'Error', message: 'revocation store unavailable' };

  for (const [reply, cause] of [
    ['-NOPERM x', 'NOPERM'],
    ['-OOM x', 'OOM'],
    ['-READONLY x', 'READONLY'],
    ['+QUEUED', undefined],
    ['$-1', undefined],
    [':2', undefined],
  ] as const) {
    test(`reject when the store replies ${reply}, with the cause ${cause} [§24]`, async (t) => {
      for (const [command, name] of [
        ['SET', 'revoke'],
        ['DEL', 'restore'],
      ] as const) {
        const { store, revocations } = await startStand(t);
        store.say = except(command, `${reply}\r\n`);
        const error: unknown = await revocations[name]({ tokenId: 't' }).catch((thrown: unknown) => thrown);
        assert.ok(error instanceof Error);
        assert.deepEqual([error.message, error.cause], [UNAVAILABLE.message, cause]);
      }
    });
  }

  for (const [name, command, reply] of [
    ['revoke', 'SET', ':1'],
    ['restore', 'DEL', '+OK'],
  ] as const) {
    test(`reject when ${command} gets ${reply}, which confirms another command [§24]`, async (t) => {
      const { store, revocations, logged } = await startStand(t);
      store.say = except(command, `${reply}\r\n`);
      await assert.rejects(revocations[name]({ tokenId: 't' }), UNAVAILABLE);
      await logged('revocation store lost');
    });
  }

  test('reject a second after a write that the store does not confirm', async (t) => {
    const { store, clock, revocations } = await startStand(t);
    store.say = except('SET', () => undefined);
    const written = assert.rejects(revocations.revoke({ tokenId: 't' }), UNAVAILABLE);
    await store.received(GREETING + 1);
    clock.advance(1_000);
    await written;
  });

  test('wait for a connection for two seconds', async (t) => {
    const { store, clock, revocations, logged } = await openStand(t, {
      say: (_, socket) => void socket.destroy(),
    });
    await logged('revocation store lost');
    let isSettled = false;
    const early = revocations.revoke({ tokenId: 'early' }).finally(() => {
      isSettled = true;
    });
    const rejected = assert.rejects(early, UNAVAILABLE);
    clock.advance(1_999);
    await new Promise(setImmediate);
    assert.equal(isSettled, false);
    clock.advance(1);
    await rejected;

    const written = revocations.revoke({ tokenId: 'late' });
    const entries = new Map<string, string>();
    store.say = storeWith(entries);
    while (entries.size === 0) {
      clock.advance(100);
      await new Promise(setImmediate);
    }
    await written;
    assert.deepEqual([...entries.keys()], [keyFor('jti', 'late')]);
  });

  test('wait for a connection when the reply to another write has just ended one [§24]', async (t) => {
    const { store, clock, revocations, logged } = await startStand(t);
    store.say = except('SET', '-READONLY x\r\n');
    await assert.rejects(revocations.revoke({ tokenId: 'early' }), UNAVAILABLE);
    const written = revocations.revoke({ tokenId: 'late' });
    const entries = new Map<string, string>();
    store.say = storeWith(entries);
    await logged('revocation store lost');
    clock.advance(PAUSE_MILLIS);
    await written;
    assert.deepEqual([...entries.keys()], [keyFor('jti', 'late')]);
  });

  for (const [reply, sockets] of [
    ['-NOPERM x', 1],
    ['-OOM x', 1],
    ['-READONLY x', 2],
    ['-MOVED 1 127.0.0.1:1', 2],
    ['+QUEUED', 2],
    [':2', 2],
  ] as const) {
    const end = sockets === 1 ? 'leave the connection open' : 'end the connection';
    test(`${end} after the reply ${reply} [§24]`, async (t) => {
      const { store, clock, revocations, logged } = await startStand(t);
      store.say = except('SET', `${reply}\r\n`);
      await assert.rejects(revocations.revoke({ tokenId: 't' }), UNAVAILABLE);
      store.say = storeWith(new Map());
      if (sockets === 2) {
        await logged('revocation store lost');
        clock.advance(RETRY_MILLIS);
        await logged('revocation store ready', 2);
      }
      await revocations.revoke({ tokenId: 't' });
      assert.equal(store.sockets.length, sockets);
    });
  }

  test('leave the connection open after a confirmation, and no timer', async (t) => {
    const { store, clock, revocations } = await startStand(t);
    const idle = clock.pending;
    const before = timers();
    const written = revocations.revoke({ tokenId: 't' });
    assert.equal(timers(), before + 1);
    await written;
    await revocations.restore({ tokenId: 't' });
    await revocations.restore({ tokenId: 't' });
    assert.deepEqual([store.sockets.length, clock.pending, timers()], [1, idle, before]);
  });

  test('send a write once, although its connection ends before the reply and another is ready [§24]', async (t) => {
    const { store, clock, revocations, logged } = await startStand(t);
    store.say = except('SET', (_, socket) => void socket.destroy());
    await assert.rejects(revocations.revoke({ tokenId: 't' }), UNAVAILABLE);
    await logged('revocation store lost');
    store.say = storeWith(new Map());
    clock.advance(RETRY_MILLIS);
    await logged('revocation store ready', 2);
    assert.equal(store.commands.filter(([command]) => command === 'SET').length, 1);
  });

  test('reject at once when they are closed, and after it', async (t) => {
    const { store, clock, revocations } = await openStand(t, { say: () => undefined });
    await store.received(1);
    const waiting = assert.rejects(revocations.revoke({ tokenId: 'early' }), UNAVAILABLE);
    revocations.close();
    await waiting;
    await assert.rejects(revocations.revoke({ tokenId: 'late' }), UNAVAILABLE);
    assert.deepEqual(clock.pending, []);
  });

  test('need to know the issuer: by an option, or from the first gate', async (t) => {
    const store = await startFakeStore(t, storeWith(new Map()));
    const alone = makeRevocations(`redis://127.0.0.1:${store.port}`, undefined, new TestClock());
    t.after(alone.close);
    const problem = 'domain: is required to know the issuer; pass it to createRevocations';
    const unknown = (owner: string) => ({ name: 'TypeError', message: `${owner}: ${problem}` });
    await assert.rejects(alone.revoke({ subject: 'u' }), unknown('revoke'));
    await assert.rejects(alone.restore({ subject: 'u' }), unknown('restore'));
    const { options } = makeIssuer();
    createGate({ ...options, revocations: alone }).close();
    await alone.revoke({ subject: 'u' });
    const written = store.commands.find(([command]) => command === 'SET');
    assert.equal(written?.[1], keyFor('sub', 'u', `https://${options.domain}/`));
  });

  test('name an issuer of several, or the tenant of a template', async (t) => {
    const template = 'https://login.test/{tenant}/v2.0';
    const { store, revocations } = await startStand(t, { issuers: [template, ISSUER] });
    const tenant = 'https://login.test/a-1/v2.0';
    for (const issuer of [ISSUER, tenant]) {
      await revocations.revoke({ subject: 'u', issuer });
      assert.equal(store.commands.at(-1)?.[1], keyFor('sub', 'u', issuer));
    }
    for (const issuer of [
      undefined,
      template,
      'https://login.test/a/b/v2.0',
      'https://login.test//v2.0',
      'https://login.test/v2.0',
      `${tenant}/`,
      'https://login.test/.a/v2.0',
      `${ISSUER}x`,
      ISSUER.toUpperCase(),
    ]) {
      const rejection = { name: 'TypeError', message: NO_ISSUER };
      await assert.rejects(revocations.revoke({ subject: 'u', issuer }), rejection);
    }
  });

  test('take the issuers of a gate that was made before, with the parts that serve it [§24]', async (t) => {
    const store = await startFakeStore(t, storeWith(new Map()));
    const { options } = makeIssuer();
    const given = { domain: 'partner.test', audience: 'x' };
    const template = 'https://login.test/{tenant}/v2.0';
    const issuers = {
      entra: { ...given, tenants: tenants({ issuer: template, list: ['one'] }) },
      partner: {
        ...given,
        introspection: introspection({ tokens: ['jwt'], clientId: 'a', clientSecret: 'b' }),
      },
    };
    t.after(createGate({ ...options, issuers }).close);
    const url = `redis://127.0.0.1:${store.port}`;
    const revocations = createRevocations({ store: url, domain: options.domain, issuers });
    t.after(revocations.close);
    for (const issuer of ['https://login.test/one/v2.0', 'https://partner.test/']) {
      await revocations.revoke({ subject: 'u', issuer });
      const written = store.commands.filter(([command]) => command === 'SET').at(-1);
      assert.equal(written?.[1], keyFor('sub', 'u', issuer));
    }
  });

  test('refuse a part of another kind, even one that serves a gate already [§11]', (t) => {
    const { options } = makeIssuer();
    const given = { domain: 'partner.test', audience: 'x' };
    const part = introspection({ tokens: ['jwt'], clientId: 'a', clientSecret: 'b' });
    t.after(createGate({ ...options, issuers: { partner: { ...given, introspection: part } } }).close);
    const issuers = { partner: { ...given, tenants: part as never } };
    const make = () => createRevocations({ store: 'redis://127.0.0.1:1', domain: options.domain, issuers });
    assert.throws(make, /tenants: must be a part/);
  });

  const partner = { domain: 'partner.test' };
  const part = () => tenants({ issuer: 'https://login.test/{tenant}/', list: ['one'] });
  const named = (name: string) => ({ [name]: partner });
  const names = /^revocations: issuers: must be up to 20 names in lower case/;
  for (const [what, issuers, message] of [
    ['a name with a capital', named('Partner'), names],
    ['the name of the first', named('idp'), names],
    [
      'the issuer of the first',
      { partner: { domain: 'idp.test' } },
      /^revocations: issuers\.partner: issuer: is also the issuer \(iss\) of another/,
    ],
    [
      'the issuer of another',
      { one: partner, two: partner },
      /^revocations: issuers\.two: issuer: is also the issuer \(iss\) of another/,
    ],
    [
      'an issuer beside tenants',
      { partner: { ...partner, issuer: 'https://partner.test/', tenants: part() } },
      /^revocations: issuers\.partner: issuer: is already set by tenants\(\{ issuer \}\)/,
    ],
    ['no domain', { partner: {} }, /^revocations: issuers\.partner: domain: /],
  ] as const) {
    test(`refuse issuers as a gate does: ${what} [§14, §24]`, () => {
      const make = () => createRevocations({ store: 'redis://127.0.0.1:1', domain: 'idp.test', issuers });
      assert.throws(make, { name: 'TypeError', message });
    });
  }

  test('need the domain of the first issuer beside others, even beside none', () => {
    for (const issuers of [{}, { partner }]) {
      assert.throws(() => createRevocations({ store: 'redis://127.0.0.1:1', issuers }), {
        name: 'TypeError',
        message: 'revocations: domain: is required to know the issuer; pass it to createRevocations',
      });
    }
  });

  test('take an issuer before the one of a domain, and templates of tenants as issuers', async (t) => {
    const store = await startFakeStore(t, storeWith(new Map()));
    const templates = ['https://login.test/{tenant}/', 'https://partner.test/{tenant}/'] as const;
    const revocations = createRevocations({
      store: `redis://127.0.0.1:${store.port}`,
      domain: 'login.test',
      issuer: templates[0],
      issuers: { partner: { ...partner, issuer: templates[1] } },
    });
    t.after(revocations.close);
    for (const template of templates) {
      const issuer = template.replace('{tenant}', 'one');
      await revocations.revoke({ subject: 'u', issuer });
      const written = store.commands.filter(([command]) => command === 'SET').at(-1);
      assert.equal(written?.[1], keyFor('sub', 'u', issuer));
    }
    await assert.rejects(revocations.revoke({ subject: 'u', issuer: 'https://login.test/' }), TypeError);
  });

  test('may have more issuers than one gate, since they may serve several', () => {
    const entries = Array.from({ length: 21 }, (_, index) => [`p${index}`, { domain: `p${index}.test` }]);
    const issuers = Object.fromEntries(entries);
    createRevocations({ store: 'redis://127.0.0.1:1', domain: 'idp.test', issuers }).close();
  });

  test('need the URL of a store', () => {
    assert.throws(() => createRevocations({ domain: 'idp.test' } as never), {
      name: 'TypeError',
      message: 'revocations: store: is missing; set the URL of the store, such as rediss://store.example.com',
    });
  });

  test('must have every issuer of a gate that takes them', (t) => {
    const { options } = makeIssuer();
    const revocations = makeRevocations('redis://127.0.0.1:1', ['https://other.test/'], new TestClock());
    t.after(revocations.close);
    const lacking = {
      name: 'TypeError',
      message: 'revocations: lack an issuer; pass every one to createRevocations',
    };
    assert.throws(() => createGate({ ...options, revocations }), lacking);
    const issuers = { partner: { domain: 'other.test', audience: 'x' } };
    assert.throws(() => createGate({ ...options, issuers, revocations }), lacking);
    const known = { domain: 'other.test', audience: 'x', revocations };
    assert.throws(
      () => createGate({ ...known, issuers: { partner: { domain: 'a.test', audience: 'x' } } }),
      lacking,
    );
    createGate(known).close();
  });
});
