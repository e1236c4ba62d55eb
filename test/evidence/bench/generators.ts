/* Puts load on a server, and gives no figure if any response was unexpected. */
import { fileURLToPath } from 'node:url';
import { hasWrk, outputOf, type RunningServer } from './processes.ts';
import { isShort, type Expected } from './plan.ts';
import type { Records } from './pools.ts';

export interface Job {
  readonly connections: number;
  readonly seconds: number;
  readonly path: string;
  /** JSON, which makes it a POST. */
  readonly body?: string;
  readonly expected: Expected;
  /** The rest of each request's Authorization field after the scheme; without it there is no field. */
  readonly records?: Records | undefined;
  readonly scheme?: 'Bearer' | 'DPoP';
  /** Whether a record may be sent twice. */
  readonly repeats: boolean;
}

const fileNamed = (name: string) => fileURLToPath(new URL(`load/${name}`, import.meta.url));

/** The text of a request before and after its record. */
function textsOf(
  { path, body = '', records, scheme = 'Bearer' }: Job,
  port: number,
): { before: string; after: string } {
  const content = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  const fields = body === '' ? '' : content;
  const head = `${body === '' ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${fields}`;
  return records === undefined
    ? { before: head, after: `\r\n${body}` }
    : { before: `${head}Authorization: ${scheme} `, after: `\r\n\r\n${body}` };
}

async function runOwn(file: string, job: Job, port: number, more = {}): Promise<Record<string, number>> {
  const argument = JSON.stringify({ ...job, ...textsOf(job, port), port, ...more });
  return JSON.parse(await outputOf([process.execPath, fileNamed(file), argument]));
}

async function runWrk(
  { connections, seconds, records, ...job }: Job,
  port: number,
): Promise<Record<string, number>> {
  const { before, after } = textsOf({ connections, seconds, records, ...job }, port);
  const { file, width, first, count } = records ?? {};
  const environment = {
    JOB_BEFORE: before,
    JOB_AFTER: after,
    ...(file !== undefined && {
      JOB_FILE: file,
      JOB_WIDTH: String(width),
      JOB_FIRST: String(first),
      JOB_COUNT: String(count),
    }),
  };
  // wrk takes whole seconds.
  const options = [
    '-t',
    '1',
    '-c',
    String(connections),
    '-d',
    `${Math.ceil(seconds)}s`,
    '-s',
    fileNamed('wrk.lua'),
    `http://127.0.0.1:${port}`,
  ];
  const output = await outputOf(['wrk', ...options], environment);
  const result = JSON.parse(/^JOB (.*)$/m.exec(output)?.[1] ?? 'null');
  const refused = job.expected.status >= 400 ? result.requests - result.refused : result.refused;
  // A server that fails gives no figure. wrk itself only counts responses with a status of 400 or above.
  if (result.requests === 0 || refused !== 0 || result.broken !== 0) {
    throw new Error(`unexpected answers: ${JSON.stringify(result)}`);
  }
  if (!job.repeats && records !== undefined && result.requests + connections > records.count) {
    throw new Error(
      `${records.count} records are too few for ${result.requests} requests, each of which shall be new`,
    );
  }
  return result;
}

/**
 * A moment of load, with every response read and checked, after which code is compiled and caches are filled.
 */
export async function sample(server: RunningServer, job: Job, seconds = 0.15): Promise<void> {
  await runOwn('closed.mjs', { ...job, seconds }, server.port);
}

/** The responses of a server, and the cost of each. */
export interface Throughput {
  readonly perSecond: number;
  /** Processor time of all threads of the server. */
  readonly microsEach: number;
}

/** wrk does not read bodies, so our own generator, which does, sends a sample first. */
export async function throughput(server: RunningServer, job: Job): Promise<Throughput> {
  // wrk takes whole seconds, and does not stop when there are no more records.
  const isWrk = hasWrk && Number.isInteger(job.seconds) && (job.repeats || !isShort);
  try {
    // A sample would use up new tokens; the warm-up has already checked the responses to such tokens.
    if (isWrk && job.repeats) await sample(server, job);
    const before = server.processorMicros();
    const { requests = 0, seconds = 0 } = isWrk
      ? await runWrk(job, server.port)
      : await runOwn('closed.mjs', job, server.port);
    const microsEach = (server.processorMicros() - before) / requests;
    return { perSecond: requests / seconds, microsEach };
  } catch (error) {
    throw new Error(`${server.name}, ${job.path}: ${String(error)}`, { cause: error });
  }
}

/** Sends every record once, however long it takes. */
export async function sendAll(server: RunningServer, job: Omit<Job, 'seconds' | 'repeats'>): Promise<void> {
  await runOwn('closed.mjs', { ...job, seconds: 3_600, repeats: false }, server.port);
}

/** Latencies in milliseconds at a constant rate. */
export async function latency(
  server: RunningServer,
  job: Job,
  rate: number,
): Promise<{ p50: number; p99: number }> {
  const { p50 = NaN, p99 = NaN } = await runOwn('rate.mjs', job, server.port, { rate });
  return { p50, p99 };
}
