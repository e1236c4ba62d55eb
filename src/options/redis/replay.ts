// A replay store that replicas share (RFC 9449 §11.1): Redis or Valkey. Trusts the server. Promises: only the
// server's reply makes a proof `new`; without one it is `unavailable` within a second. Does not check that
// the server keeps keys until they expire.
import type { Clock } from '../../verify/base/clock.ts';
import { printable, type Log } from '../../verify/base/events.ts';
import { requireGood } from '../../verify/base/option.ts';
import { Part } from '../../verify/base/part.ts';
import {
  hashProof,
  keepSeconds,
  type CreateReplayStore,
  type ReplayStore,
  type ReplayVerdict,
} from '../../verify/dpop/replay.ts';
import type { ReplayStorePart } from '../../verify/options.ts';
import { createClient } from './client.ts';
import { mayGoOnAfter, reasonIn, type Reply } from './resp.ts';
import { storeUrl } from './target.ts';

const VERDICTS = new Map<unknown, ReplayVerdict>([
  ['+OK', 'new'],
  [null, 'seen'],
]);

/** In a cluster, one server may refuse proofs that others record: the log does not follow each of them. */
const REFUSED_MILLIS = 2_000;

/**
 * Makes a replay store that replicas share, for the option `replayStore`. Each gate and service has a
 * connection of its own. Throws a `TypeError` for anything but the address of a server, of a cluster or of
 * sentinels (docs/dpop.md).
 *
 * @example createGate({ domain, audience, replayStore: redisReplayStore('redis://store.internal') });
 */
export function redisReplayStore(url: string): ReplayStorePart {
  requireGood('redisReplayStore', storeUrl, url);
  const create: CreateReplayStore = (clock, log) => createSharedReplayStore(url, clock, log);
  return Part.make('replayStore', create, true);
}

/** Trusts that the rule `storeUrl` accepts the URL. */
export function createSharedReplayStore(url: string, clock: Clock, log: Log): ReplayStore {
  /** False once the server refused a proof. Then only a verdict, not a greeting, shows that it can record. */
  let mayRecord = true;
  /** Until when one verdict does not show that the server records all proofs; 0 unless it has refused one. */
  let refusesUntilMillis = 0;
  let lastLogged = '';

  let tellOutcome = () => {};
  const firstOutcome = new Promise<void>((resolve) => {
    tellOutcome = resolve;
  });

  const logChange: Log = (event, fields) => {
    if (event !== lastLogged) log(event, fields);
    lastLogged = event;
    tellOutcome();
  };

  const client = createClient(url, clock, {
    onReady: () => {
      if (mayRecord) logReady();
    },
    onLost: (reason) => logChange('replay store lost', { reason: printable(reason) }),
  });

  function logReady() {
    if (client.isUp()) logChange('replay store ready', {});
  }

  function recordRefusal(reply: Reply) {
    mayRecord = false;
    if (!mayGoOnAfter(reply)) return;

    refusesUntilMillis = clock.monotonic() + REFUSED_MILLIS;
    logChange('replay store lost', { reason: printable(reasonIn(reply)) });
  }

  function verdictOf(reply: Reply | undefined): ReplayVerdict {
    const verdict = VERDICTS.get(reply);
    if (reply !== undefined && verdict === undefined) recordRefusal(reply);
    if (verdict === undefined) return 'unavailable';

    if (clock.monotonic() >= refusesUntilMillis) {
      refusesUntilMillis = 0;
      mayRecord = true;
      logReady();
    }
    return verdict;
  }

  return {
    record(thumbprint, jti, expiresAtSeconds, nowSeconds) {
      const key = `gatehouse:dpop:${hashProof(thumbprint, jti, 'base64url')}`;
      const seconds = keepSeconds(expiresAtSeconds, nowSeconds);
      const words = ['SET', key, '1', 'NX', 'EX', String(seconds)];

      let isSent = false;
      const verdict = new Promise<ReplayVerdict>((resolve) => {
        isSent = client.send(key, words, (reply) => {
          const told = verdictOf(reply);
          resolve(told);
          return told !== 'unavailable' || mayGoOnAfter(reply);
        });
      });
      return isSent ? verdict : 'unavailable';
    },

    state: () => ({ isUp: refusesUntilMillis === 0 && client.isUp() }),
    firstOutcome: () => firstOutcome,
    close: client.close,
  };
}
