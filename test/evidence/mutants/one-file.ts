/* Tests the mutants of one file of src: the part of the tool that runs once for each file. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { coverageOf } from './coverage.ts';
import { matcherOf, type Change, type Equivalent } from './equivalents.ts';
import { Trial } from './trial.ts';
import { openWorkshop, type Mutant } from './workshop.ts';

/** The text of a mutant, and its change. */
export type Shown = Change & Pick<Mutant, 'operator' | 'line' | 'was' | 'becomes'>;

export interface Finding {
  readonly mutants: readonly Shown[];
  /** Those that no test notices, without the explained ones unless requested. */
  readonly survivors: readonly Shown[];
  readonly seconds: number;
}

export interface Order {
  readonly file: string;
  /** Mutants that need no test. */
  readonly explained: readonly Equivalent[];
}

const shown = ({ text: _, ...mutant }: Mutant): Shown => mutant;

const [{ file, explained }] = (await once(process, 'message')) as [Order];
const start = performance.now();
const workshop = openWorkshop(file);
const trial = new Trial(workshop.directory);

process.on('exit', () => {
  trial.close();
  workshop.close();
});

for (const signal of ['SIGINT', 'SIGTERM', 'disconnect'] as const) process.on(signal, () => process.exit(1));

const coverage = coverageOf(file);
await trial.rehearse(file, workshop.original, coverage);
const isMatch = matcherOf(readFileSync(new URL(`../../../src/${file}`, import.meta.url), 'utf8'));
const survivors: Shown[] = [];

for (const mutant of workshop.mutants) {
  if (explained.some((one) => isMatch(one, mutant))) continue;
  workshop.replace(mutant.text);
  if (await trial.survives(file, mutant.text, coverage)) survivors.push(shown(mutant));
}

workshop.replace(workshop.original);
// Otherwise mutants would be killed by what others left in the worker.
await trial.review(file, workshop.original, coverage);

const seconds = Math.round((performance.now() - start) / 1000);
const finding: Finding = { mutants: workshop.mutants.map(shown), survivors, seconds };
process.send!(finding, () => process.exit(0));
