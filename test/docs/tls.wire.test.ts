/* The server block of docs/deploy.md that terminates TLS, in the real nginx in front of the service. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { created, createService, get, json, needs, open, post, scope } from '../../src/gatehouse.ts';
import { createProof, createProofKey } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import { freePort } from '../support/free-port.ts';
import { withReason } from '../support/skipped.ts';
import { sampleUnder } from './pages.ts';

const missing = spawnSync('nginx', ['-v']).error === undefined ? undefined : 'nginx is not installed';

const tlsFile = (name: string) => fileURLToPath(new URL(`../idp/tls/${name}`, import.meta.url));

const AUTHORITY = readFileSync(tlsFile('authority.pem'));

/** What a packaged nginx.conf has around the server block, in a folder of its own. */
function wrap(sample: string, directory: string): string {
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const temporary = folders.map((name) => `${name}_temp_path ${directory}/${name};`).join('\n');
  const main = `pid ${directory}/pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n`;
  return `${main}${sample}}\n`;
}

/** Starts nginx in front of a port and returns its own. It ends with the test. */
async function startNginx(context: TestContext, service: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'));
  const port = await freePort();
  const file = join(directory, 'nginx.conf');
  const sample = sampleUnder('docs/deploy.md', 'TLS', 'nginx')
    .replace('127.0.0.1:3001', `127.0.0.1:${service}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replace('/etc/nginx/tls/api.example.com.pem', tlsFile('provider.pem'))
    .replace('/etc/nginx/tls/api.example.com.key', tlsFile('provider-key.pem'));
  writeFileSync(file, wrap(sample, directory));

  const words = ['-p', directory, '-e', 'stderr', '-c', file];
  const checked = spawnSync('nginx', [...words, '-t'], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  const child = spawn('nginx', [...words, '-g', 'daemon off; error_log stderr notice;'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  context.after(async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
    rmSync(directory, { recursive: true });
  });
  for await (const line of createInterface(child.stderr)) {
    if (line.includes('start worker processes')) break;
  }
  child.stderr.resume();
  return port;
}

const PUBLIC_URL = 'https://api.example.com';

interface Question {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

async function ask(port: number, { path, method, headers, body }: Question) {
  const sent = request({
    port,
    path,
    method: method ?? 'GET',
    ca: AUTHORITY,
    servername: 'localhost',
    headers: { Host: 'api.example.com', ...headers },
  });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const text = (await response.toArray()).join('');
  return { status: response.statusCode, server: response.headers.server, text };
}

/** How the service learns the URL that callers see. */
const WAYS = { publicUrl: { publicUrl: PUBLIC_URL }, trustProxy: { trustProxy: true } };

for (const [name, way] of Object.entries(WAYS)) {
  test(
    withReason(
      `a DPoP proof for the public URL passes behind the TLS server of docs/deploy.md with ${name} [RFC 9449 §4.3(9)]`,
      missing,
    ),
    { skip: missing !== undefined },
    async (t) => {
      const issuer = makeIssuer();
      const routes = [
        get('/orders/{id}', needs(scope('orders')), ({ parameters }) => ({ id: parameters.id })),
        post('/orders', needs(scope('orders')), json(), () => created('/orders/2', {})),
        get('/address', open, ({ clientAddress }) => ({ clientAddress })),
      ];
      const settings = {
        ...issuer.options,
        ...way,
        host: '127.0.0.1',
        port: 0,
        dpopMode: 'ALLOWED' as const,
      };
      const service = createService({ routes }, settings);
      const port = await startNginx(t, Number(new URL(await service.listen()).port));
      t.after(() => service.stop());

      const key = createProofKey();
      const token = issuer.boundToken(key, { scope: 'orders' });

      const proofs = (url: string) => ({
        Authorization: `DPoP ${token}`,
        DPoP: createProof(key, { method: 'GET', url }, token),
      });

      // nginx passes the target on as it was sent.
      const path = '/orders/a%2Fb';
      const admitted = await ask(port, { path, headers: proofs(PUBLIC_URL + path) });
      assert.deepEqual([admitted.status, admitted.text], [200, '{"id":"a/b"}']);

      const other = `http://127.0.0.1:${port}${path}`;
      assert.equal((await ask(port, { path, headers: proofs(other) })).status, 401);

      // A client cannot choose what the proof is compared with.
      const chosen = { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' };
      const headers = { ...proofs(`https://evil.example${path}`), ...chosen };
      assert.equal((await ask(port, { path, headers })).status, 401);

      // Nor who it seems to be.
      const forged = { 'X-Forwarded-For': '203.0.113.7' };
      const address = await ask(port, { path: '/address', headers: forged });
      assert.equal(address.text, '{"clientAddress":"127.0.0.1"}');

      // 12 KiB of token and proof.
      const long = issuer.token({ scope: 'orders', filler: 'x'.repeat(9_000) });
      const big = await ask(port, { path, headers: { Authorization: `Bearer ${long}` } });
      assert.equal(big.status, 200);

      // The service refuses, not nginx: with its own body, before it reads the client's.
      const body = Buffer.alloc(2_000_000, ' ');
      const posted = { path: '/orders', method: 'POST', body };
      const refused = await ask(port, { ...posted, headers: { 'Content-Type': 'application/json' } });
      assert.equal(refused.status, 401);
      assert.match(refused.text, /"error":"unauthorized"/);
    },
  );
}
