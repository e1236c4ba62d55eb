/**
 * What a token request says: its parameters (RFC 6749 §3.2), in a form or, as some providers also have it, in JSON,
 * and the client's credentials (§2.3.1), in its body or by HTTP Basic.
 */
import type { IncomingMessage } from 'node:http';
import { OAuthError } from './oauth-error.ts';

export type Parameters = Readonly<Record<string, unknown>>;

export interface Credentials {
  readonly id: string;
  readonly secret: string;
  /** Whether they came by HTTP Basic, which a refusal then names (RFC 6749 §5.2). */
  readonly isBasic: boolean;
}

const MAX_BODY_BYTES = 64 * 1024;

const malformed = (what: string) => new OAuthError('invalid_request', what);

/** Reads all of a request. Throws an `OAuthError`. */
export async function readParameters(request: IncomingMessage): Promise<Parameters> {
  const body = await readBody(request);
  if (request.method !== 'POST') {
    throw new OAuthError('invalid_request', 'The method must be POST', 405, { Allow: 'POST' });
  }
  const mediaType = (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const parse = PARSERS.get(mediaType);
  if (parse === undefined) throw malformed(`Content-Type must be ${[...PARSERS.keys()].join(' or ')}`);
  if (body === undefined) throw malformed(`The body is over ${MAX_BODY_BYTES} bytes`);
  return parse(textOf(body));
}

/** The body, or nothing if it is too large. Reads all of it, so that the client sees the response. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks) : undefined;
}

function textOf(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw malformed('The body is not UTF-8');
  }
}

const PARSERS: ReadonlyMap<string, (text: string) => Parameters> = new Map([
  ['application/x-www-form-urlencoded', parseForm],
  ['application/json', parseJson],
]);

/** RFC 6749 §3.2: a parameter occurs once, and one without a value counts as omitted. */
function parseForm(text: string): Parameters {
  const entries = [...new URLSearchParams(text)];
  const names = entries.map(([name]) => name);
  if (new Set(names).size < names.length) throw malformed('The body has a parameter twice');
  return Object.fromEntries(entries.filter(([, value]) => value !== ''));
}

function parseJson(text: string): Parameters {
  const value = parsed(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Parameters;
  throw malformed('The body must be a JSON object');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('The body is not JSON');
  }
}

/** A parameter that must be there. */
export function required(parameters: Parameters, name: string): string {
  const value = parameters[name];
  if (typeof value === 'string' && value !== '') return value;
  throw malformed(`${name} is missing or not a string`);
}

/** Throws an `OAuthError` unless the client authenticates itself in exactly one way (RFC 6749 §2.3). */
export function credentialsOf({ headers }: IncomingMessage, parameters: Parameters): Credentials {
  const { authorization } = headers;
  if (authorization === undefined) {
    const id = required(parameters, 'client_id');
    return { id, secret: required(parameters, 'client_secret'), isBasic: false };
  }
  if (parameters['client_secret'] !== undefined) throw malformed('The client is authenticated in two ways');

  const [, encoded = ''] = /^basic +([\w+/]+=*)$/i.exec(authorization) ?? [];
  const [, id, secret] = /^([^:]*):([^]*)$/.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  if (id === undefined || secret === undefined) throw malformed('Authorization is not well-formed Basic');
  const credentials = { id: formDecoded(id), secret: formDecoded(secret), isBasic: true };
  const named = parameters['client_id'] ?? credentials.id;
  if (named !== credentials.id) throw malformed('client_id is not the client of Authorization');
  return credentials;
}

/** RFC 6749 §2.3.1: both are encoded as in a form before they are joined. */
function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw malformed('Authorization is not well-formed Basic');
  }
}
