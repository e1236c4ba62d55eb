/* The responses of gatehouse, so that the plain server can send the same bytes. */
import type { Provider } from '../../idp/provider.ts';
import { ask, type Response, type Ask } from '../../support/client.ts';
import { GATEHOUSE } from './plan.ts';
import { oneToken } from './pools.ts';
import { startServer } from './processes.ts';

/** Node writes these itself, or they depend on the body. */
const LEFT_OUT = ['date', 'connection', 'keep-alive', 'content-length'];

/** What a plain server needs to send the same. */
export function describeResponse({ status, rawHeaders, body }: Response) {
  const headers = rawHeaders.filter(
    (_, index) => !LEFT_OUT.includes(rawHeaders[index - (index % 2)]!.toLowerCase()),
  );
  return { status, headers, body };
}

let known: Promise<string> | undefined;

/** JSON: for each path of the plain server, gatehouse's response in the case that uses it. */
export function plainResponses(provider: Provider): Promise<string> {
  known ??= observe(provider);
  return known;
}

async function observe(provider: Provider): Promise<string> {
  const server = await startServer(GATEHOUSE, provider);
  try {
    const token = oneToken();
    await server.firstResponse('/api/private', token);
    const forged = `${token.slice(0, token.lastIndexOf('.'))}.${Buffer.alloc(256, 1).toString('base64url')}`;
    const asked: [string, string, Ask][] = [
      ['/api/public', '/api/public', {}],
      ['/api/private', '/api/private', { token }],
      ['/api/missing', '/api/private', {}],
      ['/api/invalid', '/api/private', { token: forged }],
    ];
    const responses = await Promise.all(
      asked.map(
        async ([plainPath, path, request]) =>
          [plainPath, describeResponse(await ask(server.port, path, request))] as const,
      ),
    );
    return JSON.stringify(Object.fromEntries(responses));
  } finally {
    await server.stop();
  }
}
