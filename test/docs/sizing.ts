/* What a process takes, from the last runs of the tools that measure it. */
import { keepSeconds } from '../../src/verify/dpop/replay.ts';
import { CHECK_DEFAULTS } from '../../src/verify/options.ts';
import type { Runs } from '../evidence/bench/results.ts';
import { readSizing } from '../evidence/sizing/results.ts';
import { read } from './pages.ts';

const { dpopIatOffsetSeconds = 0, dpopIatLeewaySeconds = 0, tokenCacheEntries = 0 } = CHECK_DEFAULTS;

/** Proofs a second of the examples. */
const RATE = 1_000;

/** Rounded up to ten. */
const tens = (figure: number) => Math.ceil(figure / 10) * 10;

const number = (figure: number) => figure.toLocaleString('en');

/** The least and the most of a case on all lines of Node, such as `14 to 16`. */
function microsOf(name: string): string {
  const runs = Object.values(JSON.parse(read('test/evidence/bench/lines.json')) as Runs);
  const figures = runs.flatMap(({ sections }) => {
    const rows = sections.find((section) => section.name === `${name}-micros`)?.rows ?? [];
    return rows.filter(({ server }) => server.startsWith('gatehouse')).map(({ value }) => Math.round(value));
  });
  return [...new Set([Math.min(...figures), Math.max(...figures)])].join(' to ');
}

/** Bytes for each proof of so many seconds, and for all at the rate of the examples. */
function proofs(bytesEach: number, seconds: number): string {
  const bytes = tens(bytesEach);
  const megabytes = Math.ceil((bytes * seconds * RATE) / 1e6);
  return `${bytes} bytes for each proof of the last ${seconds} s (${megabytes} MB at ${number(RATE)} proofs a second)`;
}

/** What an operator plans for. */
export function sizing(): string {
  const { process, cache, connections, ...stores } = readSizing();
  const cacheMebibytes = Math.ceil((cache.bytesEach * tokenCacheEntries) / 2 ** 20);
  const waiting = (Math.ceil(connections.waitingBytesEach / 100) / 10).toFixed(1);
  const rows = {
    'CPU per request': `${microsOf('warm-1-50')} µs with a cached token, ${microsOf('floor')} µs with a new token, and ${microsOf('dpop-new')} µs with a new token and a proof`,
    'Memory per process': `${process.idleMebibytes} MiB idle, ${process.loadedMebibytes} MiB under full load, plus ${cacheMebibytes} MiB for ${number(tokenCacheEntries)} cached tokens`,
    'In-process replay store': proofs(
      stores['replay-memory'].bytesEach,
      dpopIatOffsetSeconds + dpopIatLeewaySeconds,
    ),
    'Shared replay store': proofs(stores['replay-store'].bytesEach, keepSeconds(dpopIatOffsetSeconds, 0)),
    'Memory per request in progress': `${waiting} kB, plus the handler's data and up to twice the body limit`,
    'Memory per connection': `up to ${connections.pipelinedMebibytes} MiB if a client pipelines tiny requests`,
  };
  return Object.entries(rows)
    .map(([what, figures]) => `- **${what}:** ${figures}\n`)
    .join('');
}

/** What so many routes cost. */
export function manyRoutes(): string {
  const { node, count, startupMillis, searchMicros } = readSizing().routes;
  const figures = `startup takes ${startupMillis} ms more, and finding a route takes up to ${searchMicros.toFixed(1)} µs`;
  return `With ${number(count)} routes, ${figures} (Node ${node.slice(1)}).\n`;
}
