/* Measures gatehouse beside its peers and a plain node:http server: prints a table, draws a picture.

   Shows: CPU time per request, startup time and memory of gatehouse and other servers, relative to plain
   `node:http`: see [docs/speed.md](docs/speed.md).
   Takes: 13 min.
   Needs: packages, a quiet machine. */
import { writeFileSync } from 'node:fs';
import { startProvider } from '../../idp/provider.ts';
import { measureMemory, measureStart, reviewOf } from './lives.ts';
import { measureOwnRow, measurePost } from './own.ts';
import { picture } from './picture.ts';
import {
  cases,
  DISTINCT_TOKENS,
  DPOP,
  ES256,
  FLOORS,
  GATEHOUSE,
  isMeasured,
  isPartial,
  OWN_ROW,
  PLAIN,
  POST,
  RATE,
  ROUNDS,
  RS256,
  SECONDS,
  SLICE,
  type Case,
} from './plan.ts';
import { AUDIENCE, keySet, preparePools, RESERVED } from './pools.ts';
import { leaveServerCore, machine } from './processes.ts';
import type { Results, Section } from './results.ts';
import { isNoisyAllowed } from './quiet.ts';
import { measureDpop, measureFloor, measureRounds, microsOf, rowsOf, type Figures } from './rounds.ts';
import { table } from './table.ts';

const tokens = DISTINCT_TOKENS.toLocaleString('en');

const BUSY: readonly Pick<Case, 'name' | 'title' | 'goal'>[] = [...cases, ...FLOORS, DPOP, POST, OWN_ROW];

const SECTIONS: readonly Omit<Section, 'rows'>[] = [
  ...BUSY.map(({ name, title, goal }) => ({ name: microsOf(name), title, unit: 'µs' as const, goal })),
  ...BUSY.map(({ name, title }) => ({ name, title, unit: 'requests/s' as const })),
  { name: 'p50', title: `latency at ${RATE.toLocaleString('en')} requests/s, p50`, unit: 'ms' },
  { name: 'p99', title: `latency at ${RATE.toLocaleString('en')} requests/s, p99`, unit: 'ms', goal: 1.2 },
  { name: 'start', title: 'start to first response to a token', unit: 'ms', goal: 1.4 },
  { name: 'memory-idle', title: 'resident memory, idle', unit: 'MiB' },
  {
    name: 'memory-loaded',
    title: `resident memory after ${tokens} distinct tokens`,
    unit: 'MiB',
    goal: 1.15,
  },
];

function baseOf(section: string): string {
  if (section.startsWith(DPOP.name)) return ES256.name;
  if (section.startsWith(OWN_ROW.name)) return GATEHOUSE.name;

  return FLOORS.some(({ name }) => section.startsWith(name)) ? RS256.name : PLAIN.name;
}

function sectionsOf(figures: Figures): Section[] {
  return SECTIONS.flatMap((section) => {
    const found = figures.get(section.name);
    if (found === undefined) return [];

    return [{ ...section, rows: rowsOf(found, baseOf(section.name)) }];
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
  await measureOwnRow(provider, figures);
  await measurePost(provider, figures);
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
  // Partial results would look complete, and results beside other work would look valid.
  if (!isPartial && !isNoisyAllowed) {
    writeFileSync(new URL('results.json', import.meta.url), `${JSON.stringify(results, undefined, 2)}\n`);
    writeFileSync(new URL('../../../docs/pictures/speed.svg', import.meta.url), picture(results));
  }
} finally {
  await provider.stop();
}
