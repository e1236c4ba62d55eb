// An MCP server behind a gate, for Node, Bun and Deno.
import { randomUUID } from 'node:crypto';
import { serve } from '@hono/node-server';
import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  readRequestBody,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { createGate, needs, scope } from 'gatehouse-http/gate';
import { jsonLog } from 'gatehouse-http/log';
import { resourceMetadata } from 'gatehouse-http/resource-metadata';
import { z } from 'zod';

const RESOURCE = 'https://mcp.example.com/mcp';
const PATH = new URL(RESOURCE).pathname;
const ORIGINS = ['https://app.example.com']; // pages that may call this server
const limits = { bodyBytes: 1_000_000, sessions: 1_000, sessionsOfACaller: 8 };

const gate = createGate({
  domain: 'tenant.example.com',
  issuer: 'https://tenant.example.com', // without this line: https://tenant.example.com/
  audience: RESOURCE,
  metadata: resourceMetadata({ url: RESOURCE }),
  log: jsonLog(),
});

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
      const { caller } = http.authInfo.extra;
      // Checked again where the tool runs, in case a message gets here another way.
      const { refusal } = await gate.authorize(caller, access);
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

async function readMessage(request) {
  const { tooLarge, text } = await readRequestBody(request, limits.bodyBytes);
  if (tooLarge) return refuse(413, -32600, 'The body is too large');

  try {
    return JSON.parse(text);
  } catch {
    return refuse(400, -32700, 'The body is not JSON');
  }
}

function refusalOf(message, caller) {
  // An array of messages has no `method`, and the SDK would run each of them.
  const isOne = typeof message === 'object' && message !== null && !Array.isArray(message);
  if (!isOne) return refuse(400, -32600, 'The body is not one message');
  if (message.method !== 'tools/call') return undefined;

  const tool = tools.get(message.params?.name);
  if (tool === undefined) return refuse(400, -32602, 'There is no such tool', message.id);

  const { refusal } = gate.authorize(caller, tool.access);
  return refusal && new Response(refusal.body, refusal);
}

// The request without token, proof and cookies: the SDK shows it to tools.
function withoutCredentials({ method, headers, signal }) {
  const others = ['accept', 'content-type', 'last-event-id'];
  const kept = [...headers].filter(([name]) => name.startsWith('mcp-') || others.includes(name));
  return new Request(RESOURCE, { method, headers: kept, signal });
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

async function serveCaller(request, caller) {
  let message;
  if (request.method === 'POST') {
    message = await readMessage(request);
    const refusal = message instanceof Response ? message : refusalOf(message, caller);
    if (refusal) return refusal;
  }

  const bare = withoutCredentials(request);
  // The SDK wants a token here; no tool needs it.
  const authInfo = { token: '', clientId: '', scopes: [...caller.scopes], extra: { caller } };
  // Keep `parsedBody`: a second parser could give the SDK another message than the one that was authorized.
  const options = { parsedBody: message, authInfo };
  const isLegacy = await isLegacyRequest(bare, message);
  return isLegacy ? serveSession(bare, options, caller) : newest.fetch(bare, options);
}

// A stream ends when the token does. With `clockToleranceSeconds`, a token may already have expired when its
// request arrives: the minimum leaves time for a reply. A timer longer than the maximum would fire at once.
const MIN_TIMER_MILLIS = 2_000;
const MAX_TIMER_MILLIS = 2 ** 31 - 1;

function endWithToken(response, { expiresAtMillis }) {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream) return response;

  const { readable, writable } = new TransformStream();
  const end = new AbortController();
  const millis = Math.max(expiresAtMillis - Date.now(), MIN_TIMER_MILLIS);
  const timer = setTimeout(() => end.abort(), Math.min(millis, MAX_TIMER_MILLIS));
  response.body
    .pipeTo(writable, { signal: end.signal, preventAbort: true })
    .catch(() => writable.close())
    .catch(() => {}) // the client has gone
    .finally(() => clearTimeout(timer));
  return new Response(readable, response);
}

async function serveMcp(request) {
  const verdict = await gate.check(request, base);
  if (verdict.refusal) return new Response(verdict.refusal.body, verdict.refusal);

  const response = await serveCaller(request, verdict.caller);
  for (const [name, value] of verdict.headers) response.headers.set(name, value);
  return endWithToken(response, verdict.caller);
}

// The gate serves the document that tells clients where to get a token. There is nothing else.
async function serveElsewhere(request) {
  const { refusal } = await gate.check(request, base);
  return refusal ? new Response(refusal.body, refusal) : refuse(404, -32600, 'Not found');
}

const CORS = {
  'Access-Control-Allow-Methods': 'GET, POST, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, DPoP, Content-Type, Last-Event-ID, ' +
    'Mcp-Method, Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id',
  'Access-Control-Expose-Headers': 'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce',
  'Access-Control-Max-Age': '600',
  Vary: 'Origin',
};

async function handle(request) {
  if (new URL(request.url).pathname !== PATH) return serveElsewhere(request);

  const origin = request.headers.get('origin'); // only pages send one
  if (origin !== null && !ORIGINS.includes(origin)) return refuse(403, -32600, 'Origin refused');

  const isPreflight = origin !== null && request.method === 'OPTIONS';
  const response = isPreflight ? new Response(null, { status: 204 }) : await serveMcp(request);
  for (const [name, value] of Object.entries(CORS)) response.headers.set(name, value);
  if (origin !== null) response.headers.set('Access-Control-Allow-Origin', origin);
  return response;
}

serve({ fetch: handle, port: 3000 });
