/* What hosts say of where a store is: the slots of a cluster, and the master that sentinels agree on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import {
  countSlots,
  locateMaster,
  rangesIn,
  redirectionIn,
  slotOf,
} from '../../../src/options/redis/discovery.ts';
import { isMaster } from '../../../src/options/redis/link.ts';
import type { Reply } from '../../../src/options/redis/resp.ts';
import { parseTarget } from '../../../src/options/redis/target.ts';
import { TestClock } from '../../support/clock.ts';
import { startFakeStore } from '../fake-store.ts';

describe('a slot', () => {
  for (const [key, slot] of [
    ['123456789', 12_739],
    ['foo', 12_182],
    ['{user1000}.following', 3_443],
    ['{user1000}.followers', 3_443],
    ['foo{}{bar}', 8_363],
    ['foo{{bar}}zap', 4_015],
    ['', 0],
  ] as const) {
    test(`of ${JSON.stringify(key)} is ${slot}, as the specification of clusters says`, () =>
      assert.equal(slotOf(key), slot));
  }
});

const ASKED = { host: 'asked.test', port: 1 };

const NODE: Reply = ['$a.test', ':7000', '$id', []];

const GOOD: Reply = [':0', ':16383', NODE];

describe('a map of slots', () => {
  test('has the master of each range, which stands before its replicas', () => {
    const ranges = rangesIn(
      [
        [':0', ':5', NODE, ['$b.test', ':1']],
        [':6', ':16383', ['$::1', ':2']],
      ],
      ASKED,
    );
    assert.deepEqual(ranges, [
      { first: 0, last: 5, node: { host: 'a.test', port: 7000 } },
      { first: 6, last: 16_383, node: { host: '::1', port: 2 } },
    ]);
  });

  for (const [what, host] of [
    ['leaves out its own name', '$'],
    ['has null in place of its name', null],
    ['has a number in place of its name', ':1'],
  ] as const) {
    test(`has the host that was asked where the node ${what}`, () =>
      assert.deepEqual(rangesIn([[':0', ':1', [host, ':7000']]], ASKED)?.[0]?.node, {
        host: ASKED.host,
        port: 7000,
      }));
  }

  test('has the host that was asked where the master leaves out its own name, and not a replica that has one', () => {
    const [range] = rangesIn([[':0', ':1', ['$', ':7000'], ['$b.test', ':1']]], ASKED) ?? [];
    assert.deepEqual(range?.node, { host: ASKED.host, port: 7000 });
  });

  for (const [what, reply] of [
    ['a status', '+OK'],
    ['null', null],
    ['an empty list', []],
    ['a list of text', ['$0']],
    ['a range without a node', [[':0', ':1']]],
    ['a range without its last slot', [[':0', NODE]]],
    ['a slot that is text', [['$0', ':1', NODE]]],
    ['a slot that is text and ends in a number', [['$x:0', ':1', NODE]]],
    ['a slot with text after its number', [[':0x', ':1', NODE]]],
    ['a negative slot', [[':-1', ':1', NODE]]],
    ['a node without a port', [[':0', ':1', ['$a.test']]]],
    ['a node whose port is text', [[':0', ':1', ['$a.test', '$7000']]]],
    ['a valid range before a wrong one', [GOOD, [':0', ':1']]],
  ] as const) {
    test(`is none if the host replies ${what}`, () =>
      assert.equal(rangesIn(reply as Reply, ASKED), undefined));
  }

  for (const [ranges, count] of [
    [[], 0],
    [[[0, 0]], 1],
    [[[0, 16_383]], 16_384],
    [
      [
        [1, 5],
        [0, 0],
      ],
      6,
    ],
    [
      [
        [0, 5],
        [0, 5],
      ],
      6,
    ],
    [
      [
        [0, 9],
        [2, 3],
        [4, 12],
      ],
      13,
    ],
    [
      [
        [10, 12],
        [0, 1],
        [5, 5],
      ],
      6,
    ],
    [
      [
        [0, 2],
        [2, 3],
      ],
      4,
    ],
  ] as const) {
    test(`of ${JSON.stringify(ranges)} has ${count} slots, each of which counts once`, () =>
      assert.equal(countSlots(ranges.map(([first, last]) => ({ first, last, node: ASKED }))), count));
  }
});

test('a redirection without a host leads to another port of the host that was asked', () => {
  assert.deepEqual(redirectionIn('-MOVED 1 :7001', ASKED), {
    address: { host: ASKED.host, port: 7001 },
    isAsk: false,
  });
});

test('a server is a master if it replies so to ROLE', () => {
  assert.equal(isMaster(['$master', ':0', []]), true);
  for (const reply of [undefined, null, '$master', [], ['$slave'], ['+master'], [':0', '$master']] as const) {
    assert.equal(isMaster(reply as Reply), false);
  }
});

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

const says = (host: string, port: string) => `*2\r\n${bulk(host)}${bulk(port)}`;

/** Sentinels that reply when the test says so, and what is found. */
async function openSentinels(t: TestContext, count: number) {
  const stores = await Promise.all(Array.from({ length: count }, () => startFakeStore(t, () => undefined)));
  const hosts = stores.map(({ port }) => `127.0.0.1:${port}`);
  const found: unknown[] = [];
  const agreed: unknown[] = [];
  const target = parseTarget(`redis-sentinel://${hosts.join(',')}?master=main`);
  const clock = new TestClock();

  locateMaster(target, clock, (where, name, isAgreed) => {
    found.push(where);
    if (isAgreed) agreed.push(name);
  });

  for (const store of stores) {
    assert.deepEqual(await store.received(1), ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main']);
  }

  async function reply(index: number, text: string) {
    const socket = stores[index]!.sockets[0]!;
    socket.write(text);
    await once(socket, 'close');
  }

  /** Nothing else happens for so long. */
  async function wait(millis: number) {
    const ends = stores.map(({ sockets }) =>
      once(sockets[0]!, 'close', { signal: AbortSignal.timeout(20_000) }),
    );
    clock.advance(millis - 1);
    await new Promise(setImmediate);
    assert.deepEqual(found, []);
    clock.advance(1);
    await Promise.all(ends);
  }

  return { found, agreed, reply, wait };
}

const A = says('a.test', '1');

const B = says('b.test', '2');

const ERROR = '-ERR x\r\n';

const ofA = { host: 'a.test', port: 1 };

const ofB = { host: 'b.test', port: 2 };

describe('sentinels', () => {
  for (const [what, replies, decidesAt, expected, agreedOn] of [
    ['one, which agrees with none', [A], 1, ofA],
    ['two', [A, A], 2, ofA, 'a.test:1'],
    ['two of three', [A, B, B], 3, ofB, 'b.test:2'],
    ['the first two of three', [A, A, B], 2, ofA, 'a.test:1'],
    ['three of four', [A, B, A, A], 4, ofA, 'a.test:1'],
    ['the first three of four', [A, A, A, B], 3, ofA, 'a.test:1'],
    ['half of four, the others not', [A, A, ERROR, ERROR], 4, ofA],
    ['most of those that know it, the first not', [A, B, B, ERROR], 4, ofB],
    ['most of those that know it, the last not', [B, B, A, ERROR], 4, ofB],
    ['the last alone', [ERROR, ERROR, A], 3, ofA],
    ['none', [ERROR, ERROR, '-NOAUTH x\r\n'], 3, 'NOAUTH'],
  ] as const) {
    test(`lead to what they name once most agree or all are heard, and once alone: ${what}`, async (t) => {
      const { found, agreed, reply } = await openSentinels(t, replies.length);
      for (const [index, text] of replies.entries()) {
        await reply(index, text);
        assert.deepEqual(found, index + 1 < decidesAt ? [] : [expected]);
      }
      assert.deepEqual(agreed, agreedOn === undefined ? [] : [agreedOn]);
    });
  }

  for (const [what, reply] of [
    ['no port', says('a.test', '')],
    ['a port with text', says('a.test', '1x')],
    ['a port after text', says('a.test', 'x1')],
    ['no host', says('', '1')],
    ['a host alone', `*1\r\n${bulk('a.test')}`],
    ['a number for the port', `*2\r\n${bulk('a.test')}:1\r\n`],
    ['null', '*-1\r\n'],
    ['a status', '+OK\r\n'],
  ] as const) {
    test(`lead to nothing if they name ${what}`, async (t) => {
      const { found, reply: send } = await openSentinels(t, 1);
      await send(0, reply);
      assert.deepEqual(found, ['reply-refused']);
    });
  }

  test('lead to nothing if they are silent for a second', async (t) => {
    const { found, wait } = await openSentinels(t, 2);
    await wait(1_000);
    while (found.length === 0) await new Promise(setImmediate);
    assert.deepEqual(found, ['timeout']);
  });
});
