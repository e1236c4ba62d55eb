/*
 * `npm run demo`, `npm run demo -- A`, `npm run demo -- B`: the built service in front of the development
 * provider on loopback, with lines to paste; `npm run demo -- replicas`: three of it. Stays up until a signal,
 * then ends all that it started. Exit codes: 0 after a signal, 1 for a bad argument or when a service ends by
 * itself.
 */
import { styleText } from 'node:util';
import { freePort } from '../support/free-port.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { TOKEN_LIFETIME_HOURS } from './clients.ts';
import type { Block, Script } from './examples.ts';
import { profileA } from './profile-a.ts';
import { profileB } from './profile-b.ts';
import { runReplicas } from './replicas.ts';
import { startService, type LogLine } from './service.ts';

const USAGE = `usage: npm run demo [-- A | -- B | -- replicas]

  A          the small API: public, private, profile, and the scope policy
  B          the larger API: scopes, claims and optional authentication (default)
  replicas   three of B with DPoP and the store that they share; needs redis-server or valkey-server
`;

const SCRIPTS: Readonly<Record<string, Script>> = { A: profileA, B: profileB };

const hasColours = process.stdout.isTTY && process.stdout.hasColors();

const style = (format: 'bold' | 'dim', text: string) => (hasColours ? styleText(format, text) : text);

const heading = (text: string) => style('bold', text);

const print = (text: string) => void process.stdout.write(`${text}\n`);

async function main([profile = 'B', ...others]: readonly string[]): Promise<number> {
  const name = profile.toUpperCase();
  const script = Object.hasOwn(SCRIPTS, name) ? SCRIPTS[name] : undefined;
  if (others.length === 0) {
    if (script !== undefined) return run(name, script, listenForEnd());
    if (name === 'REPLICAS') return runReplicas(listenForEnd(), { print, describe, heading });
  }

  process.stderr.write(USAGE);
  return 1;
}

/** Aborted by whatever ends the demo. */
function listenForEnd(): AbortController {
  const ending = new AbortController();
  // Signals are never counted: on Ctrl-C the terminal sends one to the group, and npm sends its own after it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ending.abort());
  process.stdout.on('error', () => ending.abort());
  return ending;
}

async function run(
  profile: string,
  { clients, port, settings, sections }: Script,
  ending: AbortController,
): Promise<number> {
  const provider = await startProvider({ clients, host: '127.0.0.1' });
  try {
    let isShown = false;

    const log = (line: LogLine) => {
      if (isShown || line.level !== 'info') print(style('dim', describe(line)));
    };

    const environmentAt = (chosen: number) => ({
      ...settings(originAt(chosen)),
      ...serviceSettings(profile, provider),
      PORT: String(chosen),
    });

    // It must know its own URL before it listens.
    const elsewhere = async () => environmentAt(await freePort());
    const service = await startService(environmentAt(port), ending.signal, log, elsewhere);
    try {
      if (service.port !== undefined) {
        const origin = originAt(service.port);
        const blocks = await Promise.all(sections.map((section) => section({ provider, clients, origin })));
        print(header(profile, origin, service.processId, provider));
        for (const block of blocks.flat()) print(render(block));
        print(style('bold', 'Everything is up. Ctrl-C ends it. What the service logs from now on:'));
        isShown = true;
        await service.exited;
      }
      if (ending.signal.aborted) return 0;
      process.stderr.write(`The service has ended by itself (${await service.exited}).\n`);
      return 1;
    } finally {
      ending.abort();
      await service.exited;
    }
  } finally {
    await provider.stop();
  }
}

const originAt = (port: number) => `http://127.0.0.1:${port}`;

const serviceSettings = (profile: string, { domain, audience, authorityFile }: Provider) => ({
  PROFILE: profile,
  IDP_DOMAIN: domain,
  IDP_AUDIENCE: audience,
  NODE_EXTRA_CA_CERTS: authorityFile,
  HOST: '127.0.0.1',
  // Says why a request was refused.
  LOG_LEVEL: 'debug',
});

const header = (profile: string, origin: string, processId: number | undefined, { issuer }: Provider) => `
${style('bold', `gatehouse, profile ${profile}`)}

  service    ${origin} (process ${processId})
  provider   ${issuer}

Each line that begins with curl or node can be pasted into another terminal, now and for ${TOKEN_LIFETIME_HOURS} hours.
The answer to expect stands under it.
`;

/** True when that is all of the body, not only its beginning. */
function isWhole(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch (failure) {
    if (!(failure instanceof SyntaxError)) throw failure;
    return false;
  }
}

/** The heading, the line to paste alone on its line, and the answer. */
function render({ route, status, why, line, body }: Block): string {
  const answer = `# ${status} ${body}${isWhole(body) ? '' : ' ...'}`;
  return `${style('bold', `${route} -> ${status}`)}  ${why}\n${line}\n${style('dim', answer)}\n`;
}

function describe({ level, message, fields }: LogLine): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  return `${level}: ${message}${Object.entries(fields)
    .map(([name, value]) => ` ${name}=${text(value)}`)
    .join('')}`;
}

const exitCode = await main(process.argv.slice(2));
// A process that ends by itself first gives up its handlers, and then one more Ctrl-C decides the exit code.
process.stdout.write('', () => process.exit(exitCode));
