/* The MCP servers of docs/for-mcp-and-agents.md, in a service and behind a gate, as they stand in
   test/package/mounts, each as its own process. */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { read, samplesUnder } from '../../docs/pages.ts';
import { freePort } from '../../support/free-port.ts';
import { until } from '../../support/watch.ts';

export const PAGE = 'docs/for-mcp-and-agents.md';

const built = (name: string) => createRequire(import.meta.url).resolve(`../../../dist/${name}.js`);

/** The server of an SDK, on Node if it does not say otherwise. */
export type ServerKind = (typeof SERVER_KINDS)[number];

export const SDK_1 = '@modelcontextprotocol/sdk 1.x';
export const ON_BUN = '@modelcontextprotocol/server 2.x on Bun';
const ON_DENO = '@modelcontextprotocol/server 2.x on Deno';

export const MOUNTED = '@modelcontextprotocol/server 2.x in a service';

export const SERVER_KINDS = ['@modelcontextprotocol/server 2.x', SDK_1, ON_BUN, ON_DENO, MOUNTED] as const;

const binary = (name: string) => fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));

const COMMANDS: Readonly<Partial<Record<ServerKind, readonly string[]>>> = {
  [ON_BUN]: [binary('bun'), 'run'],
  [ON_DENO]: [binary('deno'), 'run', '--quiet', '--allow-all'],
};

export interface McpProgram {
  readonly url: string;
  readonly port: number;
  /** Everything that the program has written. */
  readonly log: () => string;
  readonly stop: () => void;
}

interface ProgramOptions {
  readonly domain: string;
  readonly issuer: string;
  readonly kind?: ServerKind;
  /** What the log says of each issuer before the server is used. Default: that its keys are loaded. */
  readonly logs?: string;
  /** Changes lines of the program, to show what they are for. */
  readonly edit?: (lines: string) => string;
  /** For the server in a service. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Replaces the first text of each pair by the second. Throws if the first is absent. */
export function replaceAll(text: string, pairs: readonly (readonly [string, string])[]): string {
  return pairs.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the program has no ${from}`);
    return changed.replaceAll(from, to);
  }, text);
}

/** The first match, which must be there. */
export const partOf = (text: string, pattern: RegExp): string =>
  pattern.exec(text)?.[0] ?? replaceAll('', [[`${pattern}`, '']]);

/** The lines of the program, changed for SDK 1.x as the page says. */
function withSdk1(lines: string): string {
  const [imports = ''] = samplesUnder(PAGE, 'With the SDK 1.x', 'js');
  const newest = partOf(lines, /\/\/ Clients of revision 2026[^]*?\n\n/);
  return replaceAll(lines, [
    [partOf(lines, /import \{[^}]*\} from '@modelcontextprotocol\/server';\n/), imports],
    [newest, ''],
    [partOf(lines, /  const isLegacy = .*\n/), ''],
    [partOf(lines, /isLegacy \? .*/), 'serveSession(bare, options, caller);'],
    ['{ http }', '{ authInfo }'],
    ['http.authInfo', 'authInfo'],
  ]);
}

/** The lines of the program with others at their end. */
const servedBy = (lines: string, end: string): string =>
  replaceAll(lines, [
    ["import { serve } from '@hono/node-server';\n", ''],
    ['serve({ fetch: handle, port: 3000 });\n', end],
  ]);

function linesOf(kind: ServerKind | undefined): string {
  if (kind === MOUNTED) return read('test/package/mounts/mcp.mjs');

  const page = read('test/package/mounts/mcp-gate.mjs');
  const [onBun = '', onDeno = ''] = samplesUnder(PAGE, 'On Bun and Deno', 'js');
  if (kind === ON_BUN) return servedBy(page, onBun);
  if (kind === ON_DENO) return servedBy(page, onDeno);
  return kind === SDK_1 ? withSdk1(page) : page;
}

const BROWSER = 'Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id';

/** As the page says, for this provider and this port. */
const settingsOf = ({ domain, issuer, settings }: ProgramOptions, port: number) => ({
  IDP_DOMAIN: domain,
  IDP_ISSUER: issuer,
  IDP_AUDIENCE: `http://127.0.0.1:${port}/mcp`,
  RESOURCE_URL: `http://127.0.0.1:${port}/mcp`,
  HOST: '127.0.0.1',
  PORT: String(port),
  CORS_ALLOWED_ORIGINS: 'https://app.example.com',
  CORS_ALLOWED_METHODS: 'GET, POST, DELETE',
  CORS_ALLOWED_HEADERS: BROWSER,
  CORS_EXPOSED_HEADERS: 'Mcp-Session-Id',
  ...(settings?.ISSUERS && { ISSUER_OTHER_AUDIENCE: `http://127.0.0.1:${port}/mcp` }),
  ...settings,
});

/** The lines of the program, for this provider and this port. */
function programOf({ domain, issuer, kind, edit = (lines) => lines }: ProgramOptions, port: number): string {
  const lines = edit(linesOf(kind));
  if (kind === MOUNTED) return replaceAll(lines, [["'gatehouse-http'", `'${built('gatehouse')}'`]]);

  return replaceAll(lines, [
    ...['gate', 'log', 'resource-metadata'].map(
      (name) => [`'gatehouse-http/${name}'`, `'${built(name)}'`] as const,
    ),
    ["'tenant.example.com'", `'${domain}'`],
    ["'https://tenant.example.com'", `'${issuer}'`],
    ['https://mcp.example.com/mcp', `http://127.0.0.1:${port}/mcp`],
    ['port: 3000', `port: ${port}, hostname: '127.0.0.1'`],
  ]);
}

/** Whether anybody takes connections on this port. */
async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isTaken = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  socket.destroy();
  return isTaken;
}

export async function startMcpProgram(options: ProgramOptions): Promise<McpProgram> {
  const port = await freePort();
  const file = fileURLToPath(new URL(`./mcp-program-${port}.mjs`, import.meta.url));
  const text = programOf(options, port);
  writeFileSync(file, text);
  const [command = '', ...words] = COMMANDS[options.kind ?? SDK_1] ?? [process.execPath];
  const settings = options.kind === MOUNTED ? settingsOf(options, port) : {};
  const env = { ...process.env, DENO_CERT: process.env.NODE_EXTRA_CA_CERTS, ...settings };
  const child = spawn(command, [...words, file], { stdio: ['ignore', 'pipe', 'pipe'], env });
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => written.push(String(chunk)));
  }

  const log = () => written.join('');

  const stop = () => {
    child.kill('SIGKILL');
    rmSync(file, { force: true });
  };

  const issuers = text.includes('issuers: {') || 'ISSUERS' in settings ? 2 : 1;
  const { logs = '"signing keys loaded"' } = options;
  const lines = () => log().split(logs).length - 1;
  try {
    await until(`the MCP server logs ${logs}`, () => lines() >= issuers, 60);
    await until('the MCP server listens', () => isOpen(port), 60);
  } catch (error) {
    stop();
    throw new Error(log(), { cause: error });
  }
  return { url: `http://127.0.0.1:${port}/mcp`, port, log, stop };
}
