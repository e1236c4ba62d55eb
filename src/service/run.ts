// The whole of a process that is a service: its environment, working directory, signals and exit codes. Exit
// codes: 0 after a signal, 1 for configuration or a second signal, 2 when the address or port cannot be had.
// Promises: once it listens, nothing but a signal ends the process, whatever a handler leaves behind.
import type { AddressInfo } from 'node:net';
import { undefinedOn } from '../base/encoding.ts';
import { describeBug, printable, printableSetting, type Log, type Printable } from '../base/events.ts';
import { createKeyFetcher } from '../keys/fetch.ts';
import type { Table } from '../routes/row.ts';
import { ConfigurationError, loadSettings, type Loaded, type Settings } from '../settings/load.ts';
import type { Environment } from '../settings/sources.ts';
import { assembleChecks, assembleResponder } from './assemble.ts';
import { clock, openLog } from './host.ts';
import { createListener, type Listener } from './listener.ts';

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
  load: (environment: Environment, directory: string) => Loaded<Known>,
  tableOf: (settings: Known) => Table,
  nameOf: (settings: Known) => string,
): void {
  try {
    // Throws for a directory that has been removed.
    const directory = undefinedOn(Error, process.cwd);
    if (directory === undefined)
      throw new ConfigurationError(['working directory: is gone; start in another']);

    const loaded = load(process.env, directory);
    start(loaded, tableOf(loaded.settings), nameOf(loaded.settings));
  } catch (failure) {
    if (!(failure instanceof ConfigurationError)) throw failure;

    for (const problem of failure.problems) process.stderr.write(`configuration: ${problem}\n`);
    process.exit(1);
  }
}

function start(loaded: Loaded<Settings>, table: Table, profile: string): void {
  const { settings, warnings } = loaded;
  const log = openLog(settings.logLevel);
  for (const setting of warnings) log('unknown setting ignored', { setting: printableSetting(setting) });

  let isStopping = false;
  const checks = assembleChecks(settings, { clock, log, fetchKeys: createKeyFetcher(settings) });
  const responder = assembleResponder(table, settings, checks, clock, () => isStopping);
  const listener = createListener(responder, clock);

  listen(listener, loaded, log, printable(profile), () => {
    // Choice: Node would end the process, and every request under way with it, for one handler's forgotten
    // promise.
    process.on('uncaughtException', (failure) => log('unforeseen failure', describeBug(failure)));
    // Loading TLS holds up the process for a moment, for which the first answers need not wait.
    clock.after(20, () => void checks.keys.refresh());
  });

  function end(reason: 'drained' | 'deadline' | 'second-signal'): void {
    checks.close();
    log('stopped', { reason });
    process.exit(reason === 'second-signal' ? 1 : 0);
  }

  function onSignal(signal: 'SIGTERM' | 'SIGINT'): void {
    if (isStopping) return end('second-signal');

    isStopping = true;
    log('shutting down', { reason: signal });
    setTimeout(async () => end(await listener.stop()), settings.shutdownDelaySeconds * 1000);
  }

  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}

function listen(
  { server }: Listener,
  loaded: Loaded<Settings>,
  log: Log,
  profile: Printable,
  onListening: () => void,
): void {
  const { host, port } = loaded.settings;

  function onFailure(error: NodeJS.ErrnoException): void {
    const code = String(error.code);
    const address = host ?? 'all addresses';
    log('address or port cannot be had', { address: printableSetting(address), port, code: printable(code) });
    process.stderr.write(`address or port cannot be had: ${address}, port ${port} (${code})\n`);
    process.exit(2);
  }

  server.on('error', onFailure);
  server.listen({ port, host }, () => {
    server.off('error', onFailure);
    const bound = server.address() as AddressInfo;
    log('listening', { port: bound.port, address: printable(bound.address), profile, ...inForce(loaded) });
    onListening();
  });
}

/** What an operator compares with what was meant. No secret is among it. */
function inForce({ settings, files }: Loaded<Settings>) {
  return {
    application: printableSetting(settings.applicationName),
    issuers: [printableSetting(settings.issuer)],
    audiences: [printableSetting(settings.audience)],
    dpopMode: printable(settings.dpopMode),
    replayStore: printable(settings.dpopReplayStore === undefined ? 'process' : 'shared'),
    crossOrigin: settings.corsAllowedOrigins.length > 0,
    files: files.map(printableSetting),
  };
}
