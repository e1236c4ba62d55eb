/* The mixed traffic of the soak: each kind of request, how to make the next one, and its only right
   response. */
import { randomUUID } from 'node:crypto';
import { makeSigningKey } from '../../idp/keys.ts';
import type { Provider } from '../../idp/provider.ts';
import { signJws } from '../../idp/tokens.ts';
import { unsignedToken } from '../../faults/process-fixture.ts';
import { getBytes, type LoadResponse, type Shot } from '../../support/load.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';

export interface Kind {
  /** Out of a hundred requests. */
  readonly share: number;
  readonly status: number;
  /** The beginning of the body. */
  readonly begin: string;
  /** The logged reason, if it is refused. */
  readonly reason?: string;
  next(): string;
}

const refused = (error: string) => `{"error":"${error}",`;

const HELLO = '{"message":"Hello from a private endpoint';
/** The number of tokens of each kind that are used in turn; each costs a signature in this process. */
const POOL = 2_000;

/** A text that is sometimes new, otherwise one of the earlier ones. */
function pooled(make: () => string): () => string {
  const pool: string[] = [];
  let count = 0;
  return () => {
    count += 1;
    if (pool.length < POOL && count % 10 === 1) pool.push(make());
    return pool[(count * 7) % pool.length]!;
  };
}

export function createTraffic(provider: Provider, port: number): Readonly<Record<string, Kind>> {
  const { kid } = provider.signingKey;
  const issue = (claims: Record<string, unknown> = {}) => provider.issue({ sub: randomUUID(), ...claims });
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const stranger = makeSigningKey().privateKey;
  const proofKey = makeProofKey();
  const uri = `http://127.0.0.1:${port}/api/private`;
  const bound = issue({ cnf: { jkt: proofKey.thumbprint } });

  const withProof = (proof: string) =>
    `GET /api/private HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: DPoP ${bound}\r\nDPoP: ${proof}\r\n\r\n`;

  const proof = (key = proofKey) => makeProof(key, { token: bound, uri, nowSeconds: nowSeconds() });
  const privately = (make: () => string) => () => getBytes('/api/private', make());
  const otherKey = makeProofKey();
  const claims = { iss: provider.issuer, aud: provider.audience, sub: 'a' };
  const forged = () => signJws({ alg: 'RS256', kid }, { ...claims, exp: nowSeconds() + 600 }, stranger);
  const expired = pooled(() => issue({ exp: nowSeconds() - 1 }));
  const valid = pooled(() => issue());
  const scoped = pooled(() => issue({ scope: 'read:messages' }));
  return {
    valid: { share: 45, status: 200, begin: HELLO, next: privately(valid) },
    'valid with its scope': {
      share: 5,
      status: 200,
      begin: '{"messages":[',
      next: () => getBytes('/api/messages', scoped()),
    },
    'valid on the optional route': {
      share: 2,
      status: 200,
      begin: '{"message":"Welcome back',
      next: () => getBytes('/api/feed', valid()),
    },
    'anonymous on the optional route': {
      share: 2,
      status: 200,
      begin: '{"message":"Welcome, guest',
      next: () => getBytes('/api/feed'),
    },
    public: {
      share: 3,
      status: 200,
      begin: '{"message":"Hello from a public',
      next: () => getBytes('/api/public'),
    },
    ready: { share: 1, status: 200, begin: '{"status":"ready"', next: () => getBytes('/readyz') },
    DPoP: { share: 4, status: 200, begin: HELLO, next: () => withProof(proof()) },
    'DPoP by another key': {
      share: 2,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'key-mismatch',
      next: () => withProof(proof(otherKey)),
    },
    'DPoP token as Bearer': {
      share: 2,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'bound-token',
      next: privately(() => bound),
    },
    'DPoP proof that is too old': {
      share: 1,
      status: 401,
      begin: refused('invalid_dpop_proof'),
      reason: 'proof-too-old',
      next: () => withProof(makeProof(proofKey, { token: bound, uri, nowSeconds: nowSeconds() - 1_000 })),
    },
    'no token': {
      share: 3,
      status: 401,
      begin: refused('unauthorized'),
      reason: 'no-credentials',
      next: () => getBytes('/api/private'),
    },
    expired: {
      share: 5,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'expired',
      next: privately(expired),
    },
    forged: {
      share: 5,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'signature-mismatch',
      next: privately(pooled(forged)),
    },
    'unknown key': {
      share: 8,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'key-unknown',
      next: privately(() => unsignedToken()),
    },
    'for another audience': {
      share: 3,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'audience-mismatch',
      next: privately(pooled(() => issue({ aud: 'other' }))),
    },
    'not a token': {
      share: 3,
      status: 401,
      begin: refused('invalid_token'),
      reason: 'token-malformed',
      next: privately(() => 'a.b'),
    },
    'without its scope': {
      share: 3,
      status: 403,
      begin: refused('insufficient_scope'),
      reason: 'scope-missing',
      next: () => getBytes('/api/messages', valid()),
    },
    nowhere: {
      share: 3,
      status: 404,
      begin: refused('not_found'),
      reason: 'not_found',
      next: () => getBytes('/nowhere', valid()),
    },
  };
}

/** The kinds in turn, by their shares, well mixed. */
export function mix(traffic: Readonly<Record<string, Kind>>): () => Shot {
  const names = Object.entries(traffic).flatMap(([name, { share }]) => Array<string>(share).fill(name));
  let count = 0;
  return () => {
    // 37 and 100 have no common divisor, so every number occurs once in a hundred.
    const kind = names[(count * 37) % names.length]!;
    count += 1;
    return { kind, bytes: traffic[kind]!.next() };
  };
}

/** The problem of a response, if any. */
export function faultOf(
  { shot, status, text }: LoadResponse,
  traffic: Readonly<Record<string, Kind>>,
): string | undefined {
  const kind = traffic[shot.kind]!;
  return status === kind.status && text.startsWith(kind.begin)
    ? undefined
    : `${shot.kind}: ${status} ${text.slice(0, 100)}`;
}
