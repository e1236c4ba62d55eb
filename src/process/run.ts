// The whole of a process that is a service: its environment, working directory, signals and exit codes. Exit
// codes: 0 after a signal, 1 for configuration or a second signal, 2 when it cannot listen.
// Promises: once it listens, nothing but a signal ends the process, whatever a handler leaves behind.
import { undefinedOn } from '../verify/base/encoding.ts';
import { describeBug, printable, printableSetting } from '../verify/base/events.ts';
import type { Routes } from '../service/routes/route.ts';
import { ConfigurationError } from '../gate/configuration-error.ts';
import { loadSettings, type Loaded } from './load-settings.ts';
import type { FaultsWith } from './settings/load.ts';
import { clock, createProcessLog } from './log.ts';
import { problemsOf, createListeningService } from './service.ts';
import { createMetrics } from '../options/metrics/metrics.ts';
import { probe } from './probe.ts';
import { inForce, openReport } from './report.ts';

const WRONG_ARGUMENTS = 'arguments: must be none, or --check, or --probe';

/** What a process is to serve. */
interface Plan {
  readonly loaded: Loaded;
  readonly routes: Routes;
  /** What the log and the metrics call them. */
  readonly name: string;
}

/**
 * Runs these routes as the whole service: settings from their sources, a listener, signals, exit codes.
 * Ends the process when the configuration or a route is wrong, with every problem on standard error.
 *
 * @example runService({ routes: [get('/api/orders', needs(scope('read:orders')), listOrders)] });
 */
export const runService = (routes: Routes): void =>
  runWith(
    (...sources) => ({
      loaded: loadSettings(...sources),
      routes,
      name: 'own table',
    }),
    (settings) => problemsOf(routes, settings),
  );

/**
 * The same for a plan, which throws `ConfigurationError`; `faultsWith` gives those of routes that are known
 * before the settings are.
 */
export function runWith(
  plan: (...sources: Parameters<typeof loadSettings>) => Plan,
  faultsWith: FaultsWith = () => [],
) {
  const [, , word, ...others] = process.argv;
  const problemsWith: FaultsWith = (some) => [...faultsOfWords(word, others), ...faultsWith(some)];

  function workingDirectory() {
    // Throws for a directory that has been removed.
    const directory = undefinedOn(Error, process.cwd);
    if (directory !== undefined) return directory;

    throw new ConfigurationError([...problemsWith({}), 'working directory: is gone; start in another']);
  }

  try {
    const planned = plan(process.env, workingDirectory(), problemsWith);
    if (word === '--probe') probe(planned.loaded.settings);
    else start(planned, word === '--check');
  } catch (failure) {
    if (!(failure instanceof ConfigurationError)) throw failure;

    for (const problem of failure.problems) console.error(`configuration: ${problem}`);
    process.exit(1);
  }
}

function faultsOfWords(word: string | undefined, others: readonly string[]) {
  const isKnown = [undefined, '--check', '--probe'].includes(word) && others.length === 0;
  return isKnown ? [] : [WRONG_ARGUMENTS];
}

function start({ loaded, routes, name }: Plan, isCheck: boolean) {
  const { settings, warnings } = loaded;
  // Half of the threads look names up, one for each issuer, the proxy and the store: where some names are
  // dead, the others are still found.
  process.env.UV_THREADPOOL_SIZE ??= String(2 * Object.keys(settings.issuers).length + 4);

  const profile = printable(name);
  const log = isCheck ? openReport(loaded, profile) : createProcessLog(settings.logLevel);
  for (const setting of warnings) log('unknown setting ignored', { setting: printableSetting(setting) });

  const metrics = settings.metricsPort === undefined ? undefined : createMetrics(profile);
  const service = createListeningService(routes, settings, { clock, log, metrics });
  if (isCheck) return fetchOnce();

  /** A fetch that fails while others are awaited is not made again. */
  function fetchOnce() {
    for (const { keys } of service.issuers) void keys.refresh().then(keys.close);
  }

  function onFailure(failure: { host?: string; port?: number; code?: unknown }) {
    const { host = 'all addresses', port, code } = failure;
    if (port === undefined) throw failure;

    log('cannot listen', {
      address: printableSetting(host),
      port,
      code: printable(String(code)),
    });
    console.error(`cannot listen: ${host}, port ${port} (${code})`);
    process.exit(2);
  }

  function end(reason: 'drained' | 'deadline' | 'second-signal') {
    service.close();
    log('stopped', { reason });
    process.exit(reason === 'second-signal' ? 1 : 0);
  }

  function onSignal(signal: 'SIGTERM' | 'SIGINT') {
    if (service.phase.isStopping) return end('second-signal');

    const delayMillis = settings.shutdownDelaySeconds * 1000;
    const drain = async () => end(await service.stop());
    service.phase.isStopping = true;
    log('shutting down', { reason: signal });
    if (delayMillis > 0) setTimeout(drain, delayMillis);
    else void drain();
  }

  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  service.listen().then(({ address, ...ports }) => {
    log('listening', { ...ports, address: printable(address), profile, ...inForce(loaded) });
    // Choice: Node would end the process, and every request under way with it, for one handler's forgotten
    // promise.
    process.on('uncaughtException', (failure) => log('unforeseen failure', describeBug(failure)));
    // Loading TLS holds up the process for a moment, for which the first answers need not wait.
    clock.after(20, service.fetchKeys);
  }, onFailure);
}
