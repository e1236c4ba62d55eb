/* Revocations over a fake store, with a clock that the test moves, and a verifier that they protect. */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { TestContext } from 'node:test';
import { makeRevocations, type RevocationsWithWriters } from '../../../src/options/redis/revocations.ts';
import { createLog } from '../../../src/options/log.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { createTokenVerifier } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import { startFakeStore, type FakeStore, type Say } from '../fake-store.ts';
import { ISSUER, keySetOf, NOW, RULES, type Rules } from '../../verify/token/issuer.ts';

const digest = (text: string) => createHash('sha256').update(text).digest('base64url');

/** What the documents say, written a second time. */
export const keyFor = (kind: string, value: string, issuer = ISSUER) =>
  `gatehouse:revoked:{${digest(issuer)}}:${digest(`${kind}\n${issuer}\n${value}`)}`;

/** The reply to an `MGET`. */
export const valuesIn = (entries: ReadonlyMap<string, string>, keys: readonly string[]): string => {
  const texts = keys.map((key) => {
    const value = entries.get(key);
    return value === undefined ? '$-1\r\n' : `$${Buffer.byteLength(value)}\r\n${value}\r\n`;
  });
  return `*${keys.length}\r\n${texts.join('')}`;
};

/** A working store with these entries. */
export const storeWith =
  (entries: Map<string, string>): Say =>
  ([command, ...words]) => {
    if (command === 'PING') return '+PONG\r\n';
    if (command === 'MGET') return valuesIn(entries, words);
    if (command === 'SET') entries.set(words[0]!, words[1]!);
    if (command === 'DEL') return `:${Number(entries.delete(words[0]!))}\r\n`;
    return '+OK\r\n';
  };

/** A working, empty store, except for its replies to one command. */
export const except =
  (command: string, reply: Say | string, others: Say = storeWith(new Map())): Say =>
  (words, socket) => {
    if (words[0] !== command) return others(words, socket);
    return typeof reply === 'string' ? reply : reply(words, socket);
  };

export interface Stand {
  readonly store: FakeStore;
  readonly entries: Map<string, string>;
  readonly clock: TestClock;
  readonly revocations: RevocationsWithWriters;
  /** The parsed lines of the log so far. */
  readonly logs: readonly Record<string, unknown>[];
  /** Resolves with the `count`-th line with this message. */
  logged(message: string, count?: number): Promise<Record<string, unknown>>;
  /** What was counted. */
  readonly counts: readonly string[];
  /** Whether the store is said to respond. */
  isUp(): boolean;
  /** `accepted`, or the reason of the refusal. */
  verdict(token: string): Promise<string>;
}

export interface StandPlan {
  readonly say?: Say;
  readonly rules?: Partial<Rules>;
  readonly issuers?: readonly string[];
  /** In place of the address of the fake store. */
  readonly address?: string;
}

/** It closes with the test. Its store has not been heard of yet. */
export async function openStand(
  t: TestContext,
  { say, rules = {}, issuers, address }: StandPlan = {},
): Promise<Stand> {
  const entries = new Map<string, string>();
  const store = await startFakeStore(t, say ?? storeWith(entries));
  const clock = new TestClock(NOW * 1000);
  const logs: Record<string, unknown>[] = [];
  const counts: string[] = [];
  const changes = new EventEmitter();

  const write = (line: string) => {
    logs.push(JSON.parse(line));
    changes.emit('change');
  };

  const url = address ?? `redis://:secret@127.0.0.1:${store.port}`;
  const revocations = makeRevocations(url, issuers, clock);
  t.after(revocations.close);
  const keys = new KeySet('idp', async () => keySetOf(), { clock, log: () => {}, count: undefined });
  await keys.refresh();
  const served = [{ ...RULES, ...rules, keys }];
  const content = Part.contentOf(revocations);
  const joined = content.join(served, {
    clock,
    log: createLog('debug', write, clock.now),
    count: (event, word) => counts.push(`${event} ${word}`),
  });
  const verify = joined.protect(createTokenVerifier(served, clock, 100));

  async function verdict(token: string) {
    const verified = await verify(token);
    return verified instanceof Refused ? verified.refusal.reason : 'accepted';
  }

  async function logged(message: string, count = 1) {
    for (;;) {
      const line = logs.filter((one) => one.message === message)[count - 1];
      if (line !== undefined) return line;
      await once(changes, 'change', { signal: AbortSignal.timeout(20_000) });
    }
  }

  return { store, entries, clock, revocations, logs, logged, counts, isUp: () => content.isUp(), verdict };
}

/** A stand whose store is ready. */
export async function startStand(t: TestContext, plan: StandPlan = {}): Promise<Stand> {
  const stand = await openStand(t, plan);
  await stand.logged('revocation store ready');
  return stand;
}
