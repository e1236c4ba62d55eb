/* The gain from each piece of code that exists only for speed: the processor time of a request with and
   without each, side by side in turns, on a machine that does nothing else. Arguments select pieces by words
   in their names.

   Shows: the cost of a request without each [piece of code that exists only for
   speed](docs/speed.md#what-is-there-for-speed-alone).
   Takes: 20 min.
   Needs: a quiet machine. */
import { rmSync } from 'node:fs';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { makeProofKey } from '../../support/proof.ts';
import { sample, throughput, type Job } from '../bench/generators.ts';
import { awaitKeys } from '../bench/own.ts';
import { GATEHOUSE, SLICE, WARM } from '../bench/plan.ts';
import { AUDIENCE, keySet, makeProofs, oneToken, preparePools, RESERVED, SLICES } from '../bench/pools.ts';
import { leaveServerCore, startServer, type RunningServer } from '../bench/processes.ts';
import { demandQuiet } from '../bench/quiet.ts';
import { median } from '../bench/rounds.ts';
import { makeTree } from '../variants/tree.ts';
import { SHORTCUTS, type Load, type Shortcut } from './shortcuts.ts';

/** The number of rounds for which new tokens are signed. */
const ROUNDS: Readonly<Record<Load, number>> = { warm: 21, 'no-token': 21, logged: 21, cold: 5, proofs: 5 };

const ENVIRONMENT: Readonly<Record<Load, NodeJS.ProcessEnv>> = {
  warm: {},
  'no-token': {},
  logged: { ACCESS_LOG: 'true' },
  cold: {},
  proofs: { IDP_DPOP_MODE: 'ALLOWED', IDP_DPOP_IAT_OFFSET_SECONDS: '3600' },
};

const proofKey = makeProofKey('ES256');

const REFUSED = { status: 401, sample: '' };

/** The requests of a round; the first one warms the server up. */
function jobOf(load: Load, round: number, { port }: RunningServer): Job {
  const job = { ...WARM, seconds: 1, records: SLICES.warm(1) };
  if (load === 'no-token') return { ...job, expected: REFUSED, records: undefined };
  if (load === 'cold') {
    const records = round < 0 ? SLICES.warmUp() : SLICES.cold(round, SLICE);
    return { ...job, repeats: false, records };
  }
  if (load !== 'proofs') return job;

  const token = oneToken(undefined, { cnf: { jkt: proofKey.thumbprint } });
  const records = makeProofs(proofKey, token, `http://127.0.0.1:${port}${WARM.path}`, SLICE);
  return { ...job, scheme: 'DPoP', repeats: false, records };
}

async function warmUp(load: Load, server: RunningServer): Promise<void> {
  await awaitKeys([server]);
  await sample(server, jobOf(load, -1, server), 0.5);
  if (load === 'cold') return;

  await throughput(server, jobOf(load, -1, server));
}

/** Microseconds per request, in turns: with the shortcut and without it. */
async function measure({ load, changes }: Shortcut, provider: Provider): Promise<[number[], number[]]> {
  const tree = makeTree(changes);
  const having: number[] = [];
  const lacking: number[] = [];
  const running: RunningServer[] = [];
  try {
    for (const file of [GATEHOUSE.file, `${tree}/dist/server.js`]) {
      running.push(await startServer({ ...GATEHOUSE, file }, provider, ENVIRONMENT[load]));
    }
    for (const server of running) await warmUp(load, server);

    for (let round = 0; round < ROUNDS[load]; round += 1) {
      await demandQuiet();
      for (const server of running) {
        const { microsEach } = await throughput(server, jobOf(load, round, server));
        (server === running[0] ? having : lacking).push(microsEach);
      }
    }
  } finally {
    await Promise.all(running.map((server) => server.stop()));
    rmSync(tree, { recursive: true });
  }
  return [having, lacking];
}

function describe({ name, load }: Shortcut, having: readonly number[], lacking: readonly number[]): string {
  const gains = having.map((micros, round) => 100 * (1 - micros / lacking[round]!));
  const [one, other, gain] = [having, lacking, gains].map((figures) => median(figures).toFixed(1));
  return `${load}: ${name}: ${one} instead of ${other} µs, ${gain} % less`;
}

const words = process.argv.slice(2);

const isChosen = ({ name }: Shortcut) => words.length === 0 || words.some((word) => name.includes(word));

await preparePools(RESERVED + ROUNDS.cold * SLICE, RESERVED);
leaveServerCore();
const provider = await startProvider({ audience: AUDIENCE });
provider.publish(keySet());

try {
  for (const one of SHORTCUTS.filter(isChosen)) console.log(describe(one, ...(await measure(one, provider))));
} finally {
  await provider.stop();
}
