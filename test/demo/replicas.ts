/*
 * `npm run demo -- replicas`: three replicas of the built service, the store that they share and the
 * development provider, side by side on loopback; and one proof that is used at all three at once.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startProvider, type Provider } from '../idp/provider.ts';
import { NO_STORE, startRedis, type Redis } from '../support/redis.ts';
import { makeClients } from './clients.ts';
import { shellLine, tokenSettings } from './lines.ts';
import { startService, type LogLine, type RunningService } from './service.ts';

const PROGRAM = fileURLToPath(new URL('dpop-call.mjs', import.meta.url));

/** What callers see in front of all replicas, and what their proofs name. */
const PUBLIC_URL = 'https://api.example.test';
const REPLICAS = 3;

const [ALICE] = makeClients({ alice: {} });

export interface Printer {
  readonly print: (text: string) => void;
  readonly heading: (text: string) => string;
  readonly describe: (line: LogLine) => string;
}

/** Stays up until `ending` is aborted; gives the exit code. */
export async function runReplicas(ending: AbortController, printer: Printer): Promise<number> {
  if (NO_STORE !== undefined) {
    process.stderr.write(
      `The replicas need a store, and ${NO_STORE} (Debian: apt-get install redis-server).\n`,
    );
    return 1;
  }

  const provider = await startProvider({ clients: [ALICE!], host: '127.0.0.1' });
  const store = await startRedis();
  try {
    return await runBeside(provider, store, ending, printer);
  } finally {
    await store.stop();
    await provider.stop();
  }
}

async function runBeside(
  provider: Provider,
  store: Redis,
  ending: AbortController,
  { print, heading, describe }: Printer,
): Promise<number> {
  let isShown = false;
  const started = Array.from({ length: REPLICAS }, (_, index) =>
    startReplica(provider, store, ending.signal, (line) => {
      if (isShown || line.level !== 'info') print(`replica ${index + 1}: ${describe(line)}`);
    }),
  );
  const services = await Promise.all(started);
  const exited = services.map((service) => service.exited);
  try {
    const origins = services.flatMap(({ port }) => (port === undefined ? [] : [`http://127.0.0.1:${port}`]));
    if (origins.length === REPLICAS) {
      print(header(services, store, provider, heading));
      const words = [PROGRAM, '--everywhere', `${PUBLIC_URL}/api/private`, ...origins];
      const env = tokenSettings(provider, ALICE!);
      const { stdout } = await promisify(execFile)(process.execPath, words, { env });
      const line = [
        ...Object.entries(env).map(([name, value]) => assignment(name, value)),
        shellLine('node', ...words),
      ];
      print(`${heading('One proof, used at all three at once')}\n${line.join(' ')}\n${stdout}`);
      print(heading('Everything is up. Ctrl-C ends it. What the replicas log from now on:'));
      isShown = true;
      await Promise.race(exited);
    }
    if (ending.signal.aborted) return 0;

    process.stderr.write(`A replica has ended by itself (${await Promise.race(exited)}).\n`);
    return 1;
  } finally {
    ending.abort();
    await Promise.all(exited);
  }
}

/** Resolves when it holds the keys and knows its store, or is gone. */
async function startReplica(
  { domain, audience, authorityFile }: Provider,
  store: Redis,
  ending: AbortSignal,
  log: (line: LogLine) => void,
): Promise<RunningService> {
  let heard = () => {};
  const greeted = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const environment = {
    IDP_DOMAIN: domain,
    IDP_AUDIENCE: audience,
    NODE_EXTRA_CA_CERTS: authorityFile,
    HOST: '127.0.0.1',
    PORT: '0',
    PUBLIC_URL,
    IDP_DPOP_MODE: 'ALLOWED',
    IDP_DPOP_REPLAY_STORE: `redis://127.0.0.1:${store.port}`,
    LOG_LEVEL: 'debug',
  };
  const service = await startService(environment, ending, (line) => {
    if (line.message.startsWith('replay store')) heard();
    log(line);
  });
  await Promise.race([greeted, service.exited]);
  return service;
}

const assignment = (name: string, value: string) => `${name}=${shellLine(value)}`;

function header(
  services: readonly RunningService[],
  store: Redis,
  { issuer }: Provider,
  heading: Printer['heading'],
): string {
  const replicas = services.map(
    ({ port, processId }, index) => `  replica ${index + 1}  http://127.0.0.1:${port} (process ${processId})`,
  );
  return `
${heading(`gatehouse, profile B with DPoP, ${services.length} replicas`)}

${replicas.join('\n')}
  store      redis://127.0.0.1:${store.port} (process ${store.pid()})
  provider   ${issuer}

The line below can be pasted into another terminal. Stop the store (kill -STOP ${store.pid()}) and
paste it again: every use is 503 and none is admitted, until it goes on (kill -CONT ${store.pid()}).
`;
}
