// The door: the process, its signals and exit codes. The only reader of process and of the clock.
// Exit codes: 0 after a signal, 1 for configuration or a second signal, 2 when the address or port cannot be had.
import { assemble } from './service/assemble.ts';
import { tableOf } from './profiles/tables.ts';
import { createKeyFetcher } from './keys/fetch.ts';
import { createListener } from './service/listener.ts';
import { createLog, printable } from './base/events.ts';
import { ConfigurationError, loadSettings } from './settings/load.ts';

function after(millis: number, action: () => void) {
  const timer = setTimeout(action, millis).unref();
  return () => clearTimeout(timer);
}
const clock = { now: Date.now, monotonic: () => performance.now(), after };
function start({ settings, unknown }: ReturnType<typeof loadSettings>): void {
  // A reader of the logs that goes away takes the logs with it, not the service.
  process.stdout.on('error', () => {});
  const log = createLog(settings.logLevel, (line) => process.stdout.write(line), clock.now);
  for (const name of unknown) log('unknown setting ignored', { setting: printable(name) });
  let isStopping = false;
  const { pipeline, keys } = assemble(tableOf(settings), settings, {
    clock,
    log,
    fetchKeys: createKeyFetcher(settings),
    isStopping: () => isStopping,
  });
  const { server, stop } = createListener(pipeline, clock.now);
  server.on('error', (error: NodeJS.ErrnoException) => {
    log('address or port cannot be had', { code: printable(error.code ?? '') });
    process.exit(2);
  });
  server.listen({ port: settings.port, host: settings.host }, () => {
    const { port, address } = server.address() as { port: number; address: string };
    const [profile, application] = [printable(settings.profile), printable(settings.applicationName)];
    log('listening', { port, address: printable(address), profile, application });
    // Loading TLS holds up the process for a moment, for which the first answers need not wait.
    clock.after(20, () => void keys.refresh());
  });
  const onSignal = (signal: 'SIGTERM' | 'SIGINT') => {
    if (isStopping) {
      log('stopped', { reason: 'second-signal' });
      process.exit(1);
    }
    isStopping = true;
    log('shutting down', { reason: signal });
    setTimeout(async () => {
      log('stopped', { reason: await stop() });
      process.exit(0);
    }, settings.shutdownDelaySeconds * 1000);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
}
try {
  start(loadSettings(process.env, process.cwd()));
} catch (failure) {
  if (!(failure instanceof ConfigurationError)) throw failure;
  process.stderr.write(failure.problems.map((problem) => `configuration: ${problem}\n`).join(''));
  process.exit(1);
}
