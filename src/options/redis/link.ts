// A connection to one server that is opened again whenever it is lost. Promises: no command before the server
// has let this client in, and is what it should be.
import { nothing, type Clock } from '../../verify/base/clock.ts';
import { Connection, type Events, type Settle } from './connection.ts';
import { isError, type Reply } from './resp.ts';
import type { Address, Target } from './target.ts';

export const GREETING_MILLIS = 2_000;
const MIN_PAUSE_MILLIS = 50;
const MAX_PAUSE_MILLIS = 2_000;
/** While no sentinel replies: lookups of their names may hang, and each blocks a thread for seconds. */
const SILENT_PAUSE_MILLIS = 10_000;

/** `-NOPERM` for PING still proves that authentication succeeded. */
const GREETING = /^(?:\+PONG$|-NOPERM\b)/;

/**
 * Gets the address of the server, or the reason why it is not known. From sentinels, also its name, and
 * whether most of them, and at least two, agree.
 */
export type Found = (where: Address | string, name?: string, isAgreed?: boolean) => void;

/** What happens to a connection. */
export interface Watcher {
  readonly onReady: () => void;
  /** Also after each failed attempt. */
  readonly onLost: (reason: string) => void;
}

export interface Client {
  /**
   * Sends a command, whose second word is its key. Returns whether it is sent; otherwise `settle` is not
   * called.
   */
  readonly send: (words: readonly string[], settle: Settle) => boolean;
  /** Whether commands on any key would be sent. */
  readonly isUp: () => boolean;
  readonly close: () => void;
}

export class Link implements Client, Events {
  readonly #access;
  readonly #locate;
  readonly #clock;
  readonly #watcher;
  #state: 'lost' | 'ready' | 'closed' = 'lost';
  #connection: Connection | undefined;
  #name: string | undefined;
  #pauseMillis = MIN_PAUSE_MILLIS;
  #cancelPause = nothing;

  /** `locate` looks for the server, and calls `found` once. */
  constructor(access: Target, locate: (found: Found) => void, clock: Clock, watcher: Watcher) {
    this.#access = access;
    this.#locate = locate;
    this.#clock = clock;
    this.#watcher = watcher;
    this.#open();
  }

  isUp() {
    return this.#state === 'ready';
  }

  send(words: readonly string[], settle: Settle): boolean {
    return this.isUp() && this.#connection?.send(words, this.#heed(settle)) === true;
  }

  close() {
    this.#state = 'closed';
    this.#cancelPause();
    this.#connection?.end('closed');
  }

  /** Only the reply to a command, not a greeting, shows that the server does its work. */
  #heed(settle: Settle): Settle {
    return (reply) => {
      const mayGoOn = settle(reply);
      if (mayGoOn && reply !== undefined && !isError(reply)) this.#pauseMillis = MIN_PAUSE_MILLIS;
      return mayGoOn;
    };
  }

  #open = () => {
    this.#locate((where, name) => {
      if (this.#state === 'closed') return;
      if (typeof where === 'string') return this.onEnd(where);

      this.#name = name;
      const endpoint = { ...where, isTls: this.#access.isTls, greetingMillis: GREETING_MILLIS };
      this.#connection = new Connection(endpoint, this.#clock, this);
    });
  };

  onOpen(connection: Connection) {
    const { credentials, database, master } = this.#access;
    if (credentials.length > 0) connection.send(['AUTH', ...credentials], isOk);
    if (database) connection.send(['SELECT', database], isOk);
    // A sentinel may be late: what it names must say that it is a master.
    if (master) this.#checkRole(connection);

    connection.send(['PING'], (reply) => {
      if (typeof reply !== 'string' || !GREETING.test(reply)) return false;

      connection.becomeReady();
      this.#state = 'ready';
      if (master) this.#confirmLater(connection);
      this.#watcher.onReady();
      return true;
    });
  }

  #checkRole(connection: Connection) {
    connection.send(['ROLE'], (reply) => {
      if (isMaster(reply)) return true;

      if (!isError(reply)) connection.end('no-master');
      return false;
    });
  }

  /** After a failover by hand, the old master serves for ten seconds more, and what it records is lost. */
  #confirmLater(connection: Connection, pauseMillis = MAX_PAUSE_MILLIS) {
    this.#cancelPause();
    this.#cancelPause = this.#clock.after(pauseMillis, () =>
      this.#locate((where, name, isAgreed) => {
        if (!this.isUp() || connection !== this.#connection) return;

        if (isAgreed && name !== this.#name) connection.end('no-master');
        else this.#confirmLater(connection, where === 'timeout' ? SILENT_PAUSE_MILLIS : undefined);
      }),
    );
  }

  onEnd(reason: string) {
    if (this.#state === 'closed') return;

    this.#state = 'lost';
    this.#cancelPause();
    // Jitter: replicas must not reconnect together.
    const millis = this.#pauseMillis * (0.5 + Math.random() / 2);
    this.#cancelPause = this.#clock.after(millis, this.#open);
    this.#pauseMillis = Math.min(MAX_PAUSE_MILLIS, this.#pauseMillis * 2);
    this.#watcher.onLost(reason);
  }
}

const isOk = (reply: Reply | undefined) => reply === '+OK';

/** Of `ROLE`. */
export const isMaster = (reply: Reply | undefined) => Array.isArray(reply) && reply[0] === '$master';
