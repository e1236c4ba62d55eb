// The clocks of this process, and its standard output as a log. Promises: a reader who goes away or stalls
// costs lines, never the service.
import type { Clock } from '../verify/base/clock.ts';
import { createLog, type LogLevel } from '../verify/base/events.ts';

/** The clocks and the timer of this process. */
export const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),

  after(millis, action) {
    const timer = setTimeout(action, millis).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * The lines of a turn, of all services in this process: written one by one each would cost a system call.
 */
let unwritten = '';

function writeLines() {
  process.stdout.write(unwritten);
  unwritten = '';
}

function writeLater(line: string) {
  if (unwritten === '') setImmediate(writeLines);
  unwritten += line;
}

const lose = () => {};

/** Lines on standard output, up to a bound of what nobody has read. */
export function createProcessLog(leastLevel: LogLevel) {
  const { stdout } = process;
  // A reader that goes away takes the log with it, not the service; once each, however many logs there are.
  stdout.off('error', lose).on('error', lose);
  process.off('exit', writeLines).on('exit', writeLines);
  return createLog(leastLevel, writeLater, clock.now, () => stdout.writableLength + unwritten.length);
}
