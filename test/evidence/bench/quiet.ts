/* How busy the machine is with other work, which would be measured as ours. Linux tells; elsewhere nobody
   does. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const MOST_OTHER_WORK = 0.05;
const LOOK_MILLIS = 500;

/** Whether figures are wanted even so; they are not kept. */
export const isNoisyAllowed = process.env.BENCH_NOISY === '1';

/** The time that all cores have spent so far, at work and in all (proc(5)). */
function spent(): { readonly busy: number; readonly all: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '';
  const times = line.split(/ +/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  const [, , , idle = 0, waiting = 0] = times;
  return { busy: all - idle - waiting, all };
}

/** Called while nothing of ours is at work. Rejects when other processes take more than 5 % of the cores. */
export async function demandQuiet(): Promise<void> {
  if (isNoisyAllowed || !existsSync('/proc/stat')) return;

  const before = spent();
  await delay(LOOK_MILLIS);
  const after = spent();
  const share = (after.busy - before.busy) / Math.max(1, after.all - before.all);
  if (share <= MOST_OTHER_WORK) return;

  throw new Error(
    `other processes take ${Math.round(share * 100)} % of the cores: end them, or set BENCH_NOISY=1 to see figures that are not kept`,
  );
}
