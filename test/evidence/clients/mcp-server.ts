/* The protected MCP server of docs/for-mcp-and-agents.md, by its very lines, and a client that is told its URL
   alone: it connects, is sent to the provider, connects again and calls the tool. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { until } from '../../support/watch.ts';
import type { RealProvider } from './provider.ts';
import { authorize } from './user-agent.ts';
import { Keeper } from './walks.ts';

const PAGE = readFileSync(new URL('../../../docs/for-mcp-and-agents.md', import.meta.url), 'utf8');
const PROGRAM = new URL('./mcp-program.mjs', import.meta.url);
const BUILT = createRequire(import.meta.url).resolve('../../../dist/gate.js');

/** The lines of the page, for this provider and this port. */
function program({ domain, issuer }: RealProvider, url: string): string {
  const [, section = ''] = PAGE.split('\n## A protected MCP server\n');
  const lines = /```js\n([^]*?)```/.exec(section)?.[1] ?? '';
  return lines
    .replace("'gatehouse-http/gate'", `'${BUILT}'`)
    .replace("'tenant.example.com'", `'${domain}', issuer: '${issuer}'`)
    .replaceAll('https://mcp.example.com/mcp', url)
    .replace('3000', `${new URL(url).port}, '127.0.0.1'`);
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

/** What the tool says at last. */
async function callTool(url: URL): Promise<unknown> {
  const keeper = new Keeper();
  const client = () => new Client({ name: 'walk', version: '1.0.0' });
  const transport = () => new StreamableHTTPClientTransport(url, { authProvider: keeper });
  const first = transport();
  await client()
    .connect(first as Parameters<Client['connect']>[0])
    .catch((failure: unknown) => {
      if (keeper.sentTo === undefined) throw failure;
    });
  const back = await authorize(keeper.sentTo ?? url);
  await first.finishAuth(back.searchParams.get('code') ?? '');

  const connected = client();
  await connected.connect(transport() as Parameters<Client['connect']>[0]);
  const { tools } = await connected.listTools();
  const { content } = await connected.callTool({ name: String(tools[0]?.name) });
  await connected.close();
  return content;
}

/** What a tool of the server says to a client on this port. */
export async function walkMcpServer(provider: RealProvider, port: number): Promise<object> {
  const url = `http://127.0.0.1:${port}/mcp`;
  writeFileSync(PROGRAM, program(provider, url));
  const child = spawn(process.execPath, [PROGRAM.pathname], { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    await until('the MCP server listens', () => isOpen(port), 5);
    return { content: await callTool(new URL(url)) };
  } catch (failure) {
    return { failure: String(failure) };
  } finally {
    child.kill('SIGKILL');
    rmSync(PROGRAM);
  }
}
