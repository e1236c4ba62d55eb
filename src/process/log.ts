// The clocks of this process, and a log on its standard output. Promises: a reader that stalls or goes away
// loses lines and never harms the service.
import type { Clock } from '../verify/base/clock.ts';
import { createLog, type LogLevel } from '../verify/base/events.ts';

export const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),

  after(millis, action) {
    const timer = setTimeout(action, millis).unref();
    return () => clearTimeout(timer);
  },
};

/** The lines of one turn of the event loop, for one system call. */
let unwritten = '';

function writeLines() {
  process.stdout.write(unwritten);
  unwritten = '';
}

function writeLater(line: string) {
  if (unwritten === '') setImmediate(writeLines);
  unwritten += line;
}

const ignore = () => {};

export function createProcessLog(leastLevel: LogLevel) {
  const { stdout } = process;
  // EPIPE must not end the service. `off` first: several logs share one listener.
  stdout.off('error', ignore).on('error', ignore);
  process.off('exit', writeLines).on('exit', writeLines);
  return createLog(leastLevel, writeLater, clock.now, () => stdout.writableLength + unwritten.length);
}
