// The start and the end of a process that serves: hooks, signals, exit codes. Promises: a wrong hook is
// reported by its name; the first signal drains; during the start, or after another, it ends at once. A hook
// that fails or is late is logged.
import { nothing, type Clock } from '../verify/base/clock.ts';
import { isJsonObject, isPlain } from '../verify/base/encoding.ts';
import { describeBug, type Log } from '../verify/base/events.ts';
import { readPlainOptions, someFunction, Part, type Rule, type Rules } from '../verify/base/option.ts';
import { NO_PROOFS } from '../gate/options.ts';
import type { ListeningService } from '../service/create-service.ts';
import { SERVICE_RULES, type ServiceOptions } from '../service/options.ts';
import type { Settings } from '../settings/load-settings.ts';

/** Called before the server listens; the start waits for it. */
export type OnStart = (options: ServiceOptions) => unknown;

/** Called at the end of the drain, which waits up to 10 s for it. */
export type OnStop = () => unknown;

/** The second argument of `runService` and `runForwardAuth`. */
export interface Hooks extends Pick<ServiceOptions, 'onError' | 'onResponse'> {
  /**
   * Called and awaited before the service listens. Gets the options that the settings describe, without parts
   * that only one service can use. If it fails, the failure is logged, and the process exits with 1.
   */
  readonly onStart?: OnStart | undefined;
  /** Called after the last response, and awaited for up to ten seconds. If it fails, as for `onStart`. */
  readonly onStop?: OnStop | undefined;
  /** Replaces the log that the settings describe. */
  readonly log?: ServiceOptions['log'];
  /** Replaces the replay store in the process. */
  readonly replayStore?: ServiceOptions['replayStore'];
  /** Replaces requests for signing keys. */
  readonly fetchKeys?: ServiceOptions['fetchKeys'];
  /** Replaces introspection requests. */
  readonly introspect?: ServiceOptions['introspect'];
}

const ofSettings: Rule = () => 'is no hook; set it in the environment, .env or application.yml';

/** Options that are hooks, too, or have a problem of their own. */
const SHARED = ['log', 'replayStore', 'fetchKeys', 'introspect', 'onError', 'onResponse', 'onVerdict'];

const ofOptions = Object.entries(SERVICE_RULES).map(([name, rule]) => [
  name,
  SHARED.includes(name) ? rule : ofSettings,
]);

const HOOK_RULES: Rules = {
  ...Object.fromEntries(ofOptions),
  onStart: someFunction,
  onStop: someFunction,
};

const TWO_STORES = 'takes the place of IDP_DPOP_REPLAY_STORE (idp.dpopReplayStore); remove one of the two';

/** Those that are there. Throws a `TypeError` for the first that is wrong. */
export function readHooks(given: Hooks) {
  return readPlainOptions<Hooks>(given, HOOK_RULES, {}, 'hooks');
}

/** `settings` lacks those that have a problem. */
export function hookProblems(given: Hooks, settings: Settings): readonly string[] {
  const hooks: Hooks = Object(given);
  const names = isJsonObject(given) ? Reflect.ownKeys(given) : [];
  const alone = names.map((name) => ({ [name]: Reflect.get(hooks, name) }));
  const wrong = [...alone, given].map(problemIn).filter((problem) => problem !== undefined);
  const problems = new Set(wrong);
  if (hooks.replayStore === undefined) return [...problems];

  if (settings.dpopReplayStore !== undefined) problems.add(`hooks: replayStore: ${TWO_STORES}`);
  if (settings.dpopMode === 'DISABLED') problems.add(`hooks: replayStore: ${NO_PROOFS}`);
  return [...problems];
}

function problemIn(hooks: Hooks) {
  try {
    readHooks(hooks);
    return undefined;
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
}

type Signal = 'SIGTERM' | 'SIGINT';

/** Resolves when the hook is done. Meanwhile there is nothing to drain. */
export async function start(service: ListeningService, onStart: OnStart, options: ServiceOptions) {
  service.phase.isStarting = true;
  // What can serve another gate or service, once one is made of the options.
  const { onError, onResponse, ...shareable } = options;
  const isDone = await run(() => onStart(frozen(shareable)), 'start failed', service.log);
  if (!isDone) process.exit(1);

  // Node reports a signal that arrived while the hook blocked the process within one full turn.
  await new Promise((resolve) => setImmediate(setImmediate, resolve));
  service.phase.isStarting = false;
}

/** A copy, down to its lists and issuers, without parts that serve already. */
function frozen<Value>(value: Value): Value {
  if (Array.isArray(value)) return Object.freeze([...value]) as Value;
  if (!isJsonObject(value) || !isPlain(value)) return value;

  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined && !Part.isTaken(member)) copy[name] = frozen(member);
  }
  return Object.freeze(copy) as Value;
}

/** Leaves no gap: a signal without a listener kills the process, or is lost. */
export function endOnSignal(service: ListeningService, onStop: OnStop | undefined, clock: Clock) {
  function onSignal(signal: Signal) {
    const { isStarting, isStopping } = service.phase;
    if (isStarting || isStopping) {
      end(service, isStarting ? signal : 'second-signal');
      process.exit(1);
    }

    service.log('shutting down', { reason: signal });
    void drain(service, onStop, clock);
  }

  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}

async function drain(service: ListeningService, onStop: OnStop | undefined, clock: Clock) {
  const outcome = await service.stop();
  const isDone = onStop === undefined || (await runOnStop(onStop, clock, service.log));
  const code = isDone ? 0 : 1;
  end(service, outcome);
  return exit(code, clock);
}

type Reason = Signal | 'drained' | 'deadline' | 'second-signal';

function end({ log, close }: ListeningService, reason: Reason) {
  close();
  log('stopped', { reason });
}

/** Waits for pipes first, with `clock` for two seconds: what they have not taken when it exits is lost. */
export async function exit(code: number, clock?: Clock) {
  // If the program's own `write` never calls back, Node ends by itself, with this code.
  process.exitCode = code;
  const cancel = clock?.after(LAST_LINES_MILLIS, () => process.exit(code));
  // The log writes once in a turn.
  await new Promise((resolve) => setImmediate(resolve));
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise((resolve) => stream.on('error', resolve).write('', resolve));
  }
  // A test that replaces `process.exit` goes on.
  cancel?.();
  process.exitCode = undefined;
  process.exit(code);
}

const STOP_MILLIS = 10_000;

/** How long a pipe that is full delays the exit. */
const LAST_LINES_MILLIS = 2_000;

const LATE = Symbol('late');

/** Resolves with whether it went well, and in time. */
export function runOnStop(onStop: OnStop, clock: Clock, log: Log): Promise<boolean> {
  return run(() => stopInTime(onStop, clock), 'stop failed', log);
}

function stopInTime(onStop: OnStop, clock: Clock) {
  const stopped = onStop();
  const lateness = new Promise((_, reject) => {
    clock.after(STOP_MILLIS, () => reject(LATE));
  });
  return Promise.race([stopped, lateness]);
}

async function run(hook: () => unknown, failed: 'start failed' | 'stop failed', log: Log) {
  // A hook may wait for what keeps no process alive.
  const awake = setInterval(nothing, 1_000);
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
