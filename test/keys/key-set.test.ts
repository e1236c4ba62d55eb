// @ts-nocheck until the tests ask as requests do
/* Which key a token means, what a fetched set must be, and what the log says of it. When to fetch: refresh.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { integer, jwk, kidOf, SECOND, Stand, thumbprintOf } from './stand.ts';

/** A stand that holds these keys. */
async function standWith(...keys: unknown[]): Promise<Stand> {
  const stand = new Stand();
  await stand.answer(...keys);
  return stand;
}

const kids = (count: number) => Array.from({ length: count }, (_, index) => jwk(`k${index}`));
const unusable = (kid: string) => jwk(kid, { use: 'enc' });

test('finds the key that kid names', async () => {
  const stand = await standWith(jwk('a', {}, 0x11), jwk('b', {}, 0x33));
  const [a, b] = [stand.keys.find('a', 0), stand.keys.find('b', 0)];
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
    const stand = await standWith(...keys);
    assert.equal(stand.outcome(), outcome);
    assert.equal(stand.fetches, 1);
  });
}

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
  test(`knows no key by the kid ${JSON.stringify(kid.slice(0, 20))}`, async () => {
    const stand = await standWith(jwk('a'));
    const request = stand.request(kid);
    await stand.answer(jwk('a'));
    assert.equal(await request, 'key-unknown');
  });
}

test('finds a key by the kid __proto__ when the set has one of that name', async () => {
  const stand = await standWith(jwk('a'), jwk('__proto__', {}, 0x33));
  assert.equal(kidOf(stand.keys.find('__proto__', 0)), '__proto__');
});

test('matches neither of two usable keys when they bear one kid, and keeps the others', async () => {
  const stand = await standWith(jwk('a'), jwk('b', {}, 0x11), jwk('a', {}, 0x33));
  assert.equal(stand.outcome('a', 2), 'key-unknown');
  assert.equal(stand.outcome('b'), 'found');
  assert.deepEqual(stand.logged('signing key skipped'), [
    { level: 'warn', reason: 'key-id-repeated', kid: 'a' },
  ]);
});

test('matches none of three usable keys when they bear one kid', async () => {
  const stand = await standWith(jwk('a'), jwk('a', {}, 0x33), jwk('a', {}, 0x11));
  assert.equal(stand.outcome('a', 2), 'key-unknown');
});

test('finds the usable key when an unusable one bears the same kid', async () => {
  const stand = await standWith(unusable('a'), jwk('a'), jwk('a', { kty: 'EC' }));
  assert.equal(stand.outcome('a'), 'found');
});

test('keeps usable keys without kid when there are several, since none of them is named', async () => {
  const stand = await standWith(jwk(undefined), jwk(undefined, {}, 0x33), jwk('a', {}, 0x11));
  assert.equal(stand.outcome('a'), 'found');
  assert.deepEqual(stand.logged('signing key skipped'), []);
});

const UNUSABLE: [condition: string, member: unknown, reason: string, kid: string][] = [
  ['null', null, 'not-an-object', ''],
  ['text', 'key', 'not-an-object', ''],
  ['an array', [jwk('b')], 'not-an-object', ''],
  ['an empty object', {}, 'key-type', ''],
  ['an EC key', { kty: 'EC', crv: 'P-256', kid: 'b' }, 'key-type', 'b'],
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
  test(`skips ${condition} with a warning that names the reason, and keeps the good keys [RFC 7517 §5, A7]`, async () => {
    const stand = await standWith(jwk('first', {}, 0x11), member, jwk('last', {}, 0x33));
    assert.deepEqual(stand.logged('signing key skipped'), [{ level: 'warn', reason, kid }]);
    assert.deepEqual(stand.logged('signing keys loaded'), [{ level: 'info', usable: 2, skipped: 1 }]);
    assert.deepEqual(
      ['first', 'last', 'b'].map((name) => stand.outcome(name, 2)),
      ['found', 'found', 'key-unknown'],
    );
  });
}

const FAILED: [condition: string, document: object, reason: string, code: string][] = [
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
  test(`counts a set as a failed fetch when ${condition}, and goes on with the keys held`, async () => {
    const stand = await standWith(jwk('a'));
    const before = stand.keys.find('a', 0);
    stand.clock.advance(20 * SECOND);
    await stand.answerDocument(document);
    assert.equal(stand.keys.find('a', 0), before);
    assert.equal(stand.outcome('b', 2), 'keys-unavailable');
    assert.deepEqual(stand.logged('signing keys could not be fetched'), [
      { level: 'warn', reason, code, heldForSeconds: 20 },
    ]);
    assert.deepEqual(
      [stand.logged('signing key skipped').length, stand.logged('signing keys loaded').length],
      [0, 1],
    );
  });
}

test('takes a set of 100 keys', async () => {
  const stand = await standWith(...kids(100));
  assert.deepEqual([stand.outcome('k0'), stand.outcome('k99')], ['found', 'found']);
});

test('keeps the same key object across refreshes', async () => {
  const stand = await standWith(jwk('a'), jwk('b', {}, 0x33), jwk(undefined, {}, 0x11));
  const before = [stand.keys.find('a', 0), stand.keys.find('b', 0)];
  await stand.answer(jwk('b', { use: undefined }, 0x33), jwk('c', {}, 0x77), jwk('a'));
  assert.deepEqual(
    [stand.keys.find('a', 0) === before[0], stand.keys.find('b', 0) === before[1]],
    [true, true],
  );
});

test('makes another key object when a kid comes to name another key', async () => {
  const stand = await standWith(jwk('a'));
  const before = stand.keys.find('a', 0);
  await stand.answer(jwk('a', {}, 0x33));
  const after = stand.keys.find('a', 0);
  assert.notEqual(after, before);
  assert.notEqual(thumbprintOf(after), thumbprintOf(before));
});

test('makes another key object when a key comes to be named by another kid', async () => {
  const stand = await standWith(jwk('a'));
  await stand.answer(jwk('b'));
  assert.deepEqual([kidOf(stand.keys.find('b', 0)), stand.outcome('a', 2)], ['b', 'key-unknown']);
});

test('forgets a withdrawn key with the next refresh', async () => {
  const stand = await standWith(jwk('a'), jwk('b', {}, 0x33));
  await stand.answer(jwk('b', {}, 0x33));
  assert.deepEqual([stand.outcome('a', 2), stand.outcome('b')], ['key-unknown', 'found']);
});

test('logs a set once when refreshes bring the same one', async () => {
  const stand = await standWith(jwk('a'), unusable('b'));
  for (let refresh = 0; refresh < 3; refresh += 1) await stand.answer(jwk('a'), unusable('b'));
  assert.deepEqual(
    stand.logs.map(({ message }) => message),
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
  test(`logs the set anew when ${condition}`, async () => {
    const stand = await standWith(jwk('a'), unusable('b'));
    stand.logs.length = 0;
    await stand.answer(...keys);
    assert.deepEqual(
      stand.logs.map(({ message }) => message),
      ['signing key skipped', 'signing keys loaded'],
    );
  });
}

test('logs that the keys are loaded, and no skipped key again, when the same set comes after a failure', async () => {
  const stand = await standWith(jwk('a'), unusable('b'));
  await stand.fail();
  stand.logs.length = 0;
  for (let refresh = 0; refresh < 2; refresh += 1) await stand.answer(jwk('a'), unusable('b'));
  assert.deepEqual(
    stand.logs.map(({ message }) => message),
    ['signing keys loaded'],
  );
});

test('logs no text of a key beyond its kid', async () => {
  const stand = await standWith(jwk('a'), jwk('b', { d: 'c2VjcmV0' }));
  assert.doesNotMatch(JSON.stringify(stand.logs), /c2VjcmV0|VVVVVV/);
});
