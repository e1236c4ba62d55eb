/* Runs lines as a file of their own, for what the stack of an error says about the call that threw it. */
import assert from 'node:assert/strict';
import { compileFunction } from 'node:vm';

/** The stack of what these lines throw in a file `routes.js`, which has imported `names`. */
export function stackOf(lines: readonly string[], names: object): string {
  const run = compileFunction(lines.join('\n'), Object.keys(names), { filename: 'routes.js' });
  try {
    run(...Object.values(names));
  } catch (error) {
    return String((error as Error).stack);
  }
  return assert.fail('nothing was thrown');
}
