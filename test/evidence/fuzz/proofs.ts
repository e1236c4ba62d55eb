/* DPoP proofs: gatehouse's checks, against the signature checks of jose and fast-jwt, and an independent
   implementation of the rules of RFC 9449. */
import { createHash, createPublicKey } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import { calculateJwkThumbprint, compactVerify, importJWK, type JWK } from 'jose';
import { ProofVerifier } from '../../../src/verify/dpop/proof.ts';
import { CLIENTS, foreignKey, OWN_MEMBERS, privateJwk, type Members } from './keys.ts';
import { mutateMembers, mutateText, mutateWhole, NOW, spell } from './mutations.ts';
import { judged, judgedByOther, spelled, type Outcome } from './outcome.ts';
import type { Random } from './random.ts';
import { nonceAt } from '../../support/proof.ts';
import { unlessRefused } from '../../support/refused.ts';
import { compact, GOOD_TOKENS, headerOf, json } from './tokens.ts';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'RS256'] as const;
const ORIGIN = 'https://api.test';

const RULES = {
  dpopAlgorithms: ALGORITHMS,
  dpopIatOffsetSeconds: 300,
  dpopIatLeewaySeconds: 30,
  publicUrl: ORIGIN,
  trustProxy: false,
};

const TOKEN = GOOD_TOKENS[0]!;
const ATH = createHash('sha256').update(TOKEN).digest('base64url');
const SECRET = 'a secret of at least thirty-two characters';
const NONCES = [0, 60_000].map((ageMillis) => nonceAt(SECRET, NOW * 1000 - ageMillis));
/** The paths of requests; the origin is that of the public URL. */
const PATHS = ['/api/private', '/api/org/a%2Fb', '/', '/api/a~b/%7e', '/api/%41', '/api/a;b,c'];

const inUri: readonly ((uri: string) => string)[] = [
  (uri) => uri.replace('https', 'HTTPS'),
  (uri) => uri.replace('api.test', 'API.Test'),
  (uri) => uri.replace('api.test', 'api.test:443'),
  (uri) => uri.replace('api.test', 'api.test:'),
  (uri) => uri.replace('api.test', 'api.test:8443'),
  (uri) => uri.replace('https', 'http'),
  (uri) => uri.replace('api.test', 'api.test:0443'),
  (uri) => uri.replace('api.test', 'user@api.test'),
  (uri) => uri.replace('api.test', 'api.test.'),
  (uri) => uri.replace('api.test', 'ａpi.test'),
  (uri) => uri.replace('api.test', 'api%2etest'),
  (uri) => `${uri}?a=b`,
  (uri) => `${uri}#f`,
  (uri) => `${uri}?#`,
  (uri) => `${uri}/`,
  (uri) => `${uri}/.`,
  (uri) => `${uri}/../private`,
  (uri) => uri.replace('/api/', '/x/../api/'),
  (uri) => uri.replace('/api/', '/./api/'),
  (uri) => uri.replace('/api/', '/%2e/api/'),
  (uri) => uri.replace('/api/', '//api/'),
  (uri) => uri.replace('/api/', '\\api\\'),
  (uri) => uri.replace('/api', '/%61pi'),
  (uri) => uri.replace('%2F', '%2f'),
  (uri) => uri.replace('%2F', '/'),
  (uri) => uri.replace('~', '%7E'),
  (uri) => uri.replace('//', '/'),
  (uri) => ` ${uri}`,
  (uri) => `${uri} `,
  (uri) => uri.replace('/api', '/a\tpi'),
  (uri) => uri.replace('test/', 'test\n/'),
  (uri) => uri.slice(ORIGIN.length),
  (uri) => uri.toUpperCase(),
];

interface Case {
  readonly proof: string;
  readonly path: string;
  readonly hasNonces: boolean;
}

/** A good proof of each client, signed once. */
const GOOD_PROOFS = CLIENTS.map(({ alg, jwk, sign }) =>
  compact(
    json({ typ: 'dpop+jwt', alg, jwk }),
    json({ jti: 'id', htm: 'GET', htu: ORIGIN + PATHS[0], iat: NOW, ath: ATH, nonce: NONCES[0] }),
    sign,
  ),
);

function caseFrom(random: Random): Case {
  if (random.chance(0.5)) {
    return {
      proof: mutateWhole(random, random.pick(GOOD_PROOFS)),
      path: PATHS[0]!,
      hasNonces: random.chance(0.5),
    };
  }
  const client = random.pick(random.chance(0.8) ? CLIENTS.slice(0, 6) : CLIENTS);
  const path = random.pick(PATHS);
  const hasNonces = random.chance(0.3);
  const jwk: Members = { ...client.jwk };
  const header: Members = { typ: 'dpop+jwt', alg: client.alg, jwk };
  const claims: Members = {
    jti: 'id',
    htm: 'GET',
    htu: ORIGIN + path,
    iat: NOW - random.pick([0, 0, 1, 300, 301, -30, -31]),
    ath: ATH,
  };
  if (hasNonces) claims.nonce = random.pick(NONCES);
  if (random.chance(0.2)) claims.htu = random.pick(inUri)(String(claims.htu));
  if (random.chance(0.1)) claims.htu = mutateText(random, String(claims.htu));
  if (random.chance(0.15)) mutateMembers(random, jwk);
  if (random.chance(0.05)) {
    header.jwk = random.pick([
      random.pick(CLIENTS).jwk,
      privateJwk(foreignKey),
      { ...jwk, d: 'AA' },
      [jwk],
      null,
    ]);
  }
  for (let changes = random.pick([0, 0, 0, 1, 2]); changes > 0; changes -= 1) {
    mutateMembers(random, random.chance(0.35) ? header : claims);
  }
  const proof = compact(spell(random, header), spell(random, claims), client.sign);
  return { proof: random.chance(0.1) ? mutateWhole(random, proof) : proof, path, hasNonces };
}

/** Each segment's bytes; RFC 3986 §6.2.2.2 makes an escape and its character the same. */
function segmentsOf(uri: string): string[] {
  const { protocol, host, pathname } = new URL(uri);
  return [protocol, host, ...pathname.split('/').map((segment) => decodeURIComponent(segment))];
}

/**
 * RFC 9449 §4.3(3), (4), (8) to (12), as far as gatehouse follows them. Throws for a proof that is about
 * something else.
 */
function checkSubject(header: Members, claims: Members, { path, hasNonces }: Case): void {
  const { typ } = header;
  const { jti, htm, htu, iat, ath, nonce } = claims;
  const hold: Record<string, boolean> = {
    typ: typeof typ === 'string' && ['dpop+jwt', 'application/dpop+jwt'].includes(typ.toLowerCase()),
    jti: typeof jti === 'string' && jti !== '',
    htm: htm === 'GET',
    ath: ath === ATH,
    htu: typeof htu === 'string' && spelled(segmentsOf(htu)) === spelled(segmentsOf(ORIGIN + path)),
    iat:
      typeof iat === 'number' &&
      iat >= NOW - RULES.dpopIatOffsetSeconds &&
      iat <= NOW + RULES.dpopIatLeewaySeconds,
    nonce: !hasNonces || NONCES.some((good) => good === nonce),
  };
  for (const [name, holds] of Object.entries(hold)) {
    if (!holds) throw new Error(`another ${name}`);
  }
}

/**
 * The members that make the key or make it private: `use`, `alg`, `key_ops`, `ext` and others play no part
 * (docs/dpop.md).
 */
function keyMembers(jwk: unknown): JWK {
  const own = OWN_MEMBERS[String((jwk as Members).kty)] ?? [];
  const names = ['kty', 'd', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', ...own];
  return Object.fromEntries(Object.entries(jwk as Members).filter(([name]) => names.includes(name))) as JWK;
}

const readingOf = async (jwk: unknown, claims: Members) =>
  `${await calculateJwkThumbprint(keyMembers(jwk))} ${spelled(claims.jti)}`;

async function verifyWithJose(one: Case): Promise<string> {
  const { payload, protectedHeader } = await compactVerify(
    one.proof,
    async ({ alg, jwk }) => {
      const key = await importJWK(keyMembers(jwk), alg);
      if (key instanceof Uint8Array || key.type !== 'public') throw new Error('not a public key');
      return key;
    },
    { algorithms: [...ALGORITHMS] },
  );
  const claims: Members = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  checkSubject(protectedHeader as Members, claims, one);
  return readingOf(protectedHeader.jwk, claims);
}

const verifyByHeader = createVerifier({
  complete: true,
  algorithms: [...ALGORITHMS],
  ignoreExpiration: true,
  ignoreNotBefore: true,
  cache: false,
  key: async ({ header }: { header: Members }) => {
    const jwk = keyMembers(header.jwk);
    if (jwk.d !== undefined) throw new Error('a private key');
    return createPublicKey({ key: { ...jwk }, format: 'jwk' })
      .export({ format: 'pem', type: 'spki' })
      .toString();
  },
});

async function verifyWithFastJwt(one: Case): Promise<string> {
  const { header, payload } = (await verifyByHeader(one.proof)) as { header: Members; payload: Members };
  checkSubject(header, payload, one);
  return readingOf(header.jwk, payload);
}

/** What a new verifier says, which must be the same once it knows the key. */
function judge({ proof, path, hasNonces }: Case) {
  const proofs = new ProofVerifier({ ...RULES, dpopNonceSecret: hasNonces ? SECRET : undefined });
  const facts = { method: 'GET', host: 'api.test', path, rawHeaders: [] };

  const once = () =>
    judged(() => {
      const { thumbprint, jti } = unlessRefused(proofs.verify(proof, TOKEN, facts, NOW));
      return `${thumbprint} ${spelled(jti)}`;
    });

  const first = once();
  const again = once();
  if (spelled(first) !== spelled(again)) {
    throw new Error(`the verdict changes once the key is known: ${spelled([first, again])}`);
  }
  return first;
}

export async function fuzzProof(random: Random): Promise<Outcome> {
  const one = caseFrom(random);
  const others = {
    jose: await judgedByOther(() => verifyWithJose(one)),
    'fast-jwt': await judgedByOther(() => verifyWithFastJwt(one)),
  };
  const ours = judge(one);
  return { input: one, ours, others, ...(ours.accepted && { algorithm: String(headerOf(one.proof).alg) }) };
}
