/* The requests that each program gets, in this order, and what is said of each response. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { Provider } from '../../idp/provider.ts';
import { openWire } from '../../support/client.ts';

const ALL = 'read:orders write:orders';
const FILE_BYTES = 1_048_576;
const OCTETS = 'application/octet-stream';

/** What each request may take. */
const PATIENCE_MILLIS = 15_000;

interface Sent {
  readonly claims?: object;
  readonly isAnonymous?: true;
  readonly body?: string | Buffer;
  readonly isChunked?: true;
  readonly type?: string;
}

/** A program that runs, and its provider. */
export interface Trial {
  readonly port: number;
  readonly child: ChildProcess;
  readonly provider: Provider;
  /** Signed before the key changed. */
  oldToken?: string;
}

export type Outcome = (trial: Trial) => Promise<string>;

const tokenOf = ({ provider }: Trial, claims: object = {}) => provider.issue({ scope: ALL, ...claims });

/** On a connection of its own, so that no response is about an earlier request. */
function send(trial: Trial, method: string, path: string, sent: Sent = {}) {
  const { claims, isAnonymous, body, type = 'application/json', isChunked } = sent;
  const token = trial.oldToken ?? tokenOf(trial, claims);
  const headers = {
    ...(isAnonymous ? {} : { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'Content-Type': type }),
    ...(isChunked ? {} : { 'Content-Length': String(Buffer.byteLength(body ?? '')) }),
  };
  const signal = AbortSignal.timeout(PATIENCE_MILLIS);
  const outgoing = request({
    host: '127.0.0.1',
    port: trial.port,
    agent: false,
    method,
    path,
    headers,
    signal,
  });

  return new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve);
    // Whoever refuses a body may close the connection while it is sent.
    outgoing.on('error', (error) => setTimeout(reject, 200, error));
    outgoing.end(body);
  });
}

async function textOf(response: IncomingMessage) {
  let text = '';
  for await (const chunk of response.setEncoding('latin1')) text += chunk;
  return text;
}

/** The status, and what a client would miss in a refusal. */
async function told(response: IncomingMessage, ...more: readonly string[]): Promise<string> {
  const { statusCode = 0, headers } = response;
  const text = await textOf(response);
  const isPlain = statusCode >= 400 && text !== '' && !/json/.test(headers['content-type'] ?? '');
  const lacksChallenge = [401, 403].includes(statusCode) && headers['www-authenticate'] === undefined;
  const lacks = [...(isPlain ? ['not JSON'] : []), ...(lacksChallenge ? ['no challenge'] : [])];
  return [String(statusCode), ...lacks, ...more].join(', ');
}

const ask =
  (method: string, path: string, sent?: Sent): Outcome =>
  async (trial) =>
    told(await send(trial, method, path, sent));

const make = (body: string, type?: string) =>
  ask('POST', '/orders', { body, ...(type !== undefined && { type }) });

const upload = (length: number, isChunked?: true) =>
  ask('POST', '/orders/1/file', {
    body: Buffer.alloc(length, 7),
    type: OCTETS,
    ...(isChunked && { isChunked }),
  });

/** The first line of what comes for a head that is sent as it is. */
async function firstStatus({ port }: Trial, lines: readonly string[]) {
  const wire = await openWire(port);
  wire.send(`${lines.join('\r\n')}\r\n\r\n`);
  const received = await wire.until((text) => text.includes('\r\n\r\n'));
  wire.destroy();
  return /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 'no response';
}

const twoFields: Outcome = (trial) =>
  firstStatus(trial, [
    'GET /orders/1 HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${tokenOf(trial)}`,
    'Authorization: Bearer x',
  ]);

const expecting: Outcome = (trial) =>
  firstStatus(trial, [
    'POST /orders/1/file HTTP/1.1',
    'Host: a',
    'Content-Length: 9',
    'Expect: 100-continue',
  ]);

const inTheUrl: Outcome = async (trial) =>
  told(await send(trial, 'GET', `/orders/1?access_token=${tokenOf(trial)}`, { isAnonymous: true }));

const CUT_OFF_MILLIS = 500;

const cutOff: Outcome = async (trial) => {
  await textOf(await send(trial, 'POST', '/orders', { body: '{"item":"milk"}' }));
  const wire = await openWire(trial.port);
  const fields = [
    'Host: a',
    `Authorization: Bearer ${tokenOf(trial)}`,
    `Content-Type: ${OCTETS}`,
    'Content-Length: 9',
  ];
  wire.send(`POST /orders/2/file HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\nhalf`);
  // Until the handler reads. Hono gives it an empty body if the client has left before.
  await later(CUT_OFF_MILLIS, undefined);
  wire.socket.end();
  await wire.untilClosed();
  wire.destroy();
  return told(await send(trial, 'GET', '/orders/2/file'));
};

const location: Outcome = async (trial) => {
  const response = await send(trial, 'POST', '/orders', { body: '{"item":"milk"}' });
  return told(response, response.headers.location !== undefined ? 'Location' : 'no Location');
};

const methodNotAllowed: Outcome = async (trial) => {
  const response = await send(trial, 'PUT', '/orders/1', { body: '{"item":"tea"}' });
  return told(response, ...(response.headers.allow !== undefined ? ['Allow'] : []));
};

const download: Outcome = async (trial) => {
  const response = await send(trial, 'GET', '/orders/1/file');
  return `${response.statusCode}, ${(await textOf(response)).length} bytes`;
};

/** By a client that keeps its connections, as a proxy does. */
async function openEvents(trial: Trial, claims: object = {}) {
  const headers = { Authorization: `Bearer ${trial.oldToken ?? tokenOf(trial, claims)}` };
  const response = await fetch(`http://127.0.0.1:${trial.port}/orders/events`, { headers });
  return response.body!.pipeThrough(new TextDecoderStream()).getReader();
}

const change = async (trial: Trial) =>
  void (await textOf(await send(trial, 'PATCH', '/orders/1', { body: '{"item":"tea"}' })));

const event: Outcome = async (trial) => {
  const reader = await openEvents(trial);
  await change(trial);
  let text = '';
  while (!text.includes('data: 1\n\n')) text += (await reader.read()).value;
  await reader.cancel();
  return 'the event';
};

/** What reading to the end comes to. */
const ending = async (reader: ReadableStreamDefaultReader<string>) => {
  try {
    while (!(await reader.read()).done);
    return 'ends cleanly';
  } catch {
    return 'is cut off';
  }
};

const later = <Value>(millis: number, value: Value) =>
  new Promise<Value>((resolve) => void setTimeout(resolve, millis, value).unref());

const withToken: Outcome = async (trial) => {
  const reader = await openEvents(trial, { exp: Math.floor(Date.now() / 1000) + 2 });
  const outcome = await Promise.race([ending(reader), later(5_000, 'continues')]);
  await reader.cancel().catch(() => {});
  return outcome;
};

const drain: Outcome = async (trial) => {
  const reader = await openEvents(trial);
  const exited = once(trial.child, 'exit').then(([code]) => `exit code ${code}`);
  trial.child.kill('SIGTERM');
  const [stream, exit] = await Promise.all([
    ending(reader),
    Promise.race([exited, later(PATIENCE_MILLIS, 'no exit within 15 s')]),
  ]);
  return stream === 'ends cleanly' ? exit : `the stream ${stream}, ${exit}`;
};

const newKey: Outcome = async (trial) => {
  const oldToken = tokenOf(trial);
  trial.provider.rotate();
  const outcome = await told(await send(trial, 'GET', '/orders/1'));
  trial.oldToken = oldToken;
  return outcome;
};

const nested = `{"item":"x","more":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;

export const REQUESTS: Readonly<Record<string, Outcome>> = {
  '`GET /healthz` without a token': ask('GET', '/healthz', { isAnonymous: true }),
  '`GET /orders?item=te`': ask('GET', '/orders?item=te'),
  '`GET /orders`, which needs `item`': ask('GET', '/orders'),
  '`GET /orders?item=a&item=b`': ask('GET', '/orders?item=a&item=b'),
  '`GET /orders/1`': ask('GET', '/orders/1'),
  '`HEAD /orders/1`': ask('HEAD', '/orders/1'),
  '`GET /orders/9`': ask('GET', '/orders/9'),
  '`GET /ORDERS/1`': ask('GET', '/ORDERS/1'),
  '`GET /orders/1/`': ask('GET', '/orders/1/'),
  '`GET /orders/%zz`': ask('GET', '/orders/%zz'),
  '`GET /nothing`': ask('GET', '/nothing'),
  '`PUT /orders/1`': methodNotAllowed,
  '`POST /orders`': location,
  '`POST /orders` with broken JSON': make('{"item":'),
  '`POST /orders` with `{"item": 7}`': make('{"item":7}'),
  '`POST /orders` without a body': ask('POST', '/orders'),
  '`POST /orders` as `text/plain`': make('{"item":"x"}', 'text/plain'),
  '`POST /orders` with a key `__proto__`': make('{"item":"x","__proto__":{"a":1}}'),
  '`POST /orders` with JSON nested 5,000 levels deep': make(nested),
  '`POST /orders` with a body of 200 kB': make(JSON.stringify({ item: 'x'.repeat(200_000) })),
  '`PATCH /orders/1`': ask('PATCH', '/orders/1', { body: '{"item":"tea"}' }),
  '`DELETE /orders/2`': ask('DELETE', '/orders/2'),
  '`DELETE /orders/2` again': ask('DELETE', '/orders/2'),
  'no token': ask('GET', '/orders/1', { isAnonymous: true }),
  '`GET /nothing` without a token': ask('GET', '/nothing', { isAnonymous: true }),
  'a token that has expired': ask('GET', '/orders/1', { claims: { exp: 1 } }),
  'a token for another API': ask('GET', '/orders/1', { claims: { aud: 'https://other.test' } }),
  'a token without the scope': ask('GET', '/orders/1', { claims: { scope: 'write:orders' } }),
  'a token whose scope only begins with the required one': ask('GET', '/orders/1', {
    claims: { scope: 'read:orders:own' },
  }),
  "an ID token with `at_hash` and the API's audience": ask('GET', '/orders/1', {
    claims: { nonce: 'n', at_hash: 'x' },
  }),
  'a key-bound token without a proof': ask('GET', '/orders/1', {
    claims: { cnf: { jkt: 'x'.repeat(43) } },
  }),
  'a token in the URL': inTheUrl,
  'two `Authorization` headers, the first one valid': twoFields,
  '`GET /orders/export`': ask('GET', '/orders/export'),
  'an upload of 1 MiB': upload(FILE_BYTES),
  'its download': download,
  'an upload that is one byte too long': upload(FILE_BYTES + 1),
  'the same upload in chunks': upload(FILE_BYTES + 1, true),
  'an upload without a body': ask('POST', '/orders/1/file'),
  'an upload with `Expect: 100-continue` and no token': expecting,
  'an upload that breaks off, then its download': cutOff,
  'an event stream, and a change': event,
  'an event stream whose token expires': withToken,
  'a token signed with a new key': newKey,
  'a signal to stop, with an open stream': drain,
};
