/* Measured once in the life of a process: start, memory, and loaded files. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../../idp/provider.ts';
import { plainResponses } from './answers.ts';
import { sendAll } from './generators.ts';
import {
  DISTINCT_TOKENS,
  GATEHOUSE,
  isBase,
  isMeasured,
  PLAIN_FETCH,
  ROUNDS,
  servers as peers,
  takesPart,
  VERIFIER,
  WARM,
} from './plan.ts';
import { tokensOf } from '../../support/tokens.ts';
import { ISSUER, oneToken, SLICES } from './pools.ts';
import { startServer, type RunningServer } from './processes.ts';
import type { Review } from './results.ts';
import { demandQuiet } from './quiet.ts';
import { ABSENT, noteIn, type Figures } from './rounds.ts';

const servers = [...peers, VERIFIER];

/** Of the start. */
const starting = [PLAIN_FETCH, ...servers];

/**
 * The response of a protected route to a valid token. A server that is still fetching keys may respond
 * otherwise.
 */
export async function firstWelcome(server: RunningServer, token: string): Promise<number> {
  for (;;) {
    const { response, millis } = await server.firstResponse('/api/private', token);
    if (response.status === 200) return millis;
  }
}

/**
 * Milliseconds from the start of a process to its first response to a token. gatehouse discovers its keys, as
 * by default.
 */
export async function measureStart(provider: Provider, figures: Figures): Promise<void> {
  if (!isMeasured('start')) return;
  const note = noteIn(figures);
  const ANSWERS = await plainResponses(provider);
  const ours = { IDP_ISSUER: provider.issuer, IDP_JWKS_URI: undefined };
  const discovered = { ...ours, ANSWERS, ISSUER: provider.issuer, DISCOVERED: 'true' };
  for (let round = 0; round < ROUNDS; round += 1) {
    await demandQuiet();
    for (const plan of starting) {
      if (!takesPart(plan, round)) {
        note('start', plan.name, ABSENT);
        continue;
      }

      const isDiscovering = plan === GATEHOUSE || plan === VERIFIER;
      const server = await startServer(plan, provider, isDiscovering ? discovered : { ANSWERS });
      const token = oneToken(isDiscovering ? provider.issuer : ISSUER);
      note('start', server.name, await firstWelcome(server, token));
      await server.stop();
    }
  }
}

/** Resident memory in MiB after one response, and after as many distinct tokens as the plan says. */
export async function measureMemory(provider: Provider, figures: Figures): Promise<void> {
  if (!isMeasured('memory')) return;
  const note = noteIn(figures);
  const ANSWERS = await plainResponses(provider);
  for (const plan of servers) {
    process.stderr.write(`memory of ${plan.name}\n`);
    const server = await startServer(plan, provider, { ANSWERS });
    try {
      await firstWelcome(server, oneToken());
      note('memory-idle', server.name, server.residentMebibytes());
      const path = isBase(plan) ? WARM.plainPath : WARM.path;
      await sendAll(server, { ...WARM, path, records: SLICES.all(DISTINCT_TOKENS) });
      note('memory-loaded', server.name, server.residentMebibytes());
    } finally {
      await server.stop();
    }
  }
}

const SOURCE = fileURLToPath(new URL('../../../src/', import.meta.url));

const tokenCount = (file: string) => tokensOf(readFileSync(file, 'utf8')).length;

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/**
 * What a reviewer has to read: the files that a server has loaded after a response, without those of Node and
 * its own few lines.
 */
export async function reviewOf(provider: Provider): Promise<Review[]> {
  if (!isMeasured('review')) return [];
  const ANSWERS = await plainResponses(provider);
  const reviews: Review[] = [];
  for (const plan of peers) {
    const files =
      plan.name === GATEHOUSE.name
        ? filesIn(SOURCE)
        : await loadedFiles((more) => startServer(plan, provider, { ANSWERS, ...more }));
    const packages = new Set(
      files
        .map((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0])
        .filter((name) => name !== undefined),
    );
    const tokens = files.reduce((sum, file) => sum + tokenCount(file), 0);
    reviews.push({ server: plan.name, packages: packages.size, files: files.length, tokens });
  }
  return reviews;
}

/** The files of packages in Node's record of coverage. */
async function loadedFiles(start: (more: NodeJS.ProcessEnv) => Promise<RunningServer>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  try {
    const server = await start({ NODE_V8_COVERAGE: folder });
    await firstWelcome(server, oneToken());
    await server.stop('SIGTERM');
    const urls: string[] = filesIn(folder).flatMap((file) =>
      JSON.parse(readFileSync(file, 'utf8')).result.map(({ url }: { url: string }) => url),
    );
    return [...new Set(urls)]
      .filter((url) => url.startsWith('file:') && url.includes('/node_modules/'))
      .map((url) => fileURLToPath(url));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
