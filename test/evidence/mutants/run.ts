/* Changes the code one small step at a time and runs the tests that cover it: what no test notices must be
   explained in equivalents.json. Arguments select files (verify/token/claims); `--equivalents` puts the
   explained ones to the tests too; `--resume` takes over what an earlier run found about texts that are still
   the same; `--rehearse` only says which tests fail on a copy without any change, and so would notice nothing. As many
   files at a time as there are processors.

   Shows: code changes that no test detects (`npm run evidence mutants verify/token/claims` for one file).
   Takes: hours, or 1 min a file.
   Needs: nothing. */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FILES } from './coverage.ts';
import { functionAt, matcherOf, type Change, type Equivalent } from './equivalents.ts';
import type { Finding, Shown } from './one-file.ts';
import { rehearse } from './rehearse.ts';

const ROOT = new URL('../../../', import.meta.url);
const KEPT = join(tmpdir(), 'gatehouse-mutants-found');

const equivalents: readonly Equivalent[] = JSON.parse(
  readFileSync(new URL('equivalents.json', import.meta.url), 'utf8'),
);

const words = process.argv.slice(2);
const names = words.filter((word) => !word.startsWith('--'));
const files = FILES.filter((file) => names.length === 0 || names.some((name) => file.includes(name)));
if (files.length === 0) throw new Error(`no file is named ${names.join(' ')}`);

if (words.includes('--rehearse')) {
  const failing = await rehearse();
  for (const name of failing) console.log(`fails without any change: test/${name}`);
  process.exit(failing.length > 0 ? 1 : 0);
}

const explanationsOf = (file: string) => equivalents.filter((one) => one.file === file);

const textOf = (file: string) => readFileSync(new URL(`src/${file}`, ROOT), 'utf8');

/** Where the result for a text of src is stored. */
function placeOf(file: string): string {
  const text = textOf(file);
  return join(KEPT, `${file.replaceAll('/', '-')}-${createHash('sha256').update(text).digest('hex')}.json`);
}

function keptFinding(file: string): Finding | undefined {
  try {
    return JSON.parse(readFileSync(placeOf(file), 'utf8')) as Finding;
  } catch {
    return undefined;
  }
}

/** Tests every unexplained mutant of the file in another process, which may fail. */
async function find(file: string): Promise<Finding | undefined> {
  const kept = words.includes('--resume') ? keptFinding(file) : undefined;
  const isMatch = matcherOf(textOf(file));
  const isExplained = (one: Shown) => explanationsOf(file).some((other) => isMatch(other, one));
  // A newer test may notice an unexplained survivor.
  if (kept?.survivors.every(isExplained)) return kept;

  const explained = words.includes('--equivalents') ? [] : explanationsOf(file);
  const child = fork(fileURLToPath(new URL('one-file.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
    serialization: 'json',
  });
  children.add(child);
  child.send({ file, explained });
  const finding = await new Promise<Finding | undefined>((resolve) => {
    child.once('message', (message) => resolve(message as Finding));
    child.once('exit', () => resolve(undefined));
  });
  children.delete(child);
  if (finding !== undefined) {
    mkdirSync(KEPT, { recursive: true });
    writeFileSync(placeOf(file), JSON.stringify(finding));
  }
  return finding;
}

const children = new Set<ReturnType<typeof fork>>();

process.on('exit', () => {
  for (const child of children) child.kill();
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const begun = performance.now();
const total = { mutants: 0, killed: 0, explained: 0, survivors: 0, faults: 0 };

function tell(file: string, { mutants, survivors, seconds }: Finding): void {
  const explanations = explanationsOf(file);
  const isMatch = matcherOf(textOf(file));
  const isExplained = (change: Change) => explanations.some((one) => isMatch(one, change));
  const unexplained = survivors.filter((one) => !isExplained(one));
  const explained = mutants.filter(isExplained);
  for (const one of unexplained) {
    const where = functionAt(textOf(file), one) ?? 'no function';
    console.log(`src/${file}:${one.line}: ${one.operator} survives in ${where}`);
    console.log(`  - ${one.was}\n  + ${one.becomes}`);
  }

  const stale = explanations.filter((one) => mutants.filter((change) => isMatch(one, change)).length !== 1);
  const killed = words.includes('--equivalents')
    ? explained.filter(
        ({ start, becomes }) => !survivors.some((one) => one.start === start && one.becomes === becomes),
      )
    : [];
  for (const { becomes } of stale) {
    console.log(`equivalents.json names what is not there, or more than once: ${file}: ${becomes}`);
  }
  for (const { becomes } of killed) {
    console.log(`equivalents.json names what tests notice: ${file}: ${becomes}`);
  }

  const count = mutants.length - unexplained.length - explained.length;
  console.log(
    `src/${file}: ${mutants.length} mutants, ${count} killed, ${explained.length} equivalent, ${seconds} s`,
  );
  total.mutants += mutants.length;
  total.killed += count;
  total.explained += explained.length;
  total.survivors += unexplained.length;
  total.faults += stale.length + killed.length;
}

const left = [...files];

async function work(): Promise<void> {
  for (let file = left.shift(); file !== undefined; file = left.shift()) {
    const finding = await find(file);
    if (finding !== undefined) tell(file, finding);
    else {
      total.faults += 1;
      console.log(`src/${file}: not judged, since its tests fail without any mutant`);
    }
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));

const { mutants, killed, explained, survivors, faults } = total;
const minutes = ((performance.now() - begun) / 60_000).toFixed(1);

console.log(
  `${mutants} mutants, ${killed} killed, ${explained} equivalent, ${survivors} survivors, ${minutes} minutes`,
);

process.exitCode = survivors + faults > 0 ? 1 : 0;
