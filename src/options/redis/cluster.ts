// The client of a cluster: which node has a key, one connection to each node, and what to do when slots or
// masters move. Promises: a command is sent twice only if the first node did not carry it out; its second
// reply comes within a second of the first sending, or none does.
import type { Clock } from '../../verify/base/clock.ts';
import { MAX_WAITING, REPLY_MILLIS, type Settle } from './connection.ts';
import { countSlots, findRanges, slotOf, SLOTS, type SlotRange } from './discovery.ts';
import { Link, type Client, type Watcher } from './link.ts';
import type { Reply } from './resp.ts';
import { addressIn, type Address, type Target } from './target.ts';

const LEARN_MILLIS = 1_000;
/** For the map, at a time. */
const MAX_ASKED = 20;

/** The node that an error names, and whether it has the slot only for this command. */
interface Redirection {
  readonly address: Address;
  readonly isAsk: boolean;
}

export class Cluster implements Client {
  readonly kind = 'redis-cluster';
  readonly #target: Target;
  readonly #clock: Clock;
  readonly #watcher: Watcher;
  /** By host and port. */
  readonly #links = new Map<string, Link>();
  /** What waits for a node that is not connected yet. */
  readonly #waiting = new Set<() => void>();
  #ranges: readonly SlotRange[] = [];
  #learnedAt = -Infinity;
  #isLearning = false;
  #isClosed = false;
  #cancelLearning: (() => void) | undefined;

  constructor(target: Target, clock: Clock, watcher: Watcher) {
    this.#target = target;
    this.#clock = clock;
    this.#watcher = watcher;
    this.#learn();
  }

  send = (key: string, words: readonly string[], settle: Settle): boolean => {
    const slot = slotOf(key);
    const range = this.#ranges.find(({ first, last }) => slot >= first && slot <= last);
    const link = range && this.#linkOf(range.node);
    const dueAt = this.#clock.monotonic() + REPLY_MILLIS;

    const isSent = link?.send(words, (reply) => {
      const redirection = redirectionIn(reply, range?.node);
      if (/^-(?:MOVED|CLUSTERDOWN)\b/.test(String(reply))) this.#learnSoon();
      if (redirection === undefined) return settle(reply);

      if (this.#waiting.size < MAX_WAITING) this.#sendAgain(redirection, words, settle, dueAt);
      else settle(undefined);
      return true;
    });
    return isSent === true;
  };

  isUp = (): boolean => {
    const served = this.#ranges.filter(({ node }) => this.#linkOf(node)?.isReady);
    return countSlots(served) === SLOTS;
  };

  close = (): void => {
    this.#isClosed = true;
    this.#cancelLearning?.();
    for (const link of this.#links.values()) link.close();
    for (const attempt of this.#waiting) attempt();
  };

  #linkOf(node: Address): Link | undefined {
    return this.#links.get(nameOf(node));
  }

  #linkTo(node: Address): Link {
    const link = this.#linkOf(node) ?? this.#open(node);
    this.#links.set(nameOf(node), link);
    return link;
  }

  #open(node: Address) {
    const access = { ...this.#target, database: '' };
    return new Link(access, (found) => found(node, ''), this.#clock, {
      onReady: () => {
        for (const attempt of this.#waiting) attempt();
        this.#watcher.onReady();
      },
      onLost: (reason) => {
        this.#learnSoon();
        const isMember = this.#ranges.some((range) => nameOf(range.node) === nameOf(node));
        if (isMember) this.#watcher.onLost(reason);
      },
    });
  }

  /** Once more, and no more. */
  #sendAgain({ address, isAsk }: Redirection, words: readonly string[], settle: Settle, dueAt: number) {
    const link = this.#linkTo(address);
    let isDone = false;

    const finish: Settle = (reply) => {
      this.#waiting.delete(attempt);
      cancel();
      if (isDone) return true;

      isDone = true;
      const isFinal = redirectionIn(reply, address) === undefined;
      const mayGoOn = settle(isFinal ? reply : undefined);
      return mayGoOn || !isFinal;
    };

    const attempt = () => {
      if (this.#isClosed) finish(undefined);
      if (isDone || !link.isReady) return;

      this.#waiting.delete(attempt);
      if (isAsk) link.send(['ASKING'], () => true);
      if (!link.send(words, finish)) finish(undefined);
    };

    const millisLeft = dueAt - this.#clock.monotonic();
    const cancel = this.#clock.after(millisLeft, () => finish(undefined));
    this.#waiting.add(attempt);
    attempt();
  }

  /** At most once a second. */
  #learnSoon() {
    if (this.#isClosed || this.#isLearning || this.#cancelLearning !== undefined) return;

    const millis = Math.max(0, this.#learnedAt + LEARN_MILLIS - this.#clock.monotonic());
    this.#cancelLearning = this.#clock.after(millis, () => this.#learn());
  }

  #learn() {
    this.#cancelLearning = undefined;
    this.#isLearning = true;
    this.#learnedAt = this.#clock.monotonic();
    const target = { ...this.#target, hosts: this.#nodesToAsk() };

    findRanges(target, this.#clock, this.#countUsable, (ranges, reason) => {
      this.#isLearning = false;
      if (this.#isClosed) return;

      if (ranges !== undefined) this.#adopt(ranges);
      else this.#giveUp(reason);
    });
  }

  /** Known nodes, too: all hosts of the address may be gone. */
  #nodesToAsk(): readonly Address[] {
    const known = [...this.#links];
    const ready = known.filter(([, link]) => link.isReady);
    const names = [...ready, ...known].map(([name]) => name);
    const all = new Set([...this.#target.hosts.map(nameOf), ...names]);
    return [...all].slice(0, MAX_ASKED).map((name) => addressIn(name));
  }

  /** The slots of a map, except those of nodes that are known to be lost. */
  #countUsable = (ranges: readonly SlotRange[]) => {
    const usable = ranges.filter(({ node }) => this.#linkOf(node)?.isReady !== false);
    return countSlots(usable);
  };

  #adopt(ranges: readonly SlotRange[]) {
    this.#ranges = ranges;
    const names = new Set(ranges.map(({ node }) => nameOf(node)));
    for (const { node } of ranges) this.#linkTo(node);

    for (const [name, link] of this.#links) {
      if (names.has(name)) continue;

      this.#links.delete(name);
      // Its last replies may still arrive.
      this.#clock.after(REPLY_MILLIS, () => link.close());
    }
    this.#watcher.onReady();
    // As a node says of such a slot.
    if (countSlots(ranges) < SLOTS) this.#watcher.onLost('CLUSTERDOWN');
    if (!this.isUp()) this.#learnSoon();
  }

  #giveUp(reason: string) {
    this.#learnSoon();
    if (this.#ranges.length === 0) this.#watcher.onLost(reason);
  }
}

const nameOf = ({ host, port }: Address) => `${host}:${port}`;

function redirectionIn(reply: Reply | undefined, asked: Address | undefined): Redirection | undefined {
  const [, word, text = ''] = /^-(MOVED|ASK) \d+ (\S*:\d+)$/.exec(String(reply)) ?? [];
  if (word === undefined) return undefined;

  const { host, port } = addressIn(text);
  // Without a name, it is another port of the node that was asked.
  return { address: { host: host || asked?.host || '', port }, isAsk: word === 'ASK' };
}
