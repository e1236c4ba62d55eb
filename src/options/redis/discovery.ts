// Where the server of a store is now: the map of a cluster, a redirection of it, or the master that sentinels
// agree on. Trusts the hosts. Each is asked on a connection of its own.
import type { Clock } from '../../verify/base/clock.ts';
import { Connection, REPLY_MILLIS } from './connection.ts';
import type { Found } from './link.ts';
import type { Reply } from './resp.ts';
import { addressIn, type Address, type Target } from './target.ts';

/** `undefined` if the reply says nothing. */
type Read<Answer> = (reply: Reply | undefined, asked: Address) => Answer | undefined;

/** Slots that were moved one by one make a long map. */
const MAX_MAP_LENGTH = 1024 * 1024;

/** Asks all hosts at once. Calls `hear` for each of them, in the order of their replies, within a second. */
export function askEach<Answer>(
  { hosts, isTls, credentials }: Target,
  clock: Clock,
  words: readonly string[],
  read: Read<Answer>,
  hear: (answer: Answer | undefined, reason: string) => void,
) {
  for (const host of hosts) {
    let answer: Answer | undefined;
    const endpoint = { ...host, isTls, greetingMillis: REPLY_MILLIS, maxReplyLength: MAX_MAP_LENGTH };

    new Connection(endpoint, clock, {
      onOpen(connection) {
        // A sentinel may have no password: then it replies an error to this, and goes on.
        if (credentials.length > 0) connection.send(['AUTH', ...credentials], () => true);
        connection.send(words, (reply) => {
          answer = read(reply, host);
          return false;
        });
      },
      onEnd: (reason) => hear(answer, reason),
    });
  }
}

const textIn = (reply: Reply | undefined) =>
  typeof reply === 'string' && reply.startsWith('$') ? reply.slice(1) : undefined;

const numberIn = (reply: Reply | undefined) => Number(/^:(\d+)$/.exec(String(reply))?.[1]);

function listIn(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? reply : [];
}

export const SLOTS = 16_384;

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

/** Slots of a cluster, and the node that has them. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly node: Address;
}

/** Of `CLUSTER SLOTS`: first slot, last slot, and the master before its replicas. */
export function rangesIn(reply: Reply | undefined, asked: Address): readonly SlotRange[] | undefined {
  if (!Array.isArray(reply) || reply.length === 0) return undefined;

  const ranges = reply.map((range: Reply) => rangeIn(range, asked));
  return ranges.every((range) => range !== undefined) ? ranges : undefined;
}

function rangeIn(range: Reply, asked: Address): SlotRange | undefined {
  const [first, last, master] = listIn(range);
  const [host, port] = listIn(master);
  const numbers = [first, last, port].map(numberIn);
  if (numbers.includes(NaN)) return undefined;

  const [from = 0, to = 0, at = 0] = numbers;
  // A node that does not know its own name leaves it out.
  const node = { host: textIn(host) || asked.host, port: at };
  return { first: from, last: to, node };
}

/** The node that an error names, and whether it has the slot only for this command. */
export interface Redirection {
  readonly address: Address;
  readonly isAsk: boolean;
}

export function redirectionIn(reply: Reply | undefined, asked: Address | undefined): Redirection | undefined {
  const [, word, text = ''] = /^-(MOVED|ASK) \d+ (\S*:\d+)$/.exec(String(reply)) ?? [];
  if (word === undefined) return undefined;

  const { host, port } = addressIn(text);
  // Without a name, it is another port of the node that was asked.
  return { address: { host: host || asked?.host || '', port }, isAsk: word === 'ASK' };
}

/** A slot that stands twice in a map counts once: it must not stand for one that is missing. */
export function countSlots(ranges: readonly SlotRange[]) {
  let count = 0;
  let next = 0;
  const inOrder = [...ranges].sort((one, other) => one.first - other.first);
  for (const { first, last } of inOrder) {
    count += Math.max(0, last + 1 - Math.max(first, next));
    next = Math.max(next, last + 1);
  }
  return count;
}

/** Of `SENTINEL GET-MASTER-ADDR-BY-NAME`. */
function masterIn(reply: Reply | undefined): string | undefined {
  const [host, port] = listIn(reply).map(textIn);
  return host && /^\d+$/.test(port ?? '') ? `${host}:${port}` : undefined;
}

/**
 * Asks the sentinels. Stricter: the first reply is not enough. One sentinel that is cut off still names the
 * old master, so most of them must agree, or all have been heard.
 */
export function locateMaster(target: Target, clock: Clock, found: Found) {
  const words = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', target.master];
  const votes = new Map<string, number>();
  let heard = 0;
  let isFound = false;

  askEach(target, clock, words, masterIn, (master, reason) => {
    heard += 1;
    if (master) votes.set(master, (votes.get(master) ?? 0) + 1);
    if (isFound) return;

    const [first] = [...votes].sort(([, one], [, other]) => other - one);
    const [name, count] = first ?? ['', 0];
    // One name, such as that of a Kubernetes service, may stand for many sentinels.
    const isAgreed = count > Math.max(1, target.hosts.length / 2);
    isFound = isAgreed || heard === target.hosts.length;
    if (isFound) found(name ? addressIn(name) : reason, name, isAgreed);
  });
}
