// Collects entries from the environment, .env, and application.yml or the file that CONFIG_FILE names.
// Promises: an unreadable file is rejected; a missing one, or one that Node's permission model hides, only
// if CONFIG_FILE names it.
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codeOf, decodeUtf8, catching } from '../verify/base/encoding.ts';
import { find, TEMPLATE, throwAt, throwProblem, SettingProblem, problemOf, type Entry } from './entry.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What Kubernetes and Docker set for other services called `idp` or `metrics`. */
const ORCHESTRATED = [
  /^(?=\w+=)\w*_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_\w+|PORT(?==(tc|ud|sct)p:))=/,
  // `METRICS_PORT` is a setting.
  /^(IDP|CORS|RESOURCE|CLIENT_CERT|REVOCATION|ISSUER_[^_]+)_PORT=/,
];

type Parse = (text: string, path: string, problems: string[]) => Entry[];

type Parsers = Readonly<{ parseDotEnv: Parse; parseYaml: Parse }>;

export interface FoundEntries {
  /** The first entry of a name wins. */
  readonly variables: readonly Entry[];
  readonly keys: readonly Entry[];
  readonly files: readonly string[];
  /** For messages; empty if a file could not be read. */
  readonly lookedIn: string;
  readonly problems: string[];
  readonly warnings: string[];
  /** Names in the environment, which other programs share, that may be misspelt settings. */
  readonly strays: string[];
}

/** Whether there may be something to parse. */
export function mayHaveFile({ CONFIG_FILE }: Environment, directory: string): boolean {
  const usual = ['.env', 'application.yml'].map((name) => join(directory, name));
  return Boolean(CONFIG_FILE) || usual.some(isThere);
}

/** The permission model makes `existsSync` throw. */
const isThere = (path: string) => catching('Error', () => existsSync(path)) === true;

export function findEntries(
  environment: Environment,
  directory: string,
  { parseDotEnv, parseYaml }: Parsers,
): FoundEntries {
  const files = new Files();
  const variables = [...entriesOf(environment), ...files.read(join(directory, '.env'), parseDotEnv)];
  const configFile = find(variables, 'CONFIG_FILE');
  // `application.yaml` would be ignored silently, and might hold a safeguard.
  const misnamed = join(directory, 'application.yaml');
  if (configFile === undefined && isThere(misnamed)) {
    files.problems.push(`${misnamed}: is not read; rename it to application.yml, or set CONFIG_FILE to it`);
  }

  const path = resolve(directory, String(configFile?.value ?? 'application.yml'));
  const keys = files.read(path, parseYaml, configFile);
  return { variables, keys, ...files, warnings: [], strays: [] };
}

/** The files that are looked for, and what is said of them. */
class Files {
  readonly problems: string[] = [];
  readonly files: string[] = [];
  lookedIn = 'environment';

  read(path: string, parse: Parse, namedBy?: Entry): Entry[] {
    try {
      if (String(namedBy?.value).includes('${')) throwProblem(TEMPLATE);
      const text = readText(path, namedBy !== undefined);
      this.#note(path, text === undefined ? 'not there' : 'there');
      if (text === undefined) return [];

      this.files.push(path);
      return parse(text, path, this.problems);
    } catch (error) {
      // Node's permission model hides whether it exists; any other error stops startup.
      if (codeOf(error) === 'ERR_ACCESS_DENIED' && namedBy === undefined) {
        this.#note(path, 'not granted');
        return [];
      }

      this.lookedIn = '';
      const problem = describeError(error, path);
      this.problems.push(namedBy ? problemOf(namedBy, problem) : problem);
      return [];
    }
  }

  #note(path: string, outcome: string) {
    this.lookedIn &&= `${this.lookedIn}, ${path} (${outcome})`;
  }
}

const isOrchestrated = (assignment: string) => ORCHESTRATED.some((form) => form.test(assignment));

const entriesOf = (environment: Environment) =>
  Object.entries(environment)
    .filter(([name, value]) => !isOrchestrated(`${name}=${value}`))
    .map(([name, value = '']) => ({ name, value, source: 'environment' }));

/** Reads only regular files: a pipe might never end. */
function readText(path: string, isDemanded: boolean) {
  // A broken link is not "missing": its target may have held a safeguard.
  if (lstatSync(path, { throwIfNoEntry: isDemanded }) === undefined) return undefined;

  const status = statSync(path);
  if (!status.isFile()) throwAt(path, 'is not a regular file; put one there or remove it');
  if (status.size > 1_000_000) throwAt(path, 'is longer than a million bytes; shorten it');
  return decodeUtf8(readFileSync(path)) ?? throwAt(path, 'is not UTF-8; convert it');
}

function describeError(error: unknown, path: string) {
  if (error instanceof SettingProblem) return error.message;
  const code = codeOf(error);
  if (code === undefined) throw error;

  return `${path}: cannot be read (${code}); make it readable, or correct the setting that points to it`;
}
