/* One program of test/package/mounts as a process, between a fake provider and requests. */
import { mkdtempSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request as send, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { providerSettings, startProcess, type TestProcess } from '../../support/process.ts';
import type { Environment } from '../../support/settings.ts';

const HERE = fileURLToPath(new URL('./', import.meta.url));
const ROOT = join(HERE, '../../..');

export interface Scene {
  readonly url: string;
  readonly port: number;
  readonly process: TestProcess;
  /** The header fields of a caller with these claims. */
  readonly bearer: (claims?: object) => Record<string, string>;
  readonly ask: (path: string, init?: RequestInit) => Promise<Asked>;
  /** The head alone; the body is to come. */
  readonly open: (path: string, headers: Record<string, string>) => Promise<IncomingMessage>;
}

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: any;
}

/** A folder in which `gatehouse-http` is what has been built here, beside the packages of others. */
export function openFolder() {
  const directory = mkdtempSync(join(HERE, '.programs-'));
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(ROOT, join(directory, 'node_modules/gatehouse-http'));

  return {
    add(name: string, from = join(ROOT, 'test/package/mounts')) {
      const file = join(directory, name);
      writeFileSync(file, readFileSync(join(from, name)));
      return file;
    },
    remove: () => rmSync(directory, { recursive: true }),
  };
}

const asJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Runs the work beside a program, and ends both. */
export async function inScene(
  file: string,
  environment: Environment,
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const provider: Provider = await startProvider();
  const process = await startProcess({
    program: [globalThis.process.execPath, file],
    environment: { ...providerSettings(provider), HOST: '127.0.0.1', ACCESS_LOG: 'true', ...environment },
  });
  const { port } = process;
  const url = `http://127.0.0.1:${port}`;

  async function ask(path: string, init: RequestInit = {}) {
    const response = await fetch(url + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: asJson(text) };
  }

  async function open(path: string, headers: Record<string, string>) {
    const request = send({ host: '127.0.0.1', port, path, headers, agent: false }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response.setEncoding('utf8');
  }

  try {
    if (port === 0) throw new Error(process.errors());
    await work({
      url,
      port,
      process,
      bearer: (claims = {}) => ({ authorization: `Bearer ${provider.issue({ ...claims })}` }),
      ask,
      open,
    });
  } finally {
    await process.stop();
    await provider.stop();
  }
}

/** Reads until the text has this, and returns all of it so far. */
export async function readUntil(response: IncomingMessage, part: string): Promise<string> {
  let text = '';
  for await (const chunk of response.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.includes(part)) return text;
  }
  throw new Error(`the stream ended before ${part}: ${text}`);
}

/** Resolves once the body has its proper end, with what has come until then. */
export const readAll = async (response: IncomingMessage) => (await response.toArray()).join('');

export const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
