/* The real nginx and the real Caddy with the very configurations of docs/forward-auth.conf and
   docs/forward-auth.caddyfile, on ports of loopback. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { read } from '../docs/pages.ts';
import { freePort } from '../support/free-port.ts';

const PAGES = ['docs/forward-auth.md', 'docs/proxies.md'];

/** The first sample of the language behind the heading; comments in it begin like headings. */
export function sampleUnder(heading: string, language: string): string {
  const [, section = ''] = PAGES.map(read).join('').split(`\n## ${heading}\n`);
  const [, sample = ''] = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(section) ?? [];
  assert.notEqual(sample, '', `no page has ${language} under ${heading}`);
  return sample;
}

export interface Behind {
  readonly gatehouse: number;
  /** The port of a second replica that is down. Default: there is one replica. */
  readonly gone?: number;
  readonly api: number;
  /** Where it asks. Default: the path of the sample, `/forward-auth`. */
  readonly askedPath?: string;
}

export interface RunningProxy {
  readonly port: number;
  /** The process that serves, to measure its processor time. */
  readonly process: ChildProcess;
  stop(): Promise<void>;
}

export interface Proxy {
  readonly name: 'nginx' | 'caddy';
  /** Why it cannot be started here; absent when it can. */
  readonly missing: string | undefined;
  start(behind: Behind): Promise<RunningProxy>;
}

interface Kind {
  readonly name: 'nginx' | 'caddy';
  readonly version: string;
  /** The documented configuration. */
  readonly page: string;
  /** Makes the configuration file, for this port and directory, from the documented one. */
  readonly wrap: (sample: string, port: number, directory: string) => string;
  readonly words: (file: string, directory: string) => readonly string[];
  /** What it says on standard error when it has bound its port. */
  readonly saysReady: string;
  /** Changes the documented one from one replica to two. */
  readonly replicas: (sample: string, gone: number) => string;
}

const ASKED_PATH = /(?<=proxy_pass http:\/\/gatehouse|\buri )\/forward-auth(?=;?$)/m;

function proxy({ name, version, page, wrap, words, saysReady, replicas }: Kind): Proxy {
  const isThere = spawnSync(name, [version]).error === undefined;

  async function start({ gatehouse, gone, api, askedPath = '/forward-auth' }: Behind): Promise<RunningProxy> {
    const directory = mkdtempSync(join(tmpdir(), `gatehouse-${name}-`));
    const port = await freePort();
    const alone = read(page);
    assert.match(alone, /127\.0\.0\.1:3001/);
    const all = gone === undefined ? alone : replicas(alone, gone);
    assert.match(all, ASKED_PATH);
    const sample = all.replace(ASKED_PATH, askedPath);
    const adapted = sample.replaceAll('127.0.0.1:3001', `127.0.0.1:${gatehouse}`);
    const file = join(directory, 'configuration');
    writeFileSync(file, wrap(adapted.replaceAll('127.0.0.1:8000', `127.0.0.1:${api}`), port, directory));
    const environment = { ...process.env, HOME: directory, XDG_DATA_HOME: directory };
    const child = spawn(name, words(file, directory), {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: environment,
    });
    const exited = once(child, 'exit');
    let said = '';
    for await (const line of createInterface(child.stderr)) {
      said += `${line}\n`;
      if (line.includes(saysReady)) break;
    }
    assert.equal(child.exitCode, null, said);
    child.stderr.resume();
    return {
      port,
      process: child,

      async stop() {
        child.kill('SIGTERM');
        await exited;
        rmSync(directory, { recursive: true });
      },
    };
  }

  return { name, missing: isThere ? undefined : `${name} is not installed`, start };
}

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

export const NGINX = proxy({
  name: 'nginx',
  version: '-v',
  page: 'docs/forward-auth.conf',

  wrap(sample, port, directory) {
    assert.match(sample, /^ {2}listen 80;$/m);
    const paths = TEMPORARY.map((each) => `${each}_temp_path ${directory}/${each};`).join('\n');
    const server = sample.replace('listen 80;', `listen 127.0.0.1:${port};`);
    return `user root;\npid ${directory}/pid;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${server}}\n`;
  },

  words: (file, directory) => [
    ...['-p', directory, '-e', 'stderr', '-c', file],
    ...['-g', 'daemon off; error_log stderr notice;'],
  ],
  saysReady: 'start worker processes',

  replicas: (sample, gone) =>
    // Without `max_fails` it would be left out for ten seconds.
    sample.replace('127.0.0.1:3001;', `127.0.0.1:3001; server 127.0.0.1:${gone} max_fails=0;`),
});

export const CADDY = proxy({
  name: 'caddy',
  version: 'version',
  page: 'docs/forward-auth.caddyfile',

  wrap(sample, port) {
    assert.match(sample, /^:80 \{$/m);
    return `{\n\tadmin off\n}\n${sample.replace(':80 {', `http://:${port} {\n\tbind 127.0.0.1`)}`;
  },

  words: (file) => ['run', '--config', file, '--adapter', 'caddyfile'],
  saysReady: 'serving initial configuration',

  replicas: (sample, gone) =>
    sample.replace(
      'forward_auth 127.0.0.1:3001 {',
      `forward_auth 127.0.0.1:3001 127.0.0.1:${gone} {\nlb_try_duration 2s\nlb_policy round_robin`,
    ),
});

export const PROXIES = [NGINX, CADDY];

export interface Seen {
  /** As they arrived. */
  readonly method: string;
  readonly target: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nX-Behind: 1\r\n\r\nok';

/** The server behind, which reads nothing into a request: it notes the bytes of each head, and responds. */
export async function startApi() {
  const seen: Seen[] = [];

  function serve(socket: Socket) {
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0 || socket.writableEnded) return;

      const [line = '', ...fields] = received.slice(0, end).split('\r\n');
      const [, method = '', target = ''] = /^(\S+) (.*) HTTP\/1\.[01]$/.exec(line) ?? [];
      const pairs = fields.map((field) => {
        const colon = field.indexOf(':');
        return [field.slice(0, colon), field.slice(colon + 1).trim()] as const;
      });
      seen.push({ method, target, fields: pairs });
      socket.end(RESPONSE);
    });
  }

  const server = createServer(serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);

  return {
    port: address.port,
    seen,

    async stop() {
      server.close();
      await once(server, 'close');
    },
  };
}
