/* A page of another origin in Chromium: what it can read of the refusal, the document and the answer. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The command of the browser, if there is one. */
export const browserCommand = (): string | undefined =>
  NAMES.find((name) => spawnSync(name, ['--version']).status === 0);

/** What the page has read, or why it could not. */
export interface Seen {
  readonly challenge?: string;
  readonly document?: Readonly<Record<string, unknown>>;
  readonly status?: number;
  readonly failure?: string;
}

export interface Page {
  readonly origin: string;
  /** Opens the page, which is told the URL and then a token for it. */
  open(url: string, token: string): Promise<Seen>;
  /** The same for the URL of an MCP server. */
  openMcp(url: string, token: string): Promise<object>;
  stop(): void;
}

/** A page that says what its function `walk` has seen. */
const pageOf = (lines: string) => `<!doctype html><script type="module">
${lines}
const seen = await walk().catch((failure) => ({ failure: String(failure) }));
await fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
</script>`;

/** Like a client, it sends a field of its own, which needs a preflight. */
const apiPage = (url: string, token: string) => `
const own = { headers: { 'MCP-Protocol-Version': '2025-06-18' } };
async function walk() {
  const refused = await fetch(${JSON.stringify(url)});
  const challenge = refused.headers.get('www-authenticate');
  const address = /resource_metadata="([^"]+)"/.exec(challenge)[1];
  const document = await (await fetch(address, own)).json();
  const { status } = await fetch(${JSON.stringify(url)}, { headers: { authorization: 'Bearer ${token}' } });
  return { challenge, document, status };
}`;

/** With the fields that MCP clients send, and read. */
const mcpPage = (url: string, token: string) => `
const usual = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const authorization = 'Bearer ${token}';
const ask = (method, own, body) =>
  fetch(${JSON.stringify(url)}, { method, headers: { ...usual, ...own }, body: body && JSON.stringify(body) });
const clientInfo = { name: 'page', version: '1.0.0' };
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
async function walk() {
  const refused = await ask('POST', {}, initialize);
  const hasChallenge = /^Bearer .*scope=/.test(refused.headers.get('www-authenticate'));
  const opened = await ask('POST', { authorization }, initialize);
  const session = opened.headers.get('mcp-session-id');
  const own = { authorization, 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25', 'Last-Event-ID': '1' };
  const stream = await ask('GET', own);
  const listed = await ask('POST', own, { jsonrpc: '2.0', id: 2, method: 'tools/list' });
  const ended = await ask('DELETE', own);
  return { hasChallenge, hasSession: session !== null, statuses: [refused, opened, stream, listed, ended].map((each) => each.status) };
}`;

const DEADLINE_MILLIS = 60_000;

export async function startPage(command: string): Promise<Page> {
  let told = '';
  let tell: (seen: Seen) => void = () => {};
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.url === '/seen') tell(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(told);
  }).listen(0, 'localhost');
  await once(server, 'listening');

  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;

  async function show(lines: string): Promise<Seen> {
    told = pageOf(lines);
    const home = mkdtempSync(join(tmpdir(), 'gatehouse-browser-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${home}`];
    const browser = spawn(command, [...flags, origin], { stdio: 'ignore', detached: true });
    const gone = once(browser, 'exit');
    try {
      return await new Promise<Seen>((resolve) => {
        tell = resolve;
        setTimeout(() => resolve({ failure: 'the page said nothing' }), DEADLINE_MILLIS).unref();
      });
    } finally {
      // It has processes of its own.
      process.kill(-Number(browser.pid), 'SIGKILL');
      await gone;
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    }
  }

  return {
    origin,
    open: (url, token) => show(apiPage(url, token)),
    openMcp: (url, token) => show(mcpPage(url, token)),
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
