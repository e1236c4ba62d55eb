/* The programs of docs/calling-the-api.md get through, and repeat a request when the API wants a nonce. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test, type TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startService, type TestService } from '../support/service.ts';
import { samplesUnder } from './pages.ts';

const PAGE = 'docs/calling-the-api.md';
const NONCE_SECRET = 'n'.repeat(32);

const isThere = (command: string, ...words: string[]) => spawnSync(command, words).status === 0;

const hasPython = isThere('python3', '-c', 'import cryptography');
const WITH_PYTHON = { skip: hasPython ? false : 'no python3 with cryptography' };
const hasOpenSsl = isThere('openssl', 'pkeyutl', '-help') && isThere('curl', '--version');

/** RFC 7638 §3 */
function thumbprintOf({ crv, kty, x, y }: Record<string, string>): string {
  const members = y === undefined ? { crv, kty, x } : { crv, kty, x, y };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

describe('a client of docs/calling-the-api.md', { timeout: 60_000 }, () => {
  let provider: Provider;
  let service: TestService;

  before(async () => {
    provider = await startProvider({ clients: [{ id: 'a b', secret: 'c:d', scopes: [] }] });
    const environment = { IDP_DPOP_MODE: 'REQUIRED', IDP_DPOP_NONCE_SECRET: NONCE_SECRET };
    service = await startService({ provider, environment });
  });

  /** The programs have clocks of their own. */
  beforeEach(() => service.clock.set(Date.now()));

  after(() => Promise.all([service.stop(), provider.stop()]));

  const tokenFor = (jwk: Record<string, string>) => provider.issue({ cnf: { jkt: thumbprintOf(jwk) } });
  const url = () => `http://127.0.0.1:${service.port}/api/private?page=2`;

  const refusals = () =>
    service.logs.filter(({ message }) => message === 'request refused').map(({ reason }) => reason);

  function folderWith(t: TestContext, name: string, text: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-client-'));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, name), text);
    return folder;
  }

  /** Runs a program that prints its public key, reads a token, and prints the response. */
  async function runWithKey(folder: string, command: string, words: readonly string[]): Promise<string> {
    const child = spawn(command, words, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const hadKey = printed.includes('\n');
      printed += text;
      if (hadKey || !printed.includes('\n')) return;
      child.stdin.end(`${tokenFor(JSON.parse(printed.split('\n')[0] ?? ''))}\n`);
    });
    await once(child, 'close');
    return printed.slice(printed.indexOf('\n') + 1);
  }

  test('in JavaScript gets its response, twice, after one nonce [RFC 9449 §9]', async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'JavaScript', 'js');
    const folder = folderWith(t, 'client.mjs', sample);
    const { call, keys } = await import(join(folder, 'client.mjs'));
    const token = tokenFor((await crypto.subtle.exportKey('jwk', keys.publicKey)) as Record<string, string>);
    const refused = refusals().length;
    for (const _ of [1, 2]) assert.equal((await call('GET', url(), token)).status, 200);
    assert.deepEqual(refusals().slice(refused), ['proof-nonce']);
  });

  test('in Python gets its response, twice [RFC 9449 §9]', WITH_PYTHON, async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'Python', 'python');
    const last = [
      'print(json.dumps(jwk), flush=True)',
      'token = input()',
      `for _ in range(2): print(call("GET", ${JSON.stringify(url())}, token).status)`,
    ];
    const folder = folderWith(t, 'client.py', `${sample}\n${last.join('\n')}\n`);
    assert.equal(await runWithKey(folder, 'python3', ['client.py']), '200\n200\n');
  });

  async function startServer(t: TestContext, listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  /** Another origin, and a server that redirects to it. */
  async function startRedirect(t: TestContext) {
    const taken: IncomingHttpHeaders[] = [];
    const other = await startServer(t, ({ headers }, response) => {
      taken.push(headers);
      response.end();
    });

    const redirect = (_: unknown, response: ServerResponse) =>
      response.writeHead(302, { Location: other }).end();

    return { taken, url: await startServer(t, redirect) };
  }

  test('in JavaScript does not give the token to the origin that a redirect names [RFC 6750 §5.3]', async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'JavaScript', 'js');
    const { call } = await import(join(folderWith(t, 'client.mjs', sample), 'client.mjs'));
    const { taken, url: address } = await startRedirect(t);
    await call('GET', address, 'secret');
    assert.deepEqual(
      taken.map(({ authorization }) => authorization),
      taken.map(() => undefined),
    );
  });

  test(
    'in Python does not give the token to the origin that a redirect names [RFC 6750 §5.3]',
    WITH_PYTHON,
    async (t) => {
      const [sample = ''] = samplesUnder(PAGE, 'Python', 'python');
      const { taken, url: address } = await startRedirect(t);
      const last = `print(json.dumps(jwk), flush=True)\nprint(call("GET", ${JSON.stringify(address)}, input()).status)`;
      const folder = folderWith(t, 'client.py', `${sample}\n${last}\n`);
      assert.equal(await runWithKey(folder, 'python3', ['client.py']), '302\n');
      assert.deepEqual(taken, []);
    },
  );

  /** Prints what a request says of its body. */
  const startEcho = (t: TestContext) =>
    startServer(t, (request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => {
        response.end(`${request.method} ${request.headers['content-type']} ${text}`);
      });
    });

  test('in JavaScript says that a body is JSON', async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'JavaScript', 'js');
    const { call } = await import(join(folderWith(t, 'client.mjs', sample), 'client.mjs'));
    const response = await call('POST', await startEcho(t), 'token', { item: 'tea' });
    assert.equal(await response.text(), 'POST application/json {"item":"tea"}');
  });

  test('in Python says that a body is JSON', WITH_PYTHON, async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'Python', 'python');
    const address = JSON.stringify(await startEcho(t));
    const sent = `call("POST", ${address}, input(), {"item": "tea"}).read().decode()`;
    const last = `print(json.dumps(jwk), flush=True)\nprint(${sent})`;
    const folder = folderWith(t, 'client.py', `${sample}\n${last}\n`);
    const printed = await runWithKey(folder, 'python3', ['client.py']);
    assert.equal(printed, 'POST application/json {"item": "tea"}\n');
  });

  /** Issues a token for a proof with its nonce, unless the client's identifier is `stranger`. */
  const startTokenEndpoint = (t: TestContext) =>
    startServer(t, ({ headers }, response) => {
      const claims = JSON.parse(String(Buffer.from(String(headers.dpop).split('.')[1] ?? '', 'base64url')));
      const isStranger = headers.authorization === `Basic ${btoa('stranger:s')}`;
      const error = claims.nonce === 'fresh' ? 'invalid_client' : 'use_dpop_nonce';
      const isRefused = isStranger || error === 'use_dpop_nonce';
      response.writeHead(isRefused ? 400 : 200, { 'DPoP-Nonce': 'fresh' });
      response.end(JSON.stringify(isRefused ? { error } : { access_token: 'token' }));
    });

  test('in JavaScript repeats a token request with the nonce, and throws a refusal [RFC 9449 §8]', async (t) => {
    const [sample = ''] = samplesUnder(PAGE, 'JavaScript', 'js');
    const { requestToken } = await import(join(folderWith(t, 'client.mjs', sample), 'client.mjs'));
    const endpoint = await startTokenEndpoint(t);
    assert.equal(await requestToken(endpoint, 'client', 's'), 'token');
    await assert.rejects(requestToken(endpoint, 'stranger', 's'), /^Error: no token: invalid_client/);
  });

  test(
    'in Python repeats a token request with the nonce, and raises a refusal [RFC 9449 §8]',
    WITH_PYTHON,
    async (t) => {
      const [sample = ''] = samplesUnder(PAGE, 'Python', 'python');
      const endpoint = JSON.stringify(await startTokenEndpoint(t));
      const last = [
        'print(json.dumps(jwk), flush=True)',
        `input(), print(request_token(${endpoint}, "client", "s"))`,
        `try: request_token(${endpoint}, "stranger", "s")`,
        'except RuntimeError as error: print(error)',
      ];
      const folder = folderWith(t, 'client.py', `${sample}\n${last.join('\n')}\n`);
      const printed = await runWithKey(folder, 'python3', ['client.py']);
      assert.equal(printed, "token\nno token: {'error': 'invalid_client'}\n");
    },
  );

  test('in each language makes a proof without ath for the token request [RFC 9449 §4.2]', async (t) => {
    const claimsOf = (proof: string) =>
      JSON.parse(Buffer.from(proof.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;

    const [inJavaScript = ''] = samplesUnder(PAGE, 'JavaScript', 'js');
    const { proofFor } = await import(join(folderWith(t, 'client.mjs', inJavaScript), 'client.mjs'));
    const proofs = [await proofFor('POST', 'https://idp.test/token')];
    if (hasPython) {
      const [inPython = ''] = samplesUnder(PAGE, 'Python', 'python');
      const last = 'print(proof_for("POST", "https://idp.test/token"))';
      const folder = folderWith(t, 'client.py', `${inPython}\n${last}\n`);
      proofs.push(spawnSync('python3', ['client.py'], { cwd: folder, encoding: 'utf8' }).stdout);
    }
    if (hasOpenSsl) {
      const [inShell = ''] = samplesUnder(PAGE, 'Shell', 'sh');
      const folder = folderWith(t, 'client.sh', `${inShell}\nproof POST https://idp.test/token\n`);
      proofs.push(spawnSync('sh', ['client.sh'], { cwd: folder, encoding: 'utf8' }).stdout);
    }
    for (const proof of proofs) {
      const { ath, htm, htu } = claimsOf(proof);
      assert.deepEqual([ath, htm, htu], [undefined, 'POST', 'https://idp.test/token']);
    }
  });

  /** The last line that the whole program of a section prints. */
  async function printedBy(
    t: TestContext,
    name: string,
    section: readonly [string, string],
    command: string,
  ) {
    const folder = folderWith(t, name, samplesUnder(PAGE, ...section).join('\n'));
    const child = spawn(command, [name], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        API: `http://127.0.0.1:${service.port}`,
        TOKEN_ENDPOINT: `${provider.issuer}oauth/token`,
        CLIENT_ID: 'a b',
        CLIENT_SECRET: 'c:d',
        NODE_EXTRA_CA_CERTS: provider.authorityFile,
        SSL_CERT_FILE: provider.authorityFile,
        CURL_CA_BUNDLE: provider.authorityFile,
      },
    });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    await once(child, 'close');
    return printed.trimEnd().split('\n').at(-1);
  }

  for (const [name, section, command, why] of [
    ['client.mjs', ['JavaScript', 'js'], 'node', ''],
    ['client.py', ['Python', 'python'], 'python3', hasPython ? '' : 'no python3 with cryptography'],
    ['client.sh', ['Shell', 'sh'], 'sh', hasOpenSsl ? '' : 'no openssl or curl'],
  ] as const) {
    test(`gets a token, and its response: ${name}`, { skip: why === '' ? false : why }, async (t) => {
      const printed = await printedBy(t, name, section, command);
      assert.match(String(printed), /^(?:200 )?\{"message":/);
    });
  }

  test(
    'in the shell gets its response, twice, after one nonce [RFC 9449 §9]',
    { skip: hasOpenSsl ? false : 'no openssl or curl' },
    async (t) => {
      const [sample = ''] = samplesUnder(PAGE, 'Shell', 'sh');
      const call = `call GET ${JSON.stringify(url())} "$token" >response; head -1 response`;
      const last = [`printf '{"kty":"OKP","crv":"Ed25519","x":"%s"}\\n' "$x"`, 'read -r token', call, call];
      const folder = folderWith(t, 'client.sh', `${sample}\n${last.join('\n')}\n`);
      const refused = refusals().length;
      assert.match(await runWithKey(folder, 'sh', ['client.sh']), /^(?:HTTP\/1\.1 200 OK\r\n){2}$/);
      assert.deepEqual(refusals().slice(refused), ['proof-nonce']);
    },
  );
});
