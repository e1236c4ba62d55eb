/**
 * The faults of the provider, and how each is sent. `listener.ts` applies those of the listener
 * (`ListenerFault`).
 */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { json, send, type Reply } from './reply.ts';

/** For every connection. */
export type ListenerFault =
  /** Closes the listener and cuts its connections. Clearing the fault opens the same port again. */
  | 'refuse'
  /** A certificate of the same authority, only for `other.test`. */
  | 'wrong-host-certificate'
  /** A certificate for the right names that expired in 2021. */
  | 'expired-certificate';

/** For the responses of one endpoint. */
export type NamedFault =
  /** Sends nothing and keeps the connection open. */
  | 'hang-before-headers'
  /** Sends status 200 and header fields, then nothing. */
  | 'hang-after-headers'
  /** Sends status 200, then one blank per 100 ms for ever. */
  | 'drip'
  /** Cuts the connection without a response. */
  | 'reset'
  /** Switches with 101 to a protocol that nobody asked for, and keeps the connection open. */
  | 'switch-protocols'
  /** Sends 200 with a page in `text/html`. */
  | 'html'
  /** Sends the first half of the body, correctly framed. */
  | 'truncated-json'
  /** 200 with `{}`. */
  | 'empty-object'
  /** 200 with `{"keys":[]}`. */
  | 'empty-keys'
  /** Sends the body followed by blanks, 10,000,000 bytes in all, without `Content-Length`. */
  | 'too-large'
  /** Sends the keys followed by empty objects, 100,000 in all: about 300 kB. */
  | 'many-keys'
  /** Sends the body with another `issuer`, if it has one. */
  | 'wrong-issuer'
  /** Sends the body compressed, though nobody asked for it. */
  | 'gzip'
  /** Sends 304 without a body to an unconditional request. */
  | 'not-modified';

/** All faults that `Provider.fault` accepts. */
export type Fault =
  | ListenerFault
  | NamedFault
  /** Sends this status with a JSON body. */
  | { readonly status: number }
  /** Sends a 302 to this URL. */
  | { readonly redirect: string }
  /** Sends the normal response after this time, in milliseconds. */
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

/** Sends the response with the fault, if any. */
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
