// A replay store that replicas share (RFC 9449 §11.1): Redis or Valkey. Trusts the server. Promises: only the
// server's reply makes a proof `new`; without one it is `unavailable` within a second. Does not check that
// the server keeps keys until they expire.
import { nothing, type Clock } from '../../verify/base/clock.ts';
import { printable, type Fields, type Log, type LogEvent } from '../../verify/base/events.ts';
import { requireGood, Part } from '../../verify/base/option.ts';
import { hashProof, keepSeconds, type ReplayStore, type ReplayVerdict } from '../../verify/dpop/replay.ts';
import type { ReplayStorePart } from '../../verify/options.ts';
import { createClient, REFUSED_MILLIS } from './cluster.ts';
import type { Watcher } from './link.ts';
import { mayGoOnAfter, reasonIn, type Reply } from './resp.ts';
import { storeUrl } from './target.ts';

const VERDICTS = new Map<unknown, ReplayVerdict>([
  ['+OK', 'new'],
  [null, 'seen'],
]);

/**
 * Makes a replay store that replicas share, for the option `replayStore`. Each gate and service has a
 * connection of its own. Throws a `TypeError` for anything but the address of a server, of a cluster or of
 * sentinels (docs/dpop.md).
 *
 * @example createGate({ domain, audience, replayStore: redisReplayStore('redis://store.internal') });
 */
export function redisReplayStore(url: string): ReplayStorePart {
  requireGood('redisReplayStore', storeUrl, url);
  return Part.make('replayStore', (clock, log) => new SharedReplayStore(url, clock, log), true);
}

export class SharedReplayStore implements ReplayStore, Watcher {
  readonly #clock;
  readonly #log;
  readonly #client;
  /**
   * False once the server refused a proof, or left proofs on two connections without a reply, and none got a
   * verdict in between. Then only a verdict, not a greeting, shows that it can record.
   */
  #mayRecord = true;
  /** Whether a proof has got no reply: the connection is about to be lost. */
  #isUnanswered = false;
  /** Whether a connection has been lost for that since the last verdict. */
  #wasUnanswered = false;
  /** Until when one verdict does not show that the server records all proofs. */
  #refusesUntilMillis = 0;
  #lastLogged = '';
  #tellOutcome = nothing;
  readonly firstOutcome = new Promise<void>((resolve) => {
    this.#tellOutcome = resolve;
  });

  /** Trusts that the rule `storeUrl` accepts the URL. */
  constructor(url: string, clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#client = createClient(url, clock, this);
  }

  record(thumbprint: string, jti: string, expiresAtSeconds: number, nowSeconds: number) {
    const key = `gatehouse:dpop:${hashProof(thumbprint, jti, 'base64url')}`;
    const seconds = keepSeconds(expiresAtSeconds, nowSeconds);
    const words = ['SET', key, '1', 'NX', 'EX', String(seconds)];

    let isSent = false;
    const verdict = new Promise<ReplayVerdict>((resolve) => {
      isSent = this.#client.send(words, (reply) => {
        const told = VERDICTS.get(reply);
        resolve(told ?? 'unavailable');
        return told ? this.#heedVerdict() : this.#heedRefusal(reply);
      });
    });
    return isSent ? verdict : 'unavailable';
  }

  state() {
    return { isUp: this.#mayRecord && this.#client.isUp() };
  }

  close() {
    this.#client.close();
  }

  onReady() {
    if (this.state().isUp) this.#logChange('replay store ready', {});
  }

  onLost(reason: string) {
    if (this.#isUnanswered) {
      if (this.#wasUnanswered) this.#mayRecord = false;
      this.#wasUnanswered = true;
    }
    this.#isUnanswered = false;
    this.#logChange('replay store lost', { reason: printable(reason) });
  }

  #logChange(event: LogEvent, fields: Fields) {
    if (event !== this.#lastLogged) this.#log(event, fields);
    this.#lastLogged = event;
    this.#tellOutcome();
  }

  /** Returns whether the connection may go on. */
  #heedVerdict() {
    this.#wasUnanswered = false;
    if (this.#clock.monotonic() >= this.#refusesUntilMillis) {
      this.#mayRecord = true;
      this.onReady();
    }
    return true;
  }

  #heedRefusal(reply: Reply | undefined) {
    this.#isUnanswered = reply === undefined;
    if (reply !== undefined) this.#mayRecord = false;
    if (!mayGoOnAfter(reply)) return false;

    this.#refusesUntilMillis = this.#clock.monotonic() + REFUSED_MILLIS;
    this.onLost(reasonIn(reply));
    return true;
  }
}
