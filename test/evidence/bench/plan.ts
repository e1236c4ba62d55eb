/* The servers, the cases, and durations, as the environment says. */
import { SLICES, type Records } from './pools.ts';

const wholeNumber = (name: string, otherwise: number): number => {
  const value = Number(process.env[name] ?? otherwise);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} must be a positive number`);
  return value;
};

/** Only the cases that have a goal, in more rounds: about 10 minutes. */
export const isShort = process.env.BENCH_SHORT === '1';

export const ROUNDS = wholeNumber('BENCH_ROUNDS', isShort ? 15 : 5);
export const SECONDS = wholeNumber('BENCH_SECONDS', 1);

/** In a short run, other servers take part in every third round. */
export const takesPart = ({ name }: { readonly name: string }, round: number): boolean =>
  !isShort || round % 3 === 0 || /^(?:plain|rs256|es256|gatehouse)/.test(name);

/** The number of distinct tokens for the measurement of memory. */
export const DISTINCT_TOKENS = wholeNumber(
  'BENCH_TOKENS',
  process.env.BENCH_FULL === '1' ? 1_000_000 : 100_000,
);

/** Requests per second for the measurement of latency. */
export const RATE = 1_000;
/**
 * New tokens, and as many forged ones, for each round of their cases: about twice as many as a server here
 * can verify. In a short run, our own generator sends fewer: it stops when there are no more.
 */
export const SLICE = isShort ? 15_000 : 50_000 * Math.ceil(SECONDS);
/** New proofs, or bound tokens with their proofs. */
export const SLICE_OF_PROOFS = isShort ? 3_000 : SLICE;

export interface ServerPlan {
  readonly name: string;
  readonly title: string;
  /** Relative to this folder. */
  readonly file: string;
  readonly environment: Readonly<Record<string, string>>;
}

const peer = (name: string, title: string, file: string, environment = {}): ServerPlan => ({
  name,
  title,
  file: `servers/${file}.mjs`,
  environment,
});

export const PLAIN = peer('plain', 'plain node:http', 'plain');

/** Fetches the keys before it answers, as a start with keys must. */
export const PLAIN_FETCH = peer('plain-fetch', 'plain node:http + one fetch', 'plain', { FETCHES: 'true' });

export const GATEHOUSE: ServerPlan = {
  name: 'gatehouse',
  title: 'gatehouse',
  file: '../../../dist/server.js',
  environment: {},
};

const EXPRESS = peer('express', 'Express 5 + express-oauth2-jwt-bearer', 'express');

const FASTIFY_CACHE = peer('fastify-cache', 'Fastify 5 + @fastify/jwt, cache on', 'fastify', {
  // As many entries as gatehouse caches by default.
  CACHE: '10000',
});

const FASTIFY = peer('fastify', 'Fastify 5 + @fastify/jwt', 'fastify', { CACHE: '0' });

const JOSE = peer('jose', 'node:http + jose', 'jose');

const PEERS = [EXPRESS, FASTIFY, FASTIFY_CACHE, JOSE, peer('hono', 'Hono + jwk middleware', 'hono')];

/** Compared with new tokens, to show the cost of their verification alone. */
export const RS256 = peer('rs256', 'plain node:http + one RS256 verification', 'rs256');

/** A server that does only what every verifier must. If a goal is missed, it shows how much was possible. */
export const VERIFIER = peer('verifier', 'the least that a verifier of tokens does', 'verifier');

/** The cases whose paths the plain server knows. */
export const isBase = ({ name }: { readonly name: string }): boolean =>
  [PLAIN, PLAIN_FETCH, RS256, VERIFIER].some((base) => base.name === name);

/** The bases and the service of the cases with DPoP. */
export const ES256 = peer('es256', 'plain node:http + one ES256 verification', 'es256');

export const RS256_ES256 = peer(
  'rs256-es256',
  'plain node:http + one RS256 and one ES256 verification',
  'es256',
  { TOKENS: 'true' },
);

export const GATEHOUSE_DPOP: ServerPlan = {
  ...GATEHOUSE,
  name: 'gatehouse-dpop',
  title: 'gatehouse, DPoP on',
  // Proofs are made before the round begins, so they are old when they are sent.
  environment: { IDP_DPOP_MODE: 'ALLOWED', IDP_DPOP_IAT_OFFSET_SECONDS: '3600' },
};

/** Your own routes, in a program that uses the package. */
export const OWN: ServerPlan = {
  ...GATEHOUSE,
  name: 'gatehouse-own',
  title: "gatehouse, routes of one's own",
  file: 'servers/own.mjs',
};

/** Whether the server reads the settings of gatehouse. */
export const isOurs = ({ file }: ServerPlan): boolean => /dist\/server\.js$|servers\/own\.mjs$/.test(file);

/** The servers that read and parse the body of the POST, and those that also validate it. */
export const PLAIN_POST: ServerPlan = { ...PLAIN, file: 'servers/plain-post.mjs' };
export const POST_SERVERS = [OWN, EXPRESS, FASTIFY_CACHE];

/** The expected status of each response, and a text in it. */
export interface Expected {
  readonly status: number;
  readonly sample: string;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  readonly connections: number;
  readonly path: string;
  /** The path at which the plain server sends the same bytes. It has as many characters as `path`. */
  readonly plainPath: string;
  readonly expected: Expected;
  /** The tokens of a round, if any. */
  readonly tokens?: (round: number) => Records;
  /** The highest ratio of processor time to the base that gatehouse may have. */
  readonly goal?: number;
  /** Whether tokens may be repeated; otherwise a server sees each once. */
  readonly repeats: boolean;
}

const WELCOME: Expected = { status: 200, sample: '"user":"auth0|user"' };
const PRIVATE = { path: '/api/private', plainPath: '/api/private', expected: WELCOME };

const WARM_GOALS: Readonly<Record<string, number>> = { '1-1': 1.05, '1-50': 1.03, '1000-50': 1.06 };

const warm = (tokens: number, connections: number): Case => ({
  ...(`${tokens}-${connections}` in WARM_GOALS && { goal: WARM_GOALS[`${tokens}-${connections}`]! }),
  name: `warm-${tokens}-${connections}`,
  connections,
  ...PRIVATE,
  repeats: true,
  tokens: () => SLICES.warm(tokens),
  title: `warm, ${tokens.toLocaleString('en')} token${tokens > 1 ? 's' : ''}, ${connections} connection${connections > 1 ? 's' : ''}`,
});

const COLD: Case = {
  name: 'cold',
  title: 'cold, every token new',
  connections: 50,
  ...PRIVATE,
  repeats: false,
  tokens: (round) => SLICES.cold(round, SLICE),
};

const FORGED: Case = {
  name: 'forged',
  title: 'forged signatures',
  connections: 50,
  path: '/api/private',
  plainPath: '/api/invalid',
  expected: { status: 401, sample: '' },
  repeats: false,
  tokens: (round) => SLICES.forged(round, SLICE),
};

const NO_TOKEN: Case = {
  name: 'no-token',
  title: 'no token (401), 50 connections',
  goal: 0.97,
  connections: 50,
  path: '/api/private',
  plainPath: '/api/missing',
  expected: { status: 401, sample: '' },
  repeats: true,
};

const CASES: readonly Case[] = [
  NO_TOKEN,
  { ...NO_TOKEN, name: 'no-token-1', title: 'no token (401), 1 connection', goal: 1, connections: 1 },
  {
    name: 'public',
    title: 'public route',
    connections: 50,
    path: '/api/public',
    plainPath: '/api/public',
    expected: { status: 200, sample: 'Hello from a public endpoint!' },
    repeats: true,
  },
  warm(1, 50),
  warm(1_000, 50),
  warm(1, 1),
  warm(1_000, 1),
  warm(1, 4),
  warm(1_000, 4),
  COLD,
  FORGED,
];

/** Warm with 1,000 tokens, as in the measurement of latency. */
export const WARM = warm(1_000, 50);

/** Compared with one RS256 verification and nothing else. */
export const FLOORS: readonly Case[] = [
  {
    ...COLD,
    name: 'floor',
    title: 'cold, relative to verifying the RS256 signature',
    goal: 1.17,
  },
  {
    ...FORGED,
    name: 'floor-forged',
    title: 'forged, relative to verifying the RS256 signature',
    goal: 1.09,
  },
];

export const DPOP = {
  name: 'dpop',
  title: 'DPoP warm, relative to verifying the ES256 signature',
  goal: 1.05,
  connections: 50,
  ...PRIVATE,
};

export const DPOP_NEW = {
  ...DPOP,
  name: 'dpop-new',
  title: 'DPoP, new tokens, relative to verifying the RS256 and ES256 signatures',
  goal: 1.15,
};

const LINES = Array.from({ length: 12 }, (_, line) => ({
  sku: `sku-${line}-0123456789abcdef`,
  amount: line + 1,
  note: 'by the side door, please',
}));

export const POST = {
  name: 'post',
  title: 'POST of 1 kB of JSON with a schema, relative to parsing the JSON',
  goal: 1.2,
  connections: 50,
  path: '/api/orders',
  expected: { status: 200, sample: '"lines":12' },
  body: JSON.stringify({ customer: 'a customer', lines: LINES }),
  repeats: true,
};

export const OWN_ROW = {
  name: 'own-route',
  title: 'your own route, relative to the same route of profile B',
  goal: 1.02,
  connections: 50,
  ...PRIVATE,
  repeats: true,
};

const MEASURES = [
  ...CASES.map(({ name }) => name),
  ...FLOORS.map(({ name }) => name),
  DPOP.name,
  DPOP_NEW.name,
  POST.name,
  OWN_ROW.name,
  'latency',
  'start',
  'memory',
  'review',
];

/** Those with a goal. */
const SHORT = [
  ...CASES.filter(({ goal, name }) => goal !== undefined || name === COLD.name).map(({ name }) => name),
  ...[...FLOORS, DPOP_NEW, POST].map(({ name }) => name),
  'start',
];

const chosen = (process.env.BENCH_ONLY ?? '')
  .split(',')
  .map((name) => name.trim())
  .filter((name) => name !== '');

const known = [...MEASURES, PLAIN.name, GATEHOUSE.name, ...PEERS.map(({ name }) => name)];
const strange = chosen.filter((name) => !known.includes(name));
if (strange.length > 0) throw new Error(`BENCH_ONLY: ${strange.join(', ')} is none of ${known.join(', ')}`);

/** Whether BENCH_ONLY leaves anything out. */
export const isPartial = chosen.length > 0;

const choose = (names: readonly string[]): readonly string[] => {
  const some = names.filter((name) => chosen.includes(name));
  return some.length > 0 ? some : names;
};

/** Without a cache, jose and Fastify are slower still. */
const isOfShort = ({ name }: ServerPlan) => ![FASTIFY.name, JOSE.name].includes(name);

const serverNames = choose(
  [GATEHOUSE, ...PEERS.filter((one) => !isShort || isOfShort(one))].map(({ name }) => name),
);

/** The plain server first, since every ratio is to it. */
export const servers: readonly ServerPlan[] = [
  PLAIN,
  ...[GATEHOUSE, ...PEERS].filter(({ name }) => serverNames.includes(name)),
];

const measures = choose(isShort ? SHORT : MEASURES);

export const isMeasured = (measure: string): boolean => measures.includes(measure);

export const cases = CASES.filter(({ name }) => isMeasured(name));

/** What a short run shows. */
export const GOALS: readonly { readonly name: string; readonly title: string; readonly goal?: number }[] = [
  ...CASES.filter(({ goal }) => goal !== undefined),
  ...FLOORS,
  DPOP_NEW,
  POST,
];

export const START = {
  name: 'start',
  title: 'time until the first token is accepted, relative to fetching the keys once',
  goal: 1.45,
};
