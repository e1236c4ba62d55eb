/* 50,000 fields of proxies and 20,000 peers, each judged as by an independent reading. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientCertificates } from '../../src/certificates.ts';
import { isInside, READINGS } from './certificate-readings.ts';
import { confirmOf, FIELDS, outcomeFrom, SOURCES, written } from './certificates-fixture.ts';

const FIELD_COUNT = 50_000;
const PEER_COUNT = 20_000;

/** Mulberry32: the same numbers in each run. */
function createRandom(seed: number) {
  let state = seed;

  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };

  const below = (end: number) => Math.floor(next() * end);
  return { below, oneOf: <Value>(values: readonly Value[]) => values[below(values.length)]! };
}

const { below, oneOf } = createRandom(20_261_127);

const PIECES = [
  ...[
    '=',
    '==',
    ':',
    ',',
    ', ',
    ';',
    '"',
    '\\',
    '\\"',
    ' ',
    '\t',
    '%',
    '%0A',
    '%0D',
    '%0D%0A',
    '%2',
    '+',
    '/',
    '-',
    '_',
  ],
  ...[
    'Hash=',
    ';Hash=',
    'By=a;',
    ';',
    'a',
    'A',
    '0',
    '\n',
    '\r',
    '\u00a0',
    'é',
    '%20',
    '%3D',
    '%41',
    'x=y;',
    '="',
    '";',
  ],
  ...['-----BEGIN%20CERTIFICATE-----%0A', '%0A-----END%20CERTIFICATE-----', '{http.request.tls.client.x}'],
];

const bytes = (length: number) => Buffer.from(Array.from({ length }, () => below(256)));

/** One change: a piece inserted, a stretch lost, doubled or moved, a letter's case, or an escape undone. */
function changed(value: string): string {
  const from = below(value.length + 1);
  const to = Math.min(value.length, from + below(6));
  const before = value.slice(0, from);
  const middle = value.slice(from, to);
  const after = value.slice(to);
  return oneOf([
    () => before + oneOf(PIECES) + middle + after,
    () => before + after,
    () => before + middle + middle + after,
    () => after + middle + before,
    () => before + middle.toUpperCase() + after,
    () => before + middle.toLowerCase() + after,
    () => before + oneOf(PIECES) + after,
    () =>
      value.replaceAll(
        oneOf(['%2B', '%2F', '%3D', '%20', '%0A']),
        oneOf(['+', '/', '=', ' ', '%0D%0A', '%0a']),
      ),
  ])();
}

test(`judges ${FIELD_COUNT} fields as an independent reading does [J1]`, () => {
  const parts = SOURCES.map((source) => {
    return { source, confirm: confirmOf({ source, proxies: 'any' }) };
  });
  const seen = { accepted: 0, malformed: 0 };
  for (let count = 0; count < FIELD_COUNT; count += 1) {
    const { source, confirm } = oneOf(parts);
    let value = written(source, bytes(1 + below(60)));
    for (let changes = below(4); changes > 0; changes -= 1) value = changed(value);
    if (value === '') continue;
    const thumbprint = READINGS[source](value);
    const named = thumbprint ?? 'A'.repeat(43);
    const outcome = outcomeFrom(confirm, named, FIELDS[source], [value], { remoteAddress: '192.0.2.1' });
    const expected = thumbprint === undefined ? 'certificate-malformed' : 'accepted';
    assert.equal(outcome, expected, `${source}: ${JSON.stringify(value)}`);
    seen[thumbprint === undefined ? 'malformed' : 'accepted'] += 1;
  }
  assert.ok(seen.accepted > FIELD_COUNT / 5 && seen.malformed > FIELD_COUNT / 5, JSON.stringify(seen));
});

function address(): string {
  const part = () => oneOf([0, 0, 1, 10, 127, 255, below(256)]);
  const v4 = [part(), part(), part(), part()].join('.');
  const group = () => oneOf(['0', '0', 'ffff', '1', 'fe80', below(65_536).toString(16)]);
  const groups = (length: number) => Array.from({ length }, group).join(':');
  return oneOf([
    () => v4,
    () => `::ffff:${v4}`,
    () => `::FFFF:${groups(2)}`,
    () => `0:0:0:0:0:ffff:${groups(2)}`,
    () => `::${v4}`,
    () => groups(8),
    () => `${groups(1 + below(3))}::${groups(1 + below(4))}`,
    () => `::${groups(1 + below(6))}`,
    () => `${groups(1 + below(6))}::`,
    () => `${groups(6)}:${v4}`,
  ])();
}

test(`judges ${PEER_COUNT} peers as an independent reading does [J1]`, () => {
  let inside = 0;
  let tried = 0;
  while (tried < PEER_COUNT) {
    const base = address();
    const range = `${base}/${below(base.includes(':') ? 129 : 33)}`;
    const isGood = isRange(range);
    if (!isGood) continue;

    const confirm = confirmOf({ source: 'base64', proxies: [range] });
    for (let count = 0; count < 4; count += 1) {
      const remoteAddress = oneOf([base, address(), address(), base.replace(/\w$/, String(below(8)))]);
      if (!/^[\da-f:]+(?:\.\d{1,3}){0,3}$/i.test(remoteAddress)) continue;
      tried += 1;
      const outcome = outcomeFrom(confirm, 'A'.repeat(43), FIELDS.base64, ['AAAA'], { remoteAddress });
      const expected = isInside(range, remoteAddress) ? 'certificate-mismatch' : 'certificate-untrusted';
      assert.equal(outcome, expected, `${remoteAddress} in ${range}`);
      inside += Number(isInside(range, remoteAddress));
    }
  }
  assert.ok(inside > PEER_COUNT / 10, String(inside));
});

const isRange = (range: string) => {
  try {
    clientCertificates({ source: 'base64', proxies: [range] });
    return true;
  } catch {
    return false;
  }
};
