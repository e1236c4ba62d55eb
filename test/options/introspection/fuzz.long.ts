/* 50,000 answers of introspection endpoints, each judged as by an independent reading of RFC 7662. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJsonObject } from '../../../src/verify/base/encoding.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { AUDIENCE, ISSUER, NOW } from '../../verify/token/issuer.ts';
import { ACTIVE, openStand } from './fixture.ts';

const ANSWERS = 50_000;

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

const STRANGE = [null, true, false, 0, 1, '', 'x', [], {}, [null], ['Bearer'], '1e999', -1, { a: 1 }];

/** What each member may be, more often good than not. */
const MEMBERS: Readonly<Record<string, readonly unknown[]>> = {
  active: [true, true, true, true, true, true, 'true', 1, [true]],
  iss: [ISSUER, ISSUER, ISSUER, undefined, `${ISSUER}/`, [ISSUER]],
  aud: [AUDIENCE, AUDIENCE, [AUDIENCE], ['x', AUDIENCE], undefined, 'x', [AUDIENCE, 1], `${AUDIENCE} x`],
  exp: [NOW + 60, NOW + 60, NOW + 60, NOW + 0.5, NOW, NOW - 1, String(NOW + 60), undefined],
  nbf: [undefined, undefined, undefined, NOW, NOW - 1, NOW + 1, String(NOW)],
  iat: [undefined, undefined, NOW, NOW + 99, String(NOW)],
  sub: ['user', 'user', 'user', '', undefined, 1],
  client_id: [undefined, 'a-client'],
  token_use: [undefined, undefined, undefined, 'access', 'access_token', 'refresh_token', 'Access'],
  token_type: [undefined, undefined, 'Bearer', 'DPoP', 'access_token', 'BEARER', 'refresh_token', 'N_A'],
  typ: [undefined, undefined, undefined, 'Bearer', 'ID', 'JWT', 'Refresh', 'at+jwt'],
  events: [undefined, undefined, undefined, {}],
  nonce: [undefined, undefined, undefined, 'n'],
  s_hash: [undefined, undefined, undefined, 'h'],
  cnf: [undefined, undefined, { jkt: 'k' }, {}, { 'x5t#S256': 'c' }],
};

function anyAnswer(): Record<string, unknown> {
  const members = Object.entries(MEMBERS).map(([name, values]) => {
    const usual = below(4) === 0 ? values : values.slice(0, 3);
    return [name, oneOf(below(60) === 0 ? STRANGE : usual)];
  });
  return Object.fromEntries(members);
}

const isGiven = (value: unknown) => value !== undefined && value !== null;

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

const isIn = (words: readonly string[], value: unknown) =>
  typeof value === 'string' && words.includes(value.toLowerCase());

/** Whether the members, as a table reads them, let a token pass. */
function mayPass(it: Readonly<Record<string, any>>): boolean {
  const audiences = Array.isArray(it.aud) && it.aud.every((one: unknown) => typeof one === 'string');
  const saysAccess = isIn(['access', 'access_token'], it.token_use) || isIn(['bearer', 'dpop'], it.typ);
  const hasMarks = ['nonce', 'at_hash', 'c_hash', 's_hash'].some((name) => isGiven(it[name]));
  const isForgotten = isIn(['dpop'], it.token_type) && it.cnf?.jkt === undefined;
  return [
    it.active === true,
    it.iss === undefined || it.iss === ISSUER,
    it.aud === AUDIENCE || (audiences && it.aud.includes(AUDIENCE)),
    isNumber(it.exp) && it.exp > NOW,
    it.nbf === undefined || (isNumber(it.nbf) && it.nbf <= NOW),
    it.iat === undefined || isNumber(it.iat),
    typeof it.sub === 'string' && it.sub !== '',
    !isGiven(it.token_use) || it.token_use === 'access' || it.token_use === 'access_token',
    !isGiven(it.token_type) || isIn(['bearer', 'dpop', 'access_token'], it.token_type),
    !isGiven(it.typ) || isIn(['bearer', 'dpop', 'jwt', 'at+jwt'], it.typ),
    !isGiven(it.events),
    !hasMarks || saysAccess,
    !isForgotten,
  ].every(Boolean);
}

/** A text, sometimes with a character changed, left out or doubled. */
function written(answer: object): string {
  const text = JSON.stringify(answer);
  if (below(5) > 0) return text;

  const at = below(text.length);
  return (
    text.slice(0, at) +
    oneOf<string>(['', '"', '}', ',', '\\', '0', text[at]! + text[at]!]) +
    text.slice(at + 1)
  );
}

test('accepts no answer that it should refuse, and refuses none that it should accept [§22, J4]', async () => {
  const stand = await openStand({ options: { cacheSeconds: 0 } });
  const tally = { accepted: 0, refused: 0, unavailable: 0 };
  for (let index = 0; index < ANSWERS; index += 1) {
    const text = below(50) === 0 ? written({ ...ACTIVE, sub: 'user' }) : written(anyAnswer());
    const answer = parseJsonObject(Buffer.from(text));
    // As the endpoint does; a 400 leaves the questions open.
    stand.say = () => answer ?? Promise.reject(new FetchError('status-refused', 400));
    const verdict = await stand.verdict();
    const isVerdict = typeof answer?.active === 'boolean';
    if (verdict === 'introspection-unavailable') {
      assert.ok(!isVerdict, text);
      tally.unavailable += 1;
      // Answers without a verdict count as failures.
      stand.clock.set(NOW * 1000);
      stand.say = () => ACTIVE;
      while ((await stand.verdict()) !== 'accepted') stand.clock.advance(1_000);
      stand.clock.set(NOW * 1000);
      continue;
    }
    assert.ok(isVerdict, text);
    assert.equal(verdict === 'accepted', mayPass(answer), `${verdict}: ${text}`);
    tally[verdict === 'accepted' ? 'accepted' : 'refused'] += 1;
  }
  assert.ok(
    Object.values(tally).every((count) => count > 1_000),
    JSON.stringify(tally),
  );
});
