// Where settings are looked for: the process environment, .env, application.yml or what CONFIG_FILE names.
// Promises: a file that cannot be read is a problem; one that is not there, or that Node's permission model
// hides, is none, unless it is named.
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { decodeUtf8, undefinedOn } from '../../verify/base/encoding.ts';
import { find, throwAt, Fault, problemOf, type Entry } from './entry.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An assignment that an orchestrator makes beside a service called `idp` or `metrics`. */
const ORCHESTRATED =
  /^(?=\w+=)(\w*_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_\w+|PORT(?==(tc|ud|sct)p:))|(IDP|CORS|RESOURCE)_PORT)=/;

/** What is set, and where what is not set was looked for: empty when a file could not be read. */
export type Sources = ReturnType<typeof readSources>;

/** Reads the text of a file; adds to the problems what is wrong with a line. */
export type Parse = (text: string, path: string, problems: string[]) => Entry[];

/** The readers of `.env` and of `application.yml`. */
export type Parsers = Readonly<{ parseDotEnv: Parse; parseYaml: Parse }>;

/**
 * Reads what is set for a process with this environment and working directory; the first of a name wins.
 */
export function readSources(
  environment: Environment,
  directory: string,
  { parseDotEnv, parseYaml }: Parsers,
) {
  const problems: string[] = [];
  const warnings: string[] = [];
  const files: string[] = [];
  let lookedIn = 'environment';

  function readFile(path: string, parse: Parse, namedBy?: Entry): Entry[] {
    try {
      const text = readText(path, namedBy !== undefined);
      lookedIn &&= `${lookedIn}, ${path} (${text === undefined ? 'not ' : ''}there)`;
      if (text === undefined) return [];

      files.push(path);
      return parse(text, path, problems);
    } catch (failure) {
      if (isDenied(failure) && namedBy === undefined) {
        lookedIn &&= `${lookedIn}, ${path} (not granted)`;
        return [];
      }

      lookedIn = '';
      const fault = describeFailure(failure, path);
      problems.push(namedBy ? problemOf(namedBy, fault) : fault);
      return [];
    }
  }

  const variables = [...entriesOf(environment), ...readFile(join(directory, '.env'), parseDotEnv)];
  const configFile = find(variables, 'CONFIG_FILE');
  // What is called otherwise is not read, and may hold a safeguard.
  const misnamed = join(directory, 'application.yaml');
  // What this throws is that the permission model hides it.
  if (configFile === undefined && undefinedOn(Error, () => existsSync(misnamed))) {
    problems.push(`${misnamed}: is not read; call it application.yml, or name it in CONFIG_FILE`);
  }

  const path = resolve(directory, String(configFile?.value ?? 'application.yml'));
  const keys = readFile(path, parseYaml, configFile);
  return { variables, keys, files, lookedIn, problems, warnings };
}

const entriesOf = (environment: Environment) =>
  Object.entries(environment)
    .filter(([name, value]) => !ORCHESTRATED.test(`${name}=${value}`))
    .map(([name, value = '']) => ({ name, value, place: 'environment' }));

/** The bounded text of a regular file; anything else could be waited for without end. */
function readText(path: string, isDemanded: boolean) {
  // A link that leads nowhere is there, and what it should lead to may have held a safeguard.
  if (lstatSync(path, { throwIfNoEntry: isDemanded }) === undefined) return undefined;

  const status = statSync(path);
  if (!status.isFile()) throwAt(path, 'is not a regular file; put one there or remove it');
  if (status.size > 1_000_000) throwAt(path, 'is longer than a million bytes; shorten it');
  return decodeUtf8(readFileSync(path)) ?? throwAt(path, 'is not UTF-8; save it as such');
}

/** Whether Node's permission model hides a file. A mode (`EACCES`) means one that is there. */
const isDenied = (failure: unknown) =>
  failure instanceof Error && 'code' in failure && failure.code === 'ERR_ACCESS_DENIED';

function describeFailure(failure: unknown, path: string) {
  if (failure instanceof Fault) return failure.message;
  if (!(failure instanceof Error && 'code' in failure)) throw failure;

  return `${path}: cannot be read (${failure.code}); mend that, or what names it`;
}
