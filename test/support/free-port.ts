/* A port for a program that must know its own before it listens. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A port that was free a moment ago, outside the range that systems assign from, so that no parallel test
 * gets it before the program listens, or while it restarts.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return freePort();
  }

  server.close();
  await once(server, 'close');
  return port;
}
