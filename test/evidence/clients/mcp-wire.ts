/* Raw requests to the MCP server of the documents, as no SDK would send them. */
import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';

export interface Question {
  readonly method?: string;
  readonly path?: string;
  /** Names and values in turn; they replace the usual ones of the same name. */
  readonly fields?: readonly string[];
  readonly token?: string;
  readonly session?: string | undefined;
  /** A value to be sent as JSON, or the very text. */
  readonly body?: unknown;
  readonly isChunked?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

const ACCEPT = ['Accept', 'application/json, text/event-stream'];

function fieldsOf({ fields = [], token, session, method = 'POST' }: Question, port: number): string[] {
  const usual = [['Host', `127.0.0.1:${port}`], ACCEPT];
  if (method === 'POST') usual.push(['Content-Type', 'application/json']);
  if (token !== undefined) usual.push(['Authorization', `Bearer ${token}`]);
  if (session !== undefined) usual.push(['Mcp-Session-Id', session]);
  const given = new Set(fields.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  return [...usual.filter(([name = '']) => !given.has(name.toLowerCase())).flat(), ...fields];
}

/** The response as soon as its head is there; its body is yet to come. */
export async function open(port: number, question: Question): Promise<IncomingMessage> {
  const { method = 'POST', path = '/mcp', body, isChunked = false } = question;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const fields = fieldsOf(question, port);
  const length = ['Content-Length', String(Buffer.byteLength(text ?? ''))];
  if (text !== undefined) fields.push(...(isChunked ? ['Transfer-Encoding', 'chunked'] : length));
  const request = send({ host: '127.0.0.1', port, method, path, headers: fields, agent: false });
  // A server that has refused may close before everything is sent.
  request.on('error', () => {});
  request.end(text);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

/** The whole response. The values of a field that occurs several times are joined to one text. */
export async function ask(port: number, question: Question): Promise<Answer> {
  const response = await open(port, question);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  const headers = Object.entries(response.headersDistinct).map(([name, values = []]) => [
    name,
    values.join(', '),
  ]);
  return { status: response.statusCode ?? 0, headers: Object.fromEntries(headers), text };
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1.0.0' } },
};

export const call = (name: unknown, args: unknown = {}) => ({
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/call',
  params: { name, arguments: args },
});

export const SEND = call('send_message', { to: 'bob', text: 'Hello' });
export const LIST = call('list_messages');

/** A request of the revision 2026-07-28, which has no sessions. */
export function modern(
  message: { method: string; params?: object },
  named = message.method,
): Partial<Question> {
  const { name } = Object(message.params) as { name?: unknown };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const fields = ['MCP-Protocol-Version', '2026-07-28', 'Mcp-Method', named];
  if (typeof name === 'string') fields.push('Mcp-Name', name);
  return { fields, body: { ...message, params: { ...message.params, _meta: meta } } };
}
