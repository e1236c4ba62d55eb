// The hooks of a process: which there are, and what the one at the start is given. Promises: a wrong one is
// reported by its name. Does not run them: life.ts and what serves do.
import { isJsonObject, isPlain } from '../verify/base/encoding.ts';
import { readPlainOptions, someFunction, type Rule } from '../verify/base/option.ts';
import { Part } from '../verify/base/part.ts';
import { NO_PROOFS } from '../gate/options.ts';
import { SERVICE_RULES, type ServiceOptions } from '../service/options.ts';
import type { Settings } from '../settings/load-settings.ts';

/** Called before the server listens; the start waits for it. */
export type OnStart = (options: ServiceOptions) => unknown;

/** Called at the end of the drain, which waits up to 10 s for it. */
export type OnStop = () => unknown;

/** The second argument of `runService` and `runForwardAuth`. */
export interface Hooks extends Pick<ServiceOptions, 'onError' | 'onResponse'> {
  /**
   * Awaited before anything listens. Gets the options that the settings gave, without parts that serve one
   * service alone. If it fails, the log says so, and the process ends with 1.
   */
  readonly onStart?: OnStart | undefined;
  /** Awaited for ten seconds, after the last response. If it fails, as above. */
  readonly onStop?: OnStop | undefined;
  /** In place of the log that the settings describe. */
  readonly log?: ServiceOptions['log'];
  /** In place of that of the process. */
  readonly replayStore?: ServiceOptions['replayStore'];
  /** In place of requests to the providers. */
  readonly fetchKeys?: ServiceOptions['fetchKeys'];
  /** In place of introspection requests. */
  readonly introspect?: ServiceOptions['introspect'];
}

const OF_SETTINGS = 'is no hook; set it in the environment, .env or application.yml';

const { log, replayStore, fetchKeys, introspect, onError, onResponse, onVerdict } = SERVICE_RULES;

const ofSettings: Rule = () => OF_SETTINGS;

const otherOptions = Object.keys(SERVICE_RULES).map((name) => [name, ofSettings]);

const HOOK_RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(otherOptions),
  onStart: someFunction,
  onStop: someFunction,
  log,
  replayStore,
  fetchKeys,
  introspect,
  onError,
  onResponse,
  onVerdict,
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

/** What can serve another gate or service, once one is made of the options. */
export function shareable({ onError, onResponse, ...options }: ServiceOptions): ServiceOptions {
  return frozen(options);
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
