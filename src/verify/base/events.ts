// The closed list of events for the log, and what their fields may hold. Promises: no token fits, because
// fields are numbers, booleans, words of closed lists or bounded Printables. Does not write: options/log.ts
// does.
import type { RefusalReason } from './refusal.ts';

/** Each level includes those before it. */
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export const LEVELS = {
  'cannot listen': 'error',
  'signing keys expired': 'error',
  'replay store full': 'error',
  'request failed': 'error',
  'unforeseen error': 'error',
  'log lines dropped': 'error',
  'unknown setting ignored': 'warn',
  'resource is not an audience': 'warn',
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

/** Why a fetch of keys failed (docs/keys.md). */
export const FETCH_ERROR_REASONS = [
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

export type FetchErrorReason = (typeof FETCH_ERROR_REASONS)[number];

/** Why a key of a set or proof cannot be used (docs/keys.md). */
export type KeyReason =
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

export type RequestReason = RefusalReason | 'bug' | 'handler';

type Reason =
  | RequestReason
  | FetchErrorReason
  | KeyReason
  | 'SIGTERM'
  | 'SIGINT'
  | 'drained'
  | 'deadline'
  | 'second-signal';

/** Bounded printable ASCII. */
export type Printable = string & { readonly printable: unique symbol };

type Value = number | boolean | null | Printable | readonly Printable[] | Reason | undefined;

export type Fields = Readonly<Record<string, Value>>;

export type LogEvent = keyof typeof LEVELS;

export type Log = (event: LogEvent, fields: Fields) => void;

/** Events that are counted; options/metrics has the metric of each. */
export type CountedEvent = 'refusal' | 'token' | 'proof' | 'key fetch';

/** Counts one event. `word` comes from a closed list, `issuer` from the settings. */
export type Count = (event: CountedEvent, word: string, issuer?: string) => void;

const MAX_FRAMES = 8;
const MAX_FRAME_LENGTH = 128;

/** For text from outside: 64 characters hold no token. */
export const printable = (text: string) => toPrintable(text, 64);

/** Only for text of the operator or the code: cut to 256 characters. */
export const printableSetting = (text: string) => toPrintable(text, 256);

const toPrintable = (text: string, length: number) =>
  text.slice(0, length).replace(/[^\x20-\x7e]/g, '?') as Printable;

/** Its message is the code's own text, so the log may show it. */
export class UsageError extends TypeError {
  readonly #sentence;

  constructor(sentence: string) {
    super(sentence);
    this.#sentence = printableSetting(sentence);
  }

  /** Unlike `message`, it cannot change. */
  static sentenceOf(error: Error) {
    return #sentence in error ? error.#sentence : undefined;
  }
}

/** What the log may show of a bug: no message but that of a `UsageError`, since others may hold data. */
export function describeBug(error: unknown): Fields {
  try {
    if (!(error instanceof Error)) return { reason: 'bug', error: printable(typeof error) };

    const sentence = UsageError.sentenceOf(error);
    const frames = framesOf(error).slice(0, MAX_FRAMES);
    const shown = sentence === undefined ? {} : { sentence };
    const [name = 'Error'] = /^\w+$/.exec(String(error.name)) ?? [];
    return { reason: 'bug', error: printable(name), ...shown, frames };
  } catch {
    // Its getters may throw.
    return { reason: 'bug' };
  }
}

/** Source file or Node module, line, column. */
const FRAME = /^(?:(?:file:\/\/|\/|[A-Za-z]:\\).*\.[cm]?[jt]sx?|node:[a-z\d_/-]+):\d+:\d+$/;

/** The first line of a stack, if the error has no message. */
const BARE_HEAD = /^\w*(?:Error|Exception)(?: \[\w+\])?(?=\n)/;

/** The lines below the message. */
function callsIn(error: Error) {
  const stack = String(error.stack);
  const text = String(error);
  // When `message` is changed, the older one stays in the stack, and its lines could pass for frames.
  const head = stack.startsWith(`${text}\n`) ? text : BARE_HEAD.exec(stack)?.[0];
  if (!head) return [];

  const lines = stack.slice(head.length).split('\n');
  const first = lines.findLastIndex((line) => !/^ +at /.test(line)) + 1;
  // V8 limits frames; earlier lines are message text.
  return lines.slice(first).slice(-Error.stackTraceLimit || Infinity);
}

/** Without names of functions, which may be made from data. Cuts long paths at the front. */
function framesOf(error: Error) {
  return callsIn(error)
    .map((line) => line.replace(/^(?:.* \(| +at (?:async )?)(?=\/|\w+:)|\)$/g, ''))
    .filter((frame) => FRAME.test(frame))
    .map((frame) => toPrintable(frame.slice(-MAX_FRAME_LENGTH), MAX_FRAME_LENGTH));
}
