/* Loads built files in a realm of their own, as test runners do: they get the classes of that realm, and the
   modules and some globals of Node, whose errors are of another one. */
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, resolve } from 'node:path';
import { compileFunction, createContext, type Context } from 'node:vm';

/** What Node gives each realm, and JavaScript does not. */
const GLOBALS = {
  ...{ AbortController, AbortSignal, Buffer, performance, process, TextDecoder, URL, URLSearchParams },
  ...{ clearInterval, clearTimeout, queueMicrotask, setImmediate, setInterval, setTimeout },
};

export interface Realm {
  readonly context: Context;
  /** The exports of a CommonJS file, by its path. */
  readonly load: (path: string) => any;
}

export function createRealm(): Realm {
  const context = createContext({ ...GLOBALS });
  const loaded = new Map<string, { exports: unknown }>();
  const requireOfNode = createRequire(import.meta.url);

  function load(path: string): unknown {
    const known = loaded.get(path);
    if (known !== undefined) return known.exports;

    const module = { exports: {} };
    loaded.set(path, module);

    const requireHere = (name: string) =>
      isBuiltin(name) ? requireOfNode(name) : load(resolve(dirname(path), name));

    const run = compileFunction(readFileSync(path, 'utf8'), ['module', 'exports', 'require'], {
      filename: path,
      parsingContext: context,
    });
    run(module, module.exports, requireHere);
    return module.exports;
  }

  return { context, load };
}
