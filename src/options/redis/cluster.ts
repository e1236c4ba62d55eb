// The client of a store, whatever its address names: a link to one server or, in a cluster, which node has a
// key, one link to each node, and what to do when slots or masters move. Promises: a command is sent twice
// only if the first node did not carry it out; its second reply comes within a second of the first sending,
// or none does.
import { nothing, type Clock } from '../../verify/base/clock.ts';
import { MAX_WAITING, REPLY_MILLIS, type Settle } from './connection.ts';
import {
  askEach,
  countSlots,
  locateMaster,
  rangesIn,
  redirectionIn,
  slotOf,
  SLOTS,
  type Redirection,
  type SlotRange,
} from './discovery.ts';
import { Link, type Client, type Watcher } from './link.ts';
import { addressIn, parseTarget, type Address, type Target } from './target.ts';

/** One server may refuse what others carry out: the log does not follow each reply. */
export const REFUSED_MILLIS = 2_000;
const LEARN_MILLIS = 1_000;
const ASK_MAP = ['CLUSTER', 'SLOTS'];
/** For the map, at a time. */
const MAX_ASKED = 20;

class Cluster implements Client {
  readonly #target;
  readonly #clock;
  readonly #watcher;
  /** By host and port. */
  readonly #links = new Map<string, Link>();
  /** What waits for a node that is not connected yet. */
  readonly #waiting = new Set<() => void>();
  #ranges: readonly SlotRange[] = [];
  /** Of the nodes of the ranges. */
  #needed: ReadonlySet<Link> = new Set();
  /** Whether each slot has a node. */
  #isWhole = false;
  #learnedAt = -Infinity;
  /** Or about to. */
  #isLearning = true;
  #isClosed = false;
  #cancelLearning = nothing;

  constructor(target: Target, clock: Clock, watcher: Watcher) {
    this.#target = target;
    this.#clock = clock;
    this.#watcher = watcher;
    this.#learn();
  }

  send(words: readonly string[], settle: Settle) {
    const slot = slotOf(words[1] ?? '');
    const range = this.#ranges.find(({ first, last }) => slot >= first && slot <= last);
    const link = range && this.#links.get(nameOf(range.node));
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
  }

  isUp() {
    return this.#isWhole && [...this.#needed].every((link) => link.isUp());
  }

  close() {
    this.#isClosed = true;
    this.#cancelLearning();
    for (const link of this.#links.values()) link.close();
    for (const attempt of this.#waiting) attempt();
  }

  #linkTo(node: Address): Link {
    const name = nameOf(node);
    const known = this.#links.get(name);
    if (known !== undefined) return known;

    const link = new Link(this.#target, (found) => found(node), this.#clock, {
      onReady: () => {
        for (const attempt of this.#waiting) attempt();
        this.#watcher.onReady();
      },
      onLost: (reason) => {
        this.#learnSoon();
        if (this.#needed.has(link)) this.#watcher.onLost(reason);
      },
    });
    this.#links.set(name, link);
    return link;
  }

  /** Once more, and no more. */
  #sendAgain({ address, isAsk }: Redirection, words: readonly string[], settle: Settle, dueAt: number) {
    const link = this.#linkTo(address);
    // A program may await nothing but the reply, and the link may not be ready.
    const awake = setInterval(nothing, REPLY_MILLIS);
    let isDone = false;

    const finish: Settle = (reply) => {
      this.#waiting.delete(attempt);
      clearInterval(awake);
      cancel();
      if (isDone) return true;

      isDone = true;
      const again = redirectionIn(reply, address);
      return settle(again ? undefined : reply) || again !== undefined;
    };

    const attempt = () => {
      if (this.#isClosed) finish(undefined);
      if (isDone || !link.isUp()) return;

      this.#waiting.delete(attempt);
      if (isAsk) link.send(['ASKING'], () => true);
      if (!link.send(words, finish)) finish(undefined);
    };

    const millisLeft = dueAt - this.#clock.monotonic();
    // After the turn: this timer may be late, and the reply on its way.
    const cancel = this.#clock.after(millisLeft, () => setImmediate(finish, undefined));
    this.#waiting.add(attempt);
    attempt();
  }

  /** At most once a second. */
  #learnSoon() {
    if (this.#isClosed || this.#isLearning) return;

    this.#isLearning = true;
    const millis = Math.max(0, this.#learnedAt + LEARN_MILLIS - this.#clock.monotonic());
    this.#cancelLearning = this.#clock.after(millis, this.#learn);
  }

  /**
   * From the first node whose map names no node that is lost, or else from the one whose map names fewest: a
   * node that is cut off still names masters that others have replaced.
   */
  #learn = () => {
    this.#learnedAt = this.#clock.monotonic();
    // Known nodes, too: all hosts of the address may be gone.
    const seeds = this.#target.hosts.map(nameOf);
    const names = new Set([...seeds, ...this.#links.keys()]);
    const hosts = Array.from(names, (name) => addressIn(name)).slice(0, MAX_ASKED);
    let left = hosts.length;
    let best = this.#ranges;
    let fewest = Infinity;

    askEach({ ...this.#target, hosts }, this.#clock, ASK_MAP, rangesIn, (ranges, reason) => {
      left -= 1;
      if (this.#isClosed || fewest === 0) return;

      const lost = ranges?.filter(this.#isLost).length ?? Infinity;
      if (ranges && lost < fewest) {
        best = ranges;
        fewest = lost;
      }
      if (fewest > 0 && left > 0) return;

      this.#isLearning = false;
      // As a node says of a slot that no node has.
      this.#adopt(best, fewest < Infinity ? 'CLUSTERDOWN' : reason);
    });
  };

  #isLost = ({ node }: SlotRange) => this.#links.get(nameOf(node))?.isUp() === false;

  /** `reason` is why slots are missing, if any are. */
  #adopt(ranges: readonly SlotRange[], reason: string) {
    this.#ranges = ranges;
    this.#needed = new Set(ranges.map(({ node }) => this.#linkTo(node)));
    this.#isWhole = countSlots(ranges) === SLOTS;
    for (const [name, link] of this.#links) {
      if (this.#needed.has(link)) continue;

      this.#links.delete(name);
      // Its last replies may still arrive.
      this.#clock.after(REPLY_MILLIS, () => link.close());
    }
    this.#watcher.onReady();
    if (!this.#isWhole) this.#watcher.onLost(reason);
    if (!this.isUp()) this.#learnSoon();
  }
}

const nameOf = ({ host, port }: Address) => `${host}:${port}`;

/** Connects at once, and again whenever a connection is lost. Trusts a URL of the rule `storeUrl`. */
export function createClient(url: string, clock: Clock, watcher: Watcher): Client {
  const target = parseTarget(url);
  if (target.kind === 'redis-cluster') return new Cluster(target, clock, watcher);

  if (target.kind === 'redis-sentinel') {
    return new Link(target, (found) => locateMaster(target, clock, found), clock, watcher);
  }

  const [address = ''] = target.hosts;
  return new Link(target, (found) => found(address), clock, watcher);
}
