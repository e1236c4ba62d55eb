/* A store that is a cluster, or that sentinels watch, played by fake stores: where commands go, and what
   happens when a node moves, splits off or goes away. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { slotOf } from '../../../src/options/redis/discovery.ts';
import { openClient, startFakeStore, type FakeStore, type Say } from '../fake-store.ts';
import { issue, NOW } from '../../verify/token/issuer.ts';
import { except, keyFor, openStand, storeWith, type Stand } from './revocations-fixture.ts';

const UNAVAILABLE = 'revocation-store-unavailable';
const TOKEN = issue({ sub: 'user 1', iat: NOW - 10 });
/** With two keys. */
const FULL = issue({ sub: 'user 1', jti: 'token 1', iat: NOW - 10 });

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

/** The reply to `CLUSTER SLOTS` with these ranges. */
const slots = (...ranges: readonly (readonly [first: number, last: number, port: number])[]) => {
  const texts = ranges.map(([first, last, port]) => {
    const node = `*4\r\n${bulk('127.0.0.1')}:${port}\r\n${bulk('id')}*0\r\n`;
    return `*3\r\n:${first}\r\n:${last}\r\n${node}`;
  });
  return `*${ranges.length}\r\n${texts.join('')}`;
};

interface Nodes {
  readonly first: FakeStore;
  readonly second: FakeStore;
  /** What every node replies to `CLUSTER SLOTS`. */
  map: string;
}

/** Two nodes, each of which has half of the slots. */
async function startNodes(t: TestContext): Promise<Nodes> {
  const play =
    (good: Say): Say =>
    (words, socket) =>
      words[0] === 'CLUSTER' ? nodes.map : good(words, socket);
  const entries = new Map<string, string>();
  const first = await startFakeStore(t, play(storeWith(entries)));
  const second = await startFakeStore(t, play(storeWith(entries)));
  const nodes = { first, second, map: slots([0, 8_191, first.port], [8_192, 16_383, second.port]) };
  return nodes;
}

const addressOf = (...stores: readonly FakeStore[]) =>
  `redis-cluster://:secret@${stores.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;

/** About a token. */
const isQuestion = ([command, key = '']: readonly string[]) => command === 'MGET' && !key.endsWith('{}');

/** Only these commands. */
const asked = ({ commands }: FakeStore, word = 'MGET') =>
  commands.filter(([command, key = '']) => command === word && !key.endsWith('{}'));

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

/** Whether each connection to it has ended, in their order. */
const ended = ({ sockets }: FakeStore) => sockets.map(({ destroyed }) => destroyed);

/** Moves the clock in steps of 100 ms until it holds. */
async function untilSo(
  stand: Pick<Stand, 'clock'>,
  isSo: () => unknown,
  mostMillis = 5_000,
): Promise<number> {
  for (let millis = 0; millis <= mostMillis; millis += 100) {
    for (let turn = 0; turn < 20; turn += 1) {
      if (await isSo()) return millis;
      await new Promise(setImmediate);
    }
    stand.clock.advance(100);
  }
  return assert.fail(`not so for ${mostMillis} ms`);
}

/** A cluster whose first node has all slots, and which is learnt and up. */
async function startWhole(t: TestContext) {
  const nodes = await startNodes(t);
  nodes.map = slots([0, 16_383, nodes.first.port]);
  const stand = await openStand(t, { address: addressOf(nodes.first) });
  await stand.logged('revocation store ready');
  // It was not up when its map was learnt, which is learnt again.
  stand.clock.advance(1_000);
  while (ended(nodes.first).join() !== 'true,false,true') await turns(1);
  while (stand.clock.pending.length > 0) await turns(1);
  return { ...nodes, stand };
}

/** A whole cluster whose first node hands over its slots to the second, one key after another, as Redis does. */
async function startMoving(t: TestContext) {
  const { first, second, stand } = await startWhole(t);
  const held = new Map<string, string>();
  const moved = new Map<string, string>();

  const lacking = (entries: ReadonlyMap<string, string>, keys: readonly string[]) =>
    keys.filter((key) => !entries.has(key)).length;

  const keysOf = ([command, ...words]: readonly string[]) => (command === 'MGET' ? words : words.slice(0, 1));

  const isAboutToken = ([command = '', key = '']: readonly string[]) =>
    ['MGET', 'SET', 'DEL'].includes(command) && !key.endsWith('{}');

  const ofFirst = first.say;
  first.say = (words, socket) => {
    if (!isAboutToken(words)) return ofFirst(words, socket);
    const keys = keysOf(words);
    if (lacking(held, keys) === 0) return storeWith(held)(words, socket);
    return lacking(held, keys) < keys.length ? '-TRYAGAIN x\r\n' : `-ASK 1 127.0.0.1:${second.port}\r\n`;
  };

  const ofSecond = second.say;
  let isAsking = false;
  second.say = (words, socket) => {
    const mayServe = isAsking;
    isAsking = words[0] === 'ASKING';
    if (!isAboutToken(words)) return ofSecond(words, socket);
    if (!mayServe) return `-MOVED 1 127.0.0.1:${first.port}\r\n`;
    const keys = keysOf(words);
    const isUnsure = keys.length > 1 && lacking(moved, keys) > 0;
    return isUnsure ? '-TRYAGAIN x\r\n' : storeWith(moved)(words, socket);
  };
  return { first, second, stand, held, moved };
}

/** Silent from the first question of one key on. */
function untilOneKey(good: Say): Say {
  let isSilent = false;
  return (words, socket) => {
    isSilent ||= isQuestion(words) && words.length === 2;
    return isSilent ? undefined : good(words, socket);
  };
}

describe('a cluster', () => {
  test('is asked by the node that has the slot, over one connection to each, with the password', async (t) => {
    const { first, second } = await startNodes(t);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    for (let count = 0; count < 5; count += 1) assert.equal(await stand.verdict(TOKEN), 'accepted');
    const [, key = ''] = [...asked(first), ...asked(second)][0] ?? [];
    const owner = slotOf(key) < 8_192 ? first : second;
    assert.equal(asked(owner).length, 5);
    assert.equal(asked(first).length + asked(second).length, 5);
    assert.deepEqual(first.commands.slice(0, 2), [
      ['AUTH', 'secret'],
      ['CLUSTER', 'SLOTS'],
    ]);
    assert.deepEqual(second.commands.slice(0, 2), [['AUTH', 'secret'], ['PING']]);
    assert.equal(second.sockets.length, 1);
  });

  test('is asked by the node of a range of one slot, between those of another', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    const slot = slotOf(keyFor('sub', 'user 1'));
    nodes.map = slots([0, slot - 1, second.port], [slot, slot, first.port], [slot + 1, 16_383, second.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    assert.deepEqual([asked(first).length, asked(second).length], [1, 0]);
  });

  test('is asked without AUTH where no password is given', async (t) => {
    const { first } = await startNodes(t);
    const stand = await openStand(t, { address: `redis-cluster://127.0.0.1:${first.port}` });
    await stand.logged('revocation store ready');
    assert.deepEqual(asked(first, 'AUTH'), []);
  });

  for (const [word, expected] of [
    ['MOVED', ['MGET']],
    ['ASK', ['ASKING', 'MGET']],
  ] as const) {
    test(`is asked once more by the node that -${word} names, even if it was not known`, async (t) => {
      const { first, second, stand } = await startWhole(t);
      const good = first.say;
      first.say = (words, socket) =>
        isQuestion(words) ? `-${word} 1 127.0.0.1:${second.port}\r\n` : good(words, socket);
      assert.equal(await stand.verdict(TOKEN), 'accepted');
      assert.deepEqual(
        second.commands.map(([command]) => command).filter((command) => !['AUTH', 'PING'].includes(command!)),
        expected,
      );
      await turns(50);
      // The map is learnt again after -MOVED alone.
      assert.deepEqual(stand.clock.pending, word === 'MOVED' ? [1_000] : []);
      assert.deepEqual([ended(first), ended(second)], [[true, false, true], [false]]);
      assert.equal(stand.isUp(), true);
    });
  }

  test('is asked once more by another port of the same node, if -MOVED names no host', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) =>
      words[0] === 'MGET' ? `-MOVED 1 :${second.port}\r\n` : good(words, socket);
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    assert.equal(asked(second).length, 1);
  });

  test('is asked once more by no other host than -MOVED names', async (t) => {
    const { first, second, stand } = await startWhole(t);
    const good = first.say;
    // A host of this machine on which nothing listens.
    first.say = (words, socket) =>
      isQuestion(words) ? `-MOVED 1 127.0.0.2:${second.port}\r\n` : good(words, socket);
    const verdict = stand.verdict(TOKEN);
    await untilSo(stand, () => stand.clock.monotonic() >= 2_000);
    assert.equal(await verdict, UNAVAILABLE);
    assert.deepEqual(second.sockets, []);
  });

  for (const [reply, isLearnt] of [
    ['-ERR -MOVED 1 127.0.0.1:PORT', false],
    ['-MOVED 1 127.0.0.1:PORT x', true],
    ['-MOVED x 127.0.0.1:PORT', true],
    ['-CLUSTERDOWN x', true],
    ['-ERR x', false],
  ] as const) {
    const learning = isLearnt ? 'and the map is learnt again' : 'and the map is not learnt again';
    test(`is asked once if the node replies ${reply}, ${learning}`, async (t) => {
      const { first, second, stand } = await startWhole(t);
      const good = first.say;
      const said = `${reply.replace('PORT', String(second.port))}\r\n`;
      first.say = (words, socket) => (words[0] === 'MGET' ? said : good(words, socket));
      assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
      await turns(20);
      assert.deepEqual([second.sockets, stand.clock.pending], [[], isLearnt ? [1_000] : []]);
    });
  }

  test('is asked once more by one node, whichever else is connected meanwhile [§24]', async (t) => {
    const { first, second, stand } = await startWhole(t);
    const good = first.say;
    const slow = await startFakeStore(t, (words, socket) =>
      words[0] === 'MGET' ? undefined : good(words, socket),
    );

    const sendTo = ({ port }: FakeStore) => {
      first.say = (words, socket) =>
        isQuestion(words) ? `-ASK 1 127.0.0.1:${port}\r\n` : good(words, socket);
    };

    sendTo(slow);
    const verdict = stand.verdict(TOKEN);
    // AUTH, PING, ASKING, MGET.
    await slow.received(4);
    sendTo(second);
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    await turns(20);
    assert.equal(asked(slow).length, 1);
    stand.clock.advance(1_000);
    assert.equal(await verdict, UNAVAILABLE);
  });

  test('is not heard after the second in all, and keeps the connection [§24]', async (t) => {
    const { first, second, stand } = await startWhole(t);
    const good = first.say;
    first.say = (words, socket) => (isQuestion(words) ? undefined : good(words, socket));
    second.say = first.say;
    const verdict = stand.verdict(TOKEN);
    while (asked(first).length === 0) await turns(1);
    stand.clock.advance(500);
    first.sockets[1]!.write(`-ASK 1 127.0.0.1:${second.port}\r\n`);
    await second.received(4);
    await turns(20);
    assert.deepEqual(stand.clock.pending.toSorted(), [1_000, 500]);
    stand.clock.advance(500);
    assert.equal(await verdict, UNAVAILABLE);
    second.sockets[0]!.write('-NOPERM x\r\n');
    await turns(50);
    assert.deepEqual(ended(second), [false]);
    assert.equal(stand.logs.length, 1);
  });

  test('is heard if its reply is on its way when the second in all is over, as when the process was busy [§24]', async (t) => {
    const { first, second, stand } = await startWhole(t);
    const good = first.say;
    first.say = (words, socket) =>
      isQuestion(words) ? `-ASK 1 127.0.0.1:${second.port}\r\n` : good(words, socket);
    second.say = (words, socket) => (isQuestion(words) ? undefined : good(words, socket));
    const verdict = stand.verdict(TOKEN);
    await second.received(4);
    await turns(20);
    const [socket] = second.sockets;
    const [words] = asked(second);
    socket!.write(String(good(words!, socket!)));
    stand.clock.advance(60_000);
    assert.equal(await verdict, 'accepted');
  });

  for (const [what, heldKind, movedKind, expected] of [
    ['has no entry', undefined, undefined, 'accepted'],
    ['has an entry that is still on the first node', 'jti', undefined, 'revoked'],
    ['has an entry that is already on the second node', undefined, 'sub', 'revoked'],
    ['has an entry on each node', 'jti', 'sub', 'revoked'],
  ] as const) {
    test(`is asked for one key after another while their slot moves, where a token ${what} [§24, §30]`, async (t) => {
      const { stand, held, moved } = await startMoving(t);
      if (heldKind !== undefined) held.set(keyFor(heldKind, 'token 1'), String(NOW));
      if (movedKind !== undefined) moved.set(keyFor(movedKind, 'user 1'), String(NOW));
      assert.equal(await stand.verdict(FULL), expected);
      // TRYAGAIN was answered: nothing is lost.
      assert.deepEqual([stand.isUp(), stand.logs.length], [true, 1]);
      await turns(50);
      assert.deepEqual(stand.clock.pending, []);
    });
  }

  test('takes the entries of writers while their slot moves [§24]', async (t) => {
    const { first, second, stand, moved } = await startMoving(t);
    await stand.revocations.revoke({ subject: 'user 1' });
    assert.deepEqual([...moved.keys()], [keyFor('sub', 'user 1')]);
    assert.equal(await stand.verdict(FULL), 'revoked');
    await stand.revocations.restore({ subject: 'user 1' });
    assert.equal(await stand.verdict(FULL), 'accepted');
    assert.deepEqual([ended(first), ended(second)], [[true, false, true], [false]]);
  });

  for (const [what, reply, reason] of [
    ['refuses', '-NOPERM x\r\n', 'NOPERM'],
    ['puts off again', '-TRYAGAIN x\r\n', 'TRYAGAIN'],
    ['replies too long a list to', '*2\r\n$-1\r\n$-1\r\n', 'reply-refused'],
  ] as const) {
    test(`lets no token pass while a slot moves and a node ${what} one of its keys [§24, J7]`, async (t) => {
      const { second, stand } = await startMoving(t);
      const good = second.say;
      const key = keyFor('sub', 'user 1');
      second.say = (words, socket) => {
        const said = good(words, socket);
        return words.length === 2 && words[1] === key ? reply : said;
      };
      assert.equal(await stand.verdict(FULL), UNAVAILABLE);
      assert.equal((await stand.logged('revocation store lost')).reason, reason);
    });
  }

  test('answers within the second in all, also where it is asked for one key after another [§24]', async (t) => {
    const { first, second, stand } = await startMoving(t);
    const good = first.say;
    first.say = (words, socket) => (isQuestion(words) ? undefined : good(words, socket));
    second.say = untilOneKey(second.say);
    let isOver = false;
    const verdict = stand.verdict(FULL).finally(() => {
      isOver = true;
    });
    while (asked(first).length === 0) await turns(1);
    first.say = good;
    stand.clock.advance(600);
    first.sockets[1]!.write('-TRYAGAIN x\r\n');
    // AUTH, PING, and for each key ASKING and MGET.
    await second.received(6);
    stand.clock.advance(399);
    await turns(20);
    assert.equal(isOver, false);
    stand.clock.advance(1);
    await turns(20);
    assert.equal(isOver, true);
    assert.equal(await verdict, UNAVAILABLE);
    assert.deepEqual([ended(second), stand.logs.length], [[false], 1]);
  });

  test('is heard if its replies for one key after another are on their way when the second is over [§24]', async (t) => {
    const { first, second, stand } = await startMoving(t);
    second.say = untilOneKey(second.say);
    const verdict = stand.verdict(FULL);
    // AUTH, PING, and for both keys, then for each, ASKING and MGET.
    await second.received(8);
    await turns(20);
    assert.equal(asked(first).length, 3);
    second.sockets[0]!.write('*1\r\n$-1\r\n+OK\r\n*1\r\n$-1\r\n');
    stand.clock.advance(60_000);
    assert.equal(await verdict, 'accepted');
  });

  test('answers nothing when a node names what is no port', async (t) => {
    const nodes = await startNodes(t);
    const { first } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) =>
      words[0] === 'MGET' ? '-MOVED 1 127.0.0.1:65536\r\n' : good(words, socket);
    const verdict = stand.verdict(TOKEN);
    await first.received(first.commands.length + 1);
    await untilSo(stand, () => stand.clock.monotonic() >= 1_000);
    assert.equal(await verdict, UNAVAILABLE);
    // A node that has no slots is none that is missed.
    assert.equal(stand.logs.length, 1);
  });

  test('answers nothing when the second node sends the command on as well', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const good = one.say;
      one.say = (words, socket) =>
        words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${other.port}\r\n` : good(words, socket);
    }
    assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    assert.equal(asked(first).length + asked(second).length, 2);
    await turns(50);
    assert.deepEqual([ended(first), ended(second)], [[true, false], [false]]);
    assert.equal(stand.logs.length, 1);
  });

  test('waits no longer than a second in all for a node that it is sent to', async (t) => {
    const nodes = await startNodes(t);
    const { first } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const silent = await startFakeStore(t, () => undefined);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) =>
      words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${silent.port}\r\n` : good(words, socket);
    stand.clock.advance(5_000);
    let isOver = false;
    const verdict = stand.verdict(TOKEN).finally(() => {
      isOver = true;
    });
    await silent.received(1);
    stand.clock.advance(999);
    await turns(5);
    assert.equal(isOver, false);
    stand.clock.advance(1);
    assert.equal(await verdict, UNAVAILABLE);
  });

  test('answers what waits for a node at once when it is closed, and leaves nothing open', async (t) => {
    const nodes = await startNodes(t);
    const { first } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const silent = await startFakeStore(t, () => undefined);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) =>
      words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${silent.port}\r\n` : good(words, socket);
    const verdict = stand.verdict(TOKEN);
    await silent.received(1);
    stand.revocations.close();
    assert.equal(await verdict, UNAVAILABLE);
    while (![first, silent].flatMap(ended).every(Boolean)) await turns(1);
    assert.deepEqual(stand.clock.pending, []);
  });

  test('learns the slots again after -MOVED, and at most once a second', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) =>
      words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${second.port}\r\n` : good(words, socket);
    nodes.map = slots([0, 16_383, second.port]);
    const learnt = () => asked(first, 'CLUSTER').length;
    for (let count = 0; count < 20; count += 1) assert.equal(await stand.verdict(TOKEN), 'accepted');
    assert.equal(learnt(), 1);
    assert.equal(await untilSo(stand, () => learnt() === 2), 1_000);
    await untilSo(stand, async () => {
      const before = asked(first).length;
      return (await stand.verdict(TOKEN)) === 'accepted' && asked(first).length === before;
    });
    assert.equal(learnt(), 2);

    // Its last replies may still arrive.
    stand.clock.advance(900);
    await turns(20);
    assert.deepEqual(ended(first), [true, false, true]);
    stand.clock.advance(100);
    while (!ended(first)[1]) await turns(1);

    nodes.map = slots([0, 16_383, first.port]);
    first.say = good;
    second.say = (words, socket) =>
      words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${first.port}\r\n` : good(words, socket);
    await untilSo(stand, async () => {
      const before = asked(second).length;
      return (await stand.verdict(TOKEN)) === 'accepted' && asked(second).length === before;
    });
  });

  test('is learnt again at once, if that was more than a second ago', async (t) => {
    const { first, stand } = await startWhole(t);
    stand.clock.advance(1_001);
    const good = first.say;
    first.say = (words, socket) => (words[0] === 'MGET' ? '-CLUSTERDOWN x\r\n' : good(words, socket));
    assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    await turns(20);
    assert.deepEqual(stand.clock.pending, [0]);
  });

  test('is learnt in one round at a time [§30]', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    const good = first.say;
    first.say = (words, socket) => {
      if (words[0] === 'CLUSTER') return undefined;
      return words[0] === 'MGET' ? `-MOVED 1 127.0.0.1:${second.port}\r\n` : good(words, socket);
    };
    second.say = (words, socket) => (words[0] === 'CLUSTER' ? undefined : good(words, socket));
    const learnt = () => [first, second].flatMap((node) => asked(node, 'CLUSTER')).length;
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    await untilSo(stand, () => learnt() > 2);
    await turns(20);
    const before = [learnt(), stand.clock.pending];
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    await turns(20);
    assert.deepEqual([learnt(), stand.clock.pending], before);
  });

  test('is learnt again when a node is lost, from the other hosts of its address [§30]', async (t) => {
    const { first, second, map } = await startNodes(t);
    const other = await startFakeStore(t, (words, socket) =>
      words[0] === 'CLUSTER' ? nodes.map : storeWith(new Map())(words, socket),
    );
    const nodes = { map: map.replaceAll(String(second.port), String(first.port)) };
    first.say = other.say;
    const stand = await openStand(t, { address: addressOf(first, other) });
    await stand.logged('revocation store ready');
    stand.clock.advance(1_000);
    while (asked(other, 'CLUSTER').length < 2 || stand.clock.pending.length > 0) await turns(1);
    nodes.map = slots([0, 16_383, second.port]);
    await first.close();
    await stand.logged('revocation store lost');
    await untilSo(stand, async () => (await stand.verdict(TOKEN)) === 'accepted');
  });

  test('answers 503 for exactly the slots of a node that is down, until another node has them [J7]', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    const client = openClient(t, addressOf(first, second));
    await client.logged('replay store ready');
    const jtis = Array.from({ length: 40 }, (_, index) => `jti ${index}`);
    const whole = await Promise.all(jtis.map((jti) => client.record(jti)));
    assert.deepEqual(new Set(whole), new Set(['new']));

    const ofSecond = new Set(asked(second, 'SET').map(([, key]) => key));
    await second.close();
    await client.logged('replay store lost');
    const again = await Promise.all(jtis.map((jti) => client.record(`again ${jti}`)));
    assert.deepEqual(new Set(again), new Set(['new', 'unavailable']));
    assert.ok(ofSecond.size > 0);

    nodes.map = slots([0, 16_383, first.port]);
    const isReady = () => client.logs.at(-1)?.message === 'replay store ready';
    await untilSo(client, isReady, 2_000);
    const last = await Promise.all(jtis.map((jti) => client.record(`last ${jti}`)));
    assert.deepEqual(new Set(last), new Set(['new']));
  });

  test('is lost from the start while no node has some slots, which alone are 503, and ready once all have one', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 8_191, first.port]);
    const client = openClient(t, addressOf(first));
    assert.equal((await client.logged('replay store lost')).reason, 'CLUSTERDOWN');

    const recorded = async (word: string) => {
      const jtis = Array.from({ length: 40 }, (_, index) => `${word} ${index}`);
      return new Set(await Promise.all(jtis.map((jti) => client.record(jti))));
    };

    await untilSo(client, async () => (await recorded('first')).has('new'));
    assert.deepEqual(await recorded('half'), new Set(['new', 'unavailable']));

    nodes.map = slots([0, 8_191, first.port], [8_192, 16_383, second.port]);
    await untilSo(client, () => client.logs.at(-1)?.message === 'replay store ready', 2_000);
    assert.deepEqual(
      client.logs.map(({ message }) => message),
      ['replay store lost', 'replay store ready'],
    );
    assert.deepEqual(await recorded('whole'), new Set(['new']));
  });

  test('is not said to respond while no node has some slots, although a node replies for the others [J7]', async (t) => {
    const nodes = await startNodes(t);
    const { first } = nodes;
    const slot = slotOf(keyFor('sub', 'user 1'));
    nodes.map = slots([slot, slot, first.port]);
    const stand = await openStand(t, { address: addressOf(first) });
    assert.equal((await stand.logged('revocation store lost')).reason, 'CLUSTERDOWN');
    await untilSo(stand, async () => (await stand.verdict(TOKEN)) === 'accepted');
    assert.deepEqual([stand.isUp(), stand.logs.length], [false, 1]);
  });

  test('is lost until no lookup was refused for two seconds, as one node may refuse what others answer [§24]', async (t) => {
    const { first, stand } = await startWhole(t);
    const good = first.say;
    const refusing = except('MGET', '-NOPERM x\r\n', good);
    for (let round = 0; round < 3; round += 1) {
      first.say = refusing;
      assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
      first.say = good;
      assert.equal(await stand.verdict(TOKEN), 'accepted');
      stand.clock.advance(1_999);
      assert.equal(await stand.verdict(TOKEN), 'accepted');
      assert.equal(stand.isUp(), false);
    }

    stand.clock.advance(1);
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    const told = stand.logs.map(({ message }) => String(message).replace('revocation store ', ''));
    assert.deepEqual(told.slice(-3), ['ready', 'lost', 'ready']);
  });

  test('is ready again within seconds after it refused a lookup and its map was learnt, even if no other lookup comes [§24]', async (t) => {
    const { first, stand } = await startWhole(t);
    const good = first.say;
    first.say = except('MGET', '-CLUSTERDOWN x\r\n', good);
    assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    first.say = good;
    assert.ok((await untilSo(stand, stand.isUp)) >= 2_000);
    const told = stand.logs.map(({ message }) => String(message).replace('revocation store ', ''));
    assert.deepEqual(told.slice(-3), ['ready', 'lost', 'ready']);
  });

  /** A map of two nodes that have every other slot, of so many bytes before its last line end. */
  function scattered({ first, second }: Nodes, length: number) {
    const each = Array.from(
      { length: 16_384 },
      (_, slot) => [slot, slot, [first, second][slot % 2]!.port] as const,
    );
    const map = slots(...each).replace(bulk('id'), bulk('i'.repeat(50_000)));
    const rest = length + 2 - map.length + bulk('id').length - '$12345\r\n\r\n'.length;
    const whole = map.replace(bulk('id'), bulk('i'.repeat(rest)));
    assert.equal(whole.length, length + 2);
    return whole;
  }

  test('is learnt from a map of 1 MiB, such as after its slots moved one by one, and not from a longer one [§30]', async (t) => {
    const nodes = await startNodes(t);
    nodes.map = scattered(nodes, 1024 * 1024);
    const client = openClient(t, addressOf(nodes.first));
    await client.logged('replay store ready');
    for (let count = 0; count < 20; count += 1) assert.equal(await client.record(`jti ${count}`), 'new');
    const counts = [nodes.first, nodes.second].map((node) => asked(node, 'SET').length);
    assert.ok(
      counts.every((count) => count > 0 && count < 20),
      counts.join(),
    );

    nodes.map = scattered(nodes, 1024 * 1024 + 1);
    const other = openClient(t, addressOf(nodes.first));
    assert.equal((await other.logged('replay store lost')).reason, 'reply-refused');
  });

  test('is learnt and greeted, although the last byte of each reply comes alone', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    for (const node of [first, second]) {
      const whole = node.say;
      node.say = (words, socket) => {
        const reply = whole(words, socket) ?? '';
        socket.write(reply.slice(0, -1));
        void turns(10).then(() => socket.write(reply.slice(-1)));
        return undefined;
      };
    }

    const client = openClient(t, `redis-cluster://127.0.0.1:${first.port}`);
    await client.logged('replay store ready');
    assert.equal(await client.record('jti 1'), 'new');
  });

  test('is ready, although a range stands twice in its map', async (t) => {
    const nodes = await startNodes(t);
    nodes.map = slots([0, 16_383, nodes.first.port], [0, 8_191, nodes.first.port]);
    const client = openClient(t, addressOf(nodes.first));
    await client.logged('replay store ready');
    assert.equal(await client.record('jti 1'), 'new');
  });

  test('is lost while no node has half of the slots, although the other half stands twice in its map', async (t) => {
    const nodes = await startNodes(t);
    nodes.map = slots([0, 8_191, nodes.first.port], [0, 8_191, nodes.first.port]);
    const client = openClient(t, addressOf(nodes.first));
    assert.equal((await client.logged('replay store lost')).reason, 'CLUSTERDOWN');
  });

  test('is learnt from the first host that responds', async (t) => {
    const { first } = await startNodes(t);
    const silent = await startFakeStore(t, () => undefined);
    const stand = await openStand(t, {
      address: `redis-cluster://:secret@127.0.0.1:1,127.0.0.1:${silent.port},127.0.0.1:${first.port}`,
    });
    await stand.logged('revocation store ready');
    assert.equal(await stand.verdict(TOKEN), 'accepted');
  });

  test('is learnt again, although a host that hung when it was learnt before gives up meanwhile [§30]', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    nodes.map = slots([0, 16_383, first.port]);
    const silent = await startFakeStore(t, () => undefined);
    const client = openClient(t, addressOf(first, silent));
    await client.logged('replay store ready');
    nodes.map = slots([0, 16_383, second.port]);
    await untilSo(client, () => second.sockets.length > 0);
  });

  test('is learnt from a known node while no host of the address lives [§30]', async (t) => {
    const nodes = await startNodes(t);
    const { first, second } = nodes;
    const client = openClient(t, addressOf(first));
    await client.logged('replay store ready');
    await first.close();
    await client.logged('replay store lost');
    nodes.map = slots([0, 16_383, second.port]);
    await untilSo(client, () => client.logs.at(-1)?.message === 'replay store ready');
    assert.equal(await client.record('jti 1'), 'new');
  });

  for (const late of ['stale', 'heir', 'equal', 'whole'] as const) {
    test(`is learnt from the first node that names fewest lost ones, also when the ${late} replies last [§30]`, async (t) => {
      const nodes = await startNodes(t);
      const { first, second } = nodes;
      const dead = await startFakeStore(t);
      const stranger = await startFakeStore(t);

      const play = (map: string): Say => {
        return (words, socket) => (words[0] === 'CLUSTER' ? map : storeWith(new Map())(words, socket));
      };

      const playLate = (map: string): Say => {
        return (words, socket) => {
          if (words[0] !== 'CLUSTER') return play('')(words, socket);

          void turns(20).then(() => socket.write(map));
          return undefined;
        };
      };

      nodes.map = slots([0, 5_460, first.port], [5_461, 10_922, second.port], [10_923, 16_383, dead.port]);
      const stale = await startFakeStore(t, play(nodes.map));
      const client = openClient(t, addressOf(stale, second));
      await client.logged('replay store ready');
      const lost = slots([0, 5_460, first.port], [5_461, 10_922, stranger.port], [10_923, 16_383, dead.port]);
      const heir = slots([0, 10_922, second.port], [10_923, 16_383, dead.port]);
      const equal = slots([0, 10_922, stranger.port], [10_923, 16_383, dead.port]);
      const whole = slots([0, 16_383, second.port]);
      if (late === 'stale') stale.say = playLate(lost);
      if (late === 'equal') stale.say = playLate(equal);
      if (late === 'heir') stale.say = play(lost);
      if (late === 'whole') stale.say = play(equal);
      second.say = late === 'heir' ? playLate(heir) : play(heir);
      if (late === 'whole') second.say = playLate(whole);
      await first.close();
      await dead.close();

      let proofs = 0;

      const hasHeir = async () => {
        for (const end = proofs + 10; proofs < end; proofs += 1) await client.record(`jti ${proofs}`);
        return asked(second, 'SET').some(([, key = '']) => slotOf(key) <= 5_460);
      };

      await untilSo(client, hasHeir);
      assert.deepEqual(stranger.sockets, []);
    });
  }

  test('is learnt once a round, also when several nodes reply [§30]', async (t) => {
    const { first, second } = await startNodes(t);
    const stand = await openStand(t, { address: addressOf(first, second) });
    await stand.logged('revocation store ready');
    await turns(50);

    const count = (word: string) =>
      [first, second].flatMap(({ commands }) => commands.filter(([command]) => command === word)).length;

    // Each time that the map is learnt, it looks whether the store responds.
    const before = count('MGET');
    await untilSo(stand, () => count('CLUSTER') === 4);
    await turns(50);
    assert.equal(count('MGET') - before, 1);
  });

  test('is asked for its map by twenty connections at a time [§30]', async (t) => {
    const nodes = await Promise.all(
      Array.from({ length: 25 }, () => startFakeStore(t, (words, socket) => say(words, socket))),
    );
    const ranges = nodes.map(({ port }, index) => [index * 655, index * 655 + 654, port] as const);
    const map = slots(...ranges);
    const good = storeWith(new Map());

    const say: Say = (words, socket) => (words[0] === 'CLUSTER' ? map : good(words, socket));

    const client = openClient(t, addressOf(nodes[0]!));
    await client.logged('replay store lost');
    const count = () => nodes.flatMap((node) => asked(node, 'CLUSTER')).length;
    assert.equal(count(), 1);
    await untilSo(client, () => count() > 1, 1_000);
    await turns(50);
    assert.equal(count(), 1 + 20);
  });

  for (const what of ['is not connected yet', 'is connected'] as const) {
    test(`lets 10,000 commands wait for a node that -MOVED names and ${what}, and no more at a time [§15]`, async (t) => {
      const nodes = await startNodes(t);
      const { first } = nodes;
      nodes.map = slots([0, 16_383, first.port]);
      const silent = await startFakeStore(t, ([command]) => {
        if (what === 'is not connected yet' || command === 'SET') return undefined;
        return command === 'PING' ? '+PONG\r\n' : '+OK\r\n';
      });
      const client = openClient(t, addressOf(first));
      await client.logged('replay store ready');
      first.say = ([command]) => (command === 'SET' ? `-MOVED 1 127.0.0.1:${silent.port}\r\n` : undefined);

      const verdicts: unknown[] = [];

      const send = async (count: number) => {
        const before = asked(first, 'SET').length;
        for (let index = 0; index < count; index += 1) {
          void Promise.resolve(client.record(`${index}`)).then((verdict) => verdicts.push(verdict));
        }
        await first.received(first.commands.length + count);
        assert.equal(asked(first, 'SET').length, before + count);
      };

      await send(1);
      await silent.received(what === 'is connected' ? 3 : 1);
      await send(5_999);
      await send(4_003);
      await turns(500);
      assert.deepEqual(verdicts, ['unavailable', 'unavailable', 'unavailable']);

      client.clock.advance(1_000);
      await turns(20);
      assert.equal(verdicts.length, 10_003);
      if (what === 'is connected') return;

      await send(1);
      await turns(20);
      assert.equal(verdicts.length, 10_003);
    });
  }

  for (const [what, reply, reason] of [
    ['is none', '-ERR This instance has cluster support disabled\r\n', 'ERR'],
    ['refuses the right', '-NOPERM x\r\n', 'NOPERM'],
    ['replies an empty map', '*0\r\n', 'reply-refused'],
    ['replies no map', '+OK\r\n', 'reply-refused'],
    ['replies half a range', '*1\r\n*2\r\n:0\r\n:1\r\n', 'reply-refused'],
  ] as const) {
    test(`is lost, and lets no token pass, when the host ${what}`, async (t) => {
      const say: Say = ([command]) => (command === 'CLUSTER' ? reply : '+OK\r\n');
      const store = await startFakeStore(t, say);
      const stand = await openStand(t, { address: addressOf(store) });
      assert.equal((await stand.logged('revocation store lost')).reason, reason);
      assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
      assert.doesNotMatch(JSON.stringify(stand.logs), /secret/);
    });
  }

  test('ends for good when it is closed', async (t) => {
    const { first } = await startNodes(t);
    const stand = await openStand(t, { address: addressOf(first) });
    await stand.logged('revocation store ready');
    stand.revocations.close();
    assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    await untilSo(stand, () => stand.clock.pending.length === 0);
    assert.equal(stand.logs.length, 1);
  });
});

describe('sentinels', () => {
  /** Until it is settled when they are asked again. */
  async function untilDue({ clock }: Stand): Promise<void> {
    for (let count = 0; clock.pending.join() !== '2000'; count += 1) {
      assert.ok(count < 10_000, clock.pending.join());
      await turns(1);
    }
  }

  /** A sentinel that names this port. */
  const sentinel =
    (portOf: () => number): Say =>
    ([command]) => {
      if (command === 'AUTH') return '-ERR no password is set\r\n';
      return `*2\r\n${bulk('127.0.0.1')}${bulk(String(portOf()))}`;
    };

  const master = (role = 'master'): Say => {
    const good = storeWith(new Map());
    return (words, socket) => (words[0] === 'ROLE' ? `*3\r\n${bulk(role)}:0\r\n*0\r\n` : good(words, socket));
  };

  const addressOfSentinels = (...stores: readonly FakeStore[]) =>
    `redis-sentinel://:secret@${stores.map(({ port }) => `127.0.0.1:${port}`).join(',')}/2?master=main`;

  test('name the master, which is asked for its role', async (t) => {
    const store = await startFakeStore(t, master());
    const watcher = await startFakeStore(
      t,
      sentinel(() => store.port),
    );
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    await stand.logged('revocation store ready');
    assert.equal(await stand.verdict(TOKEN), 'accepted');
    assert.deepEqual(watcher.commands, [
      ['AUTH', 'secret'],
      ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main'],
    ]);
    assert.deepEqual(store.commands.slice(0, 4), [['AUTH', 'secret'], ['SELECT', '2'], ['ROLE'], ['PING']]);
  });

  test('are asked again when the connection is lost, and the new master is used within two seconds [J7]', async (t) => {
    const old = await startFakeStore(t, master());
    const next = await startFakeStore(t, master());
    let port = old.port;
    const watchers = await Promise.all(
      [0, 1, 2].map(() =>
        startFakeStore(
          t,
          sentinel(() => port),
        ),
      ),
    );
    const stand = await openStand(t, { address: addressOfSentinels(...watchers) });
    await stand.logged('revocation store ready');
    await old.close();
    await stand.logged('revocation store lost');
    assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    port = next.port;
    await untilSo(stand, async () => (await stand.verdict(TOKEN)) === 'accepted', 2_000);
    await stand.logged('revocation store ready', 2);
  });

  test('of which one is cut off do not lead to the old master, even if that one replies first', async (t) => {
    const old = await startFakeStore(t, master());
    const next = await startFakeStore(t, master());
    const cutOff = await startFakeStore(
      t,
      sentinel(() => old.port),
    );
    const others = [await startFakeStore(t, () => undefined), await startFakeStore(t, () => undefined)];
    const stand = await openStand(t, { address: addressOfSentinels(cutOff, ...others) });
    for (const each of [cutOff, ...others]) await each.received(2);
    await turns(50);
    assert.deepEqual([stand.logs, old.sockets], [[], []]);

    const reply = `*2\r\n${bulk('127.0.0.1')}${bulk(String(next.port))}`;
    for (const { sockets } of others) sockets[0]?.write(`-ERR x\r\n${reply}`);
    await stand.logged('revocation store ready');
    assert.deepEqual(old.commands, []);
  });

  test('are asked every two seconds, and lead from a master that still works to the one that most of them name [J7]', async (t) => {
    const old = await startFakeStore(t, master());
    const next = await startFakeStore(t, master());
    const ports = [old.port, old.port, old.port];
    const watchers = await Promise.all(
      ports.map((_, index) =>
        startFakeStore(
          t,
          sentinel(() => ports[index]!),
        ),
      ),
    );
    const stand = await openStand(t, { address: addressOfSentinels(...watchers) });
    await stand.logged('revocation store ready');
    const isAsked = (count: number) => watchers.every(({ commands }) => commands.length === 2 * count);

    // One that is cut off, or knows too early, changes nothing.
    ports[0] = next.port;
    for (const count of [2, 3, 4]) {
      stand.clock.advance(2_000 - 1);
      await turns(50);
      assert.ok(isAsked(count - 1));
      stand.clock.advance(1);
      await untilDue(stand);
      assert.ok(isAsked(count));
    }
    assert.deepEqual([stand.logs.length, ended(old)], [1, [false]]);

    ports[1] = next.port;
    await untilSo(stand, async () => next.sockets.length > 0 && (await stand.verdict(TOKEN)) === 'accepted');
    assert.equal((await stand.logged('revocation store lost')).reason, 'no-master');
    await stand.logged('revocation store ready', 2);
    assert.deepEqual([ended(old), ended(next)], [[true], [false]]);
    assert.equal(asked(old).length, 0);

    // From then on, the new one is what they must name.
    for (let count = 0; count < 2; count += 1) {
      await untilDue(stand);
      stand.clock.advance(2_000);
    }
    await untilDue(stand);
    assert.deepEqual(ended(next), [false]);
  });

  /** A store that is ready, and its sentinel, which has been asked again and does not answer. */
  async function openUnanswered(t: TestContext) {
    const store = await startFakeStore(t, master());
    const good = sentinel(() => store.port);
    const watcher = await startFakeStore(t, good);
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    await stand.logged('revocation store ready');
    watcher.say = () => undefined;
    stand.clock.advance(2_000);
    await watcher.received(4);
    return { store, good, watcher, stand, asking: watcher.sockets.at(-1)! };
  }

  test('are asked no more often after the master was lost and found again while one of them was slow', async (t) => {
    const { store, good, watcher, stand, asking } = await openUnanswered(t);
    watcher.say = good;
    store.sockets[0]?.destroy();
    await stand.logged('revocation store lost');
    stand.clock.advance(50);
    await stand.logged('revocation store ready', 2);
    asking.write(`-ERR x\r\n${good(['SENTINEL'], asking)}`);
    await once(asking, 'close');
    await untilDue(stand);
    assert.deepEqual(ended(store), [true, false]);
  });

  test('do not lead away from a master that works if the address has one name, which may stand for many of them', async (t) => {
    const old = await startFakeStore(t, master());
    const watcher = await startFakeStore(
      t,
      sentinel(() => old.port),
    );
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    await stand.logged('revocation store ready');
    watcher.say = sentinel(() => old.port + 1);
    stand.clock.advance(2_000);
    await watcher.received(4);
    await untilDue(stand);
    assert.deepEqual([stand.logs.length, ended(old)], [1, [false]]);
  });

  for (const [what, replyOf] of [
    ['half of them name another', (isOther: boolean) => (isOther ? ('other' as const) : ('same' as const))],
    ['none of them knows it any more', () => 'none' as const],
  ] as const) {
    test(`do not lead away from a master that works while ${what}`, async (t) => {
      const old = await startFakeStore(t, master());
      const same = sentinel(() => old.port);
      const says = { same, other: sentinel(() => old.port + 1), none: () => '*-1\r\n' };
      const watchers = [await startFakeStore(t, same), await startFakeStore(t, same)] as const;
      const stand = await openStand(t, { address: addressOfSentinels(...watchers) });
      await stand.logged('revocation store ready');
      // Whichever replies first.
      for (const turn of [0, 1, 0, 1]) {
        for (const [index, watcher] of watchers.entries()) watcher.say = says[replyOf(index === turn)];
        const counts = watchers.map(({ sockets }) => sockets.length + 1);
        stand.clock.advance(2_000);
        for (const [index, watcher] of watchers.entries()) await watcher.connected(counts[index]!);
        await untilDue(stand);
      }
      assert.deepEqual([stand.logs.length, ended(old)], [1, [false]]);
      assert.equal(await stand.verdict(TOKEN), 'accepted');
    });
  }

  test('whose replies come when another master is found do not lead away from that one', async (t) => {
    const old = await startFakeStore(t, master());
    const next = await startFakeStore(t, master());
    const names = { old: sentinel(() => old.port), next: sentinel(() => next.port) };
    const watchers = [await startFakeStore(t, names.old), await startFakeStore(t, names.old)] as const;
    const stand = await openStand(t, { address: addressOfSentinels(...watchers) });
    await stand.logged('revocation store ready');
    for (const watcher of watchers) watcher.say = () => undefined;
    stand.clock.advance(2_000);
    for (const watcher of watchers) await watcher.received(4);

    for (const watcher of watchers) watcher.say = names.next;
    await old.close();
    await untilSo(stand, () => stand.logs.length === 3, 500);
    for (const watcher of watchers) {
      const [, asking] = watcher.sockets;
      asking!.write(`-ERR x\r\n${names.old(['SENTINEL'], asking!)}`);
      await once(asking!, 'close');
    }
    await untilDue(stand);
    await turns(50);
    assert.deepEqual([stand.logs.length, ended(next)], [3, [false]]);
    assert.equal(await stand.verdict(TOKEN), 'accepted');
  });

  test('of which none replies are asked again after ten seconds, so that few lookups of their names can hang', async (t) => {
    const store = await startFakeStore(t, master());
    const good = sentinel(() => store.port);
    const watchers = [await startFakeStore(t, good), await startFakeStore(t, good)] as const;
    const stand = await openStand(t, { address: addressOfSentinels(...watchers) });
    await stand.logged('revocation store ready');
    for (const { say, pauseMillis } of [
      { say: () => undefined, pauseMillis: 10_000 },
      { say: good, pauseMillis: 2_000 },
    ]) {
      const counts = watchers.map(({ commands }) => commands.length + 2);
      for (const watcher of watchers) watcher.say = say;
      stand.clock.advance(Math.max(...stand.clock.pending));
      for (const [index, watcher] of watchers.entries()) await watcher.received(counts[index]!);
      if (say !== good) stand.clock.advance(1_000);
      for (let count = 0; stand.clock.pending.join() !== String(pauseMillis); count += 1) {
        assert.ok(count < 10_000, stand.clock.pending.join());
        await turns(1);
      }
    }
    assert.deepEqual([stand.logs.length, ended(store)], [1, [false]]);
  });

  test('whose replies come when the store is closed are not asked again', async (t) => {
    const { good, stand, asking } = await openUnanswered(t);
    stand.revocations.close();
    asking.write(`-ERR x\r\n${good(['SENTINEL'], asking)}`);
    await once(asking, 'close');
    await turns(50);
    assert.deepEqual(stand.clock.pending, []);
  });

  test('are not asked while the master is lost but to find it, and never once the store is closed', async (t) => {
    const store = await startFakeStore(t, master());
    const watcher = await startFakeStore(
      t,
      sentinel(() => store.port),
    );
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    await stand.logged('revocation store ready');
    store.sockets[0]?.destroy();
    await stand.logged('revocation store lost');
    assert.equal(stand.clock.pending.length, 1);
    stand.revocations.close();
    assert.deepEqual(stand.clock.pending, []);
    stand.clock.advance(10_000);
    await turns(50);
    assert.equal(watcher.sockets.length, 1);
  });

  test('lead to nothing while the server is a replica', async (t) => {
    const store = await startFakeStore(t, master('slave'));
    const watcher = await startFakeStore(
      t,
      sentinel(() => store.port),
    );
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    assert.equal((await stand.logged('revocation store lost')).reason, 'no-master');
    // However often it is connected to.
    for (const times of [1, 2, 3]) {
      await untilSo(stand, () => asked(store, 'ROLE').length === times);
      assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    }
    store.say = master();
    await untilSo(stand, async () => (await stand.verdict(TOKEN)) === 'accepted', 2_000);
  });

  test('lead to nothing, with the reason that the server gives, if it may not be asked for its role', async (t) => {
    const good = master();
    const store = await startFakeStore(t, (words, socket) =>
      words[0] === 'ROLE' ? '-NOPERM x\r\n' : good(words, socket),
    );
    const watcher = await startFakeStore(
      t,
      sentinel(() => store.port),
    );
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    assert.equal((await stand.logged('revocation store lost')).reason, 'NOPERM');
  });

  test('that reply after the store is closed lead to no connection', async (t) => {
    const store = await startFakeStore(t, master());
    const watcher = await startFakeStore(t, () => undefined);
    const stand = await openStand(t, { address: addressOfSentinels(watcher) });
    await watcher.received(2);
    stand.revocations.close();
    const [asking] = watcher.sockets;
    assert.ok(asking);
    asking.write(`-ERR x\r\n*2\r\n${bulk('127.0.0.1')}${bulk(String(store.port))}`);
    await once(asking, 'close');
    await turns(50);
    assert.deepEqual([stand.logs, store.sockets], [[], []]);
  });

  for (const [what, reply, reason] of [
    ['know no such master', '*-1\r\n', 'reply-refused'],
    ['want another password', '-NOAUTH x\r\n', 'NOAUTH'],
  ] as const) {
    test(`that ${what} lead to nothing`, async (t) => {
      const watcher = await startFakeStore(t, ([command]) => (command === 'AUTH' ? '-ERR x\r\n' : reply));
      const stand = await openStand(t, { address: addressOfSentinels(watcher) });
      assert.equal((await stand.logged('revocation store lost')).reason, reason);
      assert.equal(await stand.verdict(TOKEN), UNAVAILABLE);
    });
  }
});

describe('over TLS', () => {
  const file = (name: string) => readFileSync(new URL(`../../idp/tls/${name}.pem`, import.meta.url));

  for (const [scheme, rest] of [
    ['rediss-cluster', ''],
    ['rediss-sentinel', '?master=main'],
  ] as const) {
    test(`the hosts of ${scheme} are asked`, async (t) => {
      const good = storeWith(new Map());

      const say: Say = (words, socket) => {
        if (words[0] === 'CLUSTER') return slots([0, 16_383, store.port]);
        if (words[0] === 'SENTINEL') return `*2\r\n${bulk('127.0.0.1')}${bulk(String(store.port))}`;
        return words[0] === 'ROLE' ? `*3\r\n${bulk('master')}:0\r\n*0\r\n` : good(words, socket);
      };

      const store = await startFakeStore(t, say, { cert: file('provider'), key: file('provider-key') });
      const stand = await openStand(t, { address: `${scheme}://:secret@127.0.0.1:${store.port}${rest}` });
      await stand.logged('revocation store ready');
      assert.equal(await stand.verdict(TOKEN), 'accepted');
    });

    test(`the hosts of ${scheme} are told nothing, not even a password, if they do not speak it`, async (t) => {
      const pieces: Buffer[] = [];
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', (piece) => {
          pieces.push(piece);
          socket.end('-ERR what is this\r\n');
        });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      const stand = await openStand(t, { address: `${scheme}://:secret@127.0.0.1:${port}${rest}` });
      await stand.logged('revocation store lost');
      assert.doesNotMatch(Buffer.concat(pieces).toString('latin1'), /secret|AUTH|CLUSTER|SENTINEL/);
    });
  }
});
