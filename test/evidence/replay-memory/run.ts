/* The memory of the replay store. Records one million proofs inside one window, evenly and in one second, each
   three times in a new process, and prints the resident memory for each. Exits with 1 if one is refused or dropped, or if an entry
   takes more than MOST_BYTES. Needs --expose-gc: each measurement follows a full collection. With `--write`, keeps
   the greatest figure for the documents.

   Shows: the memory that proofs take in one process.
   Takes: 20 s.
   Needs: nothing. */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { LocalReplayStore } from '../../../src/verify/dpop/replay.ts';
import { keep } from '../sizing/results.ts';

const PROOFS = 1_000_000;
const WINDOW_SECONDS = 330;
const KEYS = 1_000;
const MOST_BYTES = 130;
const START = 1_800_000_000;
const RUNS = 3;

if (globalThis.gc === undefined) throw new Error('run it with --expose-gc');
const collect = globalThis.gc;

const resident = () => {
  collect();
  collect();
  return process.memoryUsage().rss;
};

/** The second in which each proof is made and used. */
const KINDS: Readonly<Record<string, (index: number) => number>> = {
  evenly: (index) => START + Math.floor((index * WINDOW_SECONDS) / PROOFS),
  'in one second': () => START,
};

function measure(secondOf: (index: number) => number) {
  const thumbprints = Array.from({ length: KEYS }, (_, index) =>
    createHash('sha256').update(String(index)).digest('base64url'),
  );
  const store = new LocalReplayStore(WINDOW_SECONDS);
  let recorded = 0;
  let sample = '';
  const before = resident();
  const began = performance.now();

  for (let index = 0; index < PROOFS; index += 1) {
    const jti = randomUUID();
    if (index === 0) sample = jti;
    const nowSeconds = secondOf(index);
    const verdict = store.record(thumbprints[index % KEYS]!, jti, nowSeconds + WINDOW_SECONDS, nowSeconds);
    if (verdict === 'new') recorded += 1;
  }

  const millis = performance.now() - began;
  const bytes = resident() - before;
  const end = START + WINDOW_SECONDS;
  const isRemembered = store.record(thumbprints[0]!, sample, end, end) === 'seen';
  return { recorded, millis, bytes, isRemembered };
}

type Measured = ReturnType<typeof measure>;

function measured(kind: string): number {
  const parameters = ['--expose-gc', '--import', 'tsx', fileURLToPath(import.meta.url), kind];
  const text = execFileSync(process.execPath, parameters, { encoding: 'utf8' });
  const { recorded, millis, bytes, isRemembered } = JSON.parse(text) as Measured;
  const bytesEach = bytes / PROOFS;
  const time = `${(millis / 1000).toFixed(1)} s (${((millis / PROOFS) * 1000).toFixed(1)} us each)`;
  console.log(`${kind}: ${recorded} of ${PROOFS} proofs recorded in ${time}`);
  console.log(
    `resident memory: ${(bytes / 2 ** 20).toFixed(0)} MiB more, ${bytesEach.toFixed(0)} bytes an entry`,
  );
  console.log(`the first proof at the end of its window: ${isRemembered ? 'still known' : 'forgotten'}`);
  if (recorded < PROOFS || !isRemembered || bytesEach > MOST_BYTES) process.exitCode = 1;
  return bytesEach;
}

const secondOf = KINDS[process.argv[2] ?? ''];

if (secondOf === undefined) {
  const bytesEach = Math.round(
    Math.max(...Object.keys(KINDS).flatMap((kind) => Array.from({ length: RUNS }, () => measured(kind)))),
  );
  if (process.exitCode !== 1) keep({ 'replay-memory': { bytesEach } });
} else {
  console.log(JSON.stringify(measure(secondOf)));
}
