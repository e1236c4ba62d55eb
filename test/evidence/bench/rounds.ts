/* Cases that are measured in rounds, server after server, each figure compared with the plain server in the
   same round. */
import type { Provider } from '../../idp/provider.ts';
import { makeProofKey, type ProofKey } from '../../support/proof.ts';
import { latency, sample, throughput, type Job, type Throughput } from './generators.ts';
import {
  cases,
  DPOP,
  DPOP_NEW,
  ES256,
  FLOORS,
  GATEHOUSE,
  GATEHOUSE_DPOP,
  isBase,
  isMeasured,
  isShort,
  PLAIN,
  RATE,
  ROUNDS,
  RS256,
  RS256_ES256,
  SECONDS,
  servers,
  SLICE_OF_PROOFS,
  takesPart,
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

/** Half of the values are between these two. */
export function quartilesOf(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = [...values].sort((one, other) => one - other);
  const step = (sorted.length - 1) / 4;
  return [sorted[Math.round(step)]!, sorted[Math.round(3 * step)]!];
}

/** Of a server in a round in which it did not take part. */
export const ABSENT = NaN;

const isPresent = (value: number) => !Number.isNaN(value);

/** Medians, and medians of the ratios to the base of the same round. */
export function rowsOf(figures: ReadonlyMap<string, readonly number[]>, base: string): Row[] {
  const ofBase = figures.get(base) ?? [];
  return [...figures].map(([server, values]) => ({
    server,
    value: median(values.filter(isPresent)),
    ratio: median(values.map((value, round) => value / ofBase[round]!).filter(isPresent)),
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
          const job = jobOf(plan, server, plan.tokens?.(round));
          noteThroughput(note, plan.name, server.name, await throughputIn(round, server, job));
        }
      }
      if (isMeasured('latency')) await measureLatency(running, note);
    }
  });
}

/** That of a server which takes part in the round. */
export async function throughputIn(round: number, server: RunningServer, job: Job): Promise<Throughput> {
  return takesPart(server, round) ? throughput(server, job) : { perSecond: ABSENT, microsEach: ABSENT };
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
  const floorServers = isShort ? [RS256, VERIFIER, GATEHOUSE] : [PLAIN, RS256, VERIFIER, GATEHOUSE];
  await withServers(floorServers, provider, environment, async (running) => {
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
          const job = jobOf(floor, server, floor.tokens?.(round));
          noteThroughput(note, floor.name, server.name, await throughputIn(round, server, job));
        }
      }
    }
  });
}

/** New proofs for one token, compared with a server that only verifies the signatures of the proofs. */
export async function measureDpop(provider: Provider, figures: Figures): Promise<void> {
  const key = makeProofKey('ES256');
  const token = oneToken(undefined, { cnf: { jkt: key.thumbprint } });

  await measureProofs(DPOP, ES256, key, provider, figures, (uri) =>
    makeProofs(key, uri, SLICE_OF_PROOFS, () => token),
  );
}

/** New tokens, each with a new proof, compared with a server that only verifies both signatures. */
export async function measureDpopOfNewTokens(provider: Provider, figures: Figures): Promise<void> {
  const key = makeProofKey('ES256');
  let made = 0;

  const nextToken = () => {
    made += 1;
    return oneToken(undefined, { cnf: { jkt: key.thumbprint }, jti: `d${String(made).padStart(9, '0')}` });
  };

  await measureProofs(DPOP_NEW, RS256_ES256, key, provider, figures, (uri) =>
    makeProofs(key, uri, SLICE_OF_PROOFS, nextToken),
  );
}

/** The base gets the same proofs, which name the URL of the service. */
async function measureProofs(
  plan: typeof DPOP,
  base: ServerPlan,
  key: ProofKey,
  provider: Provider,
  figures: Figures,
  make: (uri: string) => Records,
): Promise<void> {
  if (!isMeasured(plan.name) || !servers.some(({ name }) => name === GATEHOUSE.name)) return;

  const note = noteIn(figures);
  const environment = {
    PROOF_KEY: JSON.stringify(key.jwk),
    TOKEN_KEY: JSON.stringify(keySet().keys[0]),
  };
  await withServers([base, GATEHOUSE_DPOP], provider, environment, async (running) => {
    // Waits for the keys: while proofs are made, the provider in this process does not respond.
    await running[1]!.firstResponse('/api/private', oneToken());
    for (let round = -1; round < ROUNDS; round += 1) {
      const records = make(`http://127.0.0.1:${running[1]!.port}${plan.path}`);
      await demandQuiet();
      for (const server of running) {
        const job: Job = { ...plan, seconds: SECONDS, scheme: 'DPoP', records, repeats: false };
        const given = await throughput(server, job);
        if (round >= 0) noteThroughput(note, plan.name, server.name, given);
      }
    }
  });
}
