/* Applications of SvelteKit and Astro with the lines of the page, built and started as each says for Node. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import { samplesUnder } from '../../docs/pages.ts';
import { must } from './must.ts';
import { PAGE } from './programs.ts';
import type { Running, Workshop } from './workshop.ts';

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
/** Both need Node 22. */
const NODE = join(MODULES, 'node24/bin/node');

interface ViteApp {
  readonly files: Readonly<Record<string, string>>;
  readonly endpoint: string;
  /** Words of Node. */
  readonly build: readonly string[];
  readonly start: readonly string[];
}

/** Has the lines of the page. */
const GATE_FILE = 'src/gate.ts';

const ENDPOINT = 'export const GET = ({ request }) => readOrders(request);';

export const VITE_APPS: Readonly<Record<string, ViteApp>> = {
  sveltekit3: {
    files: {
      'vite.config.js': `
import adapter from '@sveltejs/adapter-node';
import { sveltekit } from '@sveltejs/kit/vite';
export default { plugins: [sveltekit({ adapter: adapter() })], ssr: { external: ['gatehouse-http'] } };`,
      'src/app.html':
        '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
    },
    endpoint: 'src/routes/api/orders/+server.js',
    build: [join(MODULES, 'vite/bin/vite.js'), 'build'],
    start: ['build/index.js'],
  },
  astro7: {
    files: {
      'astro.config.mjs': `
import node from '@astrojs/node';
import { defineConfig } from 'astro/config';
export default defineConfig({
  output: 'server',
  adapter: node({ mode: 'standalone' }),
  // Where packages of several projects lie side by side, others are found.
  vite: { ssr: { noExternal: true, external: ['gatehouse-http'] } },
});`,
    },
    endpoint: 'src/pages/api/orders.js',
    build: [join(MODULES, 'astro/bin/astro.mjs'), 'build'],
    start: ['dist/server/entry.mjs'],
  },
};

/** A build loads the module, but has no options. */
const GATE = `
import { createGate, needs, scope } from 'gatehouse-http/gate';

let opened;
const openGate = () =>
  (opened ??= createGate({
    ...JSON.parse(process.env.GATE_OPTIONS ?? ''),
    fetchKeys: async (_issuer, name) => (await fetch(process.env.KEYS_URL + '/' + name)).json(),
  }));
const gate = { check: (request, access) => openGate().check(request, access) };
`;

/** Writes the application, builds and starts it. */
export async function startViteApp(
  name: string,
  { files, endpoint, build, start: startWords }: ViteApp,
  { directory, start }: Workshop,
): Promise<Running> {
  const app = join(directory, name);
  const [lines = ''] = samplesUnder(PAGE, 'Any other server', 'ts');
  const depth = '../'.repeat(endpoint.split('/').length - 2);
  const whole = {
    ...files,
    'package.json': '{"private":true,"type":"module"}',
    [GATE_FILE]: `${GATE}\nexport ${lines}`,
    [endpoint]: `import { readOrders } from '${depth}gate.ts';\nexport const prerender = false;\n${ENDPOINT}`,
  };

  for (const [file, text] of Object.entries(whole)) {
    mkdirSync(dirname(join(app, file)), { recursive: true });
    writeFileSync(join(app, file), text);
  }

  must(NODE, build, app);
  const port = await freePort();
  const environment = ['env', `PORT=${port}`, 'HOST=127.0.0.1'];
  return start([...environment, NODE, ...startWords], {}, app);
}
