/* The processor time of a subrequest of the proxy, compared with the same request to a service whose route
   returns `{}`. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Provider } from '../../idp/provider.ts';
import { providerSettings, type TestProcess } from '../../support/process.ts';
import { writePrograms } from './processes.ts';

const CONNECTIONS = 16;

/** As curl and nginx send them. */
const COMMON = [
  'User-Agent: curl/8.5.0',
  'Accept: */*',
  'Accept-Encoding: gzip, deflate, br',
  'X-Request-Id: 5c1f6a0e8d',
];

const FORWARDED = [
  ...['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /orders/7?page=2'],
  ...['X-Forwarded-Proto: https', 'X-Forwarded-Host: api.example.com'],
];

const ROUTE = (handler: string) =>
  `{ routes: [get('/orders/{id}', needs(scope('read:orders')), ${handler})] }`;

/** Ticks of the processor, a hundredth of a second each, since the process began. */
function processorTicks({ child }: TestProcess): number {
  const words = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(words[11]) + Number(words[12]);
}

/** Sends the request over and over, one at a time on each connection. Throws for a status other than 200. */
function load(port: number, bytes: string, count: number): Promise<void> {
  let sent = 0;
  let done = 0;

  return new Promise((resolve, reject) => {
    const open = () => {
      const socket = connect(port, '127.0.0.1');

      const next = () => {
        if (sent >= count) return;

        sent += 1;
        socket.write(bytes);
      };

      socket.on('connect', next).on('error', reject);
      socket.on('data', (chunk) => {
        // One response is one read: it is short and written at once.
        if (chunk.toString('latin1', 0, 12) !== 'HTTP/1.1 200') reject(new Error(chunk.toString('latin1')));
        done += 1;
        if (done >= count) resolve();
        if (sent >= count) socket.end();
        else next();
      });
    };

    for (let each = 0; each < CONNECTIONS; each += 1) open();
  });
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

/** Takes turns, so that other load on the machine affects both. */
export async function measurePrice(provider: Provider, rounds: number, requests: number) {
  const programs = writePrograms({
    policy: `runForwardAuth(${ROUTE('upstream')});`,
    service: `runService(${ROUTE('() => ({})')});`,
  });
  const environment = {
    ...providerSettings(provider),
    HOST: '127.0.0.1',
    PORT: '0',
    IDP_DPOP_MODE: 'ALLOWED',
  };
  const [policy, service] = await Promise.all(
    ['policy', 'service'].map((name) => programs.start(name, environment)),
  );
  const authorization = `Authorization: Bearer ${provider.issue({ scope: 'read:orders' })}`;

  const bytesOf = (line: string, fields: readonly string[]) =>
    [`${line} HTTP/1.1`, 'Host: api.example.com', authorization, ...COMMON, ...fields, '', ''].join('\r\n');

  const sides = [
    { of: policy!, bytes: bytesOf('HEAD /forward-auth', FORWARDED), micros: [] as number[] },
    { of: service!, bytes: bytesOf('GET /orders/7?page=2', FORWARDED), micros: [] as number[] },
  ];
  try {
    for (const { of, bytes } of sides) await load(of.port, bytes, requests);
    for (let round = 0; round < rounds; round += 1) {
      for (const { of, bytes, micros } of round % 2 === 0 ? sides : sides.toReversed()) {
        const before = processorTicks(of);
        await load(of.port, bytes, requests);
        micros.push(((processorTicks(of) - before) * 10_000) / requests);
      }
    }
  } finally {
    await Promise.all(sides.map(({ of }) => of.stop()));
    programs.remove();
  }

  const [question = [], request = []] = sides.map(({ micros }) => micros);
  // Ticks are coarse: only sums over all rounds are compared.
  const asked = sumOf(question);
  const sent = sumOf(request);
  return { question: asked / rounds, request: sent / rounds, ratio: asked / sent };
}
