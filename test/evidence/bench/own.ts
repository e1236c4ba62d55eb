/* The cost of your own routes: one compared with the same route of profile B, and a POST through a schema
   compared with peers, round by round, each server in turn. */
import type { Provider } from '../../idp/provider.ts';
import { ask } from '../../support/client.ts';
import { describeResponse } from './answers.ts';
import { sample, type Job } from './generators.ts';
import {
  GATEHOUSE,
  isMeasured,
  OWN,
  OWN_ROW,
  PLAIN_POST,
  POST,
  POST_SERVERS,
  ROUNDS,
  SECONDS,
  type ServerPlan,
} from './plan.ts';
import { oneToken, SLICES } from './pools.ts';
import { startServer, type RunningServer } from './processes.ts';
import { demandQuiet } from './quiet.ts';
import { noteIn, noteThroughput, throughputIn, withServers, type Figures } from './rounds.ts';

async function measureInTurns(
  running: readonly RunningServer[],
  plan: Omit<Job, 'seconds'> & { readonly name: string },
  figures: Figures,
): Promise<void> {
  const note = noteIn(figures);
  const job = { ...plan, seconds: SECONDS, records: SLICES.warm(1) };
  for (const server of running) await sample(server, job, 0.5);

  for (let round = 0; round < ROUNDS; round += 1) {
    await demandQuiet();
    for (const server of running) {
      noteThroughput(note, plan.name, server.name, await throughputIn(round, server, job));
    }
  }
}

/** Waits until the servers accept tokens. */
export async function awaitKeys(running: readonly RunningServer[]): Promise<void> {
  for (const server of running) {
    let status = 0;
    while (status !== 200) {
      const { response } = await server.firstResponse('/api/private', oneToken());
      status = response.status;
    }
  }
}

export async function measureOwnRow(provider: Provider, figures: Figures): Promise<void> {
  if (!isMeasured(OWN_ROW.name)) return;

  await withServers([GATEHOUSE, OWN], provider, {}, async (running) => {
    await awaitKeys(running);
    await measureInTurns(running, OWN_ROW, figures);
  });
}

export async function measurePost(provider: Provider, figures: Figures): Promise<void> {
  if (!isMeasured(POST.name)) return;

  const ANSWER = await responseToPost(provider);
  const plans: readonly ServerPlan[] = [PLAIN_POST, ...POST_SERVERS];
  await withServers(plans, provider, { ANSWER }, async (running) => {
    const [plain, ...others] = running;
    await plain?.firstResponse('/api/orders');
    await awaitKeys(others);
    await measureInTurns(running, POST, figures);
  });
}

/** JSON: gatehouse's responses, so that the plain server can send the same bytes. */
async function responseToPost(provider: Provider): Promise<string> {
  const server = await startServer(OWN, provider);
  try {
    await awaitKeys([server]);
    const headers = { 'Content-Type': 'application/json' };
    const request = { method: 'POST', token: oneToken(), headers, body: POST.body };
    return JSON.stringify(describeResponse(await ask(server.port, POST.path, request)));
  } finally {
    await server.stop();
  }
}
