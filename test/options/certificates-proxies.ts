/* The real nginx, Caddy and HAProxy with TLS, from the samples of docs/certificates.md and
   docs/proxies.md, and docs/forward-auth.conf. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { read, sampleUnder as sampleOfPage } from '../docs/pages.ts';
import { freePort } from '../support/free-port.ts';
import {
  client,
  otherClient,
  tlsFile,
  type ClientCertificate,
  type FieldSource,
} from './certificates-fixture.ts';
import { sampleUnder as sampleOfForwardAuth } from './forward-auth-proxies.ts';

export interface Ports {
  readonly gatehouse: number;
  /** The server behind, for forward-auth; without one, the proxy is in front of a service. */
  readonly api?: number;
}

export interface Proxy {
  readonly name: 'nginx' | 'caddy' | 'haproxy';
  readonly source: FieldSource;
  /** The reason for a bound token without a certificate. */
  readonly absent: 'certificate-missing' | 'certificate-malformed';
  readonly missing: string | undefined;
  readonly start: (ports: Ports) => Promise<{ readonly port: number; readonly stop: () => Promise<void> }>;
}

/** The first sample under a heading of docs/certificates.md. */
function sampleUnder(heading: string): string {
  const [, section = ''] = read('docs/certificates.md').split(`\n### ${heading}\n`);
  const [, sample = ''] = /^```\w*\n([^]*?)^```$/m.exec(section) ?? [];
  assert.notEqual(sample, '');
  return sample;
}

/** The lines to add for forward-auth: below each comment, those that it is about. */
function linesFor(language: string): readonly string[] {
  const sample = sampleOfForwardAuth('Client certificates', language);
  return sample.split(/^# .*$/m).slice(1);
}

interface Kind {
  readonly name: Proxy['name'];
  readonly source: FieldSource;
  readonly absent: Proxy['absent'];
  readonly version: string;
  readonly saysReady: string;
  /** The configuration, for these ports, this port of its own and this directory. */
  readonly write: (ports: Ports, port: number, directory: string) => string;
  readonly words: (file: string, directory: string) => readonly string[];
}

const fileOf = (name: string) => fileURLToPath(new URL(`../idp/tls/${name}.pem`, import.meta.url));

function replaced(text: string, pairs: readonly (readonly [from: string, to: string])[]): string {
  return pairs.reduce((result, [from, to]) => {
    assert.ok(result.includes(from), `${from} is not in\n${result}`);
    return result.replaceAll(from, to);
  }, text);
}

function createProxy({ name, source, absent, version, saysReady, write, words }: Kind): Proxy {
  const isThere = spawnSync(name, [version]).error === undefined;

  async function start(ports: Ports) {
    const directory = mkdtempSync(join(tmpdir(), `gatehouse-${name}-`));
    writeFileSync(join(directory, 'clients.pem'), client.pem + otherClient.pem);
    writeFileSync(join(directory, 'server.pem'), tlsFile('provider') + tlsFile('provider-key'));
    const port = await freePort();
    const file = join(directory, 'configuration');
    writeFileSync(file, write(ports, port, directory));
    const env = { ...process.env, HOME: directory, XDG_DATA_HOME: directory };
    const child = spawn(name, words(file, directory), { stdio: ['ignore', 'ignore', 'pipe'], env });
    const exited = once(child, 'exit');
    let said = '';
    for await (const line of createInterface(child.stderr)) {
      said += `${line}\n`;
      if (line.includes(saysReady)) break;
    }
    assert.equal(child.exitCode, null, said + readFileSync(file, 'utf8'));
    child.stderr.resume();

    return {
      port,
      async stop() {
        child.kill('SIGTERM');
        await exited;
        rmSync(directory, { recursive: true });
      },
    };
  }

  return { name, source, absent, missing: isThere ? undefined : `${name} is not installed`, start };
}

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

const TLS_OF_NGINX = `ssl_certificate ${fileOf('provider')};\nssl_certificate_key ${fileOf('provider-key')};\n`;

function serverOfNginx({ gatehouse, api }: Ports, port: number, directory: string): string {
  const listen = `listen 127.0.0.1:${port} ssl`;
  if (api === undefined) {
    const [, inServer = '', inRoot = ''] = sampleUnder('nginx').split(/^# .*$/m);
    return replaced(sampleOfPage('docs/deploy.md', 'TLS', 'nginx'), [
      ['  server_tokens off;', inServer],
      ['location / {', `location / {\n${inRoot}`],
      ['listen 443 ssl', listen],
      ['/etc/nginx/tls/api.example.com.pem', fileOf('provider')],
      ['/etc/nginx/tls/api.example.com.key', fileOf('provider-key')],
      ['/etc/nginx/tls/clients.pem', join(directory, 'clients.pem')],
      ['127.0.0.1:3001', `127.0.0.1:${gatehouse}`],
    ]);
  }

  const [inServer = '', inQuestion = '', inRoot = ''] = linesFor('nginx');
  const trusted = inServer.replace('/etc/nginx/tls/clients.pem', join(directory, 'clients.pem'));
  return replaced(read('docs/forward-auth.conf'), [
    ['listen 80;', `${listen};\n${TLS_OF_NGINX}${trusted}`],
    ['location = /_gatehouse {', `location = /_gatehouse {\n${inQuestion}`],
    ['location / {', `location / {\n${inRoot}`],
    ['127.0.0.1:3001', `127.0.0.1:${gatehouse}`],
    ['127.0.0.1:8000', `127.0.0.1:${api}`],
  ]);
}

export const NGINX = createProxy({
  name: 'nginx',
  source: 'pem',
  absent: 'certificate-missing',
  version: '-v',
  saysReady: 'start worker processes',

  write(ports, port, directory) {
    const paths = TEMPORARY.map((each) => `${each}_temp_path ${directory}/${each};`).join('\n');
    const server = serverOfNginx(ports, port, directory);
    return `user root;\npid ${directory}/pid;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${server}}\n`;
  },

  words: (file, directory) => [
    ...['-p', directory, '-e', 'stderr', '-c', file],
    ...['-g', 'daemon off; error_log stderr notice;'],
  ],
});

function siteOfCaddy({ gatehouse, api }: Ports, port: number): string {
  const site = `https://localhost:${port} {\nbind 127.0.0.1\n`;
  const own = `tls ${fileOf('provider')} ${fileOf('provider-key')} {`;
  // Of a file, Caddy 2.6 reads the first certificate alone.
  const trusts = [fileOf('client'), fileOf('other-client')].map((file) => `trusted_ca_cert_file ${file}`);
  const trusted = ['trusted_ca_cert_file /etc/caddy/clients.pem', trusts.join('\n')] as const;
  if (api === undefined) {
    return replaced(sampleUnder('Caddy'), [
      ['api.example.com {', site],
      ['tls {', own],
      trusted,
      ['127.0.0.1:3001', `127.0.0.1:${gatehouse}`],
    ]);
  }

  const [inSite = '', inQuestion = '', behind = ''] = linesFor('caddyfile');
  const tls = replaced(inSite, [['tls {', own], trusted]);
  return replaced(read('docs/forward-auth.caddyfile'), [
    [':80 {', `${site}${tls}`],
    ['uri /forward-auth', `uri /forward-auth\n${inQuestion}`],
    ['request_header -DPoP', `request_header -DPoP\n${behind}`],
    ['127.0.0.1:3001', `127.0.0.1:${gatehouse}`],
    ['127.0.0.1:8000', `127.0.0.1:${api}`],
  ]);
}

export const CADDY = createProxy({
  name: 'caddy',
  source: 'rfc9440',
  absent: 'certificate-malformed',
  version: 'version',
  saysReady: 'serving initial configuration',

  write: (ports, port) => `{\nadmin off\nauto_https disable_redirects\n}\n${siteOfCaddy(ports, port)}`,

  words: (file) => ['run', '--config', file, '--adapter', 'caddyfile'],
});

export const HAPROXY = createProxy({
  name: 'haproxy',
  source: 'rfc9440',
  absent: 'certificate-missing',
  version: '-v',
  saysReady: 'Loading success',

  write({ gatehouse }, port, directory) {
    const lines = replaced(sampleUnder('HAProxy'), [
      [':443', `127.0.0.1:${port}`],
      ['/etc/haproxy/api.pem', join(directory, 'server.pem')],
      ['/etc/haproxy/clients.pem', join(directory, 'clients.pem')],
    ]);
    return `global\nlog stderr format raw daemon notice\ntune.bufsize 32768\ndefaults\nmode http\ntimeout connect 2s\ntimeout client 10s\ntimeout server 10s\nfrontend api\n${lines}default_backend gatehouse\nbackend gatehouse\nserver one 127.0.0.1:${gatehouse}\n`;
  },

  words: (file) => ['-W', '-db', '-f', file],
});

export interface Asked {
  readonly port: number;
  readonly presents?: ClientCertificate | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** The status, and the description of the refusal. */
export async function askOverTls({ port, presents, headers }: Asked) {
  const own = presents === undefined ? {} : { cert: presents.pem, key: presents.key };
  const asked = request({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    path: '/me',
    ca: tlsFile('authority'),
    agent: false,
    headers: { Host: `localhost:${port}`, ...headers } as Record<string, string>,
    ...own,
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  const challenge = response.headers['www-authenticate'] ?? '';
  return { status: response.statusCode, description: /error_description="(.*?)"/.exec(challenge)?.[1] };
}
