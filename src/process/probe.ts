// `--probe`, for images without curl: asks whether the configured service is ready. Promises: ends within
// five seconds, with exit code 0 only for the response that gatehouse itself gives when it is ready.
import { get } from 'node:http';
import type { Settings } from '../settings/load-settings.ts';
import { codeOf } from '../verify/base/encoding.ts';

const PROBE_MILLIS = 5_000;

/** What `/readyz` of a service that is ready says. */
const READY = '{"status":"ready"}';

const OTHER_PROCESS = 'but not from gatehouse; check which process listens there, and PORT and HOST';
const NOT_READY = 'it has no usable keys, or is stopping; see its log';
const UNREACHABLE = 'check that the service runs, and PORT and HOST';

/** Prints the address and the outcome, and ends the process. */
export function probe({ host = '127.0.0.1', port }: Settings) {
  // RFC 3986 §3.2.2: brackets around IPv6.
  const address = `http://${host.replace(/.*:.*/, '[$&]')}:${port}/readyz`;

  const end = (outcome: unknown, isReady = false) => {
    console.log(`${address}: ${outcome}`);
    process.exit(isReady ? 0 : 1);
  };

  setTimeout(end, PROBE_MILLIS, 'no response in time');
  // RFC 9110 §7.2: some listening addresses are not valid in a Host field.
  const options = { host, port, path: '/readyz', headers: { Host: 'localhost' }, agent: false };
  const asked = get(options, (response) => {
    const { statusCode } = response;
    let text = '';
    response.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      if (text.length > 1_000) response.destroy();
    });

    response.on('close', () => {
      if (statusCode === 200 && text === READY) end(statusCode, true);

      const isOurs = statusCode === 503 && text.includes('"temporarily_unavailable"');
      end(`${statusCode}, ${isOurs ? NOT_READY : OTHER_PROCESS}`);
    });
  });
  asked.on('error', (error) => end(`no response (${codeOf(error)}); ${UNREACHABLE}`));
}
