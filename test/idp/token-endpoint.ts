/**
 * `POST /oauth/token`: the client-credentials grant (RFC 6749 §4.4). Ignores unknown parameters (§3.2).
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { verifyProof } from './dpop.ts';
import { OAuthError } from './oauth-error.ts';
import { json, type Reply } from './reply.ts';
import {
  credentialsOf,
  readParameters,
  required,
  type Credentials,
  type Parameters,
} from './token-request.ts';

/** A machine-to-machine application that is authorised for the API. */
export interface Client {
  readonly id: string;
  readonly secret: string;
  /** The scopes that may be granted, if the API defines them. */
  readonly scopes: readonly string[];
  /** Added to its tokens. They replace standard claims. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The `sub` of its tokens. Default: `<id>@clients`, as Auth0 has it. */
  readonly subject?: string;
  /** Default: only `client_credentials`. */
  readonly grantTypes?: readonly string[];
}

/** What the endpoint needs. */
export interface TokenService {
  /** With its trailing slash. */
  readonly issuer: string;
  readonly audience: string;
  /** The scopes that the API defines. */
  readonly scopes: readonly string[];
  readonly clients: readonly Client[];
  readonly nowSeconds: () => number;
  readonly issue: (claims: Record<string, unknown>) => string;
}

type Members = Record<string, unknown>;

const GRANT_TYPE = 'client_credentials';

/** Below the issuer. */
export const TOKEN_PATH = 'oauth/token';

/** Lifetime of every token, in seconds. */
export const TOKEN_LIFETIME_SECONDS = 3600;

/** Answers a request with any method. */
export async function responseTokenRequest(request: IncomingMessage, service: TokenService): Promise<Reply> {
  try {
    const parameters = await readParameters(request);
    return json(200, grant(request, parameters, service), { 'Cache-Control': 'no-store' });
  } catch (error) {
    if (error instanceof OAuthError) return error.toReply();
    throw error;
  }
}

/** The body of a successful response (RFC 6749 §5.1). */
function grant(request: IncomingMessage, parameters: Parameters, service: TokenService): Members {
  const grantType = required(parameters, 'grant_type');
  const client = authenticate(service.clients, credentialsOf(request, parameters));
  checkGrantType(client, grantType);
  checkAudience(parameters['audience'], service, client);
  const scope = grantedScopes(parameters['scope'], service, client).join(' ');
  const jkt = boundKey(request, service);
  const token = service.issue(tokenClaims(client, scope, jkt));
  return {
    access_token: token,
    token_type: jkt === undefined ? 'Bearer' : 'DPoP',
    expires_in: lifetimeOf(token),
    ...(scope === '' ? {} : { scope }),
  };
}

/** Seconds, which a client's own claims may set; 0 for a token that has expired. */
function lifetimeOf(token: string): number {
  const { iat, exp } = JSON.parse(String(Buffer.from(token.split('.')[1]!, 'base64url')));
  return Math.max(0, exp - iat);
}

function authenticate(clients: readonly Client[], { id, secret, isBasic }: Credentials): Client {
  const client = clients.find((candidate) => candidate.id === id);
  // Compares digests of one length, even for an unknown client, so that timing reveals neither.
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const same = timingSafeEqual(digest(client?.secret ?? ''), digest(secret));
  if (client !== undefined && same) return client;
  const fields = isBasic ? { 'WWW-Authenticate': 'Basic realm="token"' } : {};
  throw new OAuthError('invalid_client', 'client_id or client_secret is wrong', 401, fields);
}

function checkGrantType(client: Client, grantType: string): void {
  if (grantType !== GRANT_TYPE) {
    throw new OAuthError('unsupported_grant_type', `grant_type must be ${GRANT_TYPE}`);
  }
  if ((client.grantTypes ?? [GRANT_TYPE]).includes(grantType)) return;
  throw new OAuthError('unauthorized_client', `The client may not use grant_type ${GRANT_TYPE}`);
}

/** The only API is also the default one. */
function checkAudience(audience: unknown, service: TokenService, client: Client): void {
  if (audience === undefined || audience === service.audience) return;
  // RFC 6749 §5.2 limits the characters of a description, so it quotes only the allowed ones of the audience.
  const shown = String(audience).replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?');
  throw new OAuthError('access_denied', `Client ${client.id} is not authorized to access ${shown}`, 403);
}

/**
 * All scopes of the client if none is requested, as Auth0 grants them; otherwise the requested ones, each
 * once.
 */
function grantedScopes(scope: unknown, service: TokenService, client: Client): string[] {
  const grantable = client.scopes.filter((name) => service.scopes.includes(name));
  if (scope === undefined) return grantable;
  // RFC 6749 §3.3: one space between scope tokens, which are printable but for quote and backslash.
  if (typeof scope !== 'string') throw new OAuthError('invalid_request', 'scope must be a string');
  const names = scope.split(' ');
  if (!names.every((name) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name))) {
    throw new OAuthError('invalid_scope', 'scope must be names with one space between them');
  }
  const refused = names.find((name) => !grantable.includes(name));
  if (refused === undefined) return [...new Set(names)];
  const reason = service.scopes.includes(refused)
    ? 'is not granted to the client'
    : 'is not defined on the API';
  throw new OAuthError('invalid_scope', `The scope ${refused} ${reason}`);
}

function boundKey(request: IncomingMessage, service: TokenService): string | undefined {
  const proof = request.headers['dpop'];
  if (proof === undefined) return undefined;
  // Repeated header fields are joined by commas, which no proof contains.
  return verifyProof(String(proof), service.issuer + TOKEN_PATH, service.nowSeconds());
}

function tokenClaims(client: Client, scope: string, jkt: string | undefined): Members {
  return {
    sub: client.subject ?? `${client.id}@clients`,
    client_id: client.id,
    azp: client.id,
    gty: 'client-credentials',
    jti: randomUUID(),
    ...(scope === '' ? {} : { scope }),
    ...client.claims,
    ...(jkt === undefined ? {} : { cnf: { jkt } }),
  };
}
