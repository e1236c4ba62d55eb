// The closed set of log events, written as JSON lines. Does not open or own the output: server.ts does.
// Promises: every field is a number, a word of a closed list or a bounded Printable, so that no line can hold a token.
import type { RefusalReason } from './refusal.ts';

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
const LEVELS = {
  'address or port cannot be had': 'error',
  'signing keys expired': 'error',
  'memory of used proofs full': 'error',
  'request failed': 'error',
  'unknown setting ignored': 'warn',
  'signing key skipped': 'warn',
  'signing keys could not be fetched': 'warn',
  'signing keys loaded': 'info',
  listening: 'info',
  'shutting down': 'info',
  stopped: 'info',
  'request refused': 'debug',
} as const;
export type FetchFlaw =
  | 'timeout'
  | 'name-not-resolved'
  | 'connection-refused'
  | 'connection-failed'
  | 'certificate-refused'
  | 'status-refused'
  | 'redirect-refused'
  | 'too-large'
  | 'not-a-json-object'
  | 'issuer-mismatch'
  | 'address-refused'
  | 'not-a-key-set'
  | 'too-many-keys'
  | 'no-usable-key'
  | 'unforeseen';
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
  | 'not-importable'
  | 'key-id-repeated';
type Reason =
  | RefusalReason
  | FetchFlaw
  | KeyFlaw
  | 'keys-too-old'
  | 'bug'
  | 'SIGTERM'
  | 'SIGINT'
  | 'drained'
  | 'deadline'
  | 'second-signal';
/** Text of at most 64 printable ASCII characters, made by `printable`: too short for a token. */
export type Printable = string & { readonly printable: unique symbol };
/** Bounds and escapes text from outside for a log line: 64 characters, anything but printable ASCII as `?`. */
export const printable = (text: string) => text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?') as Printable;
/** Beside its reason a line holds only numbers and Printables. */
type Fields = Readonly<{
  reason?: Reason;
  [name: string]: number | null | Printable | readonly Printable[] | Reason | undefined;
}>;
export type Log = (message: keyof typeof LEVELS, fields: Fields) => void;
/** A log that writes one JSON line per event at or above `level`; `now` gives milliseconds since the epoch. */
export function createLog(level: LogLevel, write: (line: string) => void, now: () => number): Log {
  return (message, fields) => {
    if (LOG_LEVELS.indexOf(LEVELS[message]) > LOG_LEVELS.indexOf(level)) return;
    write(
      `${JSON.stringify({ time: new Date(now()).toISOString(), level: LEVELS[message], message, ...fields })}\n`,
    );
  };
}
/** What a log may say of an unforeseen error: its name and where in the code, never its message, which may hold data. */
export function describeBug(error: unknown): Fields {
  if (!(error instanceof Error)) return { reason: 'bug', error: printable(typeof error) };
  // The stack begins with the message.
  const places =
    String(error.stack)
      .replace(error.message, '')
      .match(/^ +at .*:\d+:\d+\)?$/gm) ?? [];
  return {
    reason: 'bug',
    error: printable(String(error.name)),
    frames: places.slice(0, 8).map((place) => printable(place.slice(-64))),
  };
}
