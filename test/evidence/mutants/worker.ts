/* Runs test files in this process repeatedly, each time with new modules and one of them changed, without the
   time that a new process takes to start. Has as much of node:test as those files use. The parent process
   enforces the time limit, and starts another worker if this one hangs. */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SourceTextModule, SyntheticModule, type Module } from 'node:vm';

/** Test files in order; `changed` names the file that has `text` instead of its own. */
export interface Task {
  readonly files: readonly string[];
  readonly changed: string;
  readonly text: string;
}

type Action = (context: object) => unknown;

/** Keeps compiled code, since most modules do not change. */
const known = new Map<string, { text: string; cachedData?: Buffer }>();
const builtins = new Map<string, Record<string, unknown>>();

function moduleOf(path: string, { changed, text }: Task): Module {
  const isChanged = path === changed;
  if (!isChanged && !known.has(path)) known.set(path, { text: readFileSync(path, 'utf8') });
  const { cachedData, text: source } = isChanged ? { text, cachedData: undefined } : known.get(path)!;

  const initializeImportMeta = (meta: ImportMeta) => {
    meta.url = pathToFileURL(path).href;
  };

  const options = { identifier: path, initializeImportMeta };
  const faster = cachedData && withCode(source, { ...options, cachedData });
  const module = faster ?? new SourceTextModule(source, options);
  // Its types exist only for scripts.
  const { createCachedData } = module as unknown as { createCachedData(): Buffer };
  if (!isChanged && faster === undefined) {
    known.set(path, { text: source, cachedData: createCachedData.call(module) });
  }
  return module;
}

/** `undefined` where V8 takes no code from before: a test has set a flag since. */
function withCode(...given: ConstructorParameters<typeof SourceTextModule>): Module | undefined {
  try {
    return new SourceTextModule(...given);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_VM_MODULE_CACHED_DATA_REJECTED') throw error;
    return undefined;
  }
}

function synthetic(name: string, values: Readonly<Record<string, unknown>>): Module {
  return new SyntheticModule(
    Object.keys(values),

    function () {
      for (const [key, value] of Object.entries(values)) this.setExport(key, value);
    },

    { identifier: name },
  );
}

/** The first failure, after which nothing runs; `undefined` if every test of every file passes. */
async function failureOf(task: Task): Promise<string | undefined> {
  const actions: Action[] = [];
  const test = (_: string, ...rest: unknown[]) => void actions.push(rest.at(-1) as Action);
  const describe = (_: string, register: () => void) => register();
  const modules = new Map<string, Module>([
    ['node:test', synthetic('node:test', { test, describe, default: test })],
  ]);

  const resolve = (specifier: string, from: string) =>
    isBuiltin(specifier) ? specifier : fileURLToPath(new URL(specifier, pathToFileURL(from)));

  const load = async (name: string) => {
    if (isBuiltin(name) && !builtins.has(name)) builtins.set(name, await import(name));
    const module =
      modules.get(name) ?? (isBuiltin(name) ? synthetic(name, builtins.get(name)!) : moduleOf(name, task));
    modules.set(name, module);
    return module;
  };

  let under = '';
  try {
    for (const file of task.files) {
      under = file;
      const module = await load(file);
      await module.link((specifier, { identifier }) => load(resolve(specifier, identifier)));
      await module.evaluate();
      for (const action of actions.splice(0)) {
        const ends: (() => unknown)[] = [];
        await action({ after: (end: () => unknown) => ends.push(end) });
        for (const end of ends) await end();
      }
    }
    return undefined;
  } catch (error) {
    return `${under}: ${String(error)}`;
  }
}

// What a mutant left must not end the worker.
process.on('unhandledRejection', () => {}).on('uncaughtException', () => {});
process.on('message', async (task: Task) => process.send!({ failure: await failureOf(task) }));
