// The log as JSON lines on standard output. Promises: a reader that
// stalls or leaves loses lines, but blocks nothing and costs no more than a megabyte.
import { nothing, systemClock } from '../verify/base/clock.ts';
import {
  EVENTS,
  LOG_LEVELS,
  type Fields,
  type Log,
  type LogEvent,
  type LogLevel,
  type Printable,
} from '../verify/base/events.ts';
import { boolean, oneOf, readPlainOptions, Part, type Given, type RulesOf } from '../verify/base/option.ts';
import type { LogPart } from '../gate/options.ts';

interface LogValues {
  /** `silent`, `error`, `warn`, `info` (the default) or `debug`; each includes those before it. */
  readonly level: LogLevel;
  /** Whether each request has a line, except successful probes. Default: `false`. */
  readonly access: boolean;
  /** For development: whether lines about errors contain the errors' messages. Default: `false`. */
  readonly errorMessages: boolean;
}

/** The options of `jsonLog`. */
export interface LogOptions extends Given<LogValues> {}

export const LOG_RULES: RulesOf<LogOptions> = {
  level: oneOf(...LOG_LEVELS),
  access: boolean,
  errorMessages: boolean,
};

export const LOG_DEFAULTS: LogValues = { level: 'info', access: false, errorMessages: false };

/**
 * Makes a log of JSON lines on standard output, for the option `log` of any number of gates and services.
 * Throws a `TypeError` for an option that is wrong.
 *
 * @example const gate = createGate({ domain, audience, log: jsonLog({ level: 'debug' }) });
 */
export function jsonLog(options: LogOptions = {}): LogPart {
  const { level, access, errorMessages } = readPlainOptions<LogValues>(
    options,
    LOG_RULES,
    LOG_DEFAULTS,
    'log',
  );
  return Part.make(
    'log',
    { log: createProcessLog(level, errorMessages), level, isAccessLogged: access },
    true,
  );
}

/** About 7,000 lines. Further ones are dropped. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024;

const MAX_MESSAGE_LENGTH = 1_000;

/**
 * Creates a log that writes each event up to `level` as a JSON line, and counts dropped lines in a line of
 * its own. `now` is in milliseconds since the epoch. With `hasMessages`, the first line says so.
 */
export function createLog(
  level: LogLevel,
  write: (line: string) => unknown,
  now: () => number,
  unwrittenBytes = () => 0,
  hasMessages = false,
): Log {
  let dropped = 0;
  let isNew = hasMessages;
  let isOver = false;

  function writeLine(message: LogEvent, fields: Fields) {
    const time = new Date(now()).toISOString();
    write(`${JSON.stringify({ time, level: EVENTS[message], message, ...fields })}\n`);
  }

  return function log(event, fields, error) {
    // The process ends, whatever else happens meanwhile.
    if (isOver) return;
    isOver = event === 'stopped';

    if (LOG_LEVELS.indexOf(EVENTS[event]) > LOG_LEVELS.indexOf(level)) return;

    if (unwrittenBytes() > MAX_UNWRITTEN_BYTES) {
      dropped += 1;
      return;
    }

    if (isNew) writeLine('error messages are logged', {});
    isNew = false;

    if (dropped > 0) writeLine('log lines dropped', { lines: dropped });
    dropped = 0;
    writeLine(event, hasMessages ? { ...fields, ...messagesOf(error) } : fields);
  };
}

/** Nothing, if the error does not let itself be read. */
function messagesOf(error: unknown): Fields {
  try {
    const { name, code, message = error } = Object(error);
    return { errorName: textOf(name), errorCode: textOf(code), errorMessage: textOf(message) };
  } catch {
    return {};
  }
}

/** Of several lines, but without what JSON does not escape and a terminal obeys, and halves of characters. */
function textOf(value: unknown) {
  if (value === undefined || typeof value === 'object') return undefined;

  return String(value)
    .slice(0, MAX_MESSAGE_LENGTH)
    .replace(/[\x7f-\x9f\p{Cs}]/gu, '?') as Printable;
}

/** The lines of one turn: one system call. */
let unwritten = '';

function writeLines() {
  process.off('exit', writeLines);
  process.stdout.write(unwritten);
  unwritten = '';
}

function writeLater(line: string) {
  if (unwritten === '') {
    setImmediate(writeLines);
    process.on('exit', writeLines);
  }
  unwritten += line;
}

/** Shared by all copies of this module: test runners load one for each file. */
const IS_GUARDED = Symbol.for('gatehouse.isGuarded');

function createProcessLog(leastLevel: LogLevel, hasMessages: boolean) {
  const { stdout } = process;
  // EPIPE must not end the service. With more than ten listeners, Node warns of a leak.
  if (!(IS_GUARDED in stdout)) stdout.on('error', nothing);
  Object.assign(stdout, { [IS_GUARDED]: true });
  return createLog(
    leastLevel,
    writeLater,
    systemClock.now,
    () => stdout.writableLength + unwritten.length,
    hasMessages,
  );
}
