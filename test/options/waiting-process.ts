/* A process with nothing to do but a shared store, at the address in its first argument. */
import { SharedReplayStore } from '../../src/options/redis/replay.ts';

const work = setInterval(() => {}, 1_000);

new SharedReplayStore(
  process.argv[2] ?? '',
  {
    now: Date.now,
    monotonic: () => performance.now(),
    after: (millis, action) => {
      const timer = setTimeout(action, millis).unref();
      return () => clearTimeout(timer);
    },
  },
  (event) => {
    console.log(event);
    clearInterval(work);
  },
);
