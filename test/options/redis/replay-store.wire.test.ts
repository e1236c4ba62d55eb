/* The shared store with a real server: authentication, what is recorded and for how long, with TLS too. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import { named, NO_STORE, startRedis, type Redis } from '../../support/redis.ts';
import { openClient, THUMBPRINT } from '../fake-store.ts';

const options = { skip: NO_STORE !== undefined };

/** Ends with the test. */
async function openRedis(
  context: TestContext,
  words: readonly string[] = [],
  password?: string,
): Promise<Redis> {
  const redis = await startRedis(words, password);
  context.after(redis.stop);
  return redis;
}

test(
  named(
    'records a proof once in a real store, until a minute after it can last be accepted [RFC 9449 §11.1]',
  ),
  options,
  async (t) => {
    const redis = await openRedis(t);
    const client = openClient(t, `redis://127.0.0.1:${redis.port}`);
    await client.logged('replay store ready');
    assert.deepEqual(await Promise.all(['a', 'b', 'a'].map((jti) => client.record(jti))), [
      'new',
      'new',
      'seen',
    ]);
    const keys = (await redis.ask('KEYS *')).filter((line) => line.startsWith('gatehouse'));
    assert.equal(keys.length, 2);
    for (const key of keys) {
      assert.match(key, /^gatehouse:dpop:[\w-]{43}$/);
      const [time = ''] = await redis.ask(`TTL ${key}`);
      assert.ok([':360', ':361'].includes(time), time);
    }
  },
);

test(
  named('admits one of two replicas that record the same proof at once [RFC 9449 §11.1, E3]'),
  options,
  async (t) => {
    const redis = await openRedis(t);
    const replicas = [0, 1].map(() => openClient(t, `redis://127.0.0.1:${redis.port}`));
    await Promise.all(replicas.map((replica) => replica.logged('replay store ready')));
    for (let count = 0; count < 100; count += 1) {
      const verdicts = await Promise.all(replicas.map((replica) => replica.record(`jti ${count}`)));
      assert.deepEqual(verdicts.sort(), ['new', 'seen']);
    }
  },
);

test(
  named('records as a user with only the rights to record, in a selected database'),
  options,
  async (t) => {
    const redis = await openRedis(t);
    await redis.ask('ACL SETUSER gatehouse on >s%40cr:et %W~gatehouse:dpop:* +set +select');
    const client = openClient(t, `redis://gatehouse:s%2540cr%3Aet@127.0.0.1:${redis.port}/5`);
    await client.logged('replay store ready');
    assert.equal(await client.record('jti'), 'new');
    assert.equal(await client.record('jti'), 'seen');
    assert.deepEqual((await redis.ask('DBSIZE', 'SELECT 5', 'DBSIZE')).slice(0, 3), [':0', '+OK', ':1']);
  },
);

for (const [what, user, reason] of [
  ['the wrong password', ':wrong@', 'WRONGPASS'],
  ['an unknown user', 'nobody:secret@', 'WRONGPASS'],
  ['no password', '', 'NOAUTH'],
] as const) {
  test(named(`gets ${reason} from a real store for ${what}, and is not ready`), options, async (t) => {
    const redis = await openRedis(t, ['--requirepass', 'secret'], 'secret');
    const client = openClient(t, `redis://${user}127.0.0.1:${redis.port}`);
    assert.equal((await client.logged('replay store lost')).reason, reason);
    assert.equal(client.record('jti'), 'unavailable');
  });
}

for (const [what, address, reason] of [
  ['a password where none is set', 'redis://:secret@127.0.0.1:PORT', 'ERR'],
  ['a database that it does not have', 'redis://127.0.0.1:PORT/99', 'ERR'],
] as const) {
  test(named(`gets ${reason} from a real store for ${what}, and is not ready`), options, async (t) => {
    const redis = await openRedis(t);
    const client = openClient(t, address.replace('PORT', String(redis.port)));
    assert.equal((await client.logged('replay store lost')).reason, reason);
    assert.equal(client.record('jti'), 'unavailable');
  });
}

test(named('admits no proof when the user of the store may not record'), options, async (t) => {
  const redis = await openRedis(t);
  await redis.ask('ACL SETUSER reader on >secret ~* +ping +get');
  const client = openClient(t, `redis://reader:secret@127.0.0.1:${redis.port}`);
  await client.logged('replay store ready');
  assert.equal(await client.record('jti'), 'unavailable');
});

test(
  named('admits no proof that a full store does not record, and admits proofs again when there is room'),
  options,
  async (t) => {
    const redis = await openRedis(t, ['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    const client = openClient(t, `redis://127.0.0.1:${redis.port}`);
    await client.logged('replay store ready');
    assert.equal(await client.record('jti'), 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'OOM');
    await redis.ask('CONFIG SET maxmemory 0');
    client.clock.advance(2_000);
    assert.equal(await client.record('jti'), 'new');
    await client.logged('replay store ready', 2);
  },
);

test(
  named(
    'reports a store as lost when it becomes a replica of another, and as ready when it no longer is a replica',
  ),
  options,
  async (t) => {
    const redis = await openRedis(t);
    const client = openClient(t, `redis://127.0.0.1:${redis.port}`);
    await client.logged('replay store ready');
    // Without its primary, a replica is still read-only.
    await redis.ask('CONFIG SET replica-serve-stale-data yes', 'REPLICAOF 127.0.0.1 1');
    assert.equal(await client.record('jti'), 'unavailable');
    assert.equal((await client.logged('replay store lost')).reason, 'READONLY');
    await redis.ask('REPLICAOF NO ONE');
    client.clock.advance(2_000);
    await client.greeted();
    assert.equal(await client.record('jti'), 'new');
    await client.logged('replay store ready', 2);
  },
);

test(named('records over TLS in a real store that has a valid certificate'), options, async (t) => {
  const file = (name: string) => fileURLToPath(new URL(`../../idp/tls/${name}.pem`, import.meta.url));
  const certificate = ['--tls-cert-file', file('provider'), '--tls-key-file', file('provider-key')];
  const tlsPort = await freePort();
  const tls = ['--tls-port', String(tlsPort), ...certificate, '--tls-auth-clients', 'no'];
  await openRedis(t, [...tls, '--tls-ca-cert-file', file('authority')]);
  for (const host of ['localhost', '127.0.0.1']) {
    const client = openClient(t, `rediss://${host}:${tlsPort}`);
    await client.logged('replay store ready');
    assert.equal(await client.record(`jti of ${host}`), 'new');
    assert.equal(await client.record(`jti of ${host}`), 'seen');
  }
});

test(named('is lost while a real store requires client certificates'), options, async (t) => {
  const file = (name: string) => fileURLToPath(new URL(`../../idp/tls/${name}.pem`, import.meta.url));
  const certificate = ['--tls-cert-file', file('provider'), '--tls-key-file', file('provider-key')];
  const tlsPort = await freePort();
  const tls = ['--tls-port', String(tlsPort), ...certificate, '--tls-ca-cert-file', file('authority')];
  const redis = await openRedis(t, tls);
  const client = openClient(t, `rediss://localhost:${tlsPort}`);
  await client.logged('replay store lost');
  assert.equal(client.record('jti'), 'unavailable');

  await redis.ask('CONFIG SET tls-auth-clients no');
  client.clock.advance(2_000);
  await client.logged('replay store ready');
  assert.equal(await client.record('jti'), 'new');
});

test(named('keeps no more than 200 bytes a proof in a real store'), options, async (t) => {
  const redis = await openRedis(t);
  const client = openClient(t, `redis://127.0.0.1:${redis.port}`);
  await client.logged('replay store ready');

  const used = async () => {
    const lines = await redis.ask('INFO memory');
    return Number(lines.find((line) => line.startsWith('used_memory:'))?.slice(12));
  };

  const before = await used();
  const count = 9_000;
  const verdicts = Array.from({ length: count }, (_, index) => client.record(`${THUMBPRINT} ${index}`));
  assert.deepEqual(new Set(await Promise.all(verdicts)), new Set(['new']));
  const bytes = ((await used()) - before) / count;
  assert.ok(bytes < 200, `${bytes} bytes`);
});
