/* Attacks that no other test is about. The identifiers in brackets are those of SECURITY.md. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { claimCheck } from '../src/routes/guards.ts';
import { createRefusalReplies } from '../src/reply/challenge.ts';
import { parseCredentials } from '../src/sender/credentials.ts';
import { normalUri } from '../src/request/uri.ts';
import { createReplayStore } from '../src/sender/replay.ts';
import { draft, judge, key, openSender } from './sender/stand.ts';
import { callerWith } from './support/caller.ts';
import { sealProof } from './support/proof.ts';
import { GOOD, HEADER, issue, issueRaw, verdict } from './token/issuer.ts';

/** The order of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

test('accepts a proof once also when its signature is spelt in the other way that verifies [A10, RFC 9449 §11.1]', async () => {
  const proof = draft(key);
  const mirrored: typeof proof = {
    ...proof,
    alter: (signature) => {
      const other = ORDER - BigInt(`0x${signature.subarray(32).toString('hex')}`);
      return Buffer.concat([
        signature.subarray(0, 32),
        Buffer.from(other.toString(16).padStart(64, '0'), 'hex'),
      ]);
    },
  };
  for (const [first, second] of [
    [proof, mirrored],
    [mirrored, proof],
  ] as const) {
    const sender = openSender();
    assert.deepEqual(
      [await judge(sender, sealProof(first)), await judge(sender, sealProof(second))],
      ['accepted', 'proof-replayed'],
    );
  }
});

test('refuses a token that carries another token [B7, RFC 7519 §7.2(10)]', async () => {
  for (const cty of [undefined, 'JWT', 'jwt', 'application/jwt']) {
    assert.equal(await verdict(issueRaw(JSON.stringify({ ...HEADER, cty }), GOOD)), 'payload-malformed');
    assert.equal(
      await verdict(issueRaw(JSON.stringify({ ...HEADER, cty }), JSON.stringify(GOOD))),
      'payload-malformed',
    );
  }
  assert.equal(
    await verdict(issue({}, { cty: 'JWT', enc: 'A128GCM', zip: 'DEF', p2c: 2 ** 31 })),
    'accepted',
    'members that mean nothing here',
  );
});

/** Every regular expression of a source text. */
const patternsOf = (source: string) =>
  [
    ...source.matchAll(/(?<=[(,=:?|&]\s*|return\s)\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/g),
  ].map(([, body = '', flags = '']) => ({ body, flags }));
/** True when a repetition without bound is itself repeated without bound, which can take exponential time. */
const repeatsRepetition = (body: string) => {
  const bare = body.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
  return /\((?:[^()]|\([^()]*\))*[*+}](?:[^()]|\([^()]*\))*\)(?:[*+]|\{\d+,\})/.test(bare);
};
/** What a request meets: everything but the settings. */
const sources = readdirSync(new URL('../src', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('settings'))
  .map((name) => readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8'));

test('no pattern that a request meets can take exponential time [C10]', () => {
  assert.deepEqual(
    ['(a+)+', '(?:a|b*)*$', '(x{2,})+', '(a(b)+)*'].filter((body) => !repeatsRepetition(body)),
    [],
  );
  const bodies = sources.flatMap(patternsOf).map(({ body }) => body);
  assert.ok(bodies.length > 10, String(bodies.length));
  assert.deepEqual(
    bodies.filter(repeatsRepetition).filter((body) => !body.includes('%[0-9a-f]{2}')),
    [],
  );
});

test('no pattern that a request meets remembers where it was [C11]', () => {
  const stateful = sources.flatMap((source) =>
    [...source.matchAll(/\/[a-z]*[gy][a-z]*\)?\.(?:test|exec)\(/g)].map(([found]) => found),
  );
  assert.deepEqual(stateful, []);
});

const LONG = 16_000;
const adversarial = [
  'a'.repeat(LONG),
  ' '.repeat(LONG),
  'a.'.repeat(LONG / 2),
  '%'.repeat(LONG),
  '%41'.repeat(LONG / 4),
  '/'.repeat(LONG),
  '[:'.repeat(LONG / 2),
];
test(
  'answers texts of 16,000 characters that are meant to keep a pattern busy [C10]',
  { timeout: 20_000 },
  async () => {
    for (const text of adversarial) {
      for (const ending of ['', '!', '\0']) {
        for (const start of ['Bearer ', 'Bearer', 'DPoP ', '']) {
          assert.throws(() => {
            const credentials = parseCredentials(['Authorization', `${start}${text} ${ending} x`], 'ALLOWED');
            assert.equal(credentials, undefined);
          });
        }
        for (const start of ['https://', 'https://a/', 'https://a:', 'https://[', ''])
          normalUri(`${start}${text}${ending}`);
        assert.notEqual(await verdict(issue({ aud: text + ending, scope: text + ending })), 'accepted');
        assert.deepEqual(callerWith({ scope: `${text}${ending} read` }).scopes.includes('read'), true);
      }
    }
  },
);

test('can demand that the subject is not the client itself [D9]', () => {
  const isUser = claimCheck(
    'the subject is not the client',
    (claim) => typeof claim('client_id') === 'string' && claim('sub') !== claim('client_id'),
  );
  const passes = (claims: Record<string, unknown>) => isUser.passes(callerWith(claims));
  assert.deepEqual(
    [passes({ client_id: 'c', sub: 'u' }), passes({ client_id: 'c', sub: 'c' }), passes({ sub: 'u' })],
    [true, false, false],
  );
  assert.equal(
    createRefusalReplies({ dpopMode: 'DISABLED', errorDetail: false })(isUser.refused.refusal, 'Bearer')
      .status,
    403,
  );
});

test('accepts a proof once at all replicas that share a memory of used proofs, and once at each that does not [E3, RFC 9449 §11.1]', async () => {
  const memory = createReplayStore(330);
  const store = { record: async (...what: Parameters<typeof memory.record>) => memory.record(...what) };
  const proof = sealProof(draft(key));
  const at = async (replicas: readonly ReturnType<typeof openSender>[]) =>
    Promise.all(replicas.map((sender) => judge(sender, proof)));
  assert.deepEqual((await at([openSender({ store }), openSender({ store })])).sort(), [
    'accepted',
    'proof-replayed',
  ]);
  assert.deepEqual(await at([openSender(), openSender()]), ['accepted', 'accepted']);
});

test('asks nobody for credentials that a browser would send by itself [G9]', async () => {
  assert.deepEqual(
    sources.filter((source) => /\bcookie\b|Set-Cookie|remoteAddress/i.test(source)),
    [],
  );
  assert.equal(
    parseCredentials(
      ['Cookie', `Authorization=Bearer ${GOOD}; token=${GOOD}`, 'Host', 'rebound.test'],
      'ALLOWED',
    ),
    undefined,
  );
});
