// The closed list of what the service tells: log lines, and one record of each request. Does not open the
// output: process/host.ts does. Promises: every field is a number, a truth value, a word of a closed list or
// a bounded Printable, so that no line can hold a token; a reader who stops reading costs lines, which are
// counted, and no memory.
import type { RefusalReason } from './refusal.ts';

/** From nothing to everything: each writes its own lines and those of the levels before it. */
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;

/** What the setting `LOG_LEVEL` may be. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every line of the log, by its message, with its level. */
export const LEVELS = {
  'cannot listen': 'error',
  'signing keys expired': 'error',
  'replay store full': 'error',
  'request failed': 'error',
  'unforeseen failure': 'error',
  'log lines dropped': 'error',
  'unknown setting ignored': 'warn',
  'signing keys not from the provider': 'warn',
  'signing key skipped': 'warn',
  'signing keys could not be fetched': 'warn',
  'replay store lost': 'warn',
  'signing keys loaded': 'info',
  'replay store ready': 'info',
  'requests refused': 'info',
  request: 'info',
  listening: 'info',
  'shutting down': 'info',
  stopped: 'info',
  'request refused': 'debug',
} as const;

/** Why a fetch of signing keys has failed, in the words of log and metrics (docs/keys.md). */
export const FETCH_FLAWS = [
  'timeout',
  'connection-failed',
  'certificate-refused',
  'proxy-refused',
  'proxy-failed',
  'status-refused',
  'too-large',
  'not-a-json-object',
  'issuer-mismatch',
  'address-refused',
  'not-a-key-set',
  'too-many-keys',
  'no-usable-key',
  'unforeseen',
] as const;

/** One of them. */
export type FetchFlaw = (typeof FETCH_FLAWS)[number];

/** Why a key of a set, or of a proof, cannot be used (docs/keys.md). */
export type KeyFlaw =
  | 'not-an-object'
  | 'key-type'
  | 'private-member'
  | 'key-id'
  | 'use'
  | 'key-operations'
  | 'algorithm'
  | 'encoding'
  | 'size'
  | 'exponent'
  | 'not-importable';

/** Why a request was not served: it was refused, or there was a bug, or a handler's own failure. */
export type RequestFlaw = RefusalReason | 'bug' | 'handler';

type Reason =
  RequestFlaw | FetchFlaw | KeyFlaw | 'SIGTERM' | 'SIGINT' | 'drained' | 'deadline' | 'second-signal';

/** Bounded text of printable ASCII, made by `printable` or `printableSetting`. */
export type Printable = string & { readonly printable: unique symbol };

/** A number, a truth value, a word of a closed list or bounded text. */
type Value = number | boolean | null | Printable | readonly Printable[] | Reason | undefined;

type Fields = Readonly<Record<string, Value>>;

type LogEvent = keyof typeof LEVELS;

/** Writes the line of an event with its fields, if its level is on. */
export type Log = (event: LogEvent, fields: Fields) => void;

/** Adds 1 to a sample: the name of a metric with its labels, as Prometheus reads it. */
export type Count = (sample: string) => void;

/** Above so many bytes that nobody has read, lines are dropped: some seven thousand lines. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024;

const MAX_FRAMES = 8;
const MAX_PLACE_LENGTH = 128;

/** Text from outside for a log line: 64 characters, too short for a token; `?` for what is not printable. */
export const printable = (text: string) => toPrintable(text, 64);

/** The same for what the operator has set: 256 characters. Never for text of a request or of a provider. */
export const printableSetting = (text: string) => toPrintable(text, 256);

const toPrintable = (text: string, length: number) =>
  text.slice(0, length).replace(/[^\x20-\x7e]/g, '?') as Printable;

/**
 * A log that writes one JSON line per event at or above `leastLevel`; `now` gives milliseconds since the
 * epoch, `unwrittenBytes` how much of what was written before nobody has read. A line that is dropped is
 * counted by the next one that is not.
 */
export function createLog(
  leastLevel: LogLevel,
  write: (line: string) => unknown,
  now: () => number,
  unwrittenBytes = () => 0,
): Log {
  let dropped = 0;
  let lastMillis = NaN;
  let lastTime = '';

  /** Most lines are of the millisecond of the one before. */
  function timeText() {
    const millis = now();
    if (millis !== lastMillis) lastTime = new Date(millis).toISOString();
    lastMillis = millis;
    return lastTime;
  }

  function writeLine(message: LogEvent, fields: Fields) {
    // Put together as text: copied into one object with the rest, fields cost twice as much.
    const head = `{"time":"${timeText()}","level":"${LEVELS[message]}","message":"${message}"`;
    const rest = JSON.stringify(fields).slice(1);
    write(`${head}${rest === '}' ? '' : ','}${rest}\n`);
  }

  return (event, fields) => {
    if (LOG_LEVELS.indexOf(LEVELS[event]) > LOG_LEVELS.indexOf(leastLevel)) return;

    if (unwrittenBytes() > MAX_UNWRITTEN_BYTES) {
      dropped += 1;
      return;
    }

    if (dropped > 0) writeLine('log lines dropped', { lines: dropped });
    dropped = 0;
    writeLine(event, fields);
  };
}

/** An error of our own making. Its sentence is fixed, so that a log may say it. */
export class UsageError extends TypeError {
  readonly #sentence;

  constructor(sentence: string) {
    super(sentence);
    this.#sentence = printableSetting(sentence);
  }

  /** As it was made: a message can be changed. */
  static sentenceOf(error: Error) {
    return #sentence in error ? error.#sentence : undefined;
  }
}

/**
 * What a log may say of a bug: its name and places in the code, and the sentence of a `UsageError`; never
 * another message, which may hold data.
 */
export function describeBug(error: unknown): Fields {
  try {
    if (!(error instanceof Error)) return { reason: 'bug', error: printable(typeof error) };

    const sentence = UsageError.sentenceOf(error);
    const frames = placesOf(error).slice(0, MAX_FRAMES);
    const told = sentence === undefined ? {} : { sentence };
    return { reason: 'bug', error: printable(String(error.name)), ...told, frames };
  } catch {
    // Reading what was thrown may run code of its own, which may throw anything.
    return { reason: 'bug' };
  }
}

/** What is a place: a source file or a module of Node, with line and column. */
const PLACE = /^(?:(?:file:\/\/|\/|[A-Za-z]:\\).*\.[cm]?[jt]sx?|node:[a-z\d_/-]+):\d+:\d+$/;

/**
 * The files with line and column of a stack, without names of functions, which may be made from data. Of a
 * path its end, so that the file and what tells it from others are among them.
 */
function placesOf(error: Error) {
  // The stack begins with the message: that of now, or the one that it had when the stack was first read.
  const lines = String(error.stack).replace(error.message, '').split('\n');
  const first = lines.findLastIndex((line) => !/^ +at /.test(line)) + 1;
  // V8 writes no more than so many: what looks like one above them is text.
  const calls = lines.slice(first).slice(-Error.stackTraceLimit);
  return calls
    .map((line) => line.replace(/^(?:.* \(| +at (?:async )?)(?=\/|\w+:)|\)$/g, ''))
    .filter((place) => PLACE.test(place))
    .map((place) => toPrintable(place.slice(-MAX_PLACE_LENGTH), MAX_PLACE_LENGTH));
}
