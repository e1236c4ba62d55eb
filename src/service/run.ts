// The whole of a process that is a service: its environment, working directory, signals and exit codes. Exit
// codes: 0 after a signal, 1 for configuration or a second signal, 2 when the address or port cannot be had.
// Promises: once it listens, nothing but a signal ends the process, whatever a handler leaves behind.
import type { AddressInfo } from 'node:net';
import { undefinedOn } from '../base/encoding.ts';
import { describeBug, printable, printableSetting, type Log, type Printable } from '../base/events.ts';
import type { Table } from '../routes/row.ts';
import { ConfigurationError, loadSettings, type Loaded, type Settings } from '../settings/load.ts';
import { assembleChecks, assembleResponder } from './assemble.ts';
import { clock, openLog } from './host.ts';
import { createListener } from './listener.ts';
import { createMetricsListener, listenBoth, type ListenFailure } from './metrics-listener.ts';
import { createMetrics } from './metrics.ts';
import { probe } from './probe.ts';

/**
 * Runs a table as the whole service: settings from their sources, a listener, signals, exit codes. Ends the
 * process when the configuration or the table is wrong, with every problem on standard error.
 *
 * @example runService({ rows: [get('/api/orders', needs(scope('read:orders')), listOrders)] });
 */
export const runService = (table: Table): void =>
  runWith(
    loadSettings,
    () => table,
    () => 'own table',
  );

/** The same for settings of more than the service's own, which choose the table. */
export function runWith<Known extends Settings>(
  load: (...given: Parameters<typeof loadSettings>) => Loaded<Known>,
  tableOf: (settings: Known) => Table,
  nameOf: (settings: Known) => string,
): void {
  const word = process.argv.slice(2).join(' ');
  const isKnown = /^(--check|--probe|)$/.test(word);
  const problems = isKnown ? [] : ['arguments: must be none, or --check, or --probe'];

  try {
    const loaded = load(process.env, workingDirectory());
    const { settings } = loaded;
    if (word === '--probe') probe(settings);
    else if (isKnown) start(loaded, tableOf(settings), printable(nameOf(settings)), word === '--check');
  } catch (failure) {
    if (!(failure instanceof ConfigurationError)) throw failure;
    problems.push(...failure.problems);
  }

  for (const problem of problems) console.error(`configuration: ${problem}`);
  if (problems.length > 0) process.exit(1);
}

function workingDirectory() {
  // Throws for a directory that has been removed.
  const directory = undefinedOn(Error, process.cwd);
  if (directory !== undefined) return directory;

  throw new ConfigurationError(['working directory: is gone; start in another']);
}

/**
 * A log for a start that listens on nothing: ends the process once the keys and the store have been heard of,
 * and tells in the words of the log what it would run with, or what is wrong.
 */
function openReport(loaded: Loaded<Settings>, profile: Printable): Log {
  const events: object[] = [];
  const { issuers, dpopReplayStore } = loaded.settings;
  const awaited = Object.keys(issuers).length + (dpopReplayStore === undefined ? 0 : 1);
  /** The names of issuers, and nothing for the store; what has failed may be heard of again. */
  const heard = new Set<unknown>();
  // Nothing of a store keeps a process alive.
  setInterval(() => {}, 1_000);

  return (event, fields) => {
    events.push({ event, ...fields });
    if (/fetched$|lost$/.test(event)) {
      console.error(`${event}: ${JSON.stringify(fields)}`);
      process.exitCode = 1;
    } else if (!/loaded$|ready$/.test(event)) return;

    heard.add(fields.issuer);
    if (heard.size < awaited) return;

    const report = { profile, ...inForce(loaded), events };
    if (process.exitCode === undefined) console.log(JSON.stringify(report, undefined, 2));
    process.exit();
  };
}

function start(loaded: Loaded<Settings>, table: Table, profile: Printable, isCheck: boolean): void {
  const { settings } = loaded;
  const { metricsPort, shutdownDelaySeconds } = settings;
  const log = isCheck ? openReport(loaded, profile) : openLog(settings.logLevel);
  warn(log, loaded);
  let isStopping = false;
  const metrics = metricsPort === undefined ? undefined : createMetrics();
  const checks = assembleChecks(settings, { clock, log, metrics });
  const responder = assembleResponder(table, settings, checks, () => isStopping);
  if (isCheck) return checks.fetchKeys();

  const { server, stop } = createListener(responder, clock);
  const collected = createMetricsListener(() => checks.metricsText(profile), clock);

  function onFailure(failure: ListenFailure) {
    const { host: address = 'all addresses', port: taken, code } = failure;
    if (taken === undefined) throw failure;

    log('address or port cannot be had', {
      address: printableSetting(address),
      port: taken,
      code: printable(String(code)),
    });
    console.error(`address or port cannot be had: ${address}, port ${taken} (${code})`);
    process.exit(2);
  }

  function onListening() {
    const bound = server.address() as AddressInfo;
    const ports = { port: bound.port, metricsPort: (collected.address() as AddressInfo | null)?.port };
    log('listening', { ...ports, address: printable(bound.address), profile, ...inForce(loaded) });
    // Choice: Node would end the process, and every request under way with it, for one handler's forgotten
    // promise.
    process.on('uncaughtException', (failure) => log('unforeseen failure', describeBug(failure)));
    // Loading TLS holds up the process for a moment, for which the first answers need not wait.
    clock.after(20, checks.fetchKeys);
  }

  function end(reason: 'drained' | 'deadline' | 'second-signal') {
    checks.close();
    log('stopped', { reason });
    process.exit(reason === 'second-signal' ? 1 : 0);
  }

  function onSignal(signal: 'SIGTERM' | 'SIGINT') {
    if (isStopping) return end('second-signal');

    isStopping = true;
    log('shutting down', { reason: signal });
    setTimeout(async () => end(await stop()), shutdownDelaySeconds * 1000);
  }

  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  listenBoth(settings, server, collected).then(onListening, onFailure);
}

/** Of what is set and is no setting. */
function warn(log: Log, { warnings }: Loaded<Settings>) {
  for (const setting of warnings) log('unknown setting ignored', { setting: printableSetting(setting) });
}

/** What an operator compares with what was meant. No secret is among it. */
function inForce({ settings, files }: Loaded<Settings>) {
  const issuers = Object.values(settings.issuers);
  return {
    application: printableSetting(settings.applicationName),
    issuers: issuers.map(({ issuer }) => printableSetting(issuer)),
    audiences: issuers.flatMap(({ audience }) => audience.map(printableSetting)),
    dpopMode: printable(settings.dpopMode),
    replayStore: printable(settings.dpopReplayStore === undefined ? 'process' : 'shared'),
    crossOrigin: settings.corsAllowedOrigins.length > 0,
    files: files.map(printableSetting),
  };
}
