// The closed list of events for the log, and what their fields may hold. Promises: no token fits, because
// fields are numbers, booleans, words of closed lists or bounded Printables. Does not write: options/log.ts
// does.
import { findSourceMap } from 'node:module';
import type { Clock } from './clock.ts';
import { isError } from './encoding.ts';
import type { RefusalReason } from './refusal.ts';

/** Each level includes those before it. */
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export const EVENTS = {
  'cannot listen': 'error',
  'signing keys expired': 'error',
  'replay store full': 'error',
  'request failed': 'error',
  'unforeseen error': 'error',
  'log lines dropped': 'error',
  'start failed': 'error',
  'stop failed': 'error',
  'hook failed': 'error',
  'error messages are logged': 'warn',
  'unknown setting ignored': 'warn',
  'resource is not an audience': 'warn',
  'signing keys not from the provider': 'warn',
  'introspection not from the provider': 'warn',
  'signing key skipped': 'warn',
  'signing keys could not be fetched': 'warn',
  'replay store lost': 'warn',
  'revocation store lost': 'warn',
  'introspection lost': 'warn',
  'decision lost': 'warn',
  'signing keys loaded': 'info',
  'replay store ready': 'info',
  'revocation store ready': 'info',
  'introspection ready': 'info',
  'decision ready': 'info',
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
  'token-file-refused',
  'ca-file-refused',
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

/** Why an issuer did not say whether a token is active (docs/introspection.md). */
export type IntrospectionReason = FetchErrorReason | 'client-refused' | 'no-verdict';

/** Why a key of a set or proof cannot be used (docs/keys.md). */
export type KeyReason =
  | 'not-an-object'
  | 'key-type'
  | 'private-member'
  | 'key-id'
  | 'key-issuer'
  | 'use'
  | 'key-operations'
  | 'algorithm'
  | 'encoding'
  | 'size'
  | 'exponent'
  | 'not-importable';

/** Why a request was refused, or failed (docs/refusals.md). */
export type RequestReason = RefusalReason | 'bug' | 'handler';

type Reason =
  | RequestReason
  | KeyReason
  | 'error'
  | 'not-a-boolean'
  | IntrospectionReason
  | 'SIGTERM'
  | 'SIGINT'
  | 'drained'
  | 'deadline'
  | 'second-signal';

/** Bounded printable ASCII. */
export type Printable = string & { readonly printable: unique symbol };

type Value =
  | number
  | boolean
  | null
  | Printable
  | readonly Printable[]
  | Readonly<Record<string, number | Printable | readonly Printable[]>>
  | Reason
  | undefined;

export type Fields = Readonly<Record<string, Value>>;

export type LogEvent = keyof typeof EVENTS;

/** `error` is what `describeBug` has described, for a log that may show more of it. */
export type Log = (event: LogEvent, fields: Fields, error?: unknown) => void;

/** Events that are counted; options/metrics has the metric of each. */
export type CountedEvent =
  'refusal' | 'token' | 'introspection' | 'revocation check' | 'proof' | 'key fetch' | 'decision';

/** Counts one event. `word` comes from a closed list, `issuer` from the options. */
export type Count = (event: CountedEvent, word: string, issuer?: string) => void;

/** What parts of a deployment share. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  readonly count: Count | undefined;
  /** Up to which the log writes; none where nothing is logged. */
  readonly level?: LogLevel | undefined;
}

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

  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.#sentence = printableSetting(sentence);
  }

  /** Unlike `message`, it cannot change. */
  static sentenceOf(error: object) {
    return #sentence in error ? error.#sentence : undefined;
  }
}

/**
 * What the log may show of a bug: no message but that of a `UsageError`, since others may hold data. The name
 * tells errors of every realm.
 */
export function describeBug(error: unknown): Fields {
  const nameless: Fields = { reason: 'bug', error: printable(typeof error) };
  try {
    const given = Object(error);
    const sites = callSitesOf(given);
    if (!isError(given) && sites.length === 0) return nameless;

    const sentence = UsageError.sentenceOf(given);
    return {
      ...nameless,
      error: printable(nameOf(given)),
      ...(sentence && { sentence }),
      frames: framesOf(sites),
    };
  } catch {
    // What reads it may throw.
    return nameless;
  }
}

function nameOf(error: Error) {
  try {
    const name = String(error.name ?? 'Error');
    return /^\w+$/.test(name) ? name : 'Error';
  } catch {
    return 'Error';
  }
}

/** Source file or Node module, line, column. */
const FRAME = /^(?:(?:file:\/\/|\/|[A-Za-z]:\\).*\.[cm]?[jt]sx?|node:[a-z\d_/-]+):\d+:\d+$/;

/** Without names of functions, which may be made from data. Cuts long paths at the front. */
function framesOf(sites: readonly NodeJS.CallSite[]) {
  return sites
    .map(frameOf)
    .filter((frame) => FRAME.test(frame))
    .slice(0, MAX_FRAMES)
    .map((frame) => toPrintable(frame.slice(-MAX_FRAME_LENGTH), MAX_FRAME_LENGTH));
}

/** Where a formatter that throws neither ends the process nor loses the stack. */
const KEEPS_UNREAD = !(
  'Bun' in globalThis ||
  'Deno' in globalThis ||
  // With this flag, V8 treats what a formatter throws as uncaught, and ends the process.
  /abort.on.uncaught/.test(`${process.execArgv} ${process.env.NODE_OPTIONS}`)
);

/**
 * Where V8 itself saw the error, told only to the first reader of `stack`. Its text is no source: code may
 * have joined anything to it. Empty if that cannot be known.
 */
function callSitesOf(error: object): readonly NodeJS.CallSite[] {
  const usual = Reflect.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  let sites: readonly NodeJS.CallSite[] = [];

  function prepareStackTrace(target: Error, found: NodeJS.CallSite[]): unknown {
    if (target === error) sites = found;
    // After a throw, the stack counts as unread: the next reader gets it in the usual format.
    if (KEEPS_UNREAD) throw target;
    if (typeof usual?.value === 'function') return Reflect.apply(usual.value, Error, [target, found]);

    return [target, ...found].join('\n    at ');
  }

  Reflect.defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace, configurable: true });
  try {
    Reflect.get(error, 'stack');
  } catch {
    // Also a getter of the error may throw.
  }
  Reflect.deleteProperty(Error, 'prepareStackTrace');
  if (usual !== undefined) Reflect.defineProperty(Error, 'prepareStackTrace', usual);
  return sites;
}

/** Where it stands in the source, if source maps are on. */
function frameOf(site: NodeJS.CallSite) {
  const file = site.getFileName();
  const line = site.getLineNumber();
  const column = site.getColumnNumber();
  const map = findSourceMap(file ?? '');
  const origin = map?.findEntry(Number(line) - 1, Number(column) - 1);
  if (origin === undefined || !('originalSource' in origin)) return `${file}:${line}:${column}`;

  const { originalSource, originalLine, originalColumn } = origin;
  return `${originalSource}:${originalLine + 1}:${originalColumn + 1}`;
}
