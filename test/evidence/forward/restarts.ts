/* Requests through a proxy while gatehouse ends and starts again: none may pass unless it was judged. */
import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Provider } from '../../idp/provider.ts';
import { startApi, type Proxy } from '../../options/forward-auth-proxies.ts';
import { freePort } from '../../support/free-port.ts';
import { providerSettings } from '../../support/process.ts';
import { writePrograms } from './processes.ts';

const CLIENTS = 20;
const PAUSE_MILLIS = 400;

const POLICY = `runForwardAuth({ routes: [get('/orders/{id}', needs(scope('read:orders')), upstream)] });`;

/** The status; 0 when the connection ended. */
const ask = (agent: Agent, port: number, path: string, headers: Readonly<Record<string, string>>) =>
  new Promise<number>((resolve) => {
    const sent = request({ port, path, headers, agent, host: '127.0.0.1' }, (response) => {
      response.resume();
      response.once('close', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', () => resolve(0));
    sent.end();
  });

/** Every second request has no token. Throws if one of these passes, or if one passes without its caller. */
export async function walkRestarts(proxy: Proxy, provider: Provider, count: number) {
  const programs = writePrograms({ policy: POLICY });
  const api = await startApi();
  const gatehouse = await freePort();
  const environment = {
    ...providerSettings(provider),
    HOST: '127.0.0.1',
    PORT: String(gatehouse),
    LOG_LEVEL: 'info',
  };
  const running = await proxy.start({ gatehouse, api: api.port });
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const authorization = `Bearer ${provider.issue({ scope: 'read:orders', sub: 'known' })}`;
  const statuses: Record<string, number> = {};
  let sent = 0;
  let restarts = 0;
  let isOver = false;

  async function restart() {
    while (!isOver) {
      const started = await programs.start('policy', environment);
      await setTimeout(PAUSE_MILLIS);
      // Every other time without a drain.
      started.child.kill(restarts % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
      await started.exited;
      await started.stop();
      restarts += 1;
    }
  }

  async function client() {
    while (sent < count) {
      sent += 1;
      const isKnown = sent % 2 === 0;
      const status = await ask(
        agent,
        running.port,
        `/orders/${isKnown ? 'known' : 'unknown'}`,
        isKnown ? { authorization } : {},
      );
      const kind = `${isKnown ? 'token' : 'no token'} ${status}`;
      statuses[kind] = (statuses[kind] ?? 0) + 1;
      // While gatehouse is down, refusals come at once.
      if (status >= 500) await setTimeout(5);
    }
  }

  const restarting = restart();
  try {
    await Promise.all(Array.from({ length: CLIENTS }, client));
  } finally {
    isOver = true;
    await restarting;
    agent.destroy();
    await running.stop();
    await api.stop();
    programs.remove();
  }

  const unjudged = api.seen.filter(({ target, fields }) => {
    const subjects = fields
      .filter(([name]) => name.toLowerCase() === 'x-auth-subject')
      .map(([, value]) => value);
    return target !== '/orders/known' || subjects.join() !== 'known';
  });
  return { sent, restarts, served: api.seen.length, unjudged: unjudged.length, ...statuses };
}
