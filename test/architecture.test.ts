/* The plan of the house held against its files: order of the floors, grants, dependencies, budgets (ARCHITECTURE.md). */
import { strict as assert } from 'node:assert';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Every file of src in the order in which it may be imported: from the floor's earlier files and the floors below. */
const ORDER = [
  'base/refusal.ts',
  'base/encoding.ts',
  'base/sealed.ts',
  'base/lru.ts',
  'base/clock.ts',
  'base/events.ts',
  'request/fields.ts',
  'request/uri.ts',
  'request/path.ts',
  'keys/jwk.ts',
  'keys/key-set.ts',
  'keys/fetch.ts',
  'token/compact.ts',
  'token/signature.ts',
  'token/claims.ts',
  'token/verify.ts',
  'sender/credentials.ts',
  'sender/dpop-nonce.ts',
  'sender/replay.ts',
  'sender/dpop-proof.ts',
  'sender/caller.ts',
  'reply/reply.ts',
  'reply/challenge.ts',
  'reply/cors.ts',
  'routes/guards.ts',
  'routes/access.ts',
  'routes/row.ts',
  'routes/router.ts',
  'settings/yaml.ts',
  'settings/readers.ts',
  'settings/load.ts',
  'service/pipeline.ts',
  'service/observe.ts',
  'service/assemble.ts',
  'service/listener.ts',
  'profiles/a.ts',
  'profiles/b.ts',
  'profiles/tables.ts',
  'server.ts',
];

/** What of `node:` each file may import; `type` grants only types. */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  'keys/jwk.ts': ['node:crypto'],
  'keys/fetch.ts': ['node:https', 'type node:http'],
  'token/signature.ts': ['node:crypto'],
  'token/verify.ts': ['node:crypto'],
  'sender/dpop-nonce.ts': ['node:crypto'],
  'sender/replay.ts': ['node:crypto'],
  'sender/dpop-proof.ts': ['node:crypto'],
  'reply/reply.ts': ['type node:http'],
  'reply/challenge.ts': ['type node:http'],
  'routes/router.ts': ['type node:http'],
  'reply/cors.ts': ['type node:http'],
  'settings/load.ts': ['node:fs', 'node:path', 'node:util'],
  'service/pipeline.ts': ['type node:http'],
  'service/listener.ts': ['node:http', 'node:net'],
};

const TOP_LEVEL = [
  '.ci',
  '.dockerignore',
  '.env.example',
  '.gitignore',
  'CHANGELOG.md',
  'Dockerfile',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'docs',
  'package-lock.json',
  'package.json',
  'src',
  'test',
  'tsconfig.json',
];
/** What the house makes or what git keeps out. */
const PASSING = ['.git', '.env', 'application.yml', 'coverage', 'dist', 'node_modules'];

const files = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => posix.join(entry.parentPath, entry.name).slice(`${ROOT}src/`.length))
  .sort();
const texts = new Map(files.map((file) => [file, readFileSync(`${ROOT}src/${file}`, 'utf8')]));
/** The text without its comments, line for line. */
const code = (text: string) =>
  text.replace(/\/\*[^]*?\*\//g, (comment) => comment.replace(/[^\n]/g, '')).replace(/(^|\s)\/\/.*$/gm, '$1');

interface Import {
  readonly from: string;
  readonly names: readonly string[];
  readonly isType: boolean;
}

/** The static imports and re-exports of a file; names that are only types are marked so. */
function importsOf(text: string): Import[] {
  const statement = /^(?:import|export)\s+(type\s+)?(?:\{([^}]*)\}|\*[^'\n]*|\w+)\s+from\s+'([^']+)';/gm;
  return [...code(text).matchAll(statement)].map(([, type, list, from]) => {
    const names = (list ?? '*')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const values = names.filter((name) => !name.startsWith('type '));
    return { from: from!, names: values, isType: type !== undefined || values.length === 0 };
  });
}

/** What holds for every file: the offences, by file. */
const offences = (find: (text: string, file: string) => readonly string[]) =>
  Object.fromEntries(
    [...texts]
      .map(([file, text]) => [file, find(text, file)] as const)
      .filter(([, found]) => found.length > 0),
  );

describe('the house', () => {
  test('has exactly the files of the plan', () => {
    assert.deepEqual([...ORDER].sort(), files);
  });

  test('imports only from earlier files and lower floors, so without cycles', () => {
    let seen = 0;
    assert.deepEqual(
      offences((text, file) =>
        importsOf(text)
          .filter(({ from }) => from.startsWith('.'))
          .map(({ from }) => {
            seen += 1;
            return posix.join(posix.dirname(file), from);
          })
          .filter((target) => !(ORDER.indexOf(target) >= 0 && ORDER.indexOf(target) < ORDER.indexOf(file))),
      ),
      {},
    );
    assert.ok(seen > 50);
  });

  test('imports of Node only what is granted', () => {
    const isGranted = ({ from, isType }: Import, grants: readonly string[]) =>
      grants.includes(from) || (isType && grants.includes(`type ${from}`));
    assert.deepEqual(
      offences((text, file) =>
        importsOf(text)
          .filter((one) => !one.from.startsWith('.') && !isGranted(one, GRANTS[file] ?? []))
          .map(({ from, names }) => `${from}: ${names.join(', ')}`),
      ),
      {},
    );
  });

  test('has no index file, and no import that is dynamic or only has an effect', () => {
    assert.deepEqual(
      files.filter((file) => /(^|\/)index\./.test(file)),
      [],
    );
    const effects = /^import\s*'.*|\bimport\s*\(|\brequire\b\s*\(|\bcreateRequire\b|^export \*/gm;
    assert.deepEqual(
      offences((text) => code(text).match(effects) ?? []),
      {},
    );
    // Every import statement is one that the tests above have read.
    const statements = (text: string) => (code(text).match(/^import\b/gm) ?? []).length;
    assert.deepEqual(
      offences((text) => (statements(text) === importsOf(text).length ? [] : ['an import in another form'])),
      {},
    );
  });

  test('reads the process and the clock only at the door', () => {
    const reading =
      /(?<![\w.'-])process\b(?!')|\bDate\.now\b|\bnew Date\(\)|\bDate\(\)|\bperformance\b|\bhrtime\b/g;
    const found = offences((text) => code(text).match(reading) ?? []);
    assert.ok(found['server.ts'] !== undefined);
    const { 'server.ts': _, ...others } = found;
    assert.deepEqual(others, {});
  });

  test('opens every file with at most six lines that say what it does', () => {
    const opening = /^(?:\/\*\n(?: \* .+\n){1,6} \*\/|(?:\/\/ .+\n){0,5}\/\/ .+)\n(?!\/[/*])/;
    assert.deepEqual(
      offences((text) => (opening.test(text) ? [] : [text.slice(0, 60)])),
      {},
    );
  });

  test('escapes neither the types nor the language, and leaves nothing to do', () => {
    const escape = /(?:[:<|&,(=]|\bas|\bextends)\s*any\b(?!')|\bas unknown\b|\beval\b|\bnew Function\b/g;
    assert.deepEqual(
      offences((text) => code(text).match(escape) ?? []),
      {},
    );
    assert.deepEqual(
      offences((text) => text.match(/@ts-\w+|\b(?:TODO|FIXME|XXX|HACK)\b|c8 ignore|eslint-/g) ?? []),
      {},
    );
  });

  test('has no runtime dependency and exactly four development dependencies', () => {
    const {
      dependencies,
      peerDependencies,
      optionalDependencies,
      bundledDependencies,
      devDependencies,
      type,
      engines,
    } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
    const atRunTime = {
      ...dependencies,
      ...peerDependencies,
      ...optionalDependencies,
      ...bundledDependencies,
    };
    assert.deepEqual(atRunTime, {});
    assert.deepEqual(Object.keys(devDependencies).sort(), ['@types/node', 'c8', 'tsx', 'typescript']);
    assert.deepEqual([type, engines], ['module', { node: '>=20.12' }]);
  });

  test('locks nothing that a running service would install', () => {
    const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8'));
    assert.deepEqual(
      Object.keys(packages).filter((path) => path !== '' && packages[path].dev !== true),
      [],
    );
  });

  test('has nothing at its top but what belongs there', () => {
    const found = readdirSync(ROOT).filter(
      (name) => !PASSING.includes(name) && !/\.(?:log|cpuprofile)$/.test(name),
    );
    assert.deepEqual(
      found.filter((name) => !TOP_LEVEL.includes(name)),
      [],
    );
  });
});
