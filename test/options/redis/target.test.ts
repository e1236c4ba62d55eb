/* The address of a store: which addresses are accepted, and what each says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressIn, parseTarget, storeUrl } from '../../../src/options/redis/target.ts';

const STORES: readonly (readonly [address: string, isGood: boolean])[] = [
  ['redis://store.test', true],
  ['rediss://store.test', true],
  ['REDISS://Store.test', true],
  ['redis://store.test/', true],
  ['redis://store.test/0', true],
  ['redis://store.test:6380/15', true],
  ['redis://my_store', true],
  ['redis://10.0.0.1', true],
  ['redis://[::1]:6379/1', true],
  ['redis://:secret@store.test', true],
  ['redis://user:secret@store.test', true],
  ['redis://us%65r:p%40%2F%3A%C3%B6@store.test', true],
  ['redis://user:pass:word@store.test', true],
  ['redis://user:pässwörd@store.test', true],
  ['redis://user@store.test', false],
  ['redis://user:@store.test', false],
  ['redis://:@store.test', false],
  ['redis://@store.test', false],
  ['redis://user:p@ss@store.test', false],
  ['redis://user:p/ss@store.test', false],
  ['redis://user:100%@store.test', false],
  ['redis://user:%zz@store.test', false],
  ['redis://user:%ff@store.test', false],
  ['redis://store.test?db=1', false],
  ['redis://store.test/?', false],
  ['redis://store.test#', false],
  ['redis://user:p#ss@store.test', false],
  ['redis://store.test/x', false],
  ['redis://store.test/1/2', false],
  ['redis://store.test/-1', false],
  ['redis://store.test:', false],
  ['redis://store.test:0', false],
  ['redis://store.test:65536', false],
  ['redis://st%6fre.test', false],
  ['redis://[::g]', false],
  ['redis://[store]', false],
  ['redis://', false],
  ['redis:///1', false],
  ['redis:store.test', false],
  ['//store.test', false],
  ['store.test:6379', false],
  ['redis+tls://store.test', false],
  ['http://store.test', false],
  ['unix:///run/redis.sock', false],
  ['redis://one.test,two.test', false],
  ['redis-cluster://one.test', true],
  ['rediss-cluster://user:p%40@one.test:7000,[::1]:7001,10.0.0.1', true],
  ['redis-cluster://one.test/', true],
  ['redis-cluster://one.test/1', false],
  ['redis-cluster://one.test,', false],
  ['redis-cluster://one.test,two.test:0', false],
  ['redis-cluster://one.test,two.test:65536', false],
  ['redis-cluster://one.test,user:secret@two.test', false],
  ['redis-cluster://one.test?master=x', false],
  [`redis-cluster://${'a.test,'.repeat(9)}a.test`, true],
  [`redis-cluster://${'a.test,'.repeat(10)}a.test`, false],
  ['redis-sentinel://one.test?master=main', true],
  ['rediss-sentinel://:secret@one.test:26379,two.test/3?master=my-main.1', true],
  [`redis-sentinel://${'a.test,'.repeat(10)}a.test?master=main`, false],
  ['redis-sentinel://one.test', false],
  ['redis-sentinel://one.test?master=', false],
  ['redis-sentinel://one.test?master=a b', false],
  ['redis-sentinel://one.test?master=a&x=1', false],
  ['redis://store.test ', false],
  [' redis://store.test', false],
  ['redis://store.test\n', false],
  ['redis://us er:secret@store.test', false],
  ['redis-cluster://us,er:secret@one.test,two.test', false],
  ['redis-cluster://us~er:secret@one.test,two.test', true],
  ['redis-sentinel://us,er:secret@one.test,two.test?master=main', false],
  ['redis-cluster://us%2Cer:sec%2Cret@one.test,two.test', true],
  ['redis-cluster://user:sec,ret@one.test,two.test', false],
  ['redis-cluster://one.test:6379,user:secret@two.test:6379', false],
  ['redis-sentinel://one.test:26379,:secret@two.test?master=main', false],
  ['redis://user:sec,ret@one.test', true],
  ['redis://my-store.test', true],
  ['redis://[::ffff:10.0.0.1]', true],
  ['redis://us?er:secret@store.test', false],
  ['redis://us#er:secret@store.test', false],
  ['redis://user:p ss@store.test', false],
  ['redis://user:1?x@store.test', false],
  ['redis://user:1#x@store.test', false],
  ['redis://store.test/999999999', true],
  ['redis://store.test/1000000000', false],
  ['redis-sentinel://one.test/?master=main', true],
  ['redis-sentinel://one.test/1000000000?master=main', false],
  ['', false],
];

const PROBLEM =
  'must be redis://[[user]:password@]host[:port][/database], or rediss://, with special characters as %XX; ' +
  'or redis-cluster://, with up to ten hosts, comma-separated, and no database; ' +
  'or redis-sentinel://, with up to ten sentinels, and ?master=name at the end';

for (const [address, isGood] of STORES) {
  test(`${isGood ? 'accepts' : 'refuses'} ${JSON.stringify(address)} as the address of a store`, () =>
    assert.equal(storeUrl(address), isGood ? undefined : PROBLEM));
}

const USUAL = { isTls: false, credentials: [], database: '', master: '' } as const;

const at = (host: string, port: number) => ({ host, port });

for (const [address, target] of [
  ['redis://a.test', { ...USUAL, kind: 'redis', hosts: [at('a.test', 6379)] }],
  [
    'REDISS://user:pa:ss%40@[::1]:7000/012',
    {
      ...USUAL,
      kind: 'redis',
      isTls: true,
      credentials: ['user', 'pa:ss@'],
      database: '12',
      hosts: [at('::1', 7000)],
    },
  ],
  ['redis://a.test/00', { ...USUAL, kind: 'redis', hosts: [at('a.test', 6379)] }],
  ['redis://a.test/100', { ...USUAL, kind: 'redis', database: '100', hosts: [at('a.test', 6379)] }],
  [
    'redis-cluster://:secret@a.test,[::1]:7000,b.test:1/',
    {
      ...USUAL,
      kind: 'redis-cluster',
      credentials: ['secret'],
      hosts: [at('a.test', 6379), at('::1', 7000), at('b.test', 1)],
    },
  ],
  ['rediss-cluster://a.test', { ...USUAL, kind: 'redis-cluster', isTls: true, hosts: [at('a.test', 6379)] }],
  [
    'redis-sentinel://a.test,b.test:1/3?master=my-main.1',
    {
      ...USUAL,
      kind: 'redis-sentinel',
      database: '3',
      hosts: [at('a.test', 26_379), at('b.test', 1)],
      master: 'my-main.1',
    },
  ],
  [
    'Rediss-Sentinel://a.test?master=Main',
    { ...USUAL, kind: 'redis-sentinel', isTls: true, hosts: [at('a.test', 26_379)], master: 'Main' },
  ],
] as const) {
  test(`reads ${address} as its parts`, () => assert.deepEqual(parseTarget(address), target));
}

test('is not read if it is no address of a store', () =>
  assert.throws(() => parseTarget('http://a.test'), { name: 'TypeError', message: PROBLEM }));

for (const [text, host, port] of [
  ['a.test:7000', 'a.test', 7000],
  ['a.test', 'a.test', 0],
  [':7000', '', 7000],
  ['::1:7000', '::1', 7000],
  ['[::1]:7000', '::1', 7000],
  ['[::1]', '::1', 0],
] as const) {
  test(`reads host and port of ${text}`, () => assert.deepEqual(addressIn(text), at(host, port)));
}
