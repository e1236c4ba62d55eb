// A test issuer: signing keys in memory, tokens and proofs, so that a team tests its own rows without
// network, certificates or waiting. No part of the service: nothing of it is loaded but by tests.
import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto';
import type { JsonObject } from './base/encoding.ts';
import { authenticated } from './routes/access.ts';
import type { Row, Table } from './routes/row.ts';
import type { Caller } from './sender/caller.ts';
import { clock, createGate, createService } from './service/host.ts';

/** Claims or header members beside the usual ones; one given as `undefined` is left out. */
export type Members = Readonly<Record<string, unknown>>;

/** A client's key for DPoP (RFC 9449): ES256. */
export interface ProofKey {
  /** RFC 7638, base64url: what a bound token names as `cnf.jkt`. */
  readonly thumbprint: string;
  readonly publicJwk: JsonObject;
  readonly privateKey: KeyObject;
}

/** The request that a proof is for: its method, and its URI as the client sees it. */
export interface ProofRequest {
  readonly method: string;
  readonly url: string;
}

/** Whom a test issuer shall be taken for. */
export interface TestIssuerOptions {
  /** Host name of the issuer. Default: `issuer.test`. */
  readonly domain?: string;
  /** Default: `https://api.test`. */
  readonly audience?: string;
}

/** An issuer that `createTestIssuer` has made. */
export type TestIssuer = ReturnType<typeof createTestIssuer>;

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

const nowSeconds = () => Math.floor(Date.now() / 1000);

/** The hash of some text, base64url. */
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');

/**
 * An issuer with a signing key of its own.
 *
 * @example
 * const issuer = createTestIssuer();
 * const service = createService({ rows }, { ...issuer.settings, port: 0 }, issuer);
 * const response = await fetch(`${await service.listen()}/api/orders`, { headers: issuer.bearer({ scope: 'read:orders' }) });
 */
export function createTestIssuer({
  domain = 'issuer.test',
  audience = 'https://api.test',
}: TestIssuerOptions = {}) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = randomUUID();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };

  /** A token that is good for five minutes, with these claims beside the usual ones. */
  function token(claims: Members = {}): string {
    const usual = { iss: `https://${domain}/`, aud: audience, sub: 'test-user', exp: nowSeconds() + 300 };
    const input = `${encode({ alg: 'RS256', typ: 'at+jwt', kid })}.${encode({ ...usual, ...claims })}`;
    return `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`;
  }

  return {
    /** Domain and audience, for `createService` and `createGate`. */
    settings: { domain, audience, logLevel: 'silent' as const },
    /** Gives the key set without a network: the option of `createService` and `createGate`. */
    fetchKeys: async (): Promise<JsonObject> => ({ keys: [jwk] }),
    token,
    /** A token that is bound to the key (RFC 9449 §6.1). */
    boundToken: (key: ProofKey, claims: Members = {}) => token({ cnf: { jkt: key.thumbprint }, ...claims }),
    /** The header fields of a request with such a token. */
    bearer: (claims: Members = {}) => ({ authorization: `Bearer ${token(claims)}` }),
    proof: createProof,
  };
}

/**
 * A key for `boundToken` and `proof`.
 *
 * @example const key = createProofKey();
 */
export function createProofKey(): ProofKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' });
  // RFC 7638 §3.2: the required members in this order.
  const publicJwk = { crv, kty, x, y };
  return { thumbprint: sha256(JSON.stringify(publicJwk)), publicJwk, privateKey };
}

/**
 * A proof for a request with this token (RFC 9449 §4.2), good at once; `claims` go beside or over the usual
 * ones.
 *
 * @example const dpop = createProof(key, { method: 'GET', url }, issuer.boundToken(key));
 */
export function createProof(
  key: ProofKey,
  { method, url }: ProofRequest,
  token: string,
  claims: Members = {},
): string {
  const htu = url.replace(/[?#][^]*/, '');
  const usual = { jti: randomUUID(), htm: method, htu, iat: nowSeconds(), ath: sha256(token) };
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: key.publicJwk };
  const input = `${encode(header)}.${encode({ ...usual, ...claims })}`;
  const signature = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/**
 * Rows that do not answer as their access says: which, asked how, and what came, a line each.
 *
 * @example await assert.rejects(assertRouteMatrix({ rows: wrongRows }), RouteMatrixError);
 */
export class RouteMatrixError extends Error {}

/**
 * Asks every row of a table without credentials, with an expired token, with another scheme, with a token
 * that has neither scopes nor claims, and with a method that its path does not have. Rejects with a
 * `RouteMatrixError` that has every answer which the table does not give. No handler is run.
 *
 * @example test('every row asks for what it says', () => assertRouteMatrix({ rows }));
 */
export async function assertRouteMatrix(table: Table): Promise<void> {
  const issuer = createTestIssuer();
  const rows = table.rows.map(withoutHandler);
  const settings = { ...issuer.settings, host: '127.0.0.1', port: 0 };
  const service = createService({ ...table, rows }, settings, issuer);
  const url = await service.listen();
  try {
    const caller = await admitBare(issuer);
    const cells = rows.flatMap((row) => cellsOf(row, table, issuer, caller));
    const faults = await Promise.all(cells.map((cell) => faultOf(url, cell)));
    const found = faults.filter((fault) => fault !== undefined);
    if (found.length > 0) throw new RouteMatrixError(found.join('\n'));
  } finally {
    await service.stop();
  }
}

/** A caller whose token has neither scopes nor claims: some guards pass it even so. */
async function admitBare(issuer: TestIssuer): Promise<Caller> {
  const gate = await createGate(issuer.settings, issuer);
  const rawHeaders = ['Host', 'localhost', 'Authorization', issuer.bearer().authorization];
  const verdict = await gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
  gate.close();
  if ('caller' in verdict) return verdict.caller;

  throw new Error('a token of the test issuer is refused');
}

interface Cell {
  readonly row: Row;
  readonly method: string;
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

function cellsOf(row: Row, { rows, rules = [] }: Table, issuer: TestIssuer, caller: Caller): readonly Cell[] {
  const { pattern } = row;
  const method: string = row.method;
  const rule = rules.find(({ prefix }) => `${pattern}/`.startsWith(['', ...prefix, ''].join('/')));
  const accesses = [...(rule === undefined ? [] : [rule.access]), row.access];
  const isPublic = accesses.every((access) => access.credentials === 'ignored');
  const isRequired = accesses.some((access) => access.credentials === 'required');
  const ofPath = rows.filter((other) => other.pattern === pattern).map((other): string => other.method);
  const otherMethod = METHODS.find((name) => !ofPath.includes(name));

  const refused = isPublic ? 200 : 401;
  const cells = [
    { method, what: 'no credentials', headers: {}, status: isRequired ? 401 : 200 },
    { method, what: 'an expired token', headers: issuer.bearer({ exp: 1 }), status: refused },
    { method, what: 'another scheme', headers: { authorization: 'Basic eA==' }, status: refused },
    {
      method,
      what: 'neither scopes nor claims',
      headers: issuer.bearer(),
      status: statusFor(caller, accesses),
    },
  ];
  if (otherMethod !== undefined && rule === undefined) {
    cells.push({ method: otherMethod, what: 'another method', headers: {}, status: 405 });
  }
  return cells.map((cell) => ({ row, ...cell }));
}

const TIMING = { clock, clockToleranceSeconds: 0 };

/** What these say to the caller, the first that refuses; a login is asked for last. */
function statusFor(caller: Caller, accesses: readonly Row['access'][]): number {
  const failing = accesses.map(({ guards }) => guards.filter((guard) => !guard.passes(caller, TIMING)));
  const [refusing] = failing.filter((guards) => guards.length > 0);
  if (refusing === undefined) return 200;

  const isOfLogin = refusing.every(({ refused }) => 'demands' in refused.refusal);
  return isOfLogin ? 401 : 403;
}

async function faultOf(
  url: string,
  { row, method, what, headers, status }: Cell,
): Promise<string | undefined> {
  const path = row.pattern.replace(/\{\w+\}/g, 'x');
  // Or the service would wait for what else comes on the connection.
  const response = await fetch(url + path, { method, headers: { ...headers, connection: 'close' } });
  await response.arrayBuffer();
  if (response.status === status) return undefined;

  return `${method} ${row.pattern} (${row.access.name}) with ${what}: ${response.status} instead of ${status}`;
}

/** The row with its access, taking nothing and doing nothing. */
const withoutHandler = (row: Row): Row => ({
  ...row,
  take: undefined,
  handle: () => ({}),
});
