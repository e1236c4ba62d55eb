/* Cases that are measured in rounds, server after server, each figure compared with the plain server in the
   same round. */
import type { Provider } from '../../idp/provider.ts';
import { makeProofKey, type ProofKey } from '../../support/proof.ts';
import { latency, sample, throughput, type Job, type Throughput } from './generators.ts';
import {
  cases,
  DPOP,
  ES256,
  FLOORS,
  GATEHOUSE,
  GATEHOUSE_DPOP,
  isBase,
  isMeasured,
  PLAIN,
  RATE,
  ROUNDS,
  RS256,
  SECONDS,
  servers,
  SLICE,
  VERIFIER,
  WARM,
  type Case,
  type ServerPlan,
} from './plan.ts';
import { keySet, makeProofs, oneToken, SLICES, type Records } from './pools.ts';
import { startServer, type RunningServer } from './processes.ts';
import { demandQuiet } from './quiet.ts';
import type { Row } from './results.ts';
import { plainResponses } from './answers.ts';

/** By case, then by server, a figure for each round. */
export type Figures = Map<string, Map<string, number[]>>;
type Note = (measure: string, server: string, figure: number) => void;

export const noteIn =
  (figures: Figures): Note =>
  (measure, server, figure) => {
    const ofCase = figures.get(measure) ?? new Map<string, number[]>();
    figures.set(measure, ofCase);
    ofCase.set(server, [...(ofCase.get(server) ?? []), figure]);
  };

/** Processor time, besides requests per second. */
export const microsOf = (name: string) => `${name}-micros`;

export function noteThroughput(note: Note, name: string, server: string, figures: Throughput): void {
  note(name, server, figures.perSecond);
  note(microsOf(name), server, figures.microsEach);
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((one, other) => one - other);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
};

/** Medians, and medians of the ratios to the base of the same round. */
export function rowsOf(figures: ReadonlyMap<string, readonly number[]>, base: string): Row[] {
  const ofBase = figures.get(base) ?? [];
  return [...figures].map(([server, values]) => ({
    server,
    value: median(values),
    ratio: median(values.map((value, round) => value / ofBase[round]!)),
  }));
}

/** Without tokens if the case has none. */
function jobOf(plan: Case, server: RunningServer, records: Records | undefined): Job {
  // The plain server reads no token, so it may see one twice.
  return {
    ...plan,
    path: isBase(server) ? plan.plainPath : plan.path,
    seconds: SECONDS,
    records,
    repeats: plan.repeats || server.name === PLAIN.name,
  };
}

/** The tokens, if any, of a server's warm-up. */
function warmUpOf(plan: Case): Records | undefined {
  if (plan.name === 'forged') return SLICES.forgedWarmUp();

  return plan.repeats ? plan.tokens?.(-1) : SLICES.warmUp();
}

/** Warms up every server. */
async function warmUp(running: readonly RunningServer[]): Promise<void> {
  for (const server of running) {
    for (const plan of cases) {
      await sample(server, jobOf(plan, server, warmUpOf(plan)), 0.3);
    }
  }
}

/** Starts the servers, and ends them after the work. */
export async function withServers(
  plans: readonly ServerPlan[],
  provider: Provider,
  more: NodeJS.ProcessEnv,
  work: (running: readonly RunningServer[]) => Promise<void>,
): Promise<void> {
  const environment = { ANSWERS: await plainResponses(provider), ...more };
  const running: RunningServer[] = [];
  try {
    for (const plan of plans) running.push(await startServer(plan, provider, environment));
    await work(running);
  } finally {
    await Promise.all(running.map((server) => server.stop()));
  }
}

export async function measureRounds(provider: Provider, figures: Figures): Promise<void> {
  if (cases.length === 0 && !isMeasured('latency')) return;
  const note = noteIn(figures);
  await withServers([...servers, VERIFIER], provider, { REMEMBER: 'true' }, async (running) => {
    for (const server of running) await server.firstResponse('/api/public');
    await warmUp(running);
    for (let round = 0; round < ROUNDS; round += 1) {
      process.stderr.write(`round ${round + 1} of ${ROUNDS}\n`);
      await demandQuiet();
      for (const plan of cases) {
        for (const server of running) {
          const given = await throughput(server, jobOf(plan, server, plan.tokens?.(round)));
          noteThroughput(note, plan.name, server.name, given);
        }
      }
      if (isMeasured('latency')) await measureLatency(running, note);
    }
  });
}

async function measureLatency(running: readonly RunningServer[], note: Note): Promise<void> {
  for (const server of running) {
    // The tail of a second is ten responses, so at least two seconds.
    const job = { ...jobOf(WARM, server, SLICES.warm(1_000)), seconds: Math.max(2, SECONDS) };
    const { p50, p99 } = await latency(server, job, RATE);
    note('p50', server.name, p50);
    note('p99', server.name, p99);
  }
}

/** New tokens, valid and forged, compared with a node:http server that only verifies their signatures. */
export async function measureFloor(provider: Provider, figures: Figures): Promise<void> {
  const floors = FLOORS.filter(({ name }) => isMeasured(name));
  if (floors.length === 0 || !servers.some(({ name }) => name === GATEHOUSE.name)) return;

  const note = noteIn(figures);
  const environment = { TOKEN_KEY: JSON.stringify(keySet().keys[0]) };
  await withServers([PLAIN, RS256, VERIFIER, GATEHOUSE], provider, environment, async (running) => {
    for (const server of running) {
      await server.firstResponse('/api/private', oneToken());
      for (const floor of floors) {
        const isForged = floor.expected.status === 401;
        const records = isForged ? SLICES.forgedWarmUp() : SLICES.warmUp();
        await sample(server, jobOf(floor, server, records), 0.3);
      }
    }

    for (let round = 0; round < ROUNDS; round += 1) {
      await demandQuiet();
      for (const floor of floors) {
        for (const server of running) {
          const given = await throughput(server, jobOf(floor, server, floor.tokens?.(round)));
          noteThroughput(note, floor.name, server.name, given);
        }
      }
    }
  });
}

/**
 * DPoP with one token and a new proof for each request, compared with a server that only verifies the
 * signature of the proof.
 */
export async function measureDpop(provider: Provider, figures: Figures): Promise<void> {
  if (!isMeasured('dpop') || !servers.some(({ name }) => name === GATEHOUSE.name)) return;
  const note = noteIn(figures);
  const key = makeProofKey('ES256');
  const token = oneToken(undefined, { cnf: { jkt: key.thumbprint } });
  await withServers(
    [ES256, GATEHOUSE_DPOP],
    provider,
    { PROOF_KEY: JSON.stringify(key.jwk) },
    async (running) => {
      await running[1]!.firstResponse('/api/public');
      for (let round = -1; round < ROUNDS; round += 1) {
        await dpopRound(running, key, token, round < 0 ? () => {} : note);
      }
    },
  );
}

/** The base gets the same proofs, which name the URL of the service. */
async function dpopRound(
  running: readonly RunningServer[],
  key: ProofKey,
  token: string,
  note: Note,
): Promise<void> {
  const records = makeProofs(key, token, `http://127.0.0.1:${running[1]!.port}${DPOP.path}`, SLICE);
  await demandQuiet();
  for (const server of running) {
    const job: Job = { ...DPOP, seconds: SECONDS, scheme: 'DPoP', records, repeats: false };
    noteThroughput(note, DPOP.name, server.name, await throughput(server, job));
  }
}
