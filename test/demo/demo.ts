/*
 * `npm run demo`, `npm run demo -- A`, `npm run demo -- B`: the built service in front of the development
 * provider on loopback, with lines to paste. `npm run demo -- replicas`: three such services.
 * `npm run demo -- forward`: nginx in front of a server in Python, with gatehouse beside it. Stays up until a
 * signal, then ends all that it started. Exit codes: 0 after a signal, 1 for a bad argument or when a service
 * ends by itself.
 */
import { styleText } from 'node:util';
import { freePort } from '../support/free-port.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { fetchTokens, TOKEN_LIFETIME_HOURS } from './clients.ts';
import { examplesOf, type Line, type Script } from './examples.ts';
import { lineOf, writeVariables, type Variables } from './lines.ts';
import { profileA } from './profile-a.ts';
import { profileB } from './profile-b.ts';
import { runForward } from './forward.ts';
import { runReplicas } from './replicas.ts';
import { startService, type Environment, type LogLine, type RunningService } from './service.ts';
import { startWeb, type Web } from './web.ts';

const USAGE = `usage: npm run demo [-- A | -- B | -- replicas | -- forward]

  A          the small API: public, private, profile, and the scope policy
  B          the larger API: scopes, claims and optional authentication, here with DPoP (default)
  replicas   three of B with DPoP and the store that they share; needs redis-server or valkey-server
  forward    nginx in front of a server in Python, gatehouse beside it; needs nginx and python3
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
    if (name === 'FORWARD') return runForward(listenForEnd(), { print, describe, heading });
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

async function run(profile: string, script: Script, ending: AbortController): Promise<number> {
  const provider = await startProvider({ clients: script.clients, host: '127.0.0.1' });
  const web = await startWeb();
  try {
    return await runBeside({ provider, web }, profile, script, ending);
  } finally {
    web.stop();
    await provider.stop();
  }
}

interface Around {
  readonly provider: Provider;
  readonly web: Web;
}

async function runBeside(
  around: Around,
  profile: string,
  script: Script,
  ending: AbortController,
): Promise<number> {
  let isShown = false;

  const log = (line: LogLine) => {
    if (isShown || line.level !== 'info') print(style('dim', describe(line)));
  };

  // It must know its own URL before it listens.
  const environmentAt = (port: number) => environmentOf(around, profile, script, port);
  const elsewhere = async () => environmentAt(await freePort());
  const service = await startService(environmentAt(script.port), ending.signal, log, elsewhere);
  try {
    if (service.port !== undefined) {
      const variables = await show(around, profile, script, service);
      isShown = true;
      await service.exited;
      variables.remove();
    }
    if (ending.signal.aborted) return 0;
    process.stderr.write(`The service has ended by itself (${await service.exited}).\n`);
    return 1;
  } finally {
    ending.abort();
    await service.exited;
  }
}

/** Gets the tokens, and shows the calls on the terminal and on the page. */
async function show(
  { provider, web }: Around,
  profile: string,
  { clients, user, groups, lines }: Script,
  { port = 0, processId }: RunningService,
): Promise<Variables> {
  const origin = originAt(port);
  const tokens = await fetchTokens(provider, clients);
  web.show({ profile, origin, provider, clients, tokens, groups });
  const client = clients.find(({ id }) => id === user)!;
  const variables = writeVariables({ provider, origin, webOrigin: web.origin, user: client, tokens });
  print(header(profile, origin, processId, provider.issuer));
  print(
    `In a browser: ${style('bold', `${web.origin}/`)}, a page that plays a token thief and sends these calls`,
  );
  print(
    `In another terminal, first this line, and then any other; the tokens live for ${TOKEN_LIFETIME_HOURS} hours:\n`,
  );
  print(`${style('bold', `. ${variables.file}`)}\n`);
  const printed = examplesOf(groups).filter(({ isOnPageOnly }) => isOnPageOnly !== true);
  print(render([...printed.map(lineOf), ...lines]));
  print(heading('\nEverything is up. Ctrl-C ends it. What the service logs from now on:'));
  return variables;
}

const originAt = (port: number) => `http://127.0.0.1:${port}`;

const environmentOf = (
  { provider, web }: Around,
  profile: string,
  { settings }: Script,
  port: number,
): Environment => ({
  PROFILE: profile,
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: provider.audience,
  NODE_EXTRA_CA_CERTS: provider.authorityFile,
  HOST: '127.0.0.1',
  PORT: String(port),
  CORS_ALLOWED_ORIGINS: web.origin,
  // The page sends any of them, to show what a route makes of it.
  CORS_ALLOWED_METHODS: 'GET,HEAD,POST,PUT,PATCH,DELETE',
  CORS_EXPOSED_HEADERS: 'Allow',
  // Says why a request was refused.
  LOG_LEVEL: 'debug',
  ...settings({ provider, origin: originAt(port) }),
});

const header = (profile: string, origin: string, processId: number | undefined, issuer: string) =>
  `\n${heading(`gatehouse, profile ${profile}`)}: service ${origin} (process ${processId}), provider ${issuer}`;

/** A line each, to paste as it is: the shell takes what follows the command as a comment. */
function render(lines: readonly Line[]): string {
  const width = Math.max(...lines.map(({ command }) => command.length));
  return lines
    .map(({ command, status, why }) => `${command.padEnd(width)}  ${style('dim', `# ${status} ${why}`)}`)
    .join('\n');
}

function describe({ level, message, fields }: LogLine): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  return `${level}: ${message}${Object.entries(fields)
    .map(([name, value]) => ` ${name}=${text(value)}`)
    .join('')}`;
}

const exitCode = await main(process.argv.slice(2));
// If Node ended by itself, it would drop the signal handlers first, and one more Ctrl-C would set the exit
// code.
process.stdout.write('', () => process.exit(exitCode));
