/* Frames of a bug in the built package, which come from its source maps if Node reads those. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

test('names the sources of frames under --enable-source-maps, and leaves them in the stack', () => {
  const program = `
    const { describeBug } = require('./dist/verify/base/events.js');
    try {
      require('./dist/service/routes/handler-reply.js').reply(999);
    } catch (error) {
      const { frames } = describeBug(error);
      console.log(JSON.stringify([frames[0], error.stack]));
    }`;
  const { stdout } = spawnSync(process.execPath, ['--enable-source-maps', '-e', program], {
    cwd: new URL('..', import.meta.url),
    encoding: 'utf8',
  });
  const [frame, stack] = JSON.parse(stdout);
  assert.match(
    frame,
    /src\/verify\/base\/events\.ts:\d+:\d+$|src\/service\/routes\/handler-reply\.ts:\d+:\d+$/,
  );
  assert.match(
    stack,
    /^TypeError: a reply needs a status.*\n    at .*src\/service\/routes\/handler-reply\.ts:/,
  );
});

test('ends no process that aborts on an uncaught error, and shows the frames there, too', () => {
  const program = `
    const { describeBug } = require('./dist/verify/base/events.js');
    const error = new RangeError('m');
    const { frames } = describeBug(error);
    console.log(JSON.stringify([frames.length, error.stack]));`;
  for (const flag of ['--abort-on-uncaught-exception', '--abort_on_uncaught_exception']) {
    for (const [words, environment] of [
      [[flag], {}],
      [[], { NODE_OPTIONS: flag }],
    ] as const) {
      const { stdout, signal } = spawnSync(process.execPath, [...words, '-e', program], {
        cwd: new URL('..', import.meta.url),
        env: { PATH: process.env.PATH, ...environment },
        encoding: 'utf8',
      });
      assert.equal(signal, null);
      const [count, stack] = JSON.parse(stdout);
      assert.ok(count > 0);
      assert.match(stack, /^RangeError: m\n    at \[eval\]:3:\d+\n    at /);
    }
  }
});
