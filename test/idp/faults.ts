/**
 * The ways in which the provider can fail on demand, and how each is sent.
 * Faults of the listener itself (`ListenerFault`) are carried out by `listener.ts`.
 */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { json, send, type Reply } from './reply.ts';

/** These concern every connection, whatever endpoint they were asked for. */
export type ListenerFault =
  /** The listener is closed and its connections are cut; clearing the fault opens the same port again. */
  | 'refuse'
  /** A certificate of the same authority for `other.test` alone. */
  | 'wrong-host-certificate'
  /** A certificate for the right names that ran out in 2021. */
  | 'expired-certificate';

/** These concern the responses of one endpoint. */
export type NamedFault =
  /** Nothing is ever sent; the connection stays open. */
  | 'hang-before-headers'
  /** Status 200 and the headers, then nothing. */
  | 'hang-after-headers'
  /** Status 200, then one blank per 100 ms for ever. */
  | 'drip'
  /** The connection is cut without a response. */
  | 'reset'
  /** 101 to a protocol that nobody asked for; the connection stays open. */
  | 'switch-protocols'
  /** 200 with a page in `text/html`. */
  | 'html'
  /** The first half of the right body, correctly framed. */
  | 'truncated-json'
  /** 200 with `{}`. */
  | 'empty-object'
  /** 200 with `{"keys":[]}`. */
  | 'empty-keys'
  /** The right body followed by blanks, 10,000,000 bytes in all, without `Content-Length`. */
  | 'too-large'
  /** The right keys followed by empty objects, 100,000 in all: about 300 kB. */
  | 'many-keys'
  /** The right body, its `issuer` (if it has one) replaced by another. */
  | 'wrong-issuer'
  /** The right body, compressed though nobody asked for it. */
  | 'gzip'
  /** 304 without a body, to an unconditional request. */
  | 'not-modified';

/** Everything that `Provider.fault` can be asked for. */
export type Fault =
  | ListenerFault
  | NamedFault
  /** A response of this status with a JSON body. */
  | { readonly status: number }
  /** 302 to this address. */
  | { readonly redirect: string }
  /** The right answer after this time, in milliseconds. */
  | { readonly delayMillis: number };

type Delivery = (response: ServerResponse, reply: Reply) => void;

const TOO_LARGE_BYTES = 10_000_000;
const MANY_KEYS = 100_000;
const DRIP_MILLIS = 100;
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

const withBody =
  (change: (body: string) => string | Buffer): Delivery =>
  (response, reply) =>
    send(response, { ...reply, body: change(String(reply.body)) });

const page: Reply = {
  status: 200,
  headers: { 'Content-Type': 'text/html' },
  body: '<!doctype html><title>Sign in</title>',
};

const deliveries: Record<ListenerFault | NamedFault, Delivery> = {
  refuse: send,
  'wrong-host-certificate': send,
  'expired-certificate': send,
  'hang-before-headers': () => {},
  'hang-after-headers': (response, reply) => response.writeHead(200, reply.headers).flushHeaders(),
  drip: drip,
  reset: (response) => response.destroy(),
  'switch-protocols': (response) => {
    response.socket?.write(SWITCH);
  },
  html: (response) => send(response, page),
  'truncated-json': withBody((body) => body.slice(0, body.length / 2)),
  'empty-object': withBody(() => '{}'),
  'empty-keys': withBody(() => '{"keys":[]}'),
  'too-large': (response, reply) => {
    response.writeHead(reply.status, reply.headers).write(String(reply.body).padEnd(TOO_LARGE_BYTES));
    response.end();
  },
  'many-keys': withBody(manyKeys),
  'wrong-issuer': withBody(wrongIssuer),
  gzip: (response, { status, headers, body }) =>
    send(response, { status, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: gzipSync(body) }),
  'not-modified': (response) => send(response, { status: 304, headers: {}, body: '' }),
};

/** Sends the response in the way that the fault, if any, prescribes. */
export function deliver(response: ServerResponse, reply: Reply, fault: Fault | undefined): void {
  if (fault === undefined) return send(response, reply);
  if (typeof fault === 'string') return deliveries[fault](response, reply);
  if ('delayMillis' in fault) return delay(response, reply, fault.delayMillis);
  if ('redirect' in fault) {
    return send(response, { status: 302, headers: { Location: fault.redirect }, body: '' });
  }
  send(response, json(fault.status, { error: 'fault' }));
}

function delay(response: ServerResponse, reply: Reply, millis: number): void {
  const timer = setTimeout(() => send(response, reply), millis);
  response.once('close', () => clearTimeout(timer));
}

function drip(response: ServerResponse, reply: Reply): void {
  response.writeHead(200, reply.headers).write(' ');
  const timer = setInterval(() => response.write(' '), DRIP_MILLIS);
  response.once('close', () => clearInterval(timer));
}

function manyKeys(body: string): string {
  const { keys = [] } = JSON.parse(body) as { keys?: unknown[] };
  return JSON.stringify({ keys: [...keys, ...Array<object>(MANY_KEYS - keys.length).fill({})] });
}

function wrongIssuer(body: string): string {
  const document = JSON.parse(body) as Record<string, unknown>;
  return JSON.stringify('issuer' in document ? { ...document, issuer: 'https://wrong.test/' } : document);
}
