// `--probe`, for images without curl: asks whether the configured service is ready. Promises: ends within
// five seconds, with exit code 0 only for status 200.
import { get } from 'node:http';
import type { Settings } from '../settings/service-settings.ts';

const PROBE_MILLIS = 5_000;

/** Prints the outcome and ends the process. */
export function probe({ host = '127.0.0.1', port }: Settings) {
  const end = (outcome: unknown) => {
    console.log(`/readyz: ${outcome}`);
    process.exit(outcome === 200 ? 0 : 1);
  };

  setTimeout(end, PROBE_MILLIS, 'no response in time');
  // RFC 9110 §7.2: some listening addresses are not valid in a Host field.
  const headers = { Host: 'localhost' };
  const options = { host, port, path: '/readyz', headers, agent: false };
  get(options, ({ statusCode }) => end(statusCode)).on('error', end);
}
