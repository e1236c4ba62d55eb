/* The log lines that a gate or service of this process writes to standard output. The test runner reports over
   the same stream, so everything else passes. */
import type { TestContext } from 'node:test';

/** From now to the end of the test: returns a function that gives the lines so far, parsed. */
export function captureLog(t: TestContext) {
  const { stdout } = process;
  const { write } = stdout;
  let written = '';

  const capture = (text: unknown, ...others: never[]) => {
    const isLog = typeof text === 'string' && text.startsWith('{"time"');
    if (!isLog) return Reflect.apply(write, stdout, [text, ...others]);

    written += text;
    return true;
  };

  stdout.write = capture as typeof write;
  t.after(() => {
    stdout.write = write;
  });

  /** The lines of a turn are written after it. */
  return async (): Promise<Record<string, any>[]> => {
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    const lines = written.trim().split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line));
  };
}
