/* Three replicas of the built service with one real store and the test provider, and requests with proofs for
   them. */
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { getBytes, startLoad, type Load, type Shot } from '../support/load.ts';
import { makeProof, makeProofKey } from '../support/proof.ts';
import { startRedis, type Redis } from '../support/redis.ts';
import { providerSettings, startProcess, type TestProcess } from '../support/process.ts';

const PUBLIC_URL = 'https://api.test';
const PATH = '/api/private';
const PASSWORD = 'p@ss:word/of?the#store%41';

/** A store that persists what it confirms, so that a kill loses nothing. */
const KEEPING = ['--appendonly', 'yes', '--appendfsync', 'always', '--requirepass', PASSWORD];

export interface Replicas {
  readonly provider: Provider;
  readonly redis: Redis;
  readonly services: readonly TestProcess[];
  /** A request with a new proof; its `kind` is the name of the proof. */
  proofShot(): Shot;
  /** A request with a token that is not bound. */
  readonly bearerShot: Shot;
  /** The number of these proofs in the store. */
  recorded(names: readonly string[]): Promise<number>;
}

/** Three replicas, ready unless the store is down at first. They end with the test. */
export async function openReplicas(context: TestContext, store: 'up' | 'down' = 'up'): Promise<Replicas> {
  const provider = await startProvider({ host: '127.0.0.1' });
  context.after(() => provider.stop());
  const redis = await startRedis(KEEPING, PASSWORD);
  context.after(redis.stop);
  if (store === 'down') await redis.kill();
  const environment = {
    ...providerSettings(provider),
    PROFILE: 'A',
    PUBLIC_URL,
    IDP_DPOP_REPLAY_STORE: `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${redis.port}`,
  };
  const services = await Promise.all(Array.from({ length: 3 }, () => startProcess({ environment })));
  for (const service of services) {
    context.after(() => service.stop());
    await service.logged('signing keys loaded');
    await service.logged(store === 'up' ? 'replay store ready' : 'replay store lost');
  }

  const key = makeProofKey();
  const token = provider.issue({ cnf: { jkt: key.thumbprint } });
  let proofs = 0;

  const proofShot = () => {
    proofs += 1;
    const jti = `proof ${proofs}`;
    const subject = { token, uri: PUBLIC_URL + PATH, nowSeconds: Math.floor(Date.now() / 1000) };
    const proof = makeProof(key, subject, { jti });
    return {
      kind: jti,
      bytes: getBytes(PATH, undefined, `Authorization: DPoP ${token}\r\nDPoP: ${proof}\r\n`),
    };
  };

  const recorded = async (names: readonly string[]) => {
    const commands = names.map((jti) => {
      const hash = createHash('sha256').update(key.thumbprint + JSON.stringify(jti));
      return `EXISTS gatehouse:dpop:${hash.digest('base64url')}`;
    });
    return (await redis.ask(...commands)).filter((line) => line === ':1').length;
  };

  const bearerShot = { kind: 'bearer', bytes: getBytes(PATH, provider.issue()) };
  return { provider, redis, services, proofShot, bearerShot, recorded };
}

/** The statuses for each proof so far. */
export class Responses {
  readonly #changes = new EventEmitter();
  readonly #ofStatus = new Map<number, Set<string>>();
  readonly ofProof = new Map<string, number[]>();

  add(name: string, status: number): void {
    const statuses = this.ofProof.get(name) ?? [];
    this.ofProof.set(name, [...statuses, status]);
    this.#ofStatus.set(status, this.with(status).add(name));
    this.#changes.emit('change');
  }

  /** The proofs that got this status at least once. */
  with(status: number): Set<string> {
    return this.#ofStatus.get(status) ?? new Set();
  }

  /** Resolves once this many more proofs have got this status. */
  async more(status: number, more: number): Promise<void> {
    const enough = this.with(status).size + more;
    while (this.with(status).size < enough) await once(this.#changes, 'change');
  }
}

/** Sends each replica the same proofs in the same order on some connections, and records the results. */
export function useEverywhere(
  { services }: Replicas,
  shots: (index: number) => Shot | undefined,
  responses: Responses,
  plan: { connections: number; pauseMillis?: number },
): readonly Load[] {
  return services.map(({ port }) => {
    let index = 0;
    return startLoad({
      port,
      ...plan,
      next: () => {
        index += 1;
        return shots(index - 1);
      },
      heed: ({ shot, status }) => responses.add(shot.kind, status),
    });
  });
}
