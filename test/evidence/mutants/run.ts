/* `npm run mutants` changes the checks one at a time and runs the tests that cover them: what no test notices must be explained in
   equivalents.json. Names after `--` choose files (token/claims); `--equivalents` puts the explained ones to the tests too. */
import { readFileSync } from 'node:fs';
import { COVERAGE } from './coverage.ts';
import { Trial } from './trial.ts';
import { openWorkshop, type Mutant } from './workshop.ts';

interface Equivalent {
  readonly file: string;
  readonly was: string;
  readonly becomes: string;
  readonly why: string;
}

const equivalents: readonly Equivalent[] = JSON.parse(
  readFileSync(new URL('equivalents.json', import.meta.url), 'utf8'),
);
const isSame = (mutant: Mutant, { file, was, becomes }: Equivalent) =>
  mutant.file === file && mutant.was === was && mutant.becomes === becomes;

const words = process.argv.slice(2);
const names = words.filter((word) => !word.startsWith('--'));
const files = Object.keys(COVERAGE).filter(
  (file) => names.length === 0 || names.some((name) => file.includes(name)),
);
if (files.length === 0) throw new Error(`no file is named ${names.join(' ')}`);

const begun = performance.now();
const workshop = openWorkshop(files);
const trial = new Trial(workshop.directory);
process.on('exit', () => {
  trial.close();
  workshop.close();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const survivors: Mutant[] = [];
/** Of equivalents.json. */
const faults: string[] = [];
const total = { mutants: 0, killed: 0, explained: 0 };
for (const file of files) {
  const coverage = COVERAGE[file]!;
  await trial.rehearse(file, workshop.original(file), coverage);
  const mutants = workshop.mutants.filter((mutant) => mutant.file === file);
  const start = performance.now();
  let [killed, explained] = [0, 0];
  for (const mutant of mutants) {
    const isExplained = equivalents.some((equivalent) => isSame(mutant, equivalent));
    explained += Number(isExplained);
    if (isExplained && !words.includes('--equivalents')) continue;
    workshop.replace(file, mutant.text);
    const isSurvivor = await trial.survives(file, mutant.text, coverage);
    if (isExplained && !isSurvivor)
      faults.push(`explains what tests tell apart: src/${file}:${mutant.line}: ${mutant.becomes}`);
    if (!isExplained && isSurvivor) {
      survivors.push(mutant);
      console.log(
        `src/${file}:${mutant.line}: ${mutant.operator} survives\n  - ${mutant.was}\n  + ${mutant.becomes}`,
      );
    }
    killed += Number(!isExplained && !isSurvivor);
  }
  workshop.replace(file, workshop.original(file));
  // Otherwise mutants were killed by what others left behind in the worker.
  if (!(await trial.survives(file, workshop.original(file), coverage)))
    throw new Error(`tests fail after the mutants of ${file}`);
  total.mutants += mutants.length;
  total.killed += killed;
  total.explained += explained;
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(
    `src/${file}: ${mutants.length} mutants, ${killed} killed, ${explained} equivalent, ${seconds} s`,
  );
}

const stale = equivalents.filter(
  (one) => files.includes(one.file) && !workshop.mutants.some((mutant) => isSame(mutant, one)),
);
faults.push(...stale.map(({ file, becomes }) => `explains what is no longer there: src/${file}: ${becomes}`));
for (const fault of faults) console.log(`equivalents.json ${fault}`);
const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
const { mutants, killed, explained } = total;
console.log(
  `${mutants} mutants, ${killed} killed, ${explained} equivalent, ${survivors.length} survivors, ${minutes} minutes`,
);
if (survivors.length > 0 || faults.length > 0) process.exitCode = 1;
trial.close();
