/* Chromium, driven over a pipe by the DevTools protocol: messages of JSON, each ended by a zero byte. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

type Members = Record<string, unknown>;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Members;
  readonly result?: Members;
  readonly error?: { readonly message: string };
}

/** One tab. */
export interface Tab {
  send(method: string, params?: Members): Promise<Members>;
  /** The value of an expression, or of the promise that it gives. */
  evaluate<Value>(expression: string): Promise<Value>;
  /** What the page and the browser complained of so far: uncaught errors, and what a policy blocked. */
  readonly complaints: readonly string[];
}

export interface Browser {
  readonly tab: Tab;
  stop(): Promise<void>;
}

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe'];

/** Starts the command with an empty profile and one tab. */
export async function startBrowser(command: string): Promise<Browser> {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-browser-'));
  const child = spawn(command, [...FLAGS, `--user-data-dir=${home}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const gone = once(child, 'exit');
  const call = connect(child.stdio[3] as Writable, child.stdio[4] as Readable);
  const { targetId } = await call.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await call.send('Target.attachToTarget', { targetId, flatten: true });
  const tab = tabOf(call, String(sessionId));
  for (const domain of ['Page', 'Runtime', 'Log']) await tab.send(`${domain}.enable`);
  return {
    tab,
    stop: async () => {
      // It has processes of its own.
      process.kill(-Number(child.pid), 'SIGKILL');
      await gone;
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

interface Connection {
  send(method: string, params?: Members, sessionId?: string): Promise<Members>;
  /** Hears every event. */
  listen(listener: (message: Message) => void): void;
}

function connect(input: Writable, output: Readable): Connection {
  const waiting = new Map<number, (message: Message) => void>();
  const listeners: ((message: Message) => void)[] = [];
  let last = 0;
  let rest = '';
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const texts = (rest + chunk).split('\0');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const message = JSON.parse(text) as Message;
      if (message.id === undefined) listeners.forEach((listen) => listen(message));
      else waiting.get(message.id)?.(message);
    }
  });
  return {
    send: async (method, params = {}, sessionId) => {
      last += 1;
      const id = last;
      const replied = new Promise<Message>((resolve) => waiting.set(id, resolve));
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
      const { result, error } = await replied;
      waiting.delete(id);
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result ?? {};
    },
    listen: (listener) => void listeners.push(listener),
  };
}

interface Evaluated {
  readonly result?: { readonly value?: unknown };
  readonly exceptionDetails?: { readonly exception?: { readonly description?: string } };
}

function tabOf(connection: Connection, sessionId: string): Tab {
  const complaints: string[] = [];
  connection.listen(({ method, params }) => {
    // Chromium also logs 4xx responses, with the source "network".
    const isRefusal = (params?.entry as { source?: string } | undefined)?.source === 'network';
    if (method === 'Runtime.exceptionThrown' || (method === 'Log.entryAdded' && !isRefusal)) {
      complaints.push(JSON.stringify(params));
    }
  });
  const send = (method: string, params?: Members) => connection.send(method, params, sessionId);
  return {
    send,
    complaints,
    evaluate: async <Value>(expression: string) => {
      const options = { expression, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = (await send('Runtime.evaluate', options)) as Evaluated;
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description);
      return result?.value as Value;
    },
  };
}
