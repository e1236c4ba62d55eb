// `--probe`: whether the service that the settings describe is ready, for images and units that hold no
// other program that could ask. Promises: it ends within five seconds, and only a ready service makes the
// exit code 0. Does not look at the answer beyond its status.
import { get } from 'node:http';
import { ConfigurationError, type Settings } from './settings/load.ts';

const PROBE_MILLIS = 5_000;

/** Asks `/readyz`, says what came of it, and ends the process. Throws `ConfigurationError`. */
export function probe({ host = '127.0.0.1', port }: Settings) {
  if (port === 0) throw new ConfigurationError(['PORT or server.port: 0 is unknown to --probe; set one']);

  const end = (outcome: unknown) => {
    console.log(`/readyz: ${outcome}`);
    process.exit(outcome === 200 ? 0 : 1);
  };

  setTimeout(end, PROBE_MILLIS, 'no answer in time');
  // RFC 9110 §7.2: not every address to listen on can stand in a Host field.
  const headers = { Host: 'localhost' };
  const options = { host, port, path: '/readyz', headers, agent: false };
  get(options, ({ statusCode }) => end(statusCode)).on('error', end);
}
