/* A process that has nothing left to do but a store that replicas share, at the address of its first argument. */
import { createSharedReplayStore } from '../../src/options/redis-replay.ts';

const work = setInterval(() => {}, 1_000);

createSharedReplayStore(
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
