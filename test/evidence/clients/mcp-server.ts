/* Tests the protected MCP servers of docs/for-mcp-and-agents.md, as they stand in test/package/mounts, with the
   server of either SDK: by clients of both SDKs that know only the URL, and by raw requests. */
import { samplesUnder } from '../../docs/pages.ts';
import { MCP_CLIENTS, PROVING_CLIENT, refreshing, walkMcp, type McpClient } from './mcp-clients.ts';
import { challenges, messages, origins, spellings, unchecked } from './mcp-messages.ts';
import {
  MOUNTED,
  ON_BUN,
  PAGE,
  partOf,
  replaceAll,
  SDK_1,
  SERVER_KINDS,
  startMcpProgram,
  type ServerKind,
} from './mcp-program.ts';
import { inScene, type Fact } from './mcp-scene.ts';
import { bounds, nextStream, secrets, sessions, streams, timers, tolerated } from './mcp-sessions.ts';
import type { Page } from './browser.ts';
import { startRealProvider, type RealProvider } from './provider.ts';
import { tokenFor } from './walks.ts';

export type Report = (name: string, found: unknown, expected: unknown) => void;

const failed = (error: unknown) => ({ failure: String(error), cause: String(Object(error).cause ?? '') });

const textOf = (text: string) => [{ type: 'text', text }];

/** The result of calling both tools when the user went to the provider once for each of these scopes. */
const walked = (scopes: readonly string[], hasSession: boolean) => ({
  tools: ['list_messages', 'send_message'],
  first: textOf('Messages of alice: none'),
  second: textOf('alice has written to bob'),
  scopes,
  hasSession,
});

const STEPS = ['read:messages', 'read:messages write:messages'];

/** Every client, once. */
async function walkAll(
  report: Report,
  provider: RealProvider,
  kind: ServerKind,
  clients: readonly McpClient[],
  edit?: (lines: string) => string,
): Promise<void> {
  const program = await startMcpProgram({ ...provider, kind, ...(edit && { edit }) });
  try {
    for (const client of clients) {
      const hasSession = !(client.isNewest && kind !== SDK_1);
      const found = await walkMcp(new URL(program.url), client).catch(failed);
      report(`${client.name} steps up once for a tool`, found, walked(STEPS, hasSession));
    }
  } finally {
    program.stop();
  }
}

const withDpop = (lines: string) =>
  replaceAll(lines, [['  log: jsonLog(),\n', "  log: jsonLog(),\n  dpopMode: 'ALLOWED',\n"]]);

/** Facts about the server of one SDK. */
async function reportServer(report: Report, provider: RealProvider, kind: ServerKind): Promise<void> {
  const told: Report = (name, found, expected) => report(`MCP server, ${kind}: ${name}`, found, expected);
  await walkAll(told, provider, kind, MCP_CLIENTS);
  if (kind !== MOUNTED) await walkAll(told, provider, kind, [PROVING_CLIENT], withDpop);
  const parts = [challenges, messages, spellings, sessions, bounds, secrets, streams];
  if (kind !== ON_BUN) parts.push(nextStream);
  // The timers of a service do not count: they keep no process alive.
  if (kind !== ON_BUN && kind !== MOUNTED) parts.push(timers);
  // A service asks for the token first, and answers preflights itself.
  if (kind !== MOUNTED) parts.push(origins);
  const facts = await inScene(kind, async (scene) => {
    const found: Fact[] = [];
    for (const part of parts) found.push(...(await part(scene)));
    return found;
  });
  facts.push(...(await unchecked(kind)));
  if (kind !== MOUNTED) facts.push(...(await tolerated(kind)));
  for (const { name, found, expected } of facts) told(name, found, expected);
}

const TWO_SCOPES: readonly (readonly [string, string])[] = [
  ['const base = needs(read);', "const base = needs(anyScope('read:messages', 'write:messages'));"],
  ['import { createGate, needs,', 'import { anyScope, createGate, needs,'],
];

/** Where the provider holds a client to the scopes with which it has registered. */
async function reportStrict(report: Report): Promise<void> {
  const provider = await startRealProvider({ isStrict: true });
  const names = (name: string) => `MCP server, a strict provider: ${name}`;
  const [program, wide] = await Promise.all([
    startMcpProgram(provider),
    startMcpProgram({ ...provider, edit: (lines) => replaceAll(lines, TWO_SCOPES) }),
  ]);
  try {
    for (const client of MCP_CLIENTS) {
      const refused = await walkMcp(new URL(program.url), client).catch(String);
      report(names(`${client.name} is refused the step-up`), refused, 'Error: refused: invalid_scope');
      const again = await walkMcp(new URL(program.url), client, { forgets: true }).catch(failed);
      report(names(`${client.name} steps up once it registers anew`), again, walked(STEPS, !client.isNewest));
      const { scopes } = await walkMcp(new URL(wide.url), client, { stepsUp: false });
      report(
        names(`${client.name} needs no step-up if the first challenge names all scopes`),
        scopes,
        STEPS.slice(1),
      );
    }
  } finally {
    program.stop();
    wide.stop();
    provider.stop();
  }
}

const GAVE_UP = 'Error: Streamable HTTP error: Server returned 403 after trying upscoping';

/** How a step-up goes when the client has a refresh token. */
async function reportRefreshing(report: Report, provider: RealProvider): Promise<void> {
  const program = await startMcpProgram(provider);
  try {
    for (const client of MCP_CLIENTS) {
      const found = await walkMcp(new URL(program.url), refreshing(client)).catch(String);
      // The second SDK asks for refresh tokens with a scope of its own, `offline_access`.
      const served = walked(
        STEPS.map((scope) => `${scope} offline_access`),
        !client.isNewest,
      );
      const isFirst = client.name === '@modelcontextprotocol/sdk 1.x';
      const name = isFirst ? 'refreshes instead of stepping up, and gives up' : 'steps up';
      report(`MCP server: ${client.name} with a refresh token ${name}`, found, isFirst ? GAVE_UP : served);
    }
  } finally {
    program.stop();
  }
}

/** Where the user does not grant the scope. */
async function reportUngranted(report: Report): Promise<void> {
  const provider = await startRealProvider({ refused: 'write:messages' });
  const program = await startMcpProgram(provider);
  try {
    for (const client of MCP_CLIENTS) {
      const found = await walkMcp(new URL(program.url), client).catch(String);
      const isFirst = client.name === '@modelcontextprotocol/sdk 1.x';
      const name = isFirst ? 'gives up' : 'sends the user again';
      const expected = isFirst ? GAVE_UP : 'UnauthorizedError: Unauthorized';
      report(`MCP server, a scope that is not granted: ${client.name} ${name}`, found, expected);
    }
  } finally {
    program.stop();
    provider.stop();
  }
}

/** As the page says. */
function withoutSessions(lines: string): string {
  const [end = ''] = samplesUnder(PAGE, 'Without sessions', 'js');
  return replaceAll(lines, [
    [partOf(lines, /\/\/ ---- Sessions[^]*(?=\/\/ ---- Requests)/), ''],
    ["{ legacy: 'reject', maxSubscriptions: 0 }", '{ maxSubscriptions: 0 }'],
    [partOf(lines, /  const isLegacy = .*\n.*\n/), end],
  ]);
}

async function reportSessionless(report: Report, provider: RealProvider): Promise<void> {
  const program = await startMcpProgram({ ...provider, edit: withoutSessions });
  try {
    for (const client of MCP_CLIENTS) {
      const found = await walkMcp(new URL(program.url), client).catch(failed);
      report(`MCP server without sessions: ${client.name} steps up once`, found, walked(STEPS, false));
    }
  } finally {
    program.stop();
  }
}

const STATUSES = [401, 200, 200, 200, 200];

/** What a page of a listed origin, and one of another, get in a browser. */
export async function reportMcpPage(report: Report, provider: RealProvider, page: Page): Promise<void> {
  const edit = (lines: string) => replaceAll(lines, [['https://app.example.com', page.origin]]);
  const listed = { hasChallenge: true, hasSession: true, statuses: STATUSES };
  const settings = { CORS_ALLOWED_ORIGINS: page.origin };
  const unlisted = { failure: 'TypeError: Failed to fetch' };
  for (const [name, options, expected] of [
    ['a listed origin', { edit }, listed],
    ['another origin', {}, unlisted],
    ['a listed origin, in a service', { kind: MOUNTED, edit, settings }, listed],
    ['another origin, in a service', { kind: MOUNTED }, unlisted],
  ] as const) {
    const program = await startMcpProgram({ ...provider, ...options });
    try {
      const found = await page.openMcp(program.url, await tokenFor(program.url));
      report(`MCP server: a page in Chromium of ${name}`, found, expected);
    } finally {
      program.stop();
    }
  }
}

/** What the log says of a mistake at the start. */
async function reportMistakes(report: Report, provider: RealProvider): Promise<void> {
  const mistakes = [
    [
      'a resource that is no audience',
      'audience: RESOURCE',
      "audience: 'https://api.example.com'",
      '"resource is not an audience"',
    ],
    [
      'a provider whose issuer ends in no slash',
      "  issuer: 'https",
      "  // issuer: 'https",
      '"reason":"issuer-mismatch"',
    ],
  ] as const;
  for (const [name, from, to, logs] of mistakes) {
    const edit = (lines: string) => replaceAll(lines, [[from, to]]);
    const found = await startMcpProgram({ ...provider, edit, logs }).then(({ stop }) => {
      stop();
      return 'logged';
    }, String);
    report(`MCP server: the log tells of ${name}`, found, 'logged');
  }
}

/** Every fact about the MCP server of the documents. */
export async function reportMcp(report: Report, provider: RealProvider): Promise<void> {
  await Promise.all([
    ...SERVER_KINDS.map((kind) => reportServer(report, provider, kind)),
    reportStrict(report),
    reportRefreshing(report, provider),
    reportUngranted(report),
    reportSessionless(report, provider),
    reportMistakes(report, provider),
  ]);
}
