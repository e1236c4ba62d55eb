/* Revocations with a real store: what the shell of the documents writes, rights, and what is kept. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { named, NO_STORE, startRedis, type Redis } from '../../support/redis.ts';
import { withReason } from '../../support/skipped.ts';
import { sampleUnder } from '../../docs/pages.ts';
import { issue, ISSUER, NOW } from '../../verify/token/issuer.ts';
import { startFakeStore } from '../fake-store.ts';
import { keyFor, openStand } from './revocations-fixture.ts';

const options = { skip: NO_STORE !== undefined };
const TOKEN = issue({ sub: 'auth0|ada', jti: 'token 1', iat: NOW - 10 });

/** Ends with the test. */
async function openRedis(t: TestContext, words: readonly string[] = []): Promise<Redis> {
  const redis = await startRedis(words);
  t.after(redis.stop);
  return redis;
}

test(
  named('revokes and restores in a real store, and keeps an entry as long as it is told'),
  options,
  async (t) => {
    const redis = await openRedis(t);
    const { verdict, revocations, logged } = await openStand(t, {
      address: `redis://127.0.0.1:${redis.port}`,
    });
    await logged('revocation store ready');
    for (const what of [{ tokenId: 'token 1' }, { subject: 'auth0|ada' }]) {
      assert.equal(await verdict(TOKEN), 'accepted');
      await revocations.revoke({ ...what, keepSeconds: 600 });
      assert.equal(await verdict(TOKEN), 'revoked');
      const [kind, value] = 'tokenId' in what ? ['jti', 'token 1'] : ['sub', 'auth0|ada'];
      const [time = ''] = await redis.ask(`TTL ${keyFor(kind, value)}`);
      assert.ok([':600', ':599'].includes(time), time);
      await revocations.restore(what);
    }
    assert.equal(await verdict(TOKEN), 'accepted');
  },
);

test(
  named('asks as a user with only the rights to ask, and revokes as one with only those to write'),
  options,
  async (t) => {
    const redis = await openRedis(t);
    const rights = 'on >secret ~gatehouse:revoked:* +mget +ping';
    await redis.ask(`ACL SETUSER reader ${rights}`, `ACL SETUSER writer ${rights} +set +del`);
    const address = (user: string) => `redis://${user}:secret@127.0.0.1:${redis.port}`;
    const { verdict, revocations, logged } = await openStand(t, { address: address('reader') });
    await logged('revocation store ready');
    assert.equal(await verdict(TOKEN), 'accepted');
    await assert.rejects(revocations.revoke({ tokenId: 'token 1' }), {
      message: 'revocation store unavailable',
      cause: 'NOPERM',
    });
    assert.equal(await verdict(TOKEN), 'accepted');

    const writer = await openStand(t, { address: address('writer') });
    await writer.revocations.revoke({ tokenId: 'token 1' });
    assert.equal(await verdict(TOKEN), 'revoked');
  },
);

test(named('lets no token pass once the right to ask is gone, until it is back [J7]'), options, async (t) => {
  const redis = await openRedis(t);
  await redis.ask('ACL SETUSER reader on >secret ~gatehouse:revoked:* +mget +ping');
  const address = `redis://reader:secret@127.0.0.1:${redis.port}`;
  const { verdict, logged } = await openStand(t, { address });
  await logged('revocation store ready');
  await redis.ask('ACL SETUSER reader -mget');
  assert.equal(await verdict(TOKEN), 'revocation-store-unavailable');
  assert.equal((await logged('revocation store lost')).reason, 'NOPERM');
  await redis.ask('ACL SETUSER reader +mget');
  assert.equal(await verdict(TOKEN), 'accepted');
});

const PROGRAMS = ['openssl', 'basenc', 'redis-cli'].filter((name) => spawnSync(name, ['--version']).error);
const missing = NO_STORE ?? (PROGRAMS.length > 0 ? `${PROGRAMS.join(' and ')} are missing` : undefined);

const cases = [
  ['write', (store: Redis) => store.port],
  [
    'send to a node of a cluster that has not its slot, and then to the one that has it',
    async ({ port }: Redis, t: TestContext) =>
      (await startFakeStore(t, () => `-MOVED 1 127.0.0.1:${port}\r\n`)).port,
  ],
] as const;

for (const [what, portFor] of cases) {
  test(
    withReason(`finds the entry that the shell lines of docs/revocation.md ${what}`, missing),
    { skip: missing !== undefined },
    async (t) => {
      const redis = await openRedis(t);
      const port = await portFor(redis, t);
      const lines = sampleUnder('docs/revocation.md', 'From a shell', 'sh')
        .replace(/^ISS=.*$/m, `ISS=${ISSUER}`)
        .replace('redis-cli', `redis-cli -p ${port}`);
      const { stdout } = await promisify(execFile)('sh', ['-c', lines]);
      assert.equal(stdout, 'OK\n');
      const [value = ''] = (await redis.ask(`GET ${keyFor('sub', 'auth0|ada')}`)).slice(1);
      assert.ok(Math.abs(Number(value) - Date.now() / 1000) < 60, value);
    },
  );
}
