/* Independent readings of the fields of proxies and of address ranges: character by character, and by numbers. They
   share no code with src. */
import { createHash } from 'node:crypto';
import type { FieldSource } from './certificates-fixture.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

const thumbprintOf = (bytes: readonly number[]) =>
  createHash('sha256').update(Uint8Array.from(bytes)).digest('base64url');

/** Canonical padded base64 → bytes (RFC 4648 §4). */
function bytesOf(text: string): readonly number[] | undefined {
  if (text.length === 0 || text.length % 4 !== 0) return undefined;
  const padding = /=*$/.exec(text)?.[0].length ?? 0;
  if (padding > 2) return undefined;
  const bytes: number[] = [];
  for (let at = 0; at < text.length; at += 4) {
    const isLast = at + 4 === text.length;
    const missing = isLast ? padding : 0;
    let group = 0;
    for (let index = 0; index < 4; index += 1) {
      const value = index < 4 - missing ? ALPHABET.indexOf(text[at + index] ?? '') : 0;
      if (value < 0) return undefined;
      group = group * 64 + value;
    }
    const three = [group >> 16, (group >> 8) & 255, group & 255];
    if (three.slice(3 - missing).some((spare) => spare !== 0)) return undefined;
    bytes.push(...three.slice(0, 3 - missing));
  }
  return bytes;
}

const ofBase64 = (text: string) => {
  const bytes = bytesOf(text);
  return bytes === undefined ? undefined : thumbprintOf(bytes);
};

function ofByteSequence(value: string) {
  const isFramed = value.length >= 2 && value.startsWith(':') && value.endsWith(':');
  return isFramed ? ofBase64(value.slice(1, -1)) : undefined;
}

const HEX = '0123456789abcdef';

function unescaped(value: string): string | undefined {
  let text = '';
  for (let at = 0; at < value.length; at += 1) {
    const character = value[at] ?? '';
    if (character === ',' || character.trim() === '') return undefined;
    if (character !== '%') {
      text += character;
      continue;
    }
    const [high, low] = [value[at + 1], value[at + 2]].map((digit) =>
      HEX.indexOf(digit?.toLowerCase() ?? '?'),
    );
    if (high === undefined || low === undefined || high < 0 || low < 0) return undefined;
    text += String.fromCharCode(high * 16 + low);
    at += 2;
  }
  return text;
}

function ofPem(value: string) {
  const text = unescaped(value);
  const [first, ...rest] = text?.split('\n') ?? [];
  const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line);
  if (withoutReturn(first ?? '') !== '-----BEGIN CERTIFICATE-----') return undefined;
  const end = rest.findIndex((line) => line.startsWith('-----END CERTIFICATE-----'));
  if (end < 0) return undefined;
  const lines = rest.slice(0, end).map(withoutReturn);
  if (lines.some((line) => line.includes('\r'))) return undefined;
  return ofBase64(lines.join(''));
}

const ofFirst = (value: string) =>
  ofBase64(value.slice(0, value.includes(',') ? value.indexOf(',') : undefined));

function ofElement(value: string) {
  const pairs: [key: string, value: string][] = [];
  let at = 0;
  for (;;) {
    let name = '';
    for (; at < value.length && value[at] !== '='; at += 1) name += value[at];
    if (at === value.length || name === '' || /[,;"\s]/.test(name)) return undefined;
    at += 1;
    let content = '';
    if (value[at] === '"') {
      content = '"';
      at += 1;
      for (; value[at] !== '"'; at += 1) {
        if (at >= value.length) return undefined;
        content += value[at];
        if (value[at] !== '\\') continue;
        at += 1;
        if (at >= value.length) return undefined;
        content += value[at];
      }
      at += 1;
      content += '"';
    } else {
      for (; at < value.length && value[at] !== ';'; at += 1) content += value[at];
      if (content.includes('"') || content.includes(',') || content.trim() !== content) return undefined;
    }
    pairs.push([name, content]);
    if (at === value.length) break;
    if (value[at] !== ';') return undefined;
    at += 1;
  }
  const hashes = pairs.filter(([name]) => name.toLowerCase() === 'hash').map(([, content]) => content);
  if (hashes.length !== 1) return undefined;
  const [hash = ''] = hashes;
  const digits = hash.startsWith('"') ? hash.slice(1, -1) : hash;
  const isHex = digits.length === 64 && [...digits.toLowerCase()].every((digit) => HEX.includes(digit));
  return isHex ? Buffer.from(digits, 'hex').toString('base64url') : undefined;
}

/** The thumbprint in a field, or `undefined` for one that is not of its form. */
export const READINGS: Readonly<Record<FieldSource, (value: string) => string | undefined>> = {
  rfc9440: ofByteSequence,
  pem: ofPem,
  base64: ofFirst,
  xfcc: ofElement,
};

/** An address as a number of its family. IPv4-mapped ones are IPv4. */
export function numberOf(address: string): { readonly bits: 32 | 128; readonly value: bigint } {
  const v4 = (text: string) => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  if (!address.includes(':')) return { bits: 32, value: v4(address) };

  const dotted = /[^:]*\.[^:]*$/.exec(address)?.[0];
  const tail = dotted === undefined ? undefined : v4(dotted);
  const groups = (
    tail === undefined
      ? address
      : `${address.slice(0, -dotted!.length)}${(tail >> 16n).toString(16)}:${(tail & 65535n).toString(16)}`
  ).split('::');
  const [left = [], right = []] = groups.map((part) => part.split(':').filter((group) => group !== ''));
  const all =
    groups.length === 1
      ? left
      : [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  const value = all.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n);
  return value >> 32n === 0xffffn ? { bits: 32, value: value & 0xffffffffn } : { bits: 128, value };
}

/** Whether a peer is in a range `address/prefix`. */
export function isInside(range: string, peer: string): boolean {
  const [address = '', prefix] = range.split('/');
  const first = numberOf(address);
  const other = numberOf(peer);
  const rest = BigInt(first.bits - Number(prefix));
  return first.bits === other.bits && first.value >> rest === other.value >> rest;
}
