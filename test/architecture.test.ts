/* The plan of the house held against its files: order of the floors, grants, dependencies, budgets (ARCHITECTURE.md). */
import { strict as assert } from 'node:assert';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Every file of src in the order in which it may be imported: from the floor's earlier files and the floors below. */
const ORDER = [
  'refusal.ts', 'encoding.ts', 'memory.ts', 'sealed.ts', 'log.ts',
  'keys/jwk.ts', 'keys/key-set.ts', 'keys/fetch.ts',
  'token/compact.ts', 'token/signature.ts', 'token/claims.ts', 'token/verify.ts',
  'sender/credentials.ts', 'sender/htu.ts', 'sender/nonce.ts', 'sender/replay.ts', 'sender/proof.ts', 'sender/caller.ts',
  'http/router.ts', 'http/reply.ts', 'http/challenge.ts', 'http/cors.ts',
  'guards.ts', 'route.ts', 'profiles/a.ts', 'profiles/b.ts',
  'settings/yaml.ts', 'settings/rules.ts', 'settings/settings.ts', 'app.ts',
  'listener.ts', 'server.ts',
];
/** Rooms of the proof of possession. */
const MAY_BE_ABSENT = ['sender/htu.ts', 'sender/nonce.ts', 'sender/replay.ts', 'sender/proof.ts'];

/** What of `node:` each file may import; `type` grants only types, names after the module grant only those. */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  'keys/jwk.ts': ['node:crypto'],
  'keys/fetch.ts': ['node:https', 'type node:http'],
  'token/signature.ts': ['node:crypto'],
  'token/verify.ts': ['node:crypto hash'],
  'sender/nonce.ts': ['node:crypto'],
  'sender/replay.ts': ['node:crypto'],
  'sender/proof.ts': ['node:crypto'],
  'sender/caller.ts': ['node:crypto'],
  'http/reply.ts': ['type node:http'],
  'http/challenge.ts': ['type node:http'],
  'http/router.ts': ['type node:http'],
  'http/cors.ts': ['type node:http'],
  'settings/settings.ts': ['node:fs', 'node:path', 'node:util'],
  'app.ts': ['type node:http'],
  'listener.ts': ['node:http', 'node:net'],
  'server.ts': ['node:http'],
};

const TOP_LEVEL = [
  '.ci', '.gitignore', 'LICENSE', 'README.md', 'SECURITY.md', 'package-lock.json', 'package.json', 'src', 'test', 'tsconfig.json',
];
/** What the house makes or what git keeps out. */
const PASSING = ['.git', '.env', 'application.yml', 'coverage', 'dist', 'node_modules'];

const files = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => posix.join(entry.parentPath, entry.name).slice(`${ROOT}src/`.length))
  .sort();
const texts = new Map(files.map((file) => [file, readFileSync(`${ROOT}src/${file}`, 'utf8')]));
/** The text without its comments, line for line. */
const code = (text: string) => text
  .replace(/\/\*[^]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
  .replace(/(^|\s)\/\/.*$/gm, '$1');

interface Import { readonly from: string; readonly names: readonly string[]; readonly isType: boolean }

/** The static imports and re-exports of a file; names that are only types are marked so. */
function importsOf(text: string): Import[] {
  return [...code(text).matchAll(/^(?:import|export)\s+(type\s+)?(?:\{([^}]*)\}|\*[^'\n]*|\w+)\s+from\s+'([^']+)';/gm)].map(([, type, list, from]) => {
    const names = (list ?? '*').split(',').map((name) => name.trim()).filter((name) => name !== '');
    return { from: from!, names: names.filter((name) => !name.startsWith('type ')), isType: type !== undefined || names.every((name) => name.startsWith('type ')) };
  });
}

/** Functions longer than `limit` lines: where they begin and how long they are. */
function longFunctions(text: string, limit: number): string[] {
  const lines = code(text).split('\n');
  const isStart = /\bfunction\b|=>\s*\{?$|^\s*(?:(?:static|async|get|set)\s+)*#?(?!if\b|for\b|while\b|switch\b|catch\b|return\b)\w+(?:<.*>)?\(.*(?:\{|\()$/;
  return lines.flatMap((line, start) => {
    if (!isStart.test(line)) return [];
    const indent = /^ */.exec(line)![0].length;
    const length = lines.slice(start + 1).findIndex((later) => later.trim() !== '' && /^ */.exec(later)![0].length <= indent && !/^ *\)/.test(later)) + 2;
    return length > limit ? [`line ${start + 1}: ${length} lines`] : [];
  });
}

const lineCount = (text: string) => text.replace(/\n$/, '').split('\n').length;
/** What holds for every file: the offences, by file. */
const offences = (find: (text: string, file: string) => readonly string[]) =>
  Object.fromEntries([...texts].map(([file, text]) => [file, find(text, file)] as const).filter(([, found]) => found.length > 0));

describe('the house', () => {
  test('has exactly the files of the plan', () => {
    assert.deepEqual(files.filter((file) => !ORDER.includes(file)), []);
    assert.deepEqual(ORDER.filter((file) => !files.includes(file) && !MAY_BE_ABSENT.includes(file)), []);
    assert.equal(new Set(ORDER).size, ORDER.length);
  });

  test('imports only from earlier files and lower floors, so without cycles', () => {
    let seen = 0;
    assert.deepEqual(offences((text, file) => importsOf(text).filter(({ from }) => from.startsWith('.')).map(({ from }) => {
      seen += 1;
      return posix.join(posix.dirname(file), from);
    }).filter((target) => !(ORDER.indexOf(target) >= 0 && ORDER.indexOf(target) < ORDER.indexOf(file)))), {});
    assert.ok(seen > 50);
  });

  test('imports of Node only what is granted', () => {
    assert.deepEqual(offences((text, file) => importsOf(text).filter(({ from }) => !from.startsWith('.')).filter(({ from, names, isType }) =>
      !(GRANTS[file] ?? []).some((grant) => {
        const [module, ...only] = grant.replace(/^type /, '').split(' ');
        return module === from && (isType || !grant.startsWith('type ')) && (only.length === 0 || names.every((name) => only.includes(name)));
      })).map(({ from, names }) => `${from}: ${names.join(', ')}`)), {});
  });

  test('has no index file, and no import that is dynamic or only has an effect', () => {
    assert.deepEqual(files.filter((file) => /(^|\/)index\./.test(file)), []);
    assert.deepEqual(offences((text) => code(text).match(/^import\s*'.*|\bimport\s*\(|\brequire\b\s*\(|\bcreateRequire\b|^export \*/gm) ?? []), {});
    // Every import statement is one that the tests above have read.
    assert.deepEqual(offences((text) => (code(text).match(/^import\b/gm) ?? []).length === importsOf(text).length ? [] : ['an import in another form']), {});
  });

  test('reads the process and the clock only at the door', () => {
    const reading = /(?<![\w.'-])process\b(?!')|\bDate\.now\b|\bnew Date\(\)|\bDate\(\)|\bperformance\b|\bhrtime\b/g;
    const found = offences((text) => code(text).match(reading) ?? []);
    assert.ok(found['server.ts'] !== undefined);
    const { 'server.ts': _, ...others } = found;
    assert.deepEqual(others, {});
  });

  test('opens every file with at most six lines that say what it does', () => {
    assert.deepEqual(offences((text) => /^(?:\/\*\n(?: \* .+\n){1,6} \*\/|(?:\/\/ .+\n){0,5}\/\/ .+)\n(?!\/[/*])/.test(text) ? [] : [text.slice(0, 60)]), {});
  });

  test('has files of at most 200 lines', () => {
    assert.deepEqual(offences((text) => lineCount(text) > 200 ? [`${lineCount(text)} lines`] : []), {});
  });

  test('has functions of at most 40 lines', () => {
    assert.deepEqual(longFunctions(`function f() {\n${'  x();\n'.repeat(39)}}\n`, 40), ['line 1: 41 lines']);
    assert.deepEqual(longFunctions(`const f = (a) => {\n${'  x();\n'.repeat(38)}};\n`, 40), []);
    assert.deepEqual(offences((text) => longFunctions(text, 40)), {});
  });

  test('has fewer than 2,000 lines in all', () => {
    const lines = [...texts.values()].reduce((sum, text) => sum + lineCount(text), 0);
    assert.ok(lines < 2_000, `${lines} lines`);
  });

  test('escapes neither the types nor the language, and leaves nothing to do', () => {
    const escape = /(?:[:<|&,(=]|\bas|\bextends)\s*any\b(?!')|\bas unknown\b|\beval\b|\bnew Function\b/g;
    assert.deepEqual(offences((text) => code(text).match(escape) ?? []), {});
    assert.deepEqual(offences((text) => text.match(/@ts-\w+|\b(?:TODO|FIXME|XXX|HACK)\b|c8 ignore|eslint-/g) ?? []), {});
  });

  test('has no runtime dependency and exactly four development dependencies', () => {
    const { dependencies, peerDependencies, optionalDependencies, bundledDependencies, devDependencies, type, engines } =
      JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
    assert.deepEqual([dependencies, peerDependencies, optionalDependencies, bundledDependencies].map((list) => Object.keys(list ?? {})), [[], [], [], []]);
    assert.deepEqual(Object.keys(devDependencies).sort(), ['@types/node', 'c8', 'tsx', 'typescript']);
    assert.deepEqual([type, engines], ['module', { node: '>=20.12' }]);
  });

  test('locks nothing that a running service would install', () => {
    const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as { packages: Record<string, { dev?: boolean }> };
    assert.deepEqual(Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true).map(([path]) => path), []);
  });

  test('has nothing at its top but what belongs there', () => {
    assert.deepEqual(readdirSync(ROOT).filter((name) => !TOP_LEVEL.includes(name) && !PASSING.includes(name) && !/\.(?:log|cpuprofile)$/.test(name)), []);
  });
});
