// The revocation store: what Redis or Valkey says of entries, and their writing. Trusts the server. Promises:
// only whole replies within a second say that there is no entry.
import { nothing, type Clock } from '../../verify/base/clock.ts';
import {
  printable,
  type Fields,
  type Log,
  type LogEvent,
  type Surroundings,
} from '../../verify/base/events.ts';
import { createClient, REFUSED_MILLIS } from './cluster.ts';
import { REPLY_MILLIS } from './connection.ts';
import { GREETING_MILLIS, type Watcher } from './link.ts';
import { isError, mayGoOnAfter, reasonIn, type Reply } from './resp.ts';
import { PROBE_KEY } from './revocation.ts';
import { parseTarget } from './target.ts';

const READY = 'revocation store ready';
const LOST = 'revocation store lost';

export class RevocationStore implements Watcher {
  readonly kind;
  readonly #client;
  readonly #clock;
  /** By gate or service, since several may share one log. */
  readonly #logs = new Map<Surroundings, Log>();
  /** What waits until a connection is ready. */
  readonly #waiting = new Set<() => void>();
  /** Until when one whole reply does not show that each server of a cluster answers. */
  #refusesUntilMillis = 0;
  #last: readonly [event: LogEvent, fields: Fields] | undefined;
  #isClosed = false;
  #tellOutcome = nothing;
  /** Resolves once the store is known to respond, or not to. */
  readonly firstOutcome = new Promise<void>((resolve) => {
    this.#tellOutcome = resolve;
  });

  constructor(url: string, clock: Clock) {
    this.kind = parseTarget(url).kind;
    this.#clock = clock;
    this.#client = createClient(url, clock, this);
  }

  onReady() {
    this.#attemptAll();
    const probe = () => void this.ask([PROBE_KEY]);
    probe();
    // That reply does not count yet, and no lookup may come for hours.
    if (this.#clock.monotonic() < this.#refusesUntilMillis) this.#clock.after(REFUSED_MILLIS, probe);
  }

  onLost(reason: string) {
    this.#tell(LOST, { reason: printable(reason) });
  }

  isUp() {
    return this.#last?.[0] === READY;
  }

  /** Logs the state and its changes. Returns a function that ends it. */
  watch(around: Surroundings) {
    this.#logs.set(around, around.log);
    if (this.#last) around.log(...this.#last);
    return () => void this.#logs.delete(around);
  }

  /** What is under each key, `null` for nothing; `undefined` if the store does not say. */
  ask(keys: readonly string[]): Promise<readonly Reply[] | undefined> {
    const dueAt = this.#clock.monotonic() + REPLY_MILLIS;
    return new Promise((resolve) => {
      const isSent = this.#client.send(['MGET', ...keys], (reply) => {
        // While a slot of a Redis Cluster moves, its keys can be at two nodes.
        if (keys.length > 1 && reasonIn(reply) === 'TRYAGAIN') {
          this.#askOneByOne(keys, dueAt, resolve);
          return true;
        }

        const values = valuesIn(reply, keys.length);
        resolve(values);
        if (reply !== undefined) this.#tellOf(reply, values !== undefined);

        // An error concerns this lookup only: the connection stays open.
        return values !== undefined || isError(reply);
      });
      if (!isSent) resolve(undefined);
    });
  }

  #askOneByOne(
    keys: readonly string[],
    dueAt: number,
    resolve: (values: readonly Reply[] | undefined) => void,
  ) {
    const millisLeft = dueAt - this.#clock.monotonic();
    // After the turn: this timer may be late, and the reply on its way.
    const cancel = this.#clock.after(millisLeft, () => setImmediate(resolve, undefined));
    const asked = keys.map((key) => this.ask([key]));
    void Promise.all(asked).then((found) => {
      cancel();
      const values = found.flatMap((one) => one ?? []);
      resolve(values.length === keys.length ? values : undefined);
    });
  }

  /** Rejects unless the store confirms it: within two seconds for a connection, and one for the reply. */
  async write(words: readonly string[]): Promise<void> {
    // Neither timers of the store nor a socket that is not ready keep the process alive.
    const awake = setInterval(nothing, 1_000);
    const reply = await this.#sendSoon(words);
    clearInterval(awake);
    if (isConfirmation(words, reply)) return;

    throw new Error('revocation store unavailable', isError(reply) ? { cause: reasonIn(reply) } : {});
  }

  readonly close = () => {
    this.#isClosed = true;
    this.#client.close();
    this.#attemptAll();
  };

  /** At once, or when a connection is ready. */
  #sendSoon(words: readonly string[]): Promise<Reply | undefined> {
    return new Promise((resolve) => {
      const attempt = () => {
        const isSent = this.#client.send(words, (reply) => {
          resolve(reply);
          return isConfirmation(words, reply) || mayGoOnAfter(reply);
        });
        if (this.#isClosed) resolve(undefined);
        if (!isSent && !this.#isClosed) return;

        cancelTimer();
        this.#waiting.delete(attempt);
      };

      const cancelTimer = this.#clock.after(GREETING_MILLIS, () => {
        this.#waiting.delete(attempt);
        resolve(undefined);
      });
      this.#waiting.add(attempt);
      attempt();
    });
  }

  #attemptAll() {
    for (const attempt of this.#waiting) attempt();
  }

  #tellOf(reply: Reply, isWhole: boolean) {
    const now = this.#clock.monotonic();
    if (!isWhole) {
      if (this.kind === 'redis-cluster') this.#refusesUntilMillis = now + REFUSED_MILLIS;
      return this.onLost(reasonIn(reply));
    }
    if (now >= this.#refusesUntilMillis && this.#client.isUp()) this.#tell(READY, {});
  }

  #tell(event: LogEvent, fields: Fields) {
    if (event === this.#last?.[0]) return;

    this.#last = [event, fields];
    for (const log of new Set(this.#logs.values())) log(event, fields);
    this.#tellOutcome();
  }
}

/** The values of so many keys, if the reply to `MGET` is whole. */
function valuesIn(reply: Reply | undefined, count: number): readonly Reply[] | undefined {
  return Array.isArray(reply) && reply.length === count && reply.every(isValue) ? reply : undefined;
}

function isValue(reply: Reply) {
  return reply === null || (typeof reply === 'string' && reply.startsWith('$'));
}

/** Of `SET`, or of `DEL`. */
const isConfirmation = ([name]: readonly string[], reply: Reply | undefined) =>
  name === 'SET' ? reply === '+OK' : reply === ':0' || reply === ':1';
