/* The orders API of test/package/orders, and the same with Express, Fastify and Hono, each written as its documents
   recommend: sends all of them the same requests, and compares the outcomes with those of results.json, from
   which the tables of docs/compared.md are made. `--write` writes that file.

   Shows: the size and safeguards of [the same API](docs/compared.md#the-same-api-four-times) in several frameworks.
   Takes: 40 s.
   Needs: packages. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { freePort } from '../../support/free-port.ts';
import { until } from '../../support/watch.ts';
import { REQUESTS, type Trial } from './requests.ts';
import {
  differencesIn,
  PROGRAMS,
  readResults,
  RESULTS,
  sizeOf,
  type Program,
  type Results,
} from './results.ts';

const PATIENCE_SECONDS = 30;

const fileAt = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const isListening = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1');
  const opened = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
};

async function start({ name, files }: Program, provider: Provider): Promise<Trial> {
  const port = await freePort();
  const child = spawn(process.execPath, [fileAt(files.at(-1)!)], {
    cwd: tmpdir(),
    stdio: ['ignore', 'ignore', process.argv.includes('--errors') ? 'inherit' : 'ignore'],
    env: {
      NODE_EXTRA_CA_CERTS: provider.authorityFile,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      // What the others read.
      ISSUER: provider.issuer,
      AUDIENCE: provider.audience,
      JWKS_URI: `${provider.issuer}.well-known/jwks.json`,
      // What gatehouse reads.
      IDP_DOMAIN: provider.domain,
      IDP_AUDIENCE: provider.audience,
    },
  });
  await until(`${name} listens`, () => isListening(port), PATIENCE_SECONDS);
  return { port, child, provider };
}

async function outcomesOf(program: Program) {
  const provider = await startProvider();
  const trial = await start(program, provider);
  const outcomes: Record<string, string> = {};
  try {
    for (const [name, outcome] of Object.entries(REQUESTS)) {
      outcomes[name] = await outcome(trial).catch((error) => `no response (${error.code ?? error.name})`);
    }
  } finally {
    trial.child.kill('SIGKILL');
    await provider.stop();
  }
  return outcomes;
}

const versionOf = (name: string): string =>
  JSON.parse(readFileSync(fileAt(`../node_modules/${name}/package.json`), 'utf8')).version;

const withOf = ({ packages }: Program) =>
  packages.map((name) => `${name.startsWith('.') ? 'gatehouse-http' : name} ${versionOf(name)}`).join(', ');

const results: Record<string, Results[string]> = {};

for (const program of PROGRAMS) {
  results[program.name] = { with: withOf(program), outcomes: await outcomesOf(program) };
}

for (const name of differencesIn(results)) {
  console.log(name);
  for (const [program, { outcomes }] of Object.entries(results)) {
    console.log(`  ${program}: ${outcomes[name]}`);
  }
}

for (const program of PROGRAMS) {
  const { lines, tokens, decisions } = sizeOf(program);
  console.log(`${program.name}: ${lines} lines, ${tokens} tokens, ${decisions.length} safeguards`);
  for (const what of decisions) console.log(`  ${what}`);
}

const isWrite = process.argv.includes('--write');
if (isWrite) writeFileSync(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`);

if (!isDeepStrictEqual(readResults(), results)) {
  console.error('the outcomes differ from results.json: look, then run it with --write, and npm run docs');
  process.exitCode = 1;
}
