// The start and the end of a process that serves: hooks, signals, exit codes. Promises: the first signal
// drains; during the start, or after another, it ends at once. A hook that fails or is late is logged.
import type { Clock } from '../verify/base/clock.ts';
import { describeBug, type Log } from '../verify/base/events.ts';
import type { ListeningService } from '../service/create-service.ts';
import type { ServiceOptions } from '../service/options.ts';
import { shareable, type OnStart, type OnStop } from './hooks.ts';

type Signal = 'SIGTERM' | 'SIGINT';

/** Resolves when the hook is done. Meanwhile there is nothing to drain. */
export async function start(service: ListeningService, onStart: OnStart, options: ServiceOptions) {
  service.phase.isStarting = true;
  const isDone = await run(() => onStart(shareable(options)), 'start failed', service.log);
  if (!isDone) process.exit(1);

  // Node reports a signal that arrived while the hook blocked the process within one full turn.
  await new Promise((resolve) => setImmediate(setImmediate, resolve));
  service.phase.isStarting = false;
}

/** Leaves no gap: a signal without a listener kills the process, or is lost. */
export function endOnSignal(service: ListeningService, onStop: OnStop | undefined, clock: Clock) {
  async function drain() {
    const outcome = await service.stop();
    const isDone = onStop === undefined || (await runOnStop(onStop, clock, service.log));
    const code = isDone ? 0 : 1;
    end(service, outcome);
    clock.after(LAST_LINES_MILLIS, () => process.exit(code));
    return exit(code);
  }

  function onSignal(signal: Signal) {
    const { isStarting, isStopping } = service.phase;
    if (isStarting || isStopping) {
      end(service, isStarting ? signal : 'second-signal');
      process.exit(1);
    }

    service.log('shutting down', { reason: signal });
    void drain();
  }

  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}

type Reason = Signal | 'drained' | 'deadline' | 'second-signal';

function end({ log, close }: ListeningService, reason: Reason) {
  close();
  log('stopped', { reason });
}

/** Waits for pipes first: what they have not taken when the process exits is lost. */
export async function exit(code: number) {
  // The log writes once in a turn.
  await new Promise((resolve) => setImmediate(resolve));
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise((resolve) => stream.on('error', resolve).write('', resolve));
  }
  process.exit(code);
}

const STOP_MILLIS = 10_000;

/** How long a pipe that is full delays the exit. */
const LAST_LINES_MILLIS = 2_000;

const LATE = Symbol('late');

/** Resolves with whether it went well, and in time. */
export function runOnStop(onStop: OnStop, clock: Clock, log: Log): Promise<boolean> {
  const lateness = () =>
    new Promise((_, reject) => {
      clock.after(STOP_MILLIS, () => reject(LATE));
    });

  return run(() => Promise.race([onStop(), lateness()]), 'stop failed', log);
}

async function run(hook: () => unknown, failed: 'start failed' | 'stop failed', log: Log) {
  // A hook may wait for what keeps no process alive.
  const awake = setInterval(() => {}, 1_000);
  try {
    await hook();
    return true;
  } catch (error) {
    if (error === LATE) log(failed, { reason: 'timeout' });
    else log(failed, describeBug(error), error);
    return false;
  } finally {
    clearInterval(awake);
  }
}
