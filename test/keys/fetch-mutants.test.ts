/* What changes of the outbound request would otherwise go unseen (npm run mutants). */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test, type TestContext } from 'node:test';
import { Listener } from '../idp/listener.ts';
import { fetchKeys, flawOf } from './fetching.ts';

/** The address of a server whose certificate is good and whose answers are the test's own. */
async function startAnswering(
  context: TestContext,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const listener = new Listener('localhost', 0, {
    countConnection: () => {},
    handle: async (...exchange) => handle(...exchange),
  });
  await listener.enter({ listening: true, certificate: 'provider' });
  context.after(() => listener.enter({ listening: false, certificate: 'provider' }));
  return `https://localhost:${listener.port}/`;
}

const sourceAt = (jwksUri: string) => ({ domain: 'localhost', issuer: 'https://localhost/', jwksUri });

test('asks for JSON [RFC 9110 §12.5.1]', async (context) => {
  const asked: unknown[] = [];
  const address = await startAnswering(context, ({ method, headers }, response) => {
    asked.push(method, headers.accept);
    response.end('{"keys":[]}');
  });
  assert.deepEqual((await fetchKeys(sourceAt(address))).keys, []);
  assert.deepEqual(asked, ['GET', 'application/json']);
});

test('takes for a redirect what has an address to go to and a status of 300 to 399, and nothing else', async (context) => {
  let status = 0;
  const address = await startAnswering(context, (_, response) =>
    response.writeHead(status, { Location: '/elsewhere' }).end('{}'),
  );
  for (status of [300, 399])
    assert.deepEqual(await flawOf(sourceAt(address)), ['redirect-refused', String(status)]);
  for (status of [201, 299, 400])
    assert.deepEqual(await flawOf(sourceAt(address)), ['status-refused', String(status)]);
});
