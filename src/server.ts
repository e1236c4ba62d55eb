// The door: the process, its signals and exit codes. The only reader of process and of the clock. Exit codes:
// 0 after a signal, 1 for configuration or a second signal, 2 when the address or port cannot be had.
// Promises: once it listens, nothing but a signal ends the process, whatever a handler leaves behind.
import { assemble } from './service/assemble.ts';
import { loadProfileSettings } from './profiles/settings.ts';
import { tableOf } from './profiles/tables.ts';
import { createKeyFetcher } from './keys/fetch.ts';
import { createListener, type Listener } from './service/listener.ts';
import { undefinedOn } from './base/encoding.ts';
import { createLog, describeBug, printable, printableSetting, type Log } from './base/events.ts';
import { ConfigurationError } from './settings/load.ts';

function after(millis: number, action: () => void): () => void {
  const timer = setTimeout(action, millis).unref();
  return () => clearTimeout(timer);
}

type Loaded = ReturnType<typeof loadProfileSettings>;

const clock = { now: Date.now, monotonic: () => performance.now(), after };

function start(loaded: Loaded): void {
  const { settings, warnings } = loaded;
  const log = openLog(settings);
  for (const setting of warnings) log('unknown setting ignored', { setting: printableSetting(setting) });

  let isStopping = false;
  const { pipeline, keys, observer } = assemble(tableOf(settings), settings, {
    clock,
    log,
    fetchKeys: createKeyFetcher(settings),
    isStopping: () => isStopping,
  });
  const listener = createListener(pipeline, clock);

  listen(listener, loaded, log, () => {
    // Choice: Node would end the process, and every request under way with it, for one handler's forgotten
    // promise.
    process.on('uncaughtException', (failure) => log('unforeseen failure', describeBug(failure)));
    // Loading TLS holds up the process for a moment, for which the first answers need not wait.
    clock.after(20, () => void keys.refresh());
  });

  function end(reason: 'drained' | 'deadline' | 'second-signal'): void {
    observer.stop();
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

function openLog({ logLevel }: Loaded['settings']): Log {
  const { stdout } = process;
  // A reader that goes away takes the log with it, not the service.
  stdout.on('error', () => {});
  const write = (line: string) => stdout.write(line);
  return createLog(logLevel, write, clock.now, () => stdout.writableLength);
}

function listen({ server }: Listener, loaded: Loaded, log: Log, onListening: () => void): void {
  const { settings } = loaded;

  function onFailure(error: NodeJS.ErrnoException): void {
    const { host: address = 'all addresses', port } = settings;
    const code = String(error.code);
    log('address or port cannot be had', { address: printableSetting(address), port, code: printable(code) });
    process.stderr.write(`address or port cannot be had: ${address}, port ${port} (${code})\n`);
    process.exit(2);
  }

  server.on('error', onFailure);
  server.listen({ port: settings.port, host: settings.host }, () => {
    server.off('error', onFailure);
    const { port, address } = server.address() as { port: number; address: string };
    log('listening', { port, address: printable(address), ...inForce(loaded) });
    onListening();
  });
}

/** What an operator compares with what was meant. No secret is among it. */
function inForce({ settings, files }: Loaded) {
  return {
    profile: printable(settings.profile),
    application: printableSetting(settings.applicationName),
    issuers: [printableSetting(settings.issuer)],
    audiences: [printableSetting(settings.audience)],
    dpopMode: printable(settings.dpopMode),
    replayStore: printable('process'),
    crossOrigin: settings.corsAllowedOrigins.length > 0,
    files: files.map(printableSetting),
  };
}

try {
  // Throws for a directory that has been removed.
  const directory = undefinedOn(Error, process.cwd);
  if (directory === undefined) throw new ConfigurationError(['working directory: is gone; start in another']);

  start(loadProfileSettings(process.env, directory));
} catch (failure) {
  if (!(failure instanceof ConfigurationError)) throw failure;

  for (const problem of failure.problems) process.stderr.write(`configuration: ${problem}\n`);
  process.exit(1);
}
