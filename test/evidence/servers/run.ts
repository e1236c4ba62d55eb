/* Puts the gate in front of real servers, each with the very lines of docs/in-front-of-your-server.md, and asks: no token, one
   without the scope, a good one, and a bound one with a proof, once and again, and with a nonce that is about to end. The
   compiler takes the lines first.

   Shows: the gate in front of real servers, with the lines of docs/in-front-of-your-server.md.
   Takes: 10 s.
   Needs: packages. */
import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { samplesUnder } from '../../docs/pages.ts';

const PAGE = 'docs/in-front-of-your-server.md';
const HERE = fileURLToPath(new URL('./', import.meta.url));
const ROOT = join(HERE, '../../..');

interface Server {
  /** Over its lines in the page. */
  readonly heading: string;
  readonly before: string;
  readonly after: string;
}

const EXPRESS_AFTER = `
app.get('/api/orders', (_request, response) => {
  response.end('Hello, ' + response.locals.caller.subject);
});
createServer(app).listen(3000);`;

/** What stands around the lines of the page; the last of it listens on 3000. */
const SERVERS: Readonly<Record<string, Server>> = {
  'node-http': { heading: 'node:http', before: '', after: '' },
  express5: {
    heading: 'Express 4 and 5',
    before: `import express from 'express'; const app = express();`,
    after: EXPRESS_AFTER,
  },
  express4: {
    heading: 'Express 4 and 5',
    before: `import express from 'express4'; const app = express();`,
    after: EXPRESS_AFTER,
  },
  'express-mounted': {
    heading: 'Express 4 and 5',
    before: `import express from 'express'; const app = express.Router();`,
    after: EXPRESS_AFTER.replace('createServer(app)', `createServer(express().use('/mounted', app))`),
  },
  fastify5: {
    heading: 'Fastify 5',
    before: `import Fastify from 'fastify'; const fastify = Fastify();`,
    after: `
fastify.get('/api/orders', async (request) => 'Hello, ' + request.getDecorator<Caller>('caller').subject);
await fastify.ready();
createServer((...both) => fastify.routing(...both)).listen(3000);`,
  },
  hono: {
    heading: 'Hono on Node',
    before: `
import { Hono } from 'hono';
import { getRequestListener, type HttpBindings } from '@hono/node-server';`,
    after: `
app.get('/api/orders', (context) => new Response('Hello, ' + context.get('caller').subject));
createServer(getRequestListener(app.fetch)).listen(3000);`,
  },
};

const EXPECTED = JSON.stringify([
  [401, false, 'Bearer', false],
  [403, false, 'Bearer', false],
  [200, true, null, false],
  [401, false, 'DPoP', true],
  [200, true, null, false],
  [401, false, 'DPoP', false],
  [200, true, null, true],
]);

/** A whole program, which gives its answers as its default export. */
function programOf({ heading, before, after }: Server): string {
  const [lines = ''] = samplesUnder(PAGE, heading, 'ts');
  const listening = `${lines}\n${after}`
    .replace('createServer(', 'const server = createServer(')
    .replace('3000', `0, '127.0.0.1'`);
  const path = before.includes('Router') ? '/mounted/api/orders' : '/api/orders';
  const own = listening.includes("from 'node:http'") ? '' : `import { createServer } from 'node:http';`;
  return `
${own}
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createGate, needs, scope, type Caller } from 'gatehouse-http';
import { createProofKey, createTestIssuer } from 'gatehouse-http/testing';
${before}
const issuer = createTestIssuer();
const settings = { ...issuer.settings, dpopMode: 'ALLOWED', dpopNonceSecret: 'n'.repeat(32) } as const;
const gate = await createGate(settings, issuer);
${listening}
await once(server, 'listening');
const url = 'http://127.0.0.1:' + (server.address() as AddressInfo).port + '${path}';
let nonce: string | undefined;
async function ask(headers: Record<string, string>) {
  const response = await fetch(url, { headers });
  const isGreeted = (await response.text()).includes('test-user');
  const fresh = response.headers.get('dpop-nonce');
  nonce = fresh ?? nonce;
  // Bearer stands before DPoP; the error is on the one that was used.
  const used = headers.dpop === undefined ? 'Bearer' : 'DPoP';
  const challenge = response.headers.get('www-authenticate')?.includes(used + ' ') ? used : null;
  return [response.status, isGreeted, challenge, fresh !== null];
}
const key = createProofKey();
const token = issuer.boundToken(key, { scope: 'read:orders' });
function bound() {
  const dpop = issuer.proof(key, { method: 'GET', url }, token, nonce === undefined ? {} : { nonce });
  return { authorization: 'DPoP ' + token, dpop };
}
const answers = [await ask({}), await ask(issuer.bearer()), await ask(issuer.bearer({ scope: 'read:orders' }))];
answers.push(await ask(bound()));
const proven = bound();
answers.push(await ask(proven), await ask(proven));
// One of the minute before is good still, and its answer has the next.
const minute = 'gatehouse DPoP nonce ' + Math.floor(Date.now() / 60_000 - 1);
nonce = createHmac('sha256', settings.dpopNonceSecret).update(minute).digest('base64url');
answers.push(await ask(bound()));
server.close();
server.closeAllConnections();
gate.close();
export default answers;
export type { Caller };
`;
}

const FLAGS =
  '--ignoreConfig --noEmit --strict --noImplicitReturns --module nodenext --target es2023 --types node --skipLibCheck';

const link = join(HERE, '../node_modules/gatehouse-http');
rmSync(link, { force: true });
symlinkSync(ROOT, link);

const files = Object.keys(SERVERS).map((name) => join(HERE, `program-${name}.mts`));

let isGood = true;

try {
  for (const [index, server] of Object.values(SERVERS).entries()) {
    writeFileSync(files[index] ?? '', programOf(server));
  }
  execFileSync('npx', ['tsc', ...FLAGS.split(' '), ...files], { stdio: 'inherit', cwd: ROOT });

  for (const [index, name] of Object.keys(SERVERS).entries()) {
    const { default: answers } = (await import(files[index] ?? '')) as { default: unknown };
    const isExpected = JSON.stringify(answers) === EXPECTED;
    isGood &&= isExpected;
    console.log(`${name}: ${isExpected ? 'as expected' : JSON.stringify(answers)}`);
  }
} finally {
  for (const file of [link, ...files]) rmSync(file, { force: true });
}

process.exitCode = isGood ? 0 : 1;
