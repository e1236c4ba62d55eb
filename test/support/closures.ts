/* What a program loads through a door of src: every file that its imports reach, counted in tokens. Imports
   of types vanish at run time. Files are named by their paths below src. */
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importsOf } from './imports.ts';
import { tokensOf, type Token } from './tokens.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));

/** The text of each file. */
export type Sources = ReadonlyMap<string, string>;

export interface Closure {
  /** Sorted by name. */
  readonly files: readonly string[];
  readonly tokens: number;
}

export interface Door {
  readonly name: string;
  /** The files that a program imports. */
  readonly entries: readonly string[];
  /** Whether files of `options/` count. */
  readonly hasOptions?: true;
  /** Its bound of tokens. */
  readonly bound: number;
}

const CHARACTERS_OF_A_TOKEN = 4;

export const readSources = (): Sources =>
  new Map(
    readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
      .map((name) => name.replaceAll('\\', '/'))
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .map((name) => [name, readFileSync(`${SOURCE}/${name}`, 'utf8')]),
  );

/**
 * A regular expression counts one token for every four characters, a text one for every line, and a template
 * one for every line of each of its parts: in TypeScript's parser, the parts include the signs around the
 * holes. Every other leaf is one token, except that `>>` after two types counts as two.
 */
function weightOf({ kind, text, end }: Token, next: Token | undefined): number {
  if (kind === 'regex') return Math.ceil(text.length / CHARACTERS_OF_A_TOKEN);
  if (kind === 'text' || kind === 'chunk') return text.split('\n').length;
  if (kind !== 'sign') return 1;

  const endsHole = text === '}' && next?.kind === 'chunk' && next.start === end;
  return text === '${' || endsHole ? 0 : 1;
}

/** The tokens of a source text, without comments. */
export function countTokens(source: string): number {
  const tokens = tokensOf(source.replace(/^#!.*/, ''));
  return tokens.reduce((sum, token, index) => sum + weightOf(token, tokens[index + 1]), 0);
}

/** What precedes `import(` or `require(` in a type. */
const BEFORE_TYPE = ['typeof', 'keyof', 'as', 'extends', 'satisfies', ':', '<', '|', '&'];

/** The modules that are loaded at run time. */
function loadedLater(source: string): string[] {
  const tokens = tokensOf(source);
  return tokens.flatMap(({ text }, index) => {
    const module = tokens[index + 2];
    const isCall = ['import', 'require'].includes(text) && tokens[index + 1]?.text === '(';
    const isType = BEFORE_TYPE.includes(tokens[index - 1]?.text ?? '');
    return isCall && !isType && module?.kind === 'text' ? [module.text.slice(1, -1)] : [];
  });
}

/** Loads the settings and the process only when one of its functions is called. */
const LATER = 'process/doors.ts';

/** The files that a file loads. */
export function filesLoadedBy(file: string, source: string): string[] {
  const modules = importsOf(source)
    .filter(({ isType }) => !isType)
    .map(({ from }) => from);
  return [...modules, ...(file === LATER ? [] : loadedLater(source))]
    .filter((from) => from.startsWith('.'))
    .map((from) => posix.join(posix.dirname(file), from));
}

/** The process imports a parser only if there may be a file for it, and the others only for `--check` and `--probe`. */
export const AS_NEEDED: readonly string[] = [
  'settings/dot-env.ts',
  'settings/yaml.ts',
  'process/report.ts',
  'process/probe.ts',
];

export const isOption = (file: string): boolean => file.startsWith('options/') || AS_NEEDED.includes(file);

/**
 * Without `hasOptions`, options count only if they are entries or an option loads them. Throws if a loaded file
 * does not exist.
 */
export function closureOf({ entries, hasOptions }: Omit<Door, 'name' | 'bound'>, sources: Sources): Closure {
  const files = new Set(entries);
  let tokens = 0;
  for (const file of files) {
    const source = sources.get(file);
    if (source === undefined) throw new Error(`loaded, but not there: src/${file}`);
    tokens += countTokens(source);
    for (const next of filesLoadedBy(file, source)) {
      if (hasOptions || isOption(file) || !isOption(next)) files.add(next);
    }
  }
  return { files: [...files].sort(), tokens };
}

/**
 * The files of each door. The verifier has no door: its closure is its ring. Whatever its settings, a process has a log.
 */
const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  verify: ['verify/caller.ts', 'verify/dpop/replay.ts', 'verify/keys/key-set.ts', 'verify/keys/fetch.ts'],
  createGate: ['gate.ts'],
  createService: ['service/create-service.ts'],
  gatehouse: ['gatehouse.ts'],
  runService: ['process/run.ts', 'options/log.ts'],
  server: ['server.ts', 'options/log.ts'],
};

const BOUNDS: Readonly<Record<string, number>> = {
  verify: 11_500,
  createGate: 17_500,
  createService: 25_000,
  runService: 32_000,
  server: 32_000,
};

const BOUND_OF_ALL = 38_000;

/** The doors of src. */
export function doorsOf(sources: Sources): Door[] {
  const all = [...sources.keys()];
  const ring = all.filter((file) => file.startsWith('verify/'));
  const gate = all.filter((file) => file === 'gate.ts');

  const doors = Object.entries(ENTRIES).map(([name, listed]) => {
    const found = { verify: ring, createGate: gate }[name] ?? [];
    const bound = BOUNDS[name] ?? Infinity;
    return { name, entries: found.length > 0 ? found : listed, bound };
  });
  return [...doors, { name: 'all of src', entries: all, hasOptions: true, bound: BOUND_OF_ALL }];
}
