/* Both MCP SDKs as clients of the protected server of the documents, given only its URL. The first token
   suffices for one tool; for the other the client steps up. */
import * as mcp2 from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { authorize } from './user-agent.ts';
import { Keeper, ProvingKeeper, RefreshingKeeper } from './walks.ts';

/** What the clients of both SDKs have in common, before and after they are connected. */
interface Attempt {
  readonly connect: () => Promise<unknown>;
  readonly finish: (back: URLSearchParams) => Promise<unknown>;
  readonly client: {
    listTools(): Promise<{ tools: readonly { name: string }[] }>;
    callTool(call: { name: string; arguments: Record<string, string> }): Promise<Record<string, unknown>>;
    close(): Promise<unknown>;
  };
  readonly transport: { terminateSession(): Promise<unknown>; readonly sessionId?: string | undefined };
}

export interface McpClient {
  readonly name: string;
  /** Whether it asks for the newest revision first, which has no sessions. */
  readonly isNewest: boolean;
  readonly keeper: () => Keeper;
  readonly attempt: (url: URL, keeper: Keeper) => Attempt;
}

const NAMED = { name: 'walk', version: '1.0.0' };

function attempt1(url: URL, keeper: Keeper): Attempt {
  const client = new Client1(NAMED);
  const transport = new Transport1(url, { authProvider: keeper });
  return {
    client: client as unknown as Attempt['client'],
    transport,
    connect: () => client.connect(transport as Parameters<Client1['connect']>[0]),
    finish: (back) => transport.finishAuth(back.get('code') ?? ''),
  };
}

function attempt2(url: URL, keeper: Keeper, mode: 'legacy' | 'auto'): Attempt {
  const client = new mcp2.Client(NAMED, { versionNegotiation: { mode } });
  const transport = new mcp2.StreamableHTTPClientTransport(url, { authProvider: keeper });
  return {
    client: client as unknown as Attempt['client'],
    transport,
    connect: () => client.connect(transport),
    finish: (back) => transport.finishAuth(back),
  };
}

const SDK_1 = { name: '@modelcontextprotocol/sdk 1.x', isNewest: false, attempt: attempt1 };

const SDK_2 = {
  name: '@modelcontextprotocol/client 2.x',
  isNewest: false,
  attempt: (url: URL, keeper: Keeper) => attempt2(url, keeper, 'legacy'),
};

const SDK_2_NEWEST = {
  name: '@modelcontextprotocol/client 2.x for 2026-07-28',
  isNewest: true,
  attempt: (url: URL, keeper: Keeper) => attempt2(url, keeper, 'auto'),
};

export const MCP_CLIENTS: readonly McpClient[] = [SDK_1, SDK_2, SDK_2_NEWEST].map((client) => ({
  ...client,
  keeper: () => new Keeper(),
}));

export const PROVING_CLIENT: McpClient = {
  ...SDK_2_NEWEST,
  name: '@modelcontextprotocol/client 2.x with its DPoP session',
  keeper: () => new ProvingKeeper(),
};

/** The same client, which registers for refresh tokens and keeps them. */
export const refreshing = (client: McpClient): McpClient => ({
  ...client,
  keeper: () => new RefreshingKeeper(),
});

/** What a client has been told and has asked for on its way. */
export interface McpWalk {
  readonly tools: readonly string[];
  readonly first: unknown;
  readonly second: unknown;
  /** The scopes for which the user was sent to the provider, each time. */
  readonly scopes: readonly (string | null)[];
  readonly hasSession: boolean;
}

const FIRST = { name: 'list_messages', arguments: {} };
const SECOND = { name: 'send_message', arguments: { to: 'bob', text: 'Hello' } };

/** Runs work that must send the user to the provider, and finishes when the user comes back. */
async function withUser(
  keeper: Keeper,
  work: () => Promise<unknown>,
  finish: Attempt['finish'],
): Promise<void> {
  const before = keeper.journeys.length;
  const error = await work().then(
    () => new Error('the client was served without the user'),
    (thrown: unknown) => thrown,
  );
  const { sentTo } = keeper;
  if (sentTo === undefined || keeper.journeys.length === before) throw error;

  const { searchParams } = await authorize(sentTo);
  if (searchParams.has('error')) throw new Error(`refused: ${searchParams.get('error')}`);
  await finish(searchParams);
}

interface WalkOptions {
  /** Whether the second tool needs another token. */
  readonly stepsUp?: boolean;
  /** Whether the client forgets its registration before the step-up, and so registers anew. */
  readonly forgets?: boolean;
}

/** From the URL alone to both tools. */
export async function walkMcp(
  url: URL,
  { keeper: createKeeper, attempt }: McpClient,
  { stepsUp = true, forgets = false }: WalkOptions = {},
): Promise<McpWalk> {
  const keeper = createKeeper();
  const stranger = attempt(url, keeper);
  await withUser(keeper, stranger.connect, stranger.finish);

  const { client, transport, connect, finish } = attempt(url, keeper);
  await connect();
  const { tools } = await client.listTools();
  const first = await client.callTool(FIRST);
  const callSecond = () => client.callTool(SECOND);
  if (forgets) keeper.forgetClient();
  if (stepsUp) await withUser(keeper, callSecond, finish);
  const second = await callSecond();
  const again = await client.callTool(FIRST);
  const hasSession = transport.sessionId !== undefined;
  await transport.terminateSession();
  await client.close();
  return {
    tools: tools.map(({ name }) => name),
    first: JSON.stringify(again) === JSON.stringify(first) ? first.content : again,
    second: second.content,
    scopes: keeper.journeys.map(({ searchParams }) => searchParams.get('scope')),
    hasSession,
  };
}
