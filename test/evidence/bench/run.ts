/* Measures gatehouse beside its peers and a plain node:http server: prints a table, draws a picture.

   Shows: the figures in [docs/speed.md](docs/speed.md) (`BENCH_SHORT=1` for the cases with a goal, 8 min;
   `BENCH_NODE=24` for another line of Node).
   Takes: 14 min.
   Needs: packages, a quiet machine. */
import { readFileSync, writeFileSync } from 'node:fs';
import { startProvider } from '../../idp/provider.ts';
import { measureMemory, measureStart, reviewOf } from './lives.ts';
import { measureOwnRow, measurePost } from './own.ts';
import { picture } from './picture.ts';
import {
  cases,
  DISTINCT_TOKENS,
  DPOP,
  DPOP_NEW,
  ES256,
  FLOORS,
  GATEHOUSE,
  isMeasured,
  isPartial,
  isShort,
  OWN_ROW,
  PLAIN,
  PLAIN_FETCH,
  POST,
  RATE,
  ROUNDS,
  RS256,
  RS256_ES256,
  SECONDS,
  SLICE,
  START,
  type Case,
} from './plan.ts';
import { AUDIENCE, keySet, preparePools, RESERVED } from './pools.ts';
import { leaveServerCore, machine } from './processes.ts';
import type { Results, Runs, Section } from './results.ts';
import { isNoisyAllowed } from './quiet.ts';
import {
  measureDpop,
  measureDpopOfNewTokens,
  measureFloor,
  measureRounds,
  microsOf,
  rowsOf,
  type Figures,
} from './rounds.ts';
import { table } from './table.ts';

const tokens = DISTINCT_TOKENS.toLocaleString('en');

const BUSY: readonly Pick<Case, 'name' | 'title' | 'goal'>[] = [
  ...cases,
  ...FLOORS,
  DPOP,
  DPOP_NEW,
  POST,
  OWN_ROW,
];

const SECTIONS: readonly Omit<Section, 'rows'>[] = [
  ...BUSY.map(({ name, title, goal }) => ({ name: microsOf(name), title, unit: 'µs' as const, goal })),
  ...BUSY.map(({ name, title }) => ({ name, title, unit: 'requests/s' as const })),
  { name: 'p50', title: `latency at ${RATE.toLocaleString('en')} requests/s, p50`, unit: 'ms' },
  { name: 'p99', title: `latency at ${RATE.toLocaleString('en')} requests/s, p99`, unit: 'ms', goal: 1.2 },
  { ...START, unit: 'ms' },
  { name: 'memory-idle', title: 'resident memory, idle', unit: 'MiB' },
  {
    name: 'memory-loaded',
    title: `resident memory after ${tokens} distinct tokens`,
    unit: 'MiB',
    goal: 1.15,
  },
];

function baseOf(section: string): string {
  if (section === 'start') return PLAIN_FETCH.name;
  if (section.startsWith(DPOP_NEW.name)) return RS256_ES256.name;
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

const write = (name: string, text: string) => writeFileSync(new URL(name, import.meta.url), text);

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

/** A short run beside those of the other lines of Node. */
function keep(results: Results): void {
  if (!isShort) {
    write('results.json', json(results));
    write('../../../docs/pictures/speed.svg', picture(results));
    return;
  }

  const runs = JSON.parse(readFileSync(new URL('lines.json', import.meta.url), 'utf8')) as Runs;
  const [, line = ''] = /^v(\d+)/.exec(String(machine.node)) ?? [];
  write('lines.json', json({ ...runs, [line]: results }));
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
  await measureDpopOfNewTokens(provider, figures);
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
  if (!isPartial && !isNoisyAllowed) keep(results);
} finally {
  await provider.stop();
}
