// Lists of IP addresses and CIDR ranges. Promises: IPv4-mapped addresses count as IPv4, and an address is
// only ever compared with ranges of its own family.
import { isIP, isIPv4 } from 'node:net';

type IsListed = (peer: unknown) => boolean;

/** Trusts that each entry is a range. A peer without an address, such as a Unix socket, is not listed. */
export function createList(entries: readonly string[]): IsListed {
  const ranges = entries.map((entry) => rangeOf(entry) ?? NO_RANGE);

  return function isListed(peer) {
    const address = String(peer).replace(/%.*/s, '');
    const member = isIP(address) === 0 ? '' : inFamily(unmapped(bitsOf(address)));
    return ranges.some((range) => member.startsWith(range));
  };
}

/** No member of a family begins with it, as it would with nothing. */
const NO_RANGE = '-';

/** The digits with which each address of a range begins; `undefined` for what is no range. */
export function rangeOf(entry: unknown): string | undefined {
  if (typeof entry !== 'string') return undefined;

  const [, address = '', prefix] = /^([\da-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(entry) ?? [];
  if (isIP(address) === 0) return undefined;

  const bits = bitsOf(address);
  const length = Number(prefix ?? bits.length);
  const isRange = length <= bits.length && !bits.includes('1', length);
  return isRange && bits === unmapped(bits) ? inFamily(bits, length) : undefined;
}

function inFamily(bits: string, length?: number) {
  const prefix = bits.slice(0, length);
  return `${bits.length}:${prefix}`;
}

/** RFC 4291 §2.5.5.2 */
const MAPPED = '0'.repeat(80) + '1'.repeat(16);

const unmapped = (bits: string) =>
  bits.length === 128 && bits.startsWith(MAPPED) ? bits.slice(MAPPED.length) : bits;

/** All binary digits of an address, of which `isIP` knows that it is one. */
function bitsOf(address: string) {
  if (isIPv4(address)) return digitsOf(address.split('.'), 10, 8);

  // URL writes IPv6 in groups alone, with at most one `::`.
  const { hostname } = new URL(`http://[${address}]`);
  const halves = hostname.slice(1, -1).split('::');
  const [first = [], last = []] = halves.map(groupsIn);
  const missing = 8 - first.length - last.length;
  const zeros = Array<string>(missing).fill('0');
  return digitsOf([...first, ...zeros, ...last], 16, 16);
}

const groupsIn = (text: string) => text.split(':').filter(Boolean);

function digitsOf(groups: readonly string[], radix: number, width: number) {
  const digits = groups.map((group) => parseInt(group, radix).toString(2));
  return digits.map((each) => each.padStart(width, '0')).join('');
}
