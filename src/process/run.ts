// Owns the process of a service: environment, working directory, signals. Exit codes: 0 after a signal, 1 for
// a wrong configuration, a second signal or a failed check or probe, 2 if it cannot listen. Promises: once it
// listens, only a signal ends the process, whatever a handler throws.
import { undefinedOn } from '../verify/base/encoding.ts';
import { describeBug, printable, printableSetting, type Log } from '../verify/base/events.ts';
import { VERSION } from '../verify/base/version.ts';
import type { Routes } from '../service/routes/route.ts';
import { ConfigurationError } from '../gate/configuration-error.ts';
import { loadSettings } from './load-settings.ts';
import type { ProblemsWith, SomeSettings } from './settings/load.ts';
import { clock, createProcessLog } from './log.ts';
import { createListeningService, problemsOf } from './compose-service.ts';
import { createMetrics } from '../options/metrics/metrics.ts';
import { probe } from './probe.ts';
import { inForce, createReport, type Deployment } from './report.ts';

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
 * problems, writes them all to standard error and ends the process.
 *
 * @example runService({ routes: [get('/api/orders', needs(scope('read:orders')), listOrders)] });
 */
export const runService = (routes: Routes): void =>
  runWith(
    (...sources) => ({ loaded: loadSettings(...sources), routes, name: 'own table' }),
    (settings) => problemsOf(routes, settings),
  );

/**
 * Runs routes as a process that tells a proxy whether a request may pass to the server behind it. Its routes
 * have `upstream` in place of a handler. Only the proxy may reach the port.
 *
 * @example runForwardAuth({ routes: [get('/api/orders', needs(scope('read:orders')), upstream)] });
 */
export const runForwardAuth = (routes: Routes): void => runService({ ...routes, isPolicy: true });

/** `createDeployment` throws `ConfigurationError`; `problemsWith` returns further problems. */
export function runWith(
  createDeployment: (...sources: Parameters<typeof loadSettings>) => Deployment,
  problemsWith: ProblemsWith = () => [],
) {
  const [, , word, ...others] = process.argv;
  const text = textFor(word, others);
  if (text !== undefined) return console.log(text);

  const allProblems: ProblemsWith = (some, strays) => [
    ...argumentProblems(word, others, some, strays),
    ...problemsWith(some),
  ];

  function workingDirectory() {
    // `cwd` throws if it is gone.
    const directory = undefinedOn('Error', process.cwd);
    if (directory !== undefined) return directory;

    throw new ConfigurationError([...allProblems({}), 'working directory: is gone; start in another']);
  }

  try {
    const deployment = createDeployment(process.env, workingDirectory(), allProblems);
    if (word === '--probe') probe(deployment.loaded.settings);
    else runDeployment(deployment, word === '--check');
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;

    for (const problem of error.problems) console.error(`configuration: ${problem}`);
    process.exit(1);
  }
}

function textFor(word = '', others: readonly string[]) {
  return others.length === 0 ? TEXTS[word] : undefined;
}

function argumentProblems(
  word: string | undefined,
  others: readonly string[],
  { port }: SomeSettings,
  strays: readonly string[] = [],
) {
  const isKnown = [undefined, '--check', '--probe'].includes(word) && others.length === 0;
  if (!isKnown) return [WRONG_ARGUMENTS];

  // A deployment's own check must find `IDP_DPOP_MOD=REQUIRED`, which the service only warns of.
  if (word === '--check') return strays;

  const isPortless = word === '--probe' && port === 0;
  return isPortless ? ['PORT or server.port: must not be 0 for --probe; set one, or use --check'] : [];
}

function createParts(deployment: Deployment, isCheck: boolean) {
  const { loaded, routes, name } = deployment;
  const { settings, warnings } = loaded;
  // Only half of libuv's threads resolve names, and a lookup that hangs blocks one: each issuer, the proxy
  // and the store get a thread.
  process.env.UV_THREADPOOL_SIZE ??= String(2 * Object.keys(settings.issuers).length + 4);

  const profile = printable(name);
  const log = isCheck ? createReport(deployment) : createProcessLog(settings.logLevel);
  for (const setting of warnings) log('unknown setting ignored', { setting: printableSetting(setting) });

  const metrics = settings.metricsPort === undefined ? undefined : createMetrics(profile);
  return { log, service: createListeningService(routes, settings, { clock, log, metrics }) };
}

function runDeployment(deployment: Deployment, isCheck: boolean) {
  const { loaded, name } = deployment;
  const { log, service } = createParts(deployment, isCheck);
  if (isCheck) {
    for (const { keys } of service.issuers) void keys.refresh().then(keys.close);
    return;
  }

  function onListenError(error: { host?: string; port?: number; code?: unknown }) {
    const { host = 'all addresses', port, code } = error;
    if (port === undefined) throw error;

    const address = printableSetting(host);
    log('cannot listen', { address, port, code: printable(String(code)) });
    console.error(`cannot listen: ${host}, port ${port} (${code}); ${LISTEN_ADVICE}`);
    process.exit(2);
  }

  const onSignal = createSignalHandler(service, log, loaded.settings.shutdownDelaySeconds * 1000);
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  service.listen().then(({ address, ...ports }) => {
    log('listening', { ...ports, address: printable(address), profile: printable(name), ...inForce(loaded) });
    // Choice: one unhandled rejection of a handler must not end every request.
    process.on('uncaughtException', (error) => log('unforeseen error', describeBug(error)));
    // Loading TLS blocks the process: first respond to requests.
    clock.after(20, service.fetchKeys);
  }, onListenError);
}

/** The first signal drains, the second ends at once. */
function createSignalHandler(
  service: ReturnType<typeof createListeningService>,
  log: Log,
  delayMillis: number,
) {
  function end(reason: 'drained' | 'deadline' | 'second-signal') {
    service.close();
    log('stopped', { reason });
    process.exit(reason === 'second-signal' ? 1 : 0);
  }

  return (signal: 'SIGTERM' | 'SIGINT') => {
    if (service.phase.isStopping) return end('second-signal');

    const drain = async () => end(await service.stop());
    service.phase.isStopping = true;
    log('shutting down', { reason: signal });
    if (delayMillis > 0) setTimeout(drain, delayMillis);
    else void drain();
  };
}
