/* The gain from each piece of code that exists only for speed: the processor time of a request with and
   without each, side by side in turns, on a machine that does nothing else. Arguments select pieces by words
   in their names. With `--write`, keeps the figures for the documents.

   Shows: what a request costs without each [optimization](docs/speed.md#optimizations).
   Takes: 20 min.
   Needs: a quiet machine. */
import { rmSync } from 'node:fs';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { throughput } from '../bench/generators.ts';
import { ENVIRONMENT, jobOf, warmUp, type Load } from '../bench/loads.ts';
import { GATEHOUSE, OWN, SLICE, WARM } from '../bench/plan.ts';
import { AUDIENCE, keySet, preparePools, RESERVED } from '../bench/pools.ts';
import { leaveServerCore, startServer, type RunningServer } from '../bench/processes.ts';
import { demandQuiet, isNoisyAllowed } from '../bench/quiet.ts';
import { median } from '../bench/rounds.ts';
import { makeTree } from '../variants/tree.ts';
import { keep, type Measured } from './results.ts';
import { SHORTCUTS, type Shortcut } from './shortcuts.ts';

const ROUNDS = 21;
/** For these, tokens or proofs are made. */
const ROUNDS_OF_NEW = 5;

const roundsOf = (load: Load) => (load === 'cold' || load === 'proofs' ? ROUNDS_OF_NEW : ROUNDS);

const OWN_PROGRAM = 'test/evidence/bench/servers/own.mjs';

/** Microseconds per request, in turns: with the shortcut and without it. */
async function measure({ load, changes }: Shortcut, provider: Provider): Promise<[number[], number[]]> {
  const tree = makeTree(changes);
  const plan = { load, connections: WARM.connections, seconds: 1, slice: SLICE };
  const having: number[] = [];
  const lacking: number[] = [];
  const running: RunningServer[] = [];
  try {
    const files =
      load === 'post' ? [OWN.file, `${tree}/${OWN_PROGRAM}`] : [GATEHOUSE.file, `${tree}/dist/server.js`];
    for (const file of files) {
      running.push(await startServer({ ...GATEHOUSE, file }, provider, ENVIRONMENT[load]));
    }
    for (const server of running) await warmUp(plan, server);

    for (let round = 0; round < roundsOf(load); round += 1) {
      await demandQuiet();
      for (const server of running) {
        const { microsEach } = await throughput(server, jobOf(plan, round, server.port));
        (server === running[0] ? having : lacking).push(microsEach);
      }
    }
  } finally {
    await Promise.all(running.map((server) => server.stop()));
    rmSync(tree, { recursive: true });
  }
  return [having, lacking];
}

const medianOf = (figures: readonly number[]) => Number(median(figures).toFixed(1));

function resultOf(having: readonly number[], lacking: readonly number[]): Measured {
  const gains = having.map((micros, round) => 100 * (1 - micros / lacking[round]!));
  return { micros: medianOf(having), microsWithout: medianOf(lacking), gainPercent: medianOf(gains) };
}

const words = process.argv.slice(2).filter((word) => word !== '--write');

const isKept = process.argv.includes('--write') && !isNoisyAllowed;

const isChosen = ({ name }: Shortcut) => words.length === 0 || words.some((word) => name.includes(word));

await preparePools(RESERVED + ROUNDS_OF_NEW * SLICE, RESERVED);
leaveServerCore();
const provider = await startProvider({ audience: AUDIENCE });
provider.publish(keySet());

try {
  for (const one of SHORTCUTS.filter(isChosen)) {
    const { name, load } = one;
    const result = resultOf(...(await measure(one, provider)));
    const { micros, microsWithout, gainPercent } = result;
    console.log(`${load}: ${name}: ${micros} instead of ${microsWithout} µs, ${gainPercent} % less`);
    if (isKept) keep({ [name]: result });
  }
} finally {
  await provider.stop();
}
