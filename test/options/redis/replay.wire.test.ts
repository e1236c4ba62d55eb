/* The shared store with a server that does what a test says: the commands, the meaning of each reply, and
   that nothing else admits a proof. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, Socket, type AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import type { Writable } from 'node:stream';
import type { TlsOptions } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SharedReplayStore } from '../../../src/options/redis/replay.ts';
import { TestClock } from '../../support/clock.ts';
import {
  afterGreeting,
  deliver,
  goodStore,
  openClient,
  startFakeStore,
  startPair,
  THUMBPRINT,
  type FakeStore,
  type Say,
} from '../fake-store.ts';

const GREETING = 1;
const silent = afterGreeting(() => undefined);

/** The longest pause before another attempt. */
const RETRY_MILLIS = 2_000;

describe('commands to the store', () => {
  test('records a proof once under the hash of its key and jti, until a minute after it can last be accepted [RFC 9449 §11.1, E3]', async (t) => {
    const { store, client } = await startPair(t);
    assert.equal(await client.record('a "jti" of é'), 'new');
    assert.equal(await client.record('a "jti" of é'), 'seen');
    const name = createHash('sha256').update(`${THUMBPRINT}"a \\"jti\\" of é"`).digest('base64url');
    const command = ['SET', `gatehouse:dpop:${name}`, '1', 'NX', 'EX', '361'];
    assert.deepEqual(store.commands.slice(GREETING), [command, command]);
  });

  for (const [lifeSeconds, seconds] of [
    [0, 61],
    [1, 62],
    [0.5, 62],
    [299.999, 361],
    [330, 391],
    [-1, 61],
    [-500, 61],
    [1e9, 1e9 + 61],
  ] as const) {
    test(`makes the store keep a proof for ${seconds} s when it can be accepted for ${lifeSeconds} s more`, async (t) => {
      const { store, client } = await startPair(t);
      assert.equal(await client.record('jti', lifeSeconds), 'new');
      assert.equal(store.commands.at(-1)?.at(-1), String(seconds));
    });
  }

  for (const [address, greeting] of [
    ['redis://HOST', [['PING']]],
    ['redis://HOST/', [['PING']]],
    ['redis://HOST/0', [['PING']]],
    ['redis://HOST/00', [['PING']]],
    ['redis://HOST/070', [['SELECT', '70'], ['PING']]],
    ['redis://HOST/12', [['SELECT', '12'], ['PING']]],
    ['redis://:secret@HOST', [['AUTH', 'secret'], ['PING']]],
    ['redis://user:secret@HOST/3', [['AUTH', 'user', 'secret'], ['SELECT', '3'], ['PING']]],
    ['redis://us%65r:p%40ss%20w%C3%B6rd%0D%0A@HOST', [['AUTH', 'user', 'p@ss wörd\r\n'], ['PING']]],
  ] as const) {
    test(`greets with ${greeting.map(([word]) => word).join(', ')} for ${address}, and only then sends a proof`, async (t) => {
      const store = await startFakeStore(t);
      const client = openClient(t, address.replace('HOST', `127.0.0.1:${store.port}`));
      assert.equal(client.record('too early'), 'unavailable');
      await client.logged('replay store ready');
      assert.deepEqual(store.commands, greeting);
      assert.equal(await client.record('jti'), 'new');
    });
  }

  for (const [address, host, port] of [
    ['redis://store.test', 'store.test', 6379],
    ['redis://store.test:7000', 'store.test', 7000],
    ['redis://store.test:65535', 'store.test', 65_535],
    ['redis://[::1]:7001', '::1', 7001],
    ['rediss://[2001:db8::7]', '2001:db8::7', 6379],
  ] as const) {
    test(`connects to port ${port} of ${host} for ${address}`, (t) => {
      const connections = t.mock.method(Socket.prototype, 'connect', function (this: Socket) {
        return this;
      });
      openClient(t, address);
      const [first] = connections.mock.calls[0]?.arguments as unknown[];
      // net.connect passes it in a list.
      const asked = (Array.isArray(first) ? first[0] : first) as { host: string; port: number };
      assert.deepEqual([asked.host, asked.port], [host, port]);
    });
  }

  test('sends the commands of one turn in one write', async (t) => {
    const { store, client } = await startPair(t, silent);
    // What a socket passes to the system.
    const single = t.mock.method(Socket.prototype, '_write');
    const joined = t.mock.method(Socket.prototype as Writable, '_writev' as '_write');
    for (let count = 0; count < 200; count += 1) void client.record(`jti ${count}`);
    await store.received(GREETING + 200);
    assert.equal(single.mock.callCount() + joined.mock.callCount(), 1);
  });

  test('sends a command at once, even while the last one has no reply', async (t) => {
    const { store, client } = await startPair(t, silent);
    for (let count = 1; count <= 20; count += 1) {
      void client.record(`jti ${count}`);
      // Less than the delay of small packets in the system.
      for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
      assert.equal(store.commands.length, GREETING + count);
    }
  });
});

describe('replies of the store', () => {
  for (const reply of [
    '-OOM command not allowed',
    '-NOPERM no permissions',
    '-ERR unknown',
    '-ERR',
    '-MOVEDX 1',
  ]) {
    test(`refuses one proof after ${reply}, logs it, and keeps the connection`, async (t) => {
      const say = goodStore();
      const { store, client } = await startPair(
        t,
        afterGreeting((words, socket) => (store.commands.length === 2 ? `${reply}\r\n` : say(words, socket))),
      );
      const verdicts = await Promise.all([client.record('a'), client.record('b'), client.record('a')]);
      assert.deepEqual(verdicts, ['unavailable', 'new', 'new']);
      assert.equal(store.sockets.length, 1);
      const [, word = 'reply-refused'] = /^-([A-Z]+)/.exec(reply) ?? [];
      assert.deepEqual(
        client.logs.map(({ message, reason }) => [message, reason]),
        [
          ['replay store ready', undefined],
          ['replay store lost', word],
        ],
      );
    });
  }

  test('is logged as lost, and not as up, until no proof was refused for two seconds, such as by one full server of a cluster', async (t) => {
    const say = goodStore();
    const { store, client } = await startPair(t);
    const told = () => client.logs.map(({ message }) => message);
    const lost = ['replay store ready', 'replay store lost'];

    /** The next proof is refused, the one after it is not. */
    async function recordTwo(name: string) {
      store.say = afterGreeting('-OOM x\r\n');
      assert.equal(await client.record(name), 'unavailable');
      store.say = say;
      assert.equal(await client.record(name), 'new');
      assert.deepEqual(told(), lost);
      assert.equal(client.isUp(), false);
    }

    await recordTwo('a');
    client.clock.advance(1_999);
    await recordTwo('b');
    client.clock.advance(1_999);
    assert.equal(await client.record('c'), 'new');
    assert.deepEqual(told(), lost);
    client.clock.advance(1);
    assert.equal(client.isUp(), false);
    assert.equal(await client.record('d'), 'new');
    assert.deepEqual(told(), [...lost, 'replay store ready']);
    assert.equal(client.isUp(), true);
    store.say = afterGreeting('-OOM x\r\n');
    assert.equal(await client.record('e'), 'unavailable');
    assert.equal(client.logs.length, 4);

    // A verdict as well: only a server that may write says so.
    store.say = say;
    client.clock.advance(2_000);
    assert.equal(await client.record('d'), 'seen');
    assert.deepEqual([told().at(-1), client.isUp()], ['replay store ready', true]);
  });

  for (const word of ['READONLY', 'LOADING', 'MASTERDOWN', 'NOAUTH', 'CLUSTERDOWN', 'MOVED']) {
    test(`refuses every waiting proof after ${word}, and ends the connection and opens another`, async (t) => {
      const { store, client } = await startPair(t, afterGreeting(`-${word} for people\r\n`));
      const verdicts = await Promise.all([client.record('a'), client.record('b')]);
      assert.deepEqual(verdicts, ['unavailable', 'unavailable']);
      assert.equal((await client.logged('replay store lost')).reason, word);
      store.say = goodStore();
      client.clock.advance(RETRY_MILLIS);
      await client.greeted();
      assert.equal(await client.record('a'), 'new');
      assert.equal(store.sockets.length, 2);
    });
  }

  for (const reply of [
    ':1',
    ':0',
    '$2\r\nOK',
    '$0\r\n',
    '$-1 ',
    '$-2',
    '*-1',
    '*1\r\n+OK',
    '_',
    '#t',
    '+ok',
    '+OK ',
    ' +OK',
    '+OK\n+OK',
    '+QUEUED',
    '+PONG',
    'OK',
    '',
    '\0',
    'HTTP/1.1 400 Bad Request',
    '\u00ff\u00fe',
  ]) {
    test(`ends the connection after ${JSON.stringify(reply)}, which is not a reply to SET`, async (t) => {
      const { client } = await startPair(t, afterGreeting(`${reply}\r\n`));
      assert.equal(await client.record('jti'), 'unavailable');
      assert.equal((await client.logged('replay store lost')).reason, 'reply-refused');
    });
  }

  for (const [command, reply, reason] of [
    ['AUTH', '-WRONGPASS invalid username-password pair or user is disabled.', 'WRONGPASS'],
    ['AUTH', '-ERR AUTH <password> called without any password configured', 'ERR'],
    ['AUTH', '-NOPERM', 'NOPERM'],
    ['AUTH', '+PONG', 'reply-refused'],
    ['SELECT', '-ERR DB index is out of range', 'ERR'],
    ['SELECT', '$-1', 'reply-refused'],
    ['PING', '-NOAUTH Authentication required.', 'NOAUTH'],
    ['PING', '-LOADING Redis is loading the dataset in memory', 'LOADING'],
    ['PING', '-NOPERMX', 'NOPERMX'],
    ['PING', '+OK', 'reply-refused'],
    ['PING', '+PONG ', 'reply-refused'],
    ['PING', ' +PONG', 'reply-refused'],
    ['PING', '-ERR -NOPERM', 'ERR'],
    ['PING', '$4\r\nPONG', 'reply-refused'],
  ] as const) {
    test(`does not accept ${JSON.stringify(reply)} as the reply to ${command} in the greeting`, async (t) => {
      const good = goodStore();
      const say: Say = (words, socket) => (words[0] === command ? `${reply}\r\n` : good(words, socket));
      const store = await startFakeStore(t, say);
      const client = openClient(t, `redis://user:secret@127.0.0.1:${store.port}/1`);
      assert.equal((await client.logged('replay store lost')).reason, reason);
      assert.equal(client.record('jti'), 'unavailable');
      assert.equal(client.logs.length, 1);
    });
  }

  test('accepts NOPERM as the reply to PING in the greeting, since permission to record suffices', async (t) => {
    const good = goodStore();

    const say: Say = (words, socket) =>
      words[0] === 'PING' ? "-NOPERM this user may not run 'ping'\r\n" : good(words, socket);

    const { client } = await startPair(t, say);
    assert.equal(await client.record('jti'), 'new');
  });

  test('ends the connection after an unexpected reply', async (t) => {
    const { store, client } = await startPair(t);
    store.sockets[0]?.write('+OK\r\n');
    assert.equal((await client.logged('replay store lost')).reason, 'reply-refused');
    assert.equal(client.record('jti'), 'unavailable');
  });

  for (const [what, bytes] of [
    ['bytes', '220 mail.example.com ESMTP\r\n'],
    ['bytes that end within a line, such as the body of an HTTP response,', 'HTTP/1.1 400 \r\n\r\nno'],
  ] as const) {
    test(`ends the connection after ${what} before the greeting`, async (t) => {
      const store = await startFakeStore(t, () => undefined);
      const client = openClient(t, `redis://127.0.0.1:${store.port}`);
      await store.connected(1);
      store.sockets[0]?.write(bytes);
      assert.equal((await client.logged('replay store lost')).reason, 'reply-refused');
    });
  }

  test('accepts an error of 64 KiB, and ends the connection after a longer one', async (t) => {
    const longest = `-ERR ${'x'.repeat(64 * 1024 - 5)}`;
    const { client, store } = await startPair(t, afterGreeting(`${longest}\r\n`));
    assert.equal(await client.record('a'), 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'ERR');
    store.say = goodStore();
    client.clock.advance(2_000);
    assert.equal(await client.record('a'), 'new');
    store.say = afterGreeting(`${longest}x\r\n`);
    assert.equal(await client.record('b'), 'unavailable');
    assert.equal((await client.logged('replay store lost', 2)).reason, 'reply-refused');
  });

  test('ends the connection after 64 KiB without a line end, before the timeout', async (t) => {
    const { client } = await startPair(t, afterGreeting('-'.repeat(64 * 1024 + 1)));
    assert.equal(await client.record('jti'), 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'reply-refused');
  });

  test('accepts more than 64 KiB of short replies', async (t) => {
    const { client, store } = await startPair(t, afterGreeting(`-OOM ${'x'.repeat(100)}\r\n`));
    const verdicts = Array.from({ length: 2_000 }, (_, index) => client.record(`jti ${index}`));
    assert.deepEqual(new Set(await Promise.all(verdicts)), new Set(['unavailable']));
    assert.equal(store.sockets.length, 1);
  });
});

describe('pieces of replies', () => {
  const replies = '+OK\r\n$-1\r\n-OOM x\r\n+OK\r\n';

  test('reads replies that are cut anywhere', async (t) => {
    for (let cut = 0; cut <= replies.length; cut += 1) {
      const { store, client } = await startPair(t, silent);
      const verdicts = ['a', 'b', 'c', 'd'].map((jti) => client.record(jti));
      await store.received(GREETING + 4);
      await deliver(store, replies.slice(0, cut));
      await deliver(store, replies.slice(cut));
      assert.deepEqual(await Promise.all(verdicts), ['new', 'seen', 'unavailable', 'new'], `cut ${cut}`);
    }
  });

  test('accepts no proof whose reply was cut off by the end of the connection, at any byte', async (t) => {
    const whole = ['new', 'seen', 'unavailable', 'new'];
    for (let cut = 0; cut < replies.length; cut += 1) {
      const { store, client } = await startPair(t, silent);
      const verdicts = ['a', 'b', 'c', 'd'].map((jti) => client.record(jti));
      await store.received(GREETING + 4);
      store.sockets[0]?.end(replies.slice(0, cut));
      const count = replies.slice(0, cut).split('\r\n').length - 1;
      const expected = whole.map((verdict, index) => (index < count ? verdict : 'unavailable'));
      assert.deepEqual(await Promise.all(verdicts), expected, `cut ${cut}`);
      const reason = count > whole.indexOf('unavailable') ? 'OOM' : 'closed';
      assert.equal((await client.logged('replay store lost')).reason, reason);
    }
  });

  test('is not ready if the greeting was cut off by the end of the connection, at any byte', async (t) => {
    const greeting = '+OK\r\n+OK\r\n+PONG\r\n';
    for (let cut = 0; cut < greeting.length; cut += 1) {
      const store = await startFakeStore(t, () => undefined);
      const client = openClient(t, `redis://user:secret@127.0.0.1:${store.port}/1`);
      await store.received(3);
      store.sockets[0]?.end(greeting.slice(0, cut));
      assert.equal((await client.logged('replay store lost')).reason, 'closed', `cut ${cut}`);
      assert.equal(client.logs.length, 1);
    }
  });

  test('accepts no proof when the connection is reset while a reply is pending', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdict = client.record('jti');
    await store.received(GREETING + 1);
    store.sockets[0]?.resetAndDestroy();
    assert.equal(await verdict, 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'ECONNRESET');
  });
});

describe('timeouts', () => {
  test('waits at most a second for a reply', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = [client.record('a'), client.record('b')];
    await store.received(GREETING + 2);
    client.clock.advance(999);
    assert.equal(client.logs.length, 1);
    client.clock.advance(1);
    assert.deepEqual(await Promise.all(verdicts), ['unavailable', 'unavailable']);
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
    assert.equal(client.record('c'), 'unavailable');
  });

  test('takes a reply that is on its way when the second is over, as when the process was busy or stopped', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = [client.record('a'), client.record('b')];
    await store.received(GREETING + 2);
    // From here, as from a timer, the next turn reads before it calls what `setImmediate` took.
    await new Promise(setImmediate);
    // The timer is late, and what the system has received is read only after it.
    store.sockets[0]?.write('+OK\r\n+OK\r\n');
    client.clock.advance(60_000);
    assert.deepEqual(await Promise.all(verdicts), ['new', 'new']);
    const late = client.record('c');
    await store.received(GREETING + 3);
    client.clock.advance(1_000);
    assert.equal(await late, 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
  });

  test('ends the connection a second after a command was sent, even if replies to earlier commands arrive meanwhile [§15]', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = ['a', 'b', 'c'].map((jti) => client.record(jti));
    await store.received(GREETING + 3);
    client.clock.advance(900);
    await deliver(store, '+OK\r\n');
    client.clock.advance(99);
    assert.equal(client.logs.length, 1);
    client.clock.advance(1);
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
    assert.deepEqual(await Promise.all(verdicts), ['new', 'unavailable', 'unavailable']);
  });

  test('gives each command a second from its own sending, even if an earlier reply took almost a second [§15]', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = [client.record('a')];
    client.clock.advance(600);
    verdicts.push(client.record('b'));
    await store.received(GREETING + 2);
    client.clock.advance(399);
    await deliver(store, '+OK\r\n');
    client.clock.advance(600);
    assert.equal(client.logs.length, 1);
    client.clock.advance(1);
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
    assert.deepEqual(await Promise.all(verdicts), ['new', 'unavailable']);
  });

  test('measures the timeout of one second from the oldest command, whatever is sent meanwhile', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = [client.record('a')];
    await store.received(GREETING + 1);
    client.clock.advance(600);
    verdicts.push(client.record('b'));
    await store.received(GREETING + 2);
    client.clock.advance(400);
    assert.deepEqual(await Promise.all(verdicts), ['unavailable', 'unavailable']);
  });

  test('measures no time while no reply is pending, and starts again with the next command', async (t) => {
    const { store, client } = await startPair(t);
    assert.equal(await client.record('a'), 'new');
    client.clock.advance(3_600_000);
    store.say = silent;
    const verdict = client.record('b');
    await store.received(GREETING + 2);
    client.clock.advance(999);
    assert.equal(client.logs.length, 1);
    client.clock.advance(1);
    assert.equal(await verdict, 'unavailable');
  });

  test('does not extend the timeout by a reply in small pieces', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdict = client.record('jti');
    await store.received(GREETING + 1);
    for (const piece of ['+', 'O', 'K']) {
      await deliver(store, piece);
      client.clock.advance(300);
    }
    client.clock.advance(100);
    assert.equal(await verdict, 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
  });

  test('does not extend the timeout by pieces that come faster than a timer, which waits at least a millisecond', async (t) => {
    const { store, client } = await startPair(t, silent);
    const { after } = client.clock;
    t.mock.method(client.clock, 'after', (millis: number, action: () => void) =>
      after(Math.max(1, millis), action),
    );
    const verdict = client.record('jti');
    await store.received(GREETING + 1);
    client.clock.advance(999);
    await deliver(store, '+');

    for (const piece of ['O', 'K']) {
      client.clock.advance(0.5);
      await deliver(store, piece);
    }
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
    assert.equal(await verdict, 'unavailable');
  });

  test('gives the whole greeting two seconds, whatever arrives meanwhile', async (t) => {
    const store = await startFakeStore(t, () => undefined);
    const client = openClient(t, `redis://user:secret@127.0.0.1:${store.port}/1`);
    await store.received(3);
    client.clock.advance(1_900);
    await deliver(store, '+OK\r\n+OK\r\n');
    client.clock.advance(99);
    assert.equal(client.logs.length, 0);
    client.clock.advance(1);
    assert.equal((await client.logged('replay store lost')).reason, 'timeout');
  });

  test('lets the system ask a minute into a silence whether the store is still there, since networks forget silent connections', async (t) => {
    const asked = t.mock.method(Socket.prototype, 'setKeepAlive');
    const { client } = await startPair(t);
    await client.greeted();
    assert.deepEqual(
      asked.mock.calls.map(({ arguments: given }) => given),
      [[true, 60_000]],
    );
  });

  test('lets ten thousand proofs wait, and refuses the next at once', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdicts = Array.from({ length: 10_000 }, (_, index) => client.record(`jti ${index}`));
    assert.equal(client.record('one more'), 'unavailable');
    await store.received(GREETING + 10_000);
    assert.equal(client.record('one more'), 'unavailable');
    store.sockets[0]?.write('+OK\r\n');
    assert.equal(await verdicts[0], 'new');
    const last = client.record('one more');
    assert.equal(client.record('and one more'), 'unavailable');
    await store.received(GREETING + 10_001);
    store.sockets[0]?.write('$-1\r\n'.repeat(10_000));
    assert.deepEqual(new Set(await Promise.all([...verdicts.slice(1), last])), new Set(['seen']));
  });
});

describe('the connection', () => {
  for (const [random, share] of [
    [0, 0.5],
    [0.5, 0.75],
    [1, 1],
  ] as const) {
    test(`is opened again after a pause that doubles from 50 ms to 2 s, with ${share} jitter and one log line`, async (t) => {
      t.mock.method(Math, 'random', () => random);
      const store = await startFakeStore(t, (_, socket) => void socket.destroy());
      const client = openClient(t, `redis://127.0.0.1:${store.port}`);
      for (const [attempt, pause] of [50, 100, 200, 400, 800, 1_600, 2_000, 2_000].entries()) {
        assert.equal(await client.timer(2 * attempt + 1), 2_000);
        assert.equal(await client.timer(2 * attempt + 2), pause * share);
        assert.equal(client.clock.pending.length, 1);
        client.clock.advance(pause);
      }
      await client.timer(17);
      assert.equal(client.logs.length, 1);
    });
  }

  for (const reply of ['-READONLY x', ':1', '-OOM x']) {
    test(`has its pause reset to 50 ms only by a recorded proof, not by a mere greeting, nor by ${reply}`, async (t) => {
      t.mock.method(Math, 'random', () => 1);
      const { store, client } = await startPair(t, afterGreeting(`${reply}\r\n`));

      const lose = async () => {
        assert.equal(await client.record('jti'), 'unavailable');
        store.sockets.at(-1)?.destroy();
        await client.lost();
        const [millis] = client.clock.pending;
        client.clock.advance(RETRY_MILLIS);
        await client.greeted();
        return millis;
      };

      for (const pause of [50, 100, 200]) assert.equal(await lose(), pause);
      store.say = goodStore();
      assert.equal(await client.record('jti'), 'new');
      store.say = afterGreeting(`${reply}\r\n`);
      assert.equal(await lose(), 50);
    });
  }

  for (const reply of ['-READONLY x', '-MOVED 1 other.test:6379', ':1']) {
    test(`is logged as lost once, and not as up, however often it is opened again, while the store replies ${reply} to proofs`, async (t) => {
      const { store, client } = await startPair(t, afterGreeting(`${reply}\r\n`));
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const verdicts = await Promise.all([client.record('a'), client.record('b')]);
        assert.deepEqual(verdicts, ['unavailable', 'unavailable']);
        await client.lost();
        client.clock.advance(RETRY_MILLIS);
        await client.greeted();
        assert.equal(client.isUp(), false);
      }
      const told = () => client.logs.map(({ message }) => message);
      assert.deepEqual(told(), ['replay store ready', 'replay store lost']);
      store.say = goodStore();
      assert.equal(await client.record('a'), 'new');
      assert.equal(await client.record('b'), 'new');
      assert.deepEqual(told(), ['replay store ready', 'replay store lost', 'replay store ready']);

      // From now on its greeting counts again.
      store.sockets.at(-1)?.resetAndDestroy();
      await client.logged('replay store lost', 2);
      client.clock.advance(RETRY_MILLIS);
      await client.logged('replay store ready', 3);
    });
  }

  test('is ready once it greets, if it left a proof without a reply as it ended, and then was silent [§15]', async (t) => {
    const { store, client } = await startPair(t, silent);
    const waiting = client.record('jti');
    await store.received(GREETING + 1);
    store.say = () => undefined;
    store.sockets[0]?.resetAndDestroy();
    assert.equal(await waiting, 'unavailable');
    await client.lost();
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      client.clock.advance(RETRY_MILLIS);
      await store.connected(attempt);
      client.clock.advance(2_000);
      await client.lost();
    }

    store.say = goodStore();
    client.clock.advance(RETRY_MILLIS);
    await client.logged('replay store ready', 2);
    assert.equal(client.isUp(), true);
  });

  test('stays lost after a second connection that ends on a proof, however it ends, and not after the first since a verdict [§15]', async (t) => {
    const { store, client } = await startPair(t);

    const endOnProof = async () => {
      store.say = silent;
      const verdict = client.record(`jti ${store.commands.length}`);
      await store.received(store.commands.length + 1);
      store.sockets.at(-1)?.resetAndDestroy();
      assert.equal(await verdict, 'unavailable');
      await client.lost();
      store.say = goodStore();
      client.clock.advance(RETRY_MILLIS);
      await client.greeted();
    };

    for (let round = 1; round <= 2; round += 1) {
      await endOnProof();
      assert.equal(client.isUp(), true);
      assert.equal(await client.record(`round ${round}`), 'new');
    }
    await endOnProof();
    await endOnProof();
    assert.equal(client.isUp(), false);
    assert.equal(await client.record('last'), 'new');
    assert.equal(client.isUp(), true);
  });

  test('is logged as lost, and not as up, however often it is opened again, while the store greets and leaves proofs on more than one connection without a reply [§15]', async (t) => {
    const { store, client } = await startPair(t, silent);
    const told = () => client.logs.map(({ message }) => message);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const verdict = client.record(`jti ${attempt}`);
      await store.received(store.commands.length + 1);
      client.clock.advance(1_000);
      assert.equal(await verdict, 'unavailable');
      await client.lost();
      client.clock.advance(RETRY_MILLIS);
      await client.greeted();
      // Once may be a pause that is over, with no proof to come for hours.
      assert.equal(client.isUp(), attempt === 1);
    }
    const pair = ['replay store ready', 'replay store lost'];
    assert.deepEqual(told(), [...pair, ...pair]);

    store.say = goodStore();
    assert.equal(await client.record('a'), 'new');
    assert.deepEqual(told(), [...pair, ...pair, 'replay store ready']);
    assert.equal(client.isUp(), true);
  });

  test('is logged every time that it is lost or ready again, if a proof was recorded in between', async (t) => {
    const { store, client } = await startPair(t);
    for (let count = 1; count <= 2; count += 1) {
      assert.equal(await client.record(`jti ${count}`), 'new');
      const waiting = client.record('left');
      store.sockets.at(-1)?.resetAndDestroy();
      await waiting;
      await client.logged('replay store lost', count);
      client.clock.advance(RETRY_MILLIS);
      await client.logged('replay store ready', count + 1);
    }
    assert.equal(client.logs.length, 5);
  });

  test('is logged once as lost and once as ready, even if the store was down from the start', async (t) => {
    const store = await startFakeStore(t);
    const { port } = store;
    await store.close();
    const client = openClient(t, `redis://user:secret@127.0.0.1:${port}`);
    const lost = await client.logged('replay store lost');
    assert.deepEqual([lost.level, lost.reason], ['warn', 'ECONNREFUSED']);
    await client.timer(2);
    client.clock.advance(RETRY_MILLIS);
    await client.timer(4);
    await startFakeStore(t, goodStore(), undefined, port);
    client.clock.advance(RETRY_MILLIS);
    assert.equal((await client.logged('replay store ready')).level, 'info');
    assert.equal(await client.record('jti'), 'new');
    assert.equal(client.logs.length, 2);
    assert.doesNotMatch(JSON.stringify(client.logs), /secret|user|redis:|127\.0\.0\.1/);
  });

  test('is logged as lost when the name does not resolve', async (t) => {
    const client = openClient(t, 'redis://:secret@store.invalid');
    assert.match(String((await client.logged('replay store lost')).reason), /^(ENOTFOUND|EAI_AGAIN)$/);
    assert.equal(client.record('jti'), 'unavailable');
  });

  test('is logged with only the first word of an error of the store, and only if that word is in capitals', async (t) => {
    for (const [reply, reason] of [
      ['-SECRET of the store', 'SECRET'],
      ['-secret of the store', 'reply-refused'],
      [`-${'S'.repeat(1_000)}`, 'S'.repeat(64)],
      ['secret', 'reply-refused'],
      ['+OK -SECRET', 'reply-refused'],
    ] as const) {
      const store = await startFakeStore(t, () => `${reply}\r\n`);
      const client = openClient(t, `redis://127.0.0.1:${store.port}`);
      assert.equal((await client.logged('replay store lost')).reason, reason);
    }
  });

  test('ends with the service, without a log line or another attempt', async (t) => {
    const { store, client } = await startPair(t, silent);
    const verdict = client.record('jti');
    await store.received(GREETING + 1);
    client.close();
    assert.equal(await verdict, 'unavailable');
    assert.equal(client.record('jti'), 'unavailable');
    assert.deepEqual(client.clock.pending, []);
    assert.equal(client.logs.length, 1);
  });

  test('ends for good when the log callback closes the store after a loss', async (t) => {
    const clock = new TestClock();
    const store = await startFakeStore(t, (_, socket) => void socket.destroy());
    const ended = new Promise<void>((resolve) => {
      const log = () => {
        shared.close?.();
        resolve();
      };

      const shared = new SharedReplayStore(`redis://127.0.0.1:${store.port}`, clock, log);
    });
    await ended;
    assert.deepEqual(clock.pending, []);
  });

  /** Resolves with what it prints. */
  async function runWaiting({ port }: FakeStore, scheme: string, ...words: string[]) {
    const program = fileURLToPath(new URL('../waiting-process.ts', import.meta.url));
    const address = `${scheme}://127.0.0.1:${port}`;
    const run = promisify(execFile)(process.execPath, ['--import', 'tsx', program, address, ...words]);
    return (await run).stdout;
  }

  test('keeps no process alive', async (t) => {
    assert.equal(await runWaiting(await startFakeStore(t), 'redis'), 'replay store ready\n');
  });

  test('keeps no process alive while a store is silent', async (t) => {
    assert.equal(await runWaiting(await startFakeStore(t, silent), 'redis', '-'), '');
  });

  test('keeps a process alive that awaits a reply, but not for longer', async (t) => {
    const store = await startFakeStore(t);
    assert.equal(await runWaiting(store, 'redis', 'jti'), 'replay store ready\nnew\n');
  });

  test('keeps a process alive that awaits the reply of a node that it has yet to connect to', async (t) => {
    const other = await startFakeStore(t);
    const store = await startFakeStore(t, ([command]) => {
      if (command === 'PING') return '+PONG\r\n';
      if (command === 'SET') return `-ASK 1 127.0.0.1:${other.port}\r\n`;
      return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${store.port}\r\n`;
    });
    assert.equal(await runWaiting(store, 'redis-cluster', 'jti'), 'replay store ready\nnew\n');
  });

  for (const state of ['while it is made', 'while it is greeted', 'between two attempts']) {
    test(`ends with the service ${state}, without a log line or another attempt`, async (t) => {
      const say: Say = (_, socket) => (state === 'between two attempts' ? void socket.destroy() : undefined);
      const store = await startFakeStore(t, say);
      const client = openClient(t, `redis://127.0.0.1:${store.port}`);
      if (state === 'while it is greeted') await store.received(1);
      if (state === 'between two attempts') await client.logged('replay store lost');
      const lines = client.logs.length;
      client.close();
      assert.deepEqual(client.clock.pending, []);
      client.clock.advance(60_000);
      await new Promise(setImmediate);
      assert.deepEqual(client.clock.pending, []);
      assert.equal(client.logs.length, lines);
    });
  }
});

describe('over TLS', () => {
  const file = (name: string) => readFileSync(new URL(`../../idp/tls/${name}.pem`, import.meta.url));
  const certificate = (name: string): TlsOptions => ({ cert: file(name), key: file(`${name}-key`) });

  async function startTlsPair(t: TestContext, name: string, host: string) {
    const names: unknown[] = [];

    const SNICallback: TlsOptions['SNICallback'] = (serverName, done) => {
      names.push(serverName);
      done(null);
    };

    const store = await startFakeStore(t, goodStore(), { ...certificate(name), SNICallback });
    const client = openClient(t, `rediss://:secret@${host}:${store.port}`);
    return { store, client, names };
  }

  for (const [host, serverNames] of [
    ['localhost', ['localhost']],
    ['127.0.0.1', []],
  ] as const) {
    test(`records with a store whose certificate is for ${host}, and sends the server name only if it is a name [RFC 6066 §3]`, async (t) => {
      const { client, names } = await startTlsPair(t, 'provider', host);
      await client.logged('replay store ready');
      assert.equal(await client.record('jti'), 'new');
      assert.equal(await client.record('jti'), 'seen');
      assert.deepEqual(names, serverNames);
    });
  }

  for (const [name, reason] of [
    ['other-host', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['expired', 'CERT_HAS_EXPIRED'],
  ] as const) {
    for (const told of ['', '0']) {
      test(`sends nothing to a store with the certificate ${name}${told && ', even under NODE_TLS_REJECT_UNAUTHORIZED=0'}`, async (t) => {
        if (told !== '') process.env.NODE_TLS_REJECT_UNAUTHORIZED = told;
        t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
        const { store, client } = await startTlsPair(t, name, 'localhost');
        assert.equal((await client.logged('replay store lost')).reason, reason);
        assert.deepEqual(store.pieces, []);
        assert.equal(client.record('jti'), 'unavailable');
      });
    }
  }

  test('sends nothing to a store without TLS', async (t) => {
    const pieces: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (piece) => pieces.push(piece));
      socket.write('-ERR what is this\r\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const client = openClient(t, `rediss://:secret@127.0.0.1:${(server.address() as AddressInfo).port}`);
    await client.logged('replay store lost');
    assert.doesNotMatch(Buffer.concat(pieces).toString('latin1'), /secret|AUTH|PING/);
  });
});
