/*
 * The demo's page on loopback: its files, what it shows as JSON, and tokens that are bound to a key of the
 * browser, because a browser does not trust the provider's certificate. The page calls the service itself,
 * from its own origin. Trusts only requests that name this host, so that no other site can read the tokens.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Client, Provider } from '../idp/provider.ts';
import { askForToken, tokenEndpointOf } from './clients.ts';
import type { Group } from './examples.ts';

/** What the page is told. */
export interface Shown {
  readonly profile: string;
  readonly origin: string;
  readonly provider: Provider;
  readonly clients: readonly Client[];
  readonly tokens: ReadonlyMap<string, string>;
  readonly groups: readonly Group[];
}

export interface Web {
  readonly origin: string;
  /** From now on the page shows this; before, its data are not available. */
  show(what: Shown): void;
  stop(): void;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
}

const SCRIPT_TYPE = 'text/javascript; charset=utf-8';

/** The name and the media type of each file, by its path. */
export const FILES: Readonly<Record<string, readonly [string, string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/page.js': ['page.js', SCRIPT_TYPE],
  '/view.js': ['view.js', SCRIPT_TYPE],
  '/call.js': ['call.js', SCRIPT_TYPE],
  '/curl.js': ['curl.js', SCRIPT_TYPE],
  '/dpop.js': ['dpop.js', SCRIPT_TYPE],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

const JSON_TYPE = 'application/json';
const MOST_BODY_BYTES = 1_024;

const good = (type: string, body: string | Buffer): Reply => ({ status: 200, type, body });

const refusal = (status: number, message: string): Reply => ({
  status,
  type: JSON_TYPE,
  body: JSON.stringify({ error: message }),
});

/**
 * Nothing but files of this origin, and requests to it and to the service (Content Security Policy Level 3).
 */
const policyFor = (service: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${service}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

/** Listens on a free port of the loopback address. */
export async function startWeb(): Promise<Web> {
  let shown: Shown | undefined;
  const server = createServer(async (request, response) => {
    const { port } = server.address() as AddressInfo;
    const isOurs = request.headers.host === `127.0.0.1:${port}`;
    const reply = isOurs ? await replyTo(request, shown) : refusal(421, 'this is another host');
    response.writeHead(reply.status, {
      'Content-Type': reply.type,
      'Content-Security-Policy': policyFor(shown?.origin ?? ''),
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    });
    response.end(reply.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    show: (what) => {
      shown = what;
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function replyTo(request: IncomingMessage, shown: Shown | undefined): Promise<Reply> {
  if (shown === undefined) return refusal(503, 'the service is starting');

  const { method, url = '' } = request;
  if (url === '/token') return method === 'POST' ? boundToken(request, shown) : refusal(405, 'use POST');
  if (url === '/rotate') return method === 'POST' ? rotate(request, shown) : refusal(405, 'use POST');
  if (method !== 'GET' && method !== 'HEAD') return refusal(405, 'use GET');
  if (url === '/demo.json') return good(JSON_TYPE, JSON.stringify(descriptionOf(shown)));

  const file = Object.hasOwn(FILES, url) ? FILES[url] : undefined;
  if (file === undefined) return refusal(404, 'nothing is here');
  const [name, type] = file;
  return good(type, readFileSync(new URL(`web/${name}`, import.meta.url)));
}

function descriptionOf({ profile, origin, provider, tokens, groups }: Shown) {
  return {
    profile,
    service: origin,
    tokenEndpoint: tokenEndpointOf(provider),
    tokens: Object.fromEntries(tokens),
    groups,
  };
}

/** Makes the provider sign with a new key. The old one stays published, so that its tokens stay valid. */
function rotate({ headers }: IncomingMessage, { provider }: Shown): Reply {
  // As for tokens.
  if (headers['content-type'] !== JSON_TYPE) return refusal(415, 'send JSON');
  const { kid } = provider.rotate();
  return good(JSON_TYPE, JSON.stringify({ kid }));
}

/** Passes the proof on to the provider, whose token is then bound to the proof's key (RFC 9449 §5). */
async function boundToken(request: IncomingMessage, { provider, clients }: Shown): Promise<Reply> {
  // A page of another site cannot send this media type without a preflight, which is not granted.
  if (request.headers['content-type'] !== JSON_TYPE) return refusal(415, 'send JSON');
  const name = clientIn(await readText(request));
  const client = clients.find(({ id }) => id === name);
  if (client === undefined) return refusal(400, 'there is no such client');

  const proof = request.headers.dpop;
  if (typeof proof !== 'string') return refusal(400, 'there is no proof');
  const { status, body } = await askForToken(provider, client, proof);
  return { status, type: JSON_TYPE, body };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MOST_BODY_BYTES) return '';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function clientIn(text: string): unknown {
  try {
    return JSON.parse(text)?.client;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}
