/* What is sent to builds of gatehouse that are compared with each other in turns, and how each is warmed up. */
import { makeProofKey } from '../../support/proof.ts';
import { sample, throughput, type Job } from './generators.ts';
import { awaitKeys } from './own.ts';
import { POST, WARM } from './plan.ts';
import { makeProofs, oneToken, SLICES } from './pools.ts';
import type { RunningServer } from './processes.ts';

/**
 * No token, one, a thousand in turn, new ones, forged ones, new proofs, one token with the access log on, one token with
 * a body.
 */
export type Load = 'no-token' | 'warm' | 'thousand' | 'cold' | 'forged' | 'proofs' | 'logged' | 'post';

/** Settings that the load needs. */
export const ENVIRONMENT: Readonly<Partial<Record<Load, NodeJS.ProcessEnv>>> = {
  logged: { ACCESS_LOG: 'true' },
  proofs: { IDP_DPOP_MODE: 'ALLOWED', IDP_DPOP_IAT_OFFSET_SECONDS: '3600' },
};

export interface LoadPlan {
  readonly load: Load;
  readonly connections: number;
  readonly seconds: number;
  /** New tokens or proofs of a round. Our own generator stops when they are used up. */
  readonly slice: number;
}

const proofKey = makeProofKey('ES256');

const REFUSED = { status: 401, sample: '' };

/** The requests of a round; a negative one is the warm-up. */
export function jobOf({ load, connections, seconds, slice }: LoadPlan, round: number, port: number): Job {
  const job = { ...WARM, connections, seconds, records: SLICES.warm(load === 'thousand' ? 1_000 : 1) };
  if (load === 'no-token') return { ...job, expected: REFUSED, records: undefined };
  if (load === 'post') return { ...job, path: POST.path, body: POST.body, expected: POST.expected };

  if (load === 'cold') {
    const records = round < 0 ? SLICES.warmUp() : SLICES.cold(round, slice);
    return { ...job, repeats: false, records };
  }

  if (load === 'forged') {
    const records = round < 0 ? SLICES.forgedWarmUp() : SLICES.forged(round, slice);
    return { ...job, expected: REFUSED, repeats: false, records };
  }
  if (load !== 'proofs') return job;

  const token = oneToken(undefined, { cnf: { jkt: proofKey.thumbprint } });
  const records = makeProofs(proofKey, `http://127.0.0.1:${port}${WARM.path}`, slice, () => token);
  return { ...job, scheme: 'DPoP', repeats: false, records };
}

export async function warmUp(plan: LoadPlan, server: RunningServer): Promise<void> {
  const warming = { ...plan, connections: WARM.connections };
  await awaitKeys([server]);
  await sample(server, jobOf(warming, -1, server.port), 0.5);
  if (plan.load === 'cold' || plan.load === 'forged') return;

  await throughput(server, jobOf(warming, -1, server.port));
}
