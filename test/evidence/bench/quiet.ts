/* How busy the machine is with other work, which would distort the figures. Known only on Linux. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const MOST_OTHER_WORK = 0.05;
const LOOK_MILLIS = 500;
const LOOKS = 600;

/** Whether to measure anyway; such figures are not kept. */
export const isNoisyAllowed = process.env.BENCH_NOISY === '1';

/** The time of all cores so far, busy and in all (proc(5)). */
function spent(): { readonly busy: number; readonly all: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '';
  const times = line.split(/ +/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  const [, , , idle = 0, waiting = 0] = times;
  return { busy: all - idle - waiting, all };
}

/** The share of the cores that other processes use. */
async function shareOfOthers(): Promise<number> {
  const before = spent();
  await delay(LOOK_MILLIS);
  const after = spent();
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

/**
 * Call it only while this benchmark is idle. Waits for five minutes while other processes use more than 5 % of
 * the cores, then rejects.
 */
export async function demandQuiet(): Promise<void> {
  if (isNoisyAllowed || !existsSync('/proc/stat')) return;

  let share = 1;
  for (let look = 0; look < LOOKS; look += 1) {
    share = await shareOfOthers();
    if (share <= MOST_OTHER_WORK) return;
  }
  throw new Error(
    `other processes take ${Math.round(share * 100)} % of the cores: end them, or set BENCH_NOISY=1 to see figures that are not kept`,
  );
}
