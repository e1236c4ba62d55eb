// An MCP server in a service: two tools that need different scopes, sessions, and streams that end with the
// caller's token. The settings are in docs/for-mcp-and-agents.md.
import { randomUUID } from 'node:crypto';
import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { mount, needs, runService, scope } from 'gatehouse-http';
import { z } from 'zod';

const ORIGINS = ['https://app.example.com']; // pages that may call this server
const limits = { bodyBytes: 1_000_000, sessions: 1_000, sessionsOfACaller: 8 };

// ---- Tools. Only tools of this table can be called, and each says what it needs.

const read = scope('read:messages');
const base = needs(read); // what every request needs

const tools = new Map([
  [
    'list_messages',
    {
      access: needs(read),
      description: 'Lists the messages of the caller',
      inputSchema: z.object({}),
      run: (_input, caller) => `Messages of ${caller.subject}: none`,
    },
  ],
  [
    'send_message',
    {
      // `read` again, because clients request the scopes of the challenge, and some drop all others.
      access: needs(read, scope('write:messages')),
      description: 'Sends a message',
      inputSchema: z.object({ to: z.string(), text: z.string() }),
      run: ({ to }, caller) => `${caller.subject} has written to ${to}`,
    },
  ],
]);

function createMcpServer() {
  const server = new McpServer({ name: 'messages', version: '1.0.0' });
  for (const [name, { access, run, ...config }] of tools) {
    server.registerTool(name, config, async (input, { http }) => {
      const { caller, authorize } = http.authInfo.extra;
      // Checked again where the tool runs, in case a message gets here another way.
      const { refusal } = await authorize(access);
      if (refusal) throw new Error('The token lacks a scope');
      return { content: [{ type: 'text', text: await run(input, caller) }] };
    });
  }
  return server;
}

// ---- Messages

// `id` is that of the message that the error is about (JSON-RPC 2.0 §5).
const refuse = (status, code, message, id = null) =>
  Response.json({ jsonrpc: '2.0', id, error: { code, message } }, { status });

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return refuse(400, -32700, 'The body is not JSON');
  }
}

async function refusalOf(message, authorize) {
  // An array of messages has no `method`, and the SDK would run each of them.
  const isOne = typeof message === 'object' && message !== null && !Array.isArray(message);
  if (!isOne) return refuse(400, -32600, 'The body is not one message');
  if (message.method !== 'tools/call') return undefined;

  const tool = tools.get(message.params?.name);
  if (tool === undefined) return refuse(400, -32602, 'There is no such tool', message.id);

  const { refusal } = await authorize(tool.access);
  return refusal && new Response(refusal.body, refusal);
}

// The SDK shows the request to tools: without cookies, and what else is not theirs.
function withoutCookies({ url, method, headers, signal }) {
  const others = ['accept', 'content-type', 'last-event-id'];
  const kept = [...headers].filter(([name]) => name.startsWith('mcp-') || others.includes(name));
  return new Request(url, { method, headers: kept, signal });
}

// ---- Sessions, by their id. The least recently used comes first.

const sessions = new Map();

function makeRoom(owner) {
  const own = [...sessions.values()].filter((session) => session.owner === owner);
  if (own.length >= limits.sessionsOfACaller) own[0].transport.close();
  if (sessions.size >= limits.sessions) sessions.values().next().value.transport.close();
}

async function openSession(owner, request, options) {
  const id = randomUUID();
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
  transport.onclose = () => sessions.delete(id);
  makeRoom(owner);
  sessions.set(id, { owner, transport });
  await createMcpServer().connect(transport);
  const response = await transport.handleRequest(request, options);
  if (!response.ok) await transport.close();
  return response;
}

function serveSession(request, options, caller) {
  // `sub` is unique within its issuer only.
  const owner = JSON.stringify([caller.issuer, caller.subject]);
  const id = request.headers.get('mcp-session-id');
  const messageId = options.parsedBody?.id;
  if (id === null && options.parsedBody?.method === 'initialize') {
    return openSession(owner, request, options);
  }

  if (id === null) return refuse(400, -32000, 'Mcp-Session-Id is missing', messageId);

  const session = sessions.get(id);
  if (session?.owner !== owner) return refuse(404, -32001, 'There is no such session', messageId);

  sessions.delete(id);
  sessions.set(id, session);
  return session.transport.handleRequest(request, options);
}

// ---- Requests

// Clients of revision 2026-07-28 have no sessions. This list of tools never changes, so nobody may
// subscribe: all callers share 1,024 subscriptions, which one of them could use up.
const newest = createMcpHandler(createMcpServer, { legacy: 'reject', maxSubscriptions: 0 });

async function serve(request, { caller, authorize }) {
  const origin = request.headers.get('origin'); // only pages send one
  if (origin !== null && !ORIGINS.includes(origin)) return refuse(403, -32600, 'Origin refused');

  let message;
  if (request.method === 'POST') {
    // Rejects for a body that is too long, and the service sends the 413.
    message = parse(await request.text());
    const refusal = message instanceof Response ? message : await refusalOf(message, authorize);
    if (refusal) return refusal;
  }

  const bare = withoutCookies(request);
  // The SDK wants a token here; no tool needs it.
  const authInfo = { token: '', clientId: '', scopes: [...caller.scopes], extra: { caller, authorize } };
  // Keep `parsedBody`: a second parser could give the SDK another message than the one that was authorized.
  const options = { parsedBody: message, authInfo };
  const isLegacy = await isLegacyRequest(bare, message);
  return isLegacy ? serveSession(bare, options, caller) : newest.fetch(bare, options);
}

await runService({ routes: [mount('/mcp', base, serve, { limitBytes: limits.bodyBytes })] });
