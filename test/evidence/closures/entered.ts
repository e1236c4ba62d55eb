/* Which functions of the built code one warm request enters, by V8's precise coverage in a process of its own. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Entered {
  /** Below src. */
  readonly file: string;
  readonly line: number;
  /** Empty for a function without a name. */
  readonly name: string;
  readonly calls: number;
}

/** What is sent. */
export interface Walk {
  readonly name: string;
  readonly what: string;
  /** The most files, functions, and functions without a name that it should enter. */
  readonly goal: readonly [files: number, functions: number, nameless: number];
}

export const WALKS: readonly Walk[] = [
  {
    name: 'GET',
    what: 'a GET of a route of profile B that needs a scope, by createService',
    goal: [22, 60, 5],
  },
  {
    name: 'check',
    what: 'gate.check of a Fetch Request that has a new DPoP proof',
    goal: [20, 65, 5],
  },
];

const PROGRAM = fileURLToPath(new URL('one-request.mjs', import.meta.url));

/** By the name of the walk. Needs the build. */
export function readEntered(): Readonly<Record<string, readonly Entered[]>> {
  const text = execFileSync(process.execPath, [PROGRAM], { encoding: 'utf8' });
  return JSON.parse(text) as Record<string, readonly Entered[]>;
}

export interface Counts {
  readonly files: number;
  readonly functions: number;
  readonly nameless: number;
  readonly calls: number;
}

export const countsOf = (entered: readonly Entered[]): Counts => ({
  files: new Set(entered.map(({ file }) => file)).size,
  functions: entered.length,
  nameless: entered.filter(({ name }) => name === '').length,
  calls: entered.reduce((sum, { calls }) => sum + calls, 0),
});

/** A row for each file: its functions with their lines, in their order there. */
export function rowsOf(entered: readonly Entered[]) {
  const files = [...new Set(entered.map(({ file }) => file))].sort();

  return files.map((file) => {
    const inside = entered.filter((one) => one.file === file).sort((one, other) => one.line - other.line);
    const functions = inside.map(({ name, line }) => (name === '' ? `⟨${line}⟩` : `${name} ${line}`));
    return { file, functions: functions.join(', ') };
  });
}
