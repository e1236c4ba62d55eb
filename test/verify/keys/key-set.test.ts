/* Which key a token names, what a fetched set must be, and what is logged about it. When to fetch:
   refresh.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importSigningKey, type Algorithm } from '../../../src/verify/keys/jwk.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { atOnce, TestClock } from '../../support/clock.ts';
import { unlessRefused } from '../../support/refused.ts';
import {
  HOUR,
  holding,
  integer,
  jwk,
  kidOf,
  SECOND,
  thumbprintOf,
  type KeySetFixture,
} from './key-set-fixture.ts';

const kids = (count: number) => Array.from({ length: count }, (_, index) => jwk(`k${index}`));

const unusable = (kid: string) => jwk(kid, { use: 'enc' });

const find = ({ keys }: KeySetFixture, kid?: string) => unlessRefused(atOnce(keys.find(kid, 'RS256')));

test('finds the key that kid names', async () => {
  const fixture = await holding(jwk('a', {}, 0x11), jwk('b', {}, 0x33));
  const a = find(fixture, 'a');
  const b = find(fixture, 'b');
  assert.deepEqual([kidOf(a), kidOf(b)], ['a', 'b']);
  assert.notEqual(thumbprintOf(a), thumbprintOf(b));
});

const WITHOUT_KID: [condition: string, keys: unknown[], outcome: string][] = [
  ['the set holds one key that bears a kid', [jwk('a')], 'found'],
  ['the set holds one key without kid', [jwk(undefined)], 'found'],
  ['the other keys of the set are unusable', [unusable('b'), jwk('a'), {}], 'found'],
  ['the set holds two usable keys', [jwk('a'), jwk('b', {}, 0x33)], 'key-unknown'],
  ['the set holds two usable keys without kid', [jwk(undefined), jwk(undefined, {}, 0x33)], 'key-unknown'],
  [
    'the set holds two usable keys, one of them without kid',
    [jwk(undefined), jwk('a', {}, 0x33)],
    'key-unknown',
  ],
  ['the set holds two usable keys of one kid', [jwk('a'), jwk('a', {}, 0x33)], 'key-unknown'],
];

for (const [condition, keys, outcome] of WITHOUT_KID) {
  test(`${outcome === 'found' ? 'finds the only key' : 'finds none'} without kid when ${condition} [RFC 7515 §4.1.4]`, async () => {
    const fixture = await holding(...keys);
    assert.equal(fixture.outcome(), outcome);
    assert.equal(fixture.fetches, 1);
  });
}

test('says that the key is unknown when a token has no kid and two keys are held, even after a failed fetch', async () => {
  const fixture = await holding(jwk('a'), jwk('b', {}, 0x33));
  await fixture.fail();
  assert.equal(fixture.outcome(), 'key-unknown');
});

const HOSTILE = [
  'A',
  'a ',
  ' a',
  '',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  "' OR 1=1",
  '\u0000\r\n',
  'x'.repeat(64 * 1024),
];

for (const kid of HOSTILE) {
  test(`finds no key by the kid ${JSON.stringify(kid.slice(0, 20))}`, async () => {
    const fixture = await holding(jwk('a'));
    assert.equal(await fixture.verdict(kid), 'key-unknown');
  });
}

test('finds a key by the kid __proto__ if the set has it', async () => {
  const fixture = await holding(jwk('a'), jwk('__proto__', {}, 0x33));
  assert.equal(kidOf(find(fixture, '__proto__')), '__proto__');
});

test('finds neither of two usable keys with the same kid, but finds the others', async () => {
  const fixture = await holding(jwk('a'), jwk('b', {}, 0x11), jwk('a', {}, 0x33));
  assert.equal(await fixture.verdict('a'), 'key-unknown');
  assert.equal(fixture.outcome('b'), 'found');
  assert.deepEqual(fixture.logged('signing keys loaded')[0]?.kids, ['a', 'b', 'a']);
});

test('finds none of three usable keys with the same kid', async () => {
  const fixture = await holding(jwk('a'), jwk('a', {}, 0x33), jwk('a', {}, 0x11));
  assert.equal(await fixture.verdict('a'), 'key-unknown');
});

test('finds the usable key when an unusable one has the same kid', async () => {
  const fixture = await holding(unusable('a'), jwk('a'), jwk('a', { kty: 'EC' }));
  assert.equal(fixture.outcome('a'), 'found');
});

test('keeps several usable keys without kid', async () => {
  const fixture = await holding(jwk(undefined), jwk(undefined, {}, 0x33), jwk('a', {}, 0x11));
  assert.equal(fixture.outcome('a'), 'found');
  assert.deepEqual(fixture.logged('signing key skipped'), []);
});

const UNUSABLE: [condition: string, member: unknown, reason: string, kid: string][] = [
  ['null', null, 'not-an-object', ''],
  ['text', 'key', 'not-an-object', ''],
  ['an array', [jwk('b')], 'not-an-object', ''],
  ['an empty object', {}, 'key-type', ''],
  ['an EC key', { kty: 'EC', crv: 'P-256', kid: 'b' }, 'algorithm', 'b'],
  ['a private key', jwk('b', { d: 'AQ' }), 'private-member', 'b'],
  ['a key whose kid is a number', jwk('b', { kid: 7 }), 'key-id', ''],
  ['a key for encryption', unusable('b'), 'use', 'b'],
  ['a key without the operation verify', jwk('b', { key_ops: [] }), 'key-operations', 'b'],
  ['a key for another algorithm', jwk('b', { alg: 'RS512' }), 'algorithm', 'b'],
  ['a key without modulus', jwk('b', { n: undefined }), 'encoding', 'b'],
  ['a weak key', jwk('b', { n: integer(1024) }), 'size', 'b'],
  ['a key with the exponent 1', jwk('b', { e: 'AQ' }), 'exponent', 'b'],
  [
    'an unusable key whose kid is long and not printable',
    unusable(`\r\né${'x'.repeat(100)}`),
    'use',
    `???${'x'.repeat(61)}`,
  ],
];

for (const [condition, member, reason, kid] of UNUSABLE) {
  test(`skips ${condition} with a warning that names the reason, and keeps the usable keys [RFC 7517 §5, A7]`, async () => {
    const fixture = await holding(jwk('first', {}, 0x11), member, jwk('last', {}, 0x33));
    assert.deepEqual(fixture.logged('signing key skipped'), [{ level: 'warn', reason, kid }]);
    const loaded = { level: 'info', usable: 2, skipped: 1, kids: ['first', 'last'] };
    assert.deepEqual(fixture.logged('signing keys loaded'), [loaded]);
    assert.deepEqual([fixture.outcome('first'), fixture.outcome('last')], ['found', 'found']);
    assert.equal(await fixture.verdict('b'), 'key-unknown');
  });
}

const FAILED: [condition: string, document: unknown, reason: string, code: string][] = [
  ['it is null', null, 'not-a-key-set', ''],
  ['it is nothing', undefined, 'not-a-key-set', ''],
  ['it has no keys', {}, 'not-a-key-set', ''],
  ['its keys are text', { keys: 'x' }, 'not-a-key-set', ''],
  ['its keys are null', { keys: null }, 'not-a-key-set', ''],
  ['its keys are an object', { keys: { 0: jwk('b'), length: 1 } }, 'not-a-key-set', ''],
  ['it is a single key', jwk('b'), 'not-a-key-set', ''],
  ['its list of keys is empty', { keys: [] }, 'no-usable-key', ''],
  ['no key in it is usable', { keys: [unusable('b'), {}] }, 'no-usable-key', 'use'],
  ['it has 101 keys', { keys: kids(101) }, 'too-many-keys', ''],
  [
    'it has 101 members of which one is a key',
    { keys: [jwk('b'), ...Array(100).fill({})] },
    'too-many-keys',
    '',
  ],
];

for (const [condition, document, reason, code] of FAILED) {
  test(`treats the fetch of a key set as failed when ${condition}, and keeps the keys held`, async () => {
    const fixture = await holding(jwk('a'));
    const before = thumbprintOf(find(fixture, 'a'));
    fixture.clock.advance(20 * SECOND);
    await fixture.responseDocument(document as object);
    assert.equal(thumbprintOf(find(fixture, 'a')), before);
    assert.equal(await fixture.verdict('b'), 'keys-unavailable');
    assert.deepEqual(fixture.logged('signing keys could not be fetched'), [
      { level: 'warn', reason, code, heldForSeconds: 20 },
    ]);
    assert.deepEqual(
      [fixture.logged('signing key skipped').length, fixture.logged('signing keys loaded').length],
      [0, 1],
    );
  });
}

test('accepts a set of 100 keys', async () => {
  const fixture = await holding(...kids(100));
  assert.deepEqual([fixture.outcome('k0'), fixture.outcome('k99')], ['found', 'found']);
});

test('finds the new key when a kid is given to another key', async () => {
  const fixture = await holding(jwk('a'));
  const before = thumbprintOf(find(fixture, 'a'));
  await fixture.response(jwk('a', {}, 0x33));
  assert.notEqual(thumbprintOf(find(fixture, 'a')), before);
});

test('finds a key only by its new kid when its kid changes', async () => {
  const fixture = await holding(jwk('a'));
  await fixture.response(jwk('b'));
  assert.equal(kidOf(find(fixture, 'b')), 'b');
  assert.equal(await fixture.verdict('a'), 'key-unknown');
});

test('drops a withdrawn key with the next refresh', async () => {
  const fixture = await holding(jwk('a'), jwk('b', {}, 0x33));
  await fixture.response(jwk('b', {}, 0x33));
  assert.deepEqual([await fixture.verdict('a'), fixture.outcome('b')], ['key-unknown', 'found']);
});

test('logs a set once when refreshes do not change it', async () => {
  const fixture = await holding(jwk('a'), unusable('b'));
  for (let refresh = 0; refresh < 3; refresh += 1) await fixture.response(jwk('a'), unusable('b'));
  assert.deepEqual(
    fixture.logs.map(({ message }) => message),
    ['signing key skipped', 'signing keys loaded'],
  );
});

const CHANGES: Record<string, unknown[]> = {
  'a key is added': [jwk('a'), unusable('b'), jwk('c', {}, 0x33)],
  'a kid comes to name another key': [jwk('a', {}, 0x33), unusable('b')],
  'a key comes to be named by another kid': [jwk('c'), unusable('b')],
  'a key is skipped for another reason': [jwk('a'), jwk('b', { alg: 'RS512' })],
};

for (const [condition, keys] of Object.entries(CHANGES)) {
  test(`logs the set again when ${condition}`, async () => {
    const fixture = await holding(jwk('a'), unusable('b'));
    fixture.logs.length = 0;
    await fixture.response(...keys);
    assert.deepEqual(
      fixture.logs.map(({ message }) => message),
      ['signing key skipped', 'signing keys loaded'],
    );
  });
}

test('logs the set again when a key comes to be for another algorithm', async () => {
  const algorithms = ['RS256', 'PS256'] as const;
  const published = algorithms.map((alg) => ({ keys: [jwk('a', { alg })] }));
  const fetchNext = async () => published.shift() ?? assert.fail('a third fetch');
  const events: string[] = [];
  const log = (event: string) => void events.push(event);
  const around = { clock: new TestClock(0), log, count: undefined };
  const keys = new KeySet('partner', fetchNext, around, (key) => importSigningKey(key, algorithms));
  for (const _ of algorithms) await keys.refresh();
  assert.deepEqual(events, ['signing keys loaded', 'signing keys loaded']);
});

test('logs the loaded and skipped keys again when the same set follows a failure', async () => {
  const fixture = await holding(jwk('a'), unusable('b'));
  await fixture.fail();
  fixture.logs.length = 0;
  for (let refresh = 0; refresh < 2; refresh += 1) await fixture.response(jwk('a'), unusable('b'));
  assert.deepEqual(
    fixture.logs.map(({ message }) => message),
    ['signing key skipped', 'signing keys loaded'],
  );
});

test('counts the result of each fetch by issuer', async () => {
  const fixture = await holding(jwk('a'));
  await fixture.fail('timeout');
  await fixture.response({});
  await fixture.response(jwk('a'));
  assert.deepEqual(fixture.results, ['ok', 'timeout', 'no-usable-key', 'ok']);
});

test('logs a key without kid with an empty kid', async () => {
  const fixture = await holding(jwk(undefined));
  assert.deepEqual(fixture.logged('signing keys loaded')[0]?.kids, ['']);
});

test('names the issuer in every log line', async () => {
  const fixture = await holding(jwk('a'), unusable('b'));
  await fixture.fail();
  fixture.clock.advance(HOUR);
  fixture.outcome('a');
  assert.deepEqual(
    fixture.logs.map(({ message, issuer }) => [message, issuer]),
    [
      ['signing key skipped', 'partner'],
      ['signing keys loaded', 'partner'],
      ['signing keys could not be fetched', 'partner'],
      ['signing keys expired', 'partner'],
    ],
  );
});

test('names the issuer in every refusal', async () => {
  const fixture = await holding(jwk('a'), jwk('b', {}, 0x33));

  const told = (kid?: string, algorithm: Algorithm = 'RS256') => {
    try {
      return unlessRefused(atOnce(fixture.keys.find(kid, algorithm)));
    } catch (failure) {
      if (!(failure instanceof Refused)) throw failure;
      return [failure.refusal.reason, failure.found];
    }
  };

  const whose = { issuerName: 'partner' };
  assert.deepEqual(told(), ['key-unknown', whose]);
  const unknown = fixture.request('c');
  await fixture.response(jwk('a'));
  assert.equal(await unknown, 'key-unknown');
  assert.deepEqual(told('c'), ['key-unknown', whose]);
  assert.deepEqual(told('a', 'ES256'), ['algorithm-refused', { ...whose, kid: 'a' }]);
  await fixture.fail();
  assert.deepEqual(told('c'), ['keys-unavailable', whose]);
  fixture.clock.advance(5 * SECOND);
  for (let request = 0; request < 1000; request += 1) assert.equal(fixture.outcome('c'), 'waits');
  assert.deepEqual(told('c'), ['too-many-waiting', whose]);
});

test('logs nothing of a key but its kid', async () => {
  const fixture = await holding(jwk('a'), jwk('b', { d: 'c2VjcmV0' }));
  assert.doesNotMatch(JSON.stringify(fixture.logs), /c2VjcmV0|VVVVVV/);
});

test('keeps a key whatever its issuer is, even what JSON.stringify refuses, as it does 5,000 levels [§23]', async () => {
  const fixture = await holding(jwk('a', { issuer: 1n }));
  assert.equal(fixture.outcome('a'), 'found');
});
