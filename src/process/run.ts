// Owns the process of a service: environment, working directory, signals. Exit codes: 0 after a signal, 1 for
// a wrong configuration, a second signal or a failed check or probe, 2 if it cannot listen. Promises: once it
// listens, only a signal ends the process, whatever a handler throws.
import { undefinedOn } from '../verify/base/encoding.ts';
import { describeBug, printable, printableSetting, type Log } from '../verify/base/events.ts';
import { systemClock as clock } from '../verify/base/clock.ts';
import { Part } from '../verify/base/part.ts';
import { VERSION } from '../verify/base/version.ts';
import {
  createListeningService,
  OWN_ROUTES,
  problemsOf,
  type Kind,
  type ListeningService,
} from '../service/create-service.ts';
import { readServiceOptions } from '../service/options.ts';
import type { Routes } from '../service/routes/route.ts';
import { ConfigurationError } from '../settings/configuration-error.ts';
import {
  loadFrom,
  optionsOf,
  reportUnknown,
  SERVICE_SETTINGS,
  type Loaded,
  type LoadedOptions,
  type SettingValues,
} from '../settings/load-settings.ts';
import type { SettingsTable } from '../settings/table.ts';
import { probe } from './probe.ts';
import { check, inForce, type Deployment, type Event } from './report.ts';

const WRONG_ARGUMENTS = 'arguments: must be none, or one of --check, --probe, --help and --version';

const HELP = `gatehouse ${VERSION}: a token-protected API service

Settings come from the environment, .env and application.yml: see docs/settings.md.

  (no argument)  run the service
  --check        read the settings, fetch the keys, print what would run, and exit with 0, or 1 for a problem
  --probe        ask the running service whether it is ready, and exit with 0 or 1
  --help         print this text
  --version      print the version`;

const LISTEN_ADVICE = 'set another HOST, PORT or METRICS_PORT, or end the process that has the port';

/** Arguments that need no settings. */
const TEXTS: Readonly<Record<string, string>> = { '--help': HELP, '--version': VERSION };

/**
 * Runs these routes as a whole process: settings, listener, signals, exit codes. If settings or routes have
 * problems, writes them all to standard error and ends the process. Resolves when it listens.
 *
 * @example runService({ routes: [get('/api/orders', needs(scope('read:orders')), listOrders)] });
 */
export const runService = (routes: Routes): Promise<void> =>
  runWith({ table: SERVICE_SETTINGS, routesFor: () => routes, kindFor: () => OWN_ROUTES });

/**
 * Runs routes as a process that tells a proxy whether a request may pass to the server behind it. Its routes
 * have `upstream` in place of a handler. Only the proxy may reach the port.
 *
 * @example runForwardAuth({ routes: [get('/api/orders', needs(scope('read:orders')), upstream)] });
 */
export async function runForwardAuth(routes: Routes): Promise<void> {
  const { createQuestionReaders: createReaders } = await import('../options/forward-auth.ts');

  const kind = { ...OWN_ROUTES, createReaders, isPolicy: true };
  return runWith({ table: SERVICE_SETTINGS, routesFor: () => routes, kindFor: () => kind });
}

/** What a process runs. Settings that have a problem are absent. */
export interface Plan<Values extends SettingValues> {
  readonly table: SettingsTable<Values>;
  readonly routesFor: (settings: Partial<Values>) => Routes;
  readonly kindFor: (settings: Partial<Values>) => Kind;
}

export async function runWith<Values extends SettingValues>(plan: Plan<Values>): Promise<void> {
  const [, , word, ...others] = process.argv;
  const text = textFor(word, others);
  if (text !== undefined) return console.log(text);

  try {
    await runCommand(plan, word, others);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;

    for (const problem of error.problems) console.error(`configuration: ${problem}`);
    process.exit(1);
  }
}

function textFor(word = '', others: readonly string[]) {
  return others.length === 0 ? TEXTS[word] : undefined;
}

async function runCommand<Values extends SettingValues>(
  plan: Plan<Values>,
  word: string | undefined,
  others: readonly string[],
) {
  const loaded = await load(plan, word, others);
  const { settings } = loaded;
  if (word === '--probe') return probe(settings);

  // Only half of libuv's threads resolve names, and a lookup that hangs blocks one: each issuer, the proxy
  // and the store get a thread.
  process.env.UV_THREADPOOL_SIZE ??= String(2 * Object.keys(settings.issuers).length + 4);

  const running = {
    kind: plan.kindFor(settings),
    routes: plan.routesFor(settings),
    options: await optionsOf(settings),
    loaded,
  };
  return word === '--check' ? runCheck(running) : runDeployment(running);
}

interface Running {
  readonly kind: Kind;
  readonly routes: Routes;
  readonly options: LoadedOptions;
  readonly loaded: Loaded;
}

function deploymentOf({ kind, loaded }: Running): Deployment {
  const { name, isPolicy } = kind;
  return { name, isPolicy, applicationName: loaded.settings.applicationName, files: loaded.files };
}

/** Rejects with `ConfigurationError`. */
async function load<Values extends SettingValues>(
  { table, routesFor, kindFor }: Plan<Values>,
  word: string | undefined,
  others: readonly string[],
) {
  const allProblems = async (some: Partial<Values>, strays: readonly string[] = []) => [
    ...argumentProblems(word, others, some, strays),
    ...(await problemsOfRoutes(routesFor(some), kindFor(some), some)),
  ];

  // `cwd` throws if it is gone.
  const directory = undefinedOn('Error', process.cwd);
  if (directory === undefined) {
    throw new ConfigurationError([
      ...(await allProblems({})),
      'working directory: is gone; start in another',
    ]);
  }

  return loadFrom(table, process.env, directory, allProblems);
}

async function problemsOfRoutes(routes: Routes, kind: Kind, { resourceUrl }: Partial<SettingValues>) {
  if (resourceUrl === undefined) return problemsOf(routes, kind);

  const { metadataPaths } = await import('../options/resource-metadata.ts');
  return problemsOf(routes, kind, metadataPaths(resourceUrl));
}

function argumentProblems(
  word: string | undefined,
  others: readonly string[],
  { port }: Partial<SettingValues>,
  strays: readonly string[],
) {
  const isKnown = [undefined, '--check', '--probe'].includes(word) && others.length === 0;
  if (!isKnown) return [WRONG_ARGUMENTS];

  // A deployment's own check must find `IDP_DPOP_MOD=REQUIRED`, which the service only warns of.
  if (word === '--check') return strays;

  const isPortless = word === '--probe' && port === 0;
  return isPortless ? ['PORT or server.port: must not be 0 for --probe; set one, or use --check'] : [];
}

async function runCheck(running: Running) {
  const { kind, routes, options, loaded } = running;
  const events: Event[] = [];
  const record: Log = (event, fields) => void events.push({ event, fields });
  reportUnknown(loaded, record);

  const log = Part.make('log', { log: record, level: 'info' as const, isAccessLogged: false });
  const values = readServiceOptions({ ...options, log });
  const service = createListeningService(routes, values, kind);
  const isGood = await check(service, values, deploymentOf(running), events);
  process.exit(isGood ? 0 : 1);
}

async function runDeployment(running: Running) {
  const { kind, routes, options, loaded } = running;
  const { log } = Part.contentOf(options.log);
  reportUnknown(loaded, log);
  const values = readServiceOptions(options);
  const service = createListeningService(routes, values, kind);

  function onListenError(error: { host?: string; port?: number; code?: unknown }): never {
    const { host = 'all addresses', port, code } = error;
    if (port === undefined) throw error;

    const address = printableSetting(host);
    log('cannot listen', { address, port, code: printable(String(code)) });
    console.error(`cannot listen: ${host}, port ${port} (${code}); ${LISTEN_ADVICE}`);
    return process.exit(2);
  }

  const onSignal = createSignalHandler(service, log);
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  const { address, ...ports } = await service.listen().catch(onListenError);
  const profile = printable(kind.name);
  const force = inForce(values, deploymentOf(running));
  log('listening', { ...ports, address: printable(address), profile, ...force });
  // Choice: one unhandled rejection of a handler must not end every request.
  process.on('uncaughtException', (error) => log('unforeseen error', describeBug(error)));
  // Loading TLS blocks the process: first respond to requests.
  clock.after(20, service.fetchKeys);
}

/** The first signal drains, the second ends at once. */
function createSignalHandler(service: ListeningService, log: Log) {
  function end(reason: 'drained' | 'deadline' | 'second-signal') {
    service.close();
    log('stopped', { reason });
    process.exit(reason === 'second-signal' ? 1 : 0);
  }

  return (signal: 'SIGTERM' | 'SIGINT') => {
    if (service.phase.isStopping) return end('second-signal');

    log('shutting down', { reason: signal });
    void service.stop().then(end);
  };
}
