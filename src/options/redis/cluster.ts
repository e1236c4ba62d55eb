// The client of a cluster: which node has a key, one connection to each node, and what to do when slots or
// masters move. Promises: a command is sent twice only if the first node did not carry it out; its second
// reply comes within a second of the first sending, or none does.
import type { Clock } from '../../verify/base/clock.ts';
import { REPLY_MILLIS, type Settle } from './connection.ts';
import { askEach, rangesIn, type SlotRange } from './discovery.ts';
import { Link, type Client, type Watcher } from './link.ts';
import type { Reply } from './resp.ts';
import { addressIn, type Address, type Target } from './target.ts';

const SLOTS = 16_384;
const LEARN_MILLIS = 1_000;

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
    const link = range && this.#links.get(nameOf(range.node));
    const dueAt = this.#clock.monotonic() + REPLY_MILLIS;

    const isSent = link?.send(words, (reply) => {
      const redirection = redirectionIn(reply, range?.node);
      if (/^-(?:MOVED|CLUSTERDOWN)\b/.test(String(reply))) this.#learnSoon();
      if (redirection === undefined) return settle(reply);

      this.#sendAgain(redirection, words, settle, dueAt);
      return true;
    });
    return isSent === true;
  };

  isUp = (): boolean => {
    const served = this.#ranges.filter(({ node }) => this.#links.get(nameOf(node))?.isReady);
    return countSlots(served) === SLOTS;
  };

  close = (): void => {
    this.#isClosed = true;
    this.#cancelLearning?.();
    for (const link of this.#links.values()) link.close();
    for (const attempt of this.#waiting) attempt();
  };

  #linkTo(node: Address): Link {
    const name = nameOf(node);
    const link = this.#links.get(name) ?? this.#open(node);
    this.#links.set(name, link);
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

  /** From the first host that responds. */
  #learn() {
    this.#cancelLearning = undefined;
    this.#isLearning = true;
    this.#learnedAt = this.#clock.monotonic();
    let left = this.#target.hosts.length;

    askEach(this.#target, this.#clock, ['CLUSTER', 'SLOTS'], rangesIn, (ranges, reason) => {
      left -= 1;
      if (this.#isClosed || !this.#isLearning) return;

      if (ranges !== undefined) this.#adopt(ranges);
      else if (left === 0) this.#giveUp(reason);
    });
  }

  #adopt(ranges: readonly SlotRange[]) {
    this.#isLearning = false;
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
    this.#isLearning = false;
    this.#learnSoon();
    if (this.#ranges.length === 0) this.#watcher.onLost(reason);
  }
}

/** A slot that stands twice in a map counts once: it must not stand for one that is missing. */
function countSlots(ranges: readonly SlotRange[]) {
  let count = 0;
  let next = 0;
  const inOrder = [...ranges].sort((one, other) => one.first - other.first);
  for (const { first, last } of inOrder) {
    count += Math.max(0, last + 1 - Math.max(first, next));
    next = Math.max(next, last + 1);
  }
  return count;
}

const nameOf = ({ host, port }: Address) => `${host}:${port}`;

function redirectionIn(reply: Reply | undefined, asked: Address | undefined): Redirection | undefined {
  const [, word, text = ''] = /^-(MOVED|ASK) \d+ (\S*:\d+)$/.exec(String(reply)) ?? [];
  if (word === undefined) return undefined;

  const { host, port } = addressIn(text);
  // Without a name, it is another port of the node that was asked.
  return { address: { host: host || asked?.host || '', port }, isAsk: word === 'ASK' };
}

/** CRC-16 (XMODEM) of what stands in the first braces, or of the whole key. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
  }
  return (crc & 0xffff) % SLOTS;
}
