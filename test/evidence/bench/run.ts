/* Measures gatehouse beside its peers and a plain node:http server: prints a table, draws a picture. */
import { writeFileSync } from 'node:fs';
import { startProvider } from '../../idp/provider.ts';
import { measureMemory, measureStart, reviewOf } from './lives.ts';
import { picture } from './picture.ts';
import {
  cases,
  DISTINCT_TOKENS,
  DPOP,
  ES256,
  FLOOR,
  isMeasured,
  isPartial,
  PLAIN,
  RATE,
  ROUNDS,
  SECONDS,
  SLICE,
} from './plan.ts';
import { AUDIENCE, keySet, preparePools, RESERVED } from './pools.ts';
import { leaveServerCore, machine } from './processes.ts';
import type { Results, Section } from './results.ts';
import { measureDpop, measureFloor, measureRounds, rowsOf, type Figures } from './rounds.ts';
import { table } from './table.ts';

const tokens = DISTINCT_TOKENS.toLocaleString('en');

const SECTIONS: readonly Omit<Section, 'rows'>[] = [
  ...cases.map(({ name, title }) => ({ name, title, unit: 'requests/s' as const })),
  { name: FLOOR.name, title: FLOOR.title, unit: 'requests/s' },
  { name: DPOP.name, title: DPOP.title, unit: 'requests/s' },
  { name: 'p50', title: `latency at ${RATE.toLocaleString('en')} requests/s, p50`, unit: 'ms' },
  { name: 'p99', title: `latency at ${RATE.toLocaleString('en')} requests/s, p99`, unit: 'ms' },
  { name: 'start', title: 'start to first answer to a token', unit: 'ms' },
  { name: 'memory-idle', title: 'resident memory, idle', unit: 'MiB' },
  { name: 'memory-loaded', title: `resident memory after ${tokens} distinct tokens`, unit: 'MiB' },
];

function sectionsOf(figures: Figures): Section[] {
  return SECTIONS.flatMap((section) => {
    const found = figures.get(section.name);
    if (found === undefined) return [];

    const base = section.name === DPOP.name ? ES256.name : PLAIN.name;
    return [{ ...section, rows: rowsOf(found, base) }];
  });
}

const needed = RESERVED + ROUNDS * SLICE;
await preparePools(Math.max(needed, isMeasured('memory') ? DISTINCT_TOKENS : 0), needed);
leaveServerCore();
const provider = await startProvider({ audience: AUDIENCE });
provider.publish(keySet());

try {
  const figures: Figures = new Map();
  await measureRounds(provider, figures);
  await measureFloor(provider, figures);
  await measureDpop(provider, figures);
  await measureStart(provider, figures);
  await measureMemory(provider, figures);
  const review = await reviewOf(provider);
  const results: Results = {
    machine,
    rounds: ROUNDS,
    seconds: SECONDS,
    distinctTokens: DISTINCT_TOKENS,
    sections: sectionsOf(figures),
    review,
  };
  process.stdout.write(table(results));
  // A part would look like the whole.
  if (!isPartial) {
    writeFileSync(new URL('results.json', import.meta.url), `${JSON.stringify(results, undefined, 2)}\n`);
    writeFileSync(new URL('results.svg', import.meta.url), picture(results));
  }
} finally {
  await provider.stop();
}
