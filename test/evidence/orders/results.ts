/* The four programs of the comparison, what is counted of their source text, and where the results are. */
import { readFileSync } from 'node:fs';
import { countTokens } from '../../support/closures.ts';

export interface Program {
  readonly name: string;
  /** From this folder; the last one is the main file. */
  readonly files: readonly string[];
  /** The packages that its file imports, from the folder of packages; the first one has the version. */
  readonly packages: readonly string[];
}

const OWN = '../../package/orders';

export const PROGRAMS: readonly Program[] = [
  { name: 'gatehouse', files: [`${OWN}/orders.mjs`, `${OWN}/main.mjs`], packages: ['../../..'] },
  { name: 'Express', files: ['servers/express.mjs'], packages: ['express', 'express-oauth2-jwt-bearer'] },
  { name: 'Fastify', files: ['servers/fastify.mjs'], packages: ['fastify', '@fastify/jwt', 'get-jwks'] },
  { name: 'Hono', files: ['servers/hono.mjs'], packages: ['hono', '@hono/node-server', 'jose'] },
];

export interface Size {
  readonly lines: number;
  readonly tokens: number;
  readonly decisions: readonly string[];
}

const textOf = ({ files }: Program) =>
  files.map((name) => readFileSync(new URL(name, import.meta.url), 'utf8')).join('');

/** What an author has to think of, because nothing fails without it, is marked in the source text. */
export function sizeOf(program: Program): Size {
  const text = textOf(program);
  const lines = text.split('\n').map((line) => line.trim());
  return {
    lines: lines.filter((line) => line !== '' && !line.startsWith('//')).length,
    tokens: countTokens(text),
    decisions: [...text.matchAll(/\/\/ Decision: (.+)$/gm)].map(([, what = '']) => what),
  };
}

/** By program: what it is made with, and what each request came to. */
export type Results = Readonly<Record<string, { with: string; outcomes: Readonly<Record<string, string>> }>>;

export const RESULTS = new URL('results.json', import.meta.url);

export const readResults = () => JSON.parse(readFileSync(RESULTS, 'utf8')) as Results;

/** The requests of which not all programs make the same. */
export function differencesIn(results: Results): readonly string[] {
  const all = Object.values(results).map(({ outcomes }) => outcomes);
  return Object.keys(all[0] ?? {}).filter((name) => new Set(all.map((outcomes) => outcomes[name])).size > 1);
}
