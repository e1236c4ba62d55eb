/* Connections with requests whose bodies have any shape, framing and cut, and what a strict server responds.
   What is expected is worked out here, without the code that it is held against. */
import type { Random } from './random.ts';

/**
 * The routes are `POST /any` (open), `POST /guarded` (needs a scope) and `GET /none`, which takes no body.
 */
export const LIMIT_BYTES = 400;

/** Values of Authorization by what they are; `undefined` for none. */
export type Credentials = Readonly<Record<'good' | 'poor' | 'bad', string>>;

export interface PlannedRequest {
  readonly id: string;
  readonly bytes: Buffer;
  readonly headLength: number;
  /** What may be answered when all of it arrives. */
  readonly statuses: readonly number[];
  /** The whole text of a 200. */
  readonly text: string;
  /** Whether its body is read, and so whether the client is told to go on when it expects that. */
  readonly isRead: boolean;
  readonly expectsContinue: boolean;
  /** What becomes of the connection after the answer. */
  readonly ending: 'closes' | 'goes on' | 'either';
}

export interface BodyCase {
  readonly requests: readonly PlannedRequest[];
  /** What is sent, one after the other. */
  readonly pieces: readonly Buffer[];
  /** How many bytes these are together: fewer than those of the requests when the client is cut off. */
  readonly length: number;
  readonly leaves: 'not' | 'by closing its side' | 'by a reset';
}

const TEXTS = ['', 'a', 'item', '__proto__', 'constructor', 'prototype', 'é', '\u{1f600}', '\ud800', '"\\\n'];
const NUMBERS = ['0', '-1', '1.5e3', '1e999', '01', '-', '.5', 'NaN', '9007199254740993'];
const CLUTTER = [' ', '\n', '\t', ',', ':', '}', ']', '"', '\\', '\0', '\ufeff', '/**/', '{', '[', 'é', '0'];

const jsonText = (random: Random) =>
  random.chance(0.9) ? JSON.stringify(random.pick(TEXTS)) : `"${random.pick(TEXTS)}"`;

function jsonFrom(random: Random, depth: number): string {
  const several = (make: () => string) => Array.from({ length: random.below(4) }, make).join(',');
  const kind = depth === 0 ? random.below(3) : random.below(7);
  if (kind === 0) return jsonText(random);
  if (kind === 1) return random.pick(['null', 'true', 'false', 'nul']);
  if (kind === 2) return random.chance(0.9) ? String(random.below(1000)) : random.pick(NUMBERS);
  if (kind < 5) return `[${several(() => jsonFrom(random, depth - 1))}]`;
  return `{${several(() => `${jsonText(random)}:${jsonFrom(random, depth - 1)}`)}}`;
}

function contentFrom(random: Random): Buffer {
  let text = jsonFrom(random, random.below(5));
  if (random.chance(0.1)) {
    const levels = 58 + random.below(12);
    text = random.chance(0.5)
      ? '['.repeat(levels) + text + ']'.repeat(levels)
      : '{"a":'.repeat(levels) + text + '}'.repeat(levels);
  }
  if (random.chance(0.1)) text = `{"constructor":{"${random.pick(['prototype', 'a'])}":${text}}}`;
  if (random.chance(0.1)) text += ' '.repeat(LIMIT_BYTES - 10 + random.below(20));
  if (random.chance(0.15)) {
    const at = random.below(text.length + 1);
    text = text.slice(0, at) + random.pick(CLUTTER) + text.slice(at + random.below(2));
  }

  const bytes = Buffer.from(text);
  if (bytes.length > 0 && random.chance(0.1)) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether a value is nested too deeply, or has a member that would change a prototype when it is copied. */
function isUnsafe(value: unknown, depth = 1): boolean {
  if (typeof value !== 'object' || value === null) return false;

  const members = Object.entries(value);

  const poisons = ([name, member]: [string, unknown]) =>
    name === '__proto__' ||
    (name === 'constructor' && Object.getOwnPropertyNames(member ?? 0).includes('prototype'));

  return depth > 64 || members.some(poisons) || members.some(([, member]) => isUnsafe(member, depth + 1));
}

/** The value of a body in one spelling, if it is one that a route takes. */
function readContent(content: Buffer): string | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(content));
    return isUnsafe(value) ? undefined : JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function chunksOf(random: Random, content: Buffer): { readonly framed: Buffer; readonly isBroken: boolean } {
  const parts: Buffer[] = [];
  const isBroken = random.chance(0.1);
  for (let at = 0; at < content.length;) {
    const size = 1 + random.below(random.pick([3, 50, 1000]));
    const part = content.subarray(at, at + size);
    const extension = random.pick(['', '', '', ';a=b']);
    parts.push(Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n'));
    at += size;
  }
  parts.push(Buffer.from(random.pick(['0\r\n\r\n', '0\r\n\r\n', '0\r\nTrailer: x\r\n\r\n'])));
  if (isBroken) {
    const broken = random.pick(['zz\r\n', '-1\r\n', '\r\n\r\n', '1\r\nab\r\n']);
    parts.splice(3 * random.below(Math.ceil(parts.length / 3)), 0, Buffer.from(broken));
  }
  return { framed: Buffer.concat(parts), isBroken };
}

const TYPES = {
  good: ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'],
  bad: ['text/plain', 'application/json; charset=latin1', 'application/jsonx', ''],
};

function planRequest(random: Random, credentials: Credentials, id: string, isLast: boolean): PlannedRequest {
  const path = random.pick([...Array(7).fill('/any'), ...Array(4).fill('/guarded'), '/none', '/nowhere']);
  const method = path === '/none' && random.chance(0.7) ? 'GET' : 'POST';
  const caller = random.pick(['good', 'good', 'good', 'good', 'good', 'poor', 'bad', undefined] as const);
  const framing = random.pick(['length', 'length', 'chunks', 'chunks', 'nothing'] as const);
  const isTypeGood = random.chance(0.95);
  const isCoded = random.chance(0.05);
  const expectsContinue = random.chance(0.2);

  const content = framing === 'nothing' ? Buffer.alloc(0) : contentFrom(random);
  const { framed, isBroken } =
    framing === 'chunks' ? chunksOf(random, content) : { framed: content, isBroken: false };
  const fields = [`${method} ${path}?id=${id} HTTP/1.1`, 'Host: a'];
  fields.push(`Content-Type: ${random.pick(isTypeGood ? TYPES.good : TYPES.bad)}`);
  if (caller !== undefined) fields.push(`Authorization: ${credentials[caller]}`);
  if (isCoded) fields.push(`Content-Encoding: ${random.pick(['gzip', 'br'])}`);
  if (framing === 'length') fields.push(`Content-Length: ${content.length}`);
  if (framing === 'chunks') fields.push('Transfer-Encoding: chunked');
  if (expectsContinue) fields.push('Expect: 100-continue');
  if (isLast) fields.push('Connection: close');
  const head = Buffer.from(`${fields.join('\r\n')}\r\n\r\n`);

  const hasBody = framing === 'chunks' || content.length > 0;
  const planned = { id, bytes: Buffer.concat([head, framed]), headLength: head.length, expectsContinue };

  const unread = (status: number): PlannedRequest => ({
    ...planned,
    statuses: [status],
    text: `{"id":"${id}","body":null}`,
    isRead: false,
    // Whoever was not told to go on may send a body or not (RFC 9110 §10.1.1).
    ending: isLast || hasBody || expectsContinue ? 'closes' : 'goes on',
  });

  if (path === '/nowhere') return unread(404);
  if (path === '/none') return unread(method === 'GET' ? 200 : 405);
  if (path === '/guarded' && caller !== 'good') return unread(caller === 'poor' ? 403 : 401);
  if (!hasBody) return unread(400);
  if (isCoded || !isTypeGood) return unread(415);
  if (framing === 'length' && content.length > LIMIT_BYTES) return unread(413);

  const read = { ...planned, text: `{"id":"${id}","body":${readContent(content)}}`, isRead: true };
  if (isBroken) return { ...read, statuses: [400, 413], ending: 'closes' };
  if (content.length > LIMIT_BYTES) return { ...read, statuses: [413], ending: isLast ? 'closes' : 'either' };

  const status = readContent(content) === undefined ? 400 : 200;
  return { ...read, statuses: [status], ending: isLast ? 'closes' : 'goes on' };
}

/** Some bytes in a few pieces. */
function piecesOf(random: Random, bytes: Buffer): Buffer[] {
  const cuts = Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1));
  const ends = [...cuts.sort((one, other) => one - other), bytes.length];
  return ends
    .map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
    .filter(({ length }) => length > 0);
}

/** How many bytes there are once each of them is whole. */
function endsOf(requests: readonly PlannedRequest[]): number[] {
  let length = 0;
  return requests.map(({ bytes }) => {
    length += bytes.length;
    return length;
  });
}

/** A connection with up to four requests, each with a name of its own. */
export function bodyCaseFrom(random: Random, credentials: Credentials, name: string): BodyCase {
  const count = random.pick([1, 1, 2, 3, 4]);
  const requests = Array.from({ length: count }, (_, index) =>
    planRequest(random, credentials, `${name}-${index}`, index === count - 1),
  );
  const bytes = Buffer.concat(requests.map((request) => request.bytes));
  const isCut = random.chance(0.2);
  const length = isCut ? random.below(bytes.length) : bytes.length;
  const drawn = isCut
    ? // A client that stays and does not go on is rare, since the run waits for the timeout of its request.
      random.pick([
        ...Array.from({ length: 25 }, () => 'by closing its side' as const),
        ...Array.from({ length: 25 }, () => 'by a reset' as const),
        'not' as const,
      ])
    : random.pick(['not', 'not', 'not', 'not', 'not', 'by closing its side', 'by a reset'] as const);

  // A client that stays after a whole request does not hang: its connection is kept for another request.
  const isIdle = isCut && endsOf(requests).includes(length);
  const leaves = isIdle && drawn === 'not' ? 'by closing its side' : drawn;
  return { requests, pieces: piecesOf(random, bytes.subarray(0, length)), length, leaves };
}
