/* Builds another commit in a temporary folder, and measures its server beside that of this folder, in turns: the
   processor time of a request, and the time of a start. Words after the commit choose cases. The servers take turns in
   every round and begin in another order each time, so other work on the machine touches both alike; it widens the
   range that is printed beside each ratio: half of the rounds are within it. BENCH_NODE names another line of Node.

   Shows: how a commit changes CPU time and startup time (`npm run evidence before HEAD~3 -- --rounds 15 --seconds
   0.5`; words choose cases).
   Takes: 6 min.
   Needs: git. */
import { existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { printTable, type Row } from '../../support/figures.ts';
import { throughput } from '../bench/generators.ts';
import { firstWelcome } from '../bench/lives.ts';
import { ENVIRONMENT, jobOf, warmUp, type Load, type LoadPlan } from '../bench/loads.ts';
import { GATEHOUSE } from '../bench/plan.ts';
import { AUDIENCE, keySet, oneToken, preparePools, RESERVED } from '../bench/pools.ts';
import { leaveServerCore, machine, startServer, type RunningServer } from '../bench/processes.ts';
import { median, quartilesOf } from '../bench/rounds.ts';
import { makeTreeOf } from '../variants/tree.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const SERVER = 'dist/server.js';
/** Routes of one's own, for the load with a body. */
const PROGRAM = 'test/evidence/bench/servers/own.mjs';

const CASES: Readonly<Record<string, readonly [load: Load, connections: number]>> = {
  'no-token-50': ['no-token', 50],
  'no-token-1': ['no-token', 1],
  'warm-50': ['warm', 50],
  'warm-1': ['warm', 1],
  'thousand-50': ['thousand', 50],
  'cold-50': ['cold', 50],
  'forged-50': ['forged', 50],
  'proofs-50': ['proofs', 50],
  'post-50': ['post', 50],
};

const SLICE_OF_PROOFS = 4_000;

const { values, positionals } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, seconds: { type: 'string', default: '0.5' } },
  allowPositionals: true,
});

const [ref, ...words] = positionals;
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

const isCase = (word: string) => [...Object.keys(CASES), 'start'].some((name) => name.includes(word));

const isGood =
  ref !== undefined && Number.isInteger(rounds) && rounds > 0 && seconds > 0 && words.every(isCase);

if (!isGood) {
  throw new Error('name a commit, and cases: npm run evidence before HEAD~1 -- --rounds 15 --seconds 0.5');
}

/** For wrk, which takes whole seconds, more than a server here can verify; otherwise as many as take half a second. */
const SLICE = Number.isInteger(seconds) ? 50_000 * seconds : 12_000;

const isChosen = (name: string) => words.length === 0 || words.some((word) => name.includes(word));

/** Figures by round: those of this folder, then those of the other commit. */
type Pair = readonly [mine: number[], theirs: number[]];

/** Calls `measure` for both sides, round after round, each side first in turn. */
async function takeTurns(measure: (side: 0 | 1, round: number) => Promise<number>): Promise<Pair> {
  const pair: Pair = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    for (const side of order) pair[side].push(await measure(side, round));
  }
  return pair;
}

function rowOf(name: string, unit: string, [mine, theirs]: Pair): Row {
  const ratios = mine.map((figure, round) => figure / theirs[round]!);
  const [low, high] = quartilesOf(ratios).map((ratio) => ratio.toFixed(3));
  return {
    case: name,
    [`here, ${unit}`]: median(mine).toFixed(1),
    [`${ref}, ${unit}`]: median(theirs).toFixed(1),
    ratio: median(ratios).toFixed(3),
    'half of the rounds': `${low} to ${high}`,
  };
}

const folders: readonly [string, string] = [ROOT, makeTreeOf(ref!)];

async function measureCase(name: string, provider: Provider): Promise<Row | undefined> {
  const [load, connections] = CASES[name]!;
  const files = folders.map((folder) => `${folder}/${load === 'post' ? PROGRAM : SERVER}`);
  if (!files.every((file) => existsSync(file))) return undefined;

  const slice = load === 'proofs' ? SLICE_OF_PROOFS : SLICE;
  const plan: LoadPlan = { load, connections, seconds, slice };
  const running: RunningServer[] = [];
  try {
    for (const file of files) {
      running.push(await startServer({ ...GATEHOUSE, file }, provider, ENVIRONMENT[load]));
    }
    for (const server of running) await warmUp(plan, server);

    const pair = await takeTurns(async (side, round) => {
      const server = running[side]!;
      const { microsEach } = await throughput(server, jobOf(plan, round, server.port));
      return microsEach;
    });
    return rowOf(name, 'µs', pair);
  } finally {
    await Promise.all(running.map((server) => server.stop()));
  }
}

async function measureStart(provider: Provider): Promise<Row> {
  const token = oneToken();

  const pair = await takeTurns(async (side) => {
    const server = await startServer({ ...GATEHOUSE, file: `${folders[side]}/${SERVER}` }, provider);
    const millis = await firstWelcome(server, token);
    await server.stop();
    return millis;
  });
  return rowOf('start', 'ms', pair);
}

const needed = RESERVED + rounds * SLICE;
await preparePools(needed, needed);
leaveServerCore();
const provider = await startProvider({ audience: AUDIENCE });
provider.publish(keySet());

try {
  console.log(`Node ${machine.node}, ${rounds} rounds of ${seconds} s`);
  for (const name of Object.keys(CASES).filter(isChosen)) {
    const row = await measureCase(name, provider);
    if (row !== undefined) printTable(name, [row]);
  }
  if (isChosen('start')) printTable('start', [await measureStart(provider)]);
} finally {
  await provider.stop();
  rmSync(folders[1], { recursive: true });
}
