/* A Next.js application with the lines of the page: built and started with Next's commands, and, with a
   `basePath`, in development mode. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { samplesUnder } from '../../docs/pages.ts';
import { must } from './must.ts';
import { PAGE } from './programs.ts';
import type { Running, Workshop } from './workshop.ts';

const NEXT = fileURLToPath(new URL('../node_modules/next/dist/bin/next', import.meta.url));
const TSC = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));

interface NextApp {
  readonly basePath: string;
  readonly command: 'start' | 'dev';
}

export const NEXT_APPS: Readonly<Record<string, NextApp>> = {
  next16: { basePath: '', command: 'start' },
  'next16-basePath': { basePath: '/base', command: 'dev' },
};

export const PUBLIC_URL = 'https://api.example.com';

/** The root is `/`, since packages may be installed anywhere. */
const configOf = (basePath: string) => `export default {
  basePath: '${basePath}',
  turbopack: { root: '/' },
  typescript: { ignoreBuildErrors: true },
};`;

/** Next.js looks for this file in every folder above, and would find `src/proxy.ts` of this repository. */
const NO_PROXY = `export const config = { matcher: '/no-such-path' };
export function proxy() {}
`;

const FLAGS = [
  ...['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--types', 'node', '--target', 'es2023'],
  ...['--module', 'esnext', '--moduleResolution', 'bundler'],
];

/** Writes the application, checks its types, builds and starts it. */
export async function startNext(
  name: string,
  { basePath, command }: NextApp,
  { directory, start }: Workshop,
): Promise<Running> {
  const app = join(directory, name);
  mkdirSync(join(app, 'app/api/orders'), { recursive: true });
  const [gate = '', route = ''] = samplesUnder(PAGE, 'Next.js', 'ts');
  const options = `{
    ...JSON.parse(process.env.GATE_OPTIONS ?? ''),
    fetchKeys: async (_issuer, name) => (await fetch(process.env.KEYS_URL + '/' + name)).json(),
  }`;
  const files = {
    'package.json': '{"private":true}',
    'next.config.ts': configOf(basePath),
    'proxy.ts': NO_PROXY,
    'gate.ts': gate.replace(/\{\s+domain[^]*?\}/, options),
    'app/api/orders/route.ts': route,
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(app, file), text);

  must(process.execPath, [TSC, ...FLAGS, 'gate.ts', 'app/api/orders/route.ts'], app);
  if (command === 'start') must(process.execPath, [NEXT, 'build'], app);
  const words = [process.execPath, NEXT, command, '-H', '127.0.0.1', '-p', '0'];
  return start(words, { publicUrl: PUBLIC_URL + basePath }, app);
}
