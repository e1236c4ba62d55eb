/* A process with nothing to do but a shared store, at the address in its first argument. If there is a second,
   it awaits the record of that proof or, for `-`, not even the store. */
import { SharedReplayStore } from '../../src/options/redis/replay.ts';

const [address = '', jti] = process.argv.slice(2);
const work = setInterval(() => {}, 1_000);

if (jti === '-') clearInterval(work);

const store = new SharedReplayStore(
  address,
  {
    now: Date.now,
    monotonic: () => performance.now(),
    after: (millis, action) => {
      const timer = setTimeout(action, millis).unref();
      return () => clearTimeout(timer);
    },
  },
  async (event) => {
    console.log(event);
    clearInterval(work);
    if (jti === undefined) return;

    // After the turn: nothing but the reply is left to wait for.
    await new Promise(setImmediate);
    console.log(await store.record('', jti, 1, 0));
  },
);
