/* The memory of the replay store. Records one million proofs inside one window, evenly or (with the
   argument `burst`) in one second, and prints the resident memory for each. Exits with 1 if one is refused
   or dropped, or if an entry takes more than MOST_BYTES. Needs --expose-gc: each measurement follows a
   full collection. With `--write`, keeps the figure for the documents.

   Shows: the memory that a million proofs take in one process.
   Takes: 20 s.
   Needs: nothing. */
import { createHash, randomUUID } from 'node:crypto';
import { createReplayStore } from '../../../src/verify/dpop/replay.ts';
import { keep } from '../sizing/results.ts';

const PROOFS = 1_000_000;
const WINDOW_SECONDS = 330;
const KEYS = 1_000;
const MOST_BYTES = 130;
const START = 1_800_000_000;

if (globalThis.gc === undefined) throw new Error('run it with --expose-gc');
const collect = globalThis.gc;

const resident = () => {
  collect();
  collect();
  return process.memoryUsage().rss;
};

const thumbprints = Array.from({ length: KEYS }, (_, index) =>
  createHash('sha256').update(String(index)).digest('base64url'),
);

const store = createReplayStore(WINDOW_SECONDS);
const isBurst = process.argv[2] === 'burst';

/** The second in which each proof is made and used. */
const secondOf = (index: number) => START + (isBurst ? 0 : Math.floor((index * WINDOW_SECONDS) / PROOFS));

let count = 0;
let sample = '';
const before = resident();
const began = performance.now();

for (let index = 0; index < PROOFS; index += 1) {
  const jti = randomUUID();
  if (index === 0) sample = jti;
  const nowSeconds = secondOf(index);
  if (store.record(thumbprints[index % KEYS]!, jti, nowSeconds + WINDOW_SECONDS, nowSeconds) === 'new') {
    count += 1;
  }
}

const millis = performance.now() - began;
const bytes = resident() - before;

const isRemembered =
  store.record(thumbprints[0]!, sample, START + WINDOW_SECONDS, START + WINDOW_SECONDS) === 'seen';

const perEntry = bytes / PROOFS;

console.log(
  `${count} of ${PROOFS} proofs recorded in ${(millis / 1000).toFixed(1)} s (${((millis / PROOFS) * 1000).toFixed(1)} us each)`,
);

console.log(
  `resident memory: ${(bytes / 2 ** 20).toFixed(0)} MiB more than before, ${perEntry.toFixed(0)} bytes an entry`,
);

console.log(`the first proof at the end of its window: ${isRemembered ? 'still known' : 'forgotten'}`);
keep({ 'replay-memory': { bytesEach: Math.round(perEntry) } });
process.exitCode = count === PROOFS && isRemembered && perEntry <= MOST_BYTES ? 0 : 1;
