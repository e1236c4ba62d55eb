/* Puts the gate in front of real servers, each with the very lines of docs/in-front-of-your-server.md, and asks: no token, one
   without the scope, a good one, and a bound one with a proof, once and again. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HERE = new URL('./', import.meta.url);
const PAGE = readFileSync(new URL('../../../docs/in-front-of-your-server.md', HERE), 'utf8');
const BUILT = fileURLToPath(new URL('../../../dist/', HERE));

/** The lines of the page under a heading. */
function linesUnder(heading: string): string {
  const [, section = ''] = PAGE.split(`\n## ${heading}\n`);
  return /```ts\n([^]*?)```/.exec(section)?.[1] ?? '';
}

const hello = `(request, response) => response.end('Hello, ' + response.locals.caller.subject)`;

/** What stands around the lines of the page: `SERVER` is what listens. */
const SERVERS: Readonly<Record<string, readonly [heading: string, before: string, after: string]>> = {
  'node:http': ['node:http', '', ''],
  'express 5': [
    'Express 4 and 5',
    `import express from 'express'; const app = express();`,
    `app.get('/api/orders', ${hello}); createServer(app).listen(3000);`,
  ],
  'express 4': [
    'Express 4 and 5',
    `import express from 'express4'; const app = express();`,
    `app.get('/api/orders', ${hello}); createServer(app).listen(3000);`,
  ],
  'fastify 5': [
    'Fastify 5',
    `import Fastify from 'fastify'; const fastify = Fastify();`,
    `fastify.get('/api/orders', async (request) => 'Hello, ' + request.caller.subject);
     await fastify.ready(); createServer((...both) => fastify.routing(...both)).listen(3000);`,
  ],
  hono: [
    'Hono on Node',
    `import { Hono } from 'hono'; import { getRequestListener } from '@hono/node-server'; const app = new Hono();`,
    `app.get('/api/orders', (context) => context.text('Hello, test-user'));
     createServer(getRequestListener(app.fetch)).listen(3000);`,
  ],
};

const program = (lines: string, before: string, after: string) => `
import { createServer } from 'node:http';
import { once } from 'node:events';
import { createRequire } from 'node:module';
${before}
const require = createRequire(import.meta.url);
const { createGate, needs, scope } = require('${BUILT}gatehouse.js');
const { createProofKey, createTestIssuer } = require('${BUILT}testing.js');
const issuer = createTestIssuer();
const gate = await createGate({ ...issuer.settings, dpopMode: 'ALLOWED' }, issuer);
${`${lines}\n${after}`.replace('createServer(', 'const server = createServer(').replaceAll('3000', "0, '127.0.0.1'")}
await once(server, 'listening');
const url = 'http://127.0.0.1:' + server.address().port + '/api/orders';
const ask = async (headers) => {
  const response = await fetch(url, { headers });
  return [response.status, (await response.text()).includes('test-user'), response.headers.get('www-authenticate')?.split(' ')[0]];
};
const key = createProofKey();
const token = issuer.boundToken(key, { scope: 'read:orders' });
const dpop = issuer.proof(key, { method: 'GET', url }, token);
const bound = { authorization: 'DPoP ' + token, dpop };
const requests = [{}, issuer.bearer(), issuer.bearer({ scope: 'read:orders' }), bound, bound];
const answers = [];
for (const headers of requests) answers.push(await ask(headers));
export default answers;
server.close();
server.closeAllConnections();
gate.close();
`;

const EXPECTED =
  '[[401,false,"Bearer"],[403,false,"Bearer"],[200,true,null],[200,true,null],[401,false,"Bearer"]]';

let isGood = true;

for (const [name, [heading, before, after]] of Object.entries(SERVERS)) {
  const file = new URL(`./program-${name.replace(/\W/g, '-')}.mjs`, HERE);
  writeFileSync(file, program(linesUnder(heading), before, after));
  try {
    const { default: answers } = (await import(file.href)) as { default: unknown };
    const isExpected = JSON.stringify(answers) === EXPECTED;
    isGood &&= isExpected;
    console.log(`${name}: ${isExpected ? 'as expected' : JSON.stringify(answers)}`);
  } finally {
    rmSync(file);
  }
}

process.exitCode = isGood ? 0 : 1;
