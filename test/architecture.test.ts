/* Checks the layout of the repository: the order of the rings, grants, dependencies, and the amount to read
   (CONTRIBUTING.md). `src/profiles/` may have any files of any size, because teams add their routes there. */
import { strict as assert } from 'node:assert';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { filesBelow } from './support/tree.ts';
import { FLOORS } from './support/floors.ts';
import { closureOf, doorsOf, readSources } from './support/closures.ts';
import { importsOf, withoutComments, type Import } from './support/imports.ts';
import { readPage } from './support/page.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Doors that load more than their bounds, and how much. A change may add `GROWTH` of that unseen. */
const OVER: Readonly<Record<string, number>> = {
  verify: 18_410,
  createGate: 29_500,
  createService: 44_910,
  runService: 56_290,
  server: 57_500,
  'all of src': 103_840,
};

const GROWTH = 1.02;

/** The tokens of the routes of `src/profiles/` as shipped. */
const TOKENS_OF_ROUTES = 793;

const MOST_TOKENS_OF_A_FILE = 1_600;
const USUAL_TOKENS_ON_A_LINE = 26;
const MOST_TOKENS_ON_A_LINE = 30;
/** The number of lines above the usual bound, in all of src. */
const MOST_FULL_LINES = 62;

/** The modules of `node:` that each file or folder may import. `type` grants only types. */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  'verify/base/encoding.ts': ['node:util'],
  'verify/base/events.ts': ['node:module'],
  'verify/keys/jwk.ts': ['node:crypto'],
  'verify/keys/byte-limit.ts': ['type node:net'],
  'verify/keys/fetch.ts': ['type node:http', 'node:https', 'node:net', 'node:tls'],
  'verify/jws/jws.ts': ['node:crypto'],
  'verify/token/verify.ts': ['node:crypto'],
  'verify/dpop/replay.ts': ['node:crypto'],
  'verify/dpop/proof.ts': ['node:crypto'],
  'gate/tell.ts': ['node:net'],
  'gate/create-gate.ts': ['type node:http'],
  'gate/foreign/verdict.ts': ['type node:http'],
  'service/routes/handler-request.ts': ['type node:http'],
  'service/request/exchange.ts': ['node:async_hooks', 'node:http'],
  'service/connection/connection.ts': ['type node:net'],
  'service/connection/listen.ts': ['node:events', 'type node:http', 'type node:net'],
  'service/connection/listener.ts': ['node:http', 'type node:net'],
  'options/decisions.ts': ['type node:events'],
  'options/certificates/addresses.ts': ['node:net'],
  'options/certificates/fields.ts': ['node:crypto'],
  'options/key-access.ts': ['node:crypto', 'node:fs', 'node:path', 'node:tls'],
  'options/introspection/client.ts': ['node:crypto'],
  'options/introspection/endpoint.ts': [
    'type node:http',
    'node:https',
    'type node:net',
    'type node:stream',
    'node:tls',
  ],
  'options/introspection/introspect.ts': ['node:crypto'],
  'options/proxy.ts': ['node:http', 'type node:net'],
  'options/redis/revocation.ts': ['node:crypto'],
  'options/redis/connection.ts': ['node:net', 'node:tls'],
  'settings/dot-env.ts': ['node:util'],
  'options/metrics/gauges.ts': ['node:perf_hooks'],
  'options/metrics/metrics-listener.ts': ['node:http'],
  'settings/sources.ts': ['node:fs', 'node:path'],
  'process/probe.ts': ['node:http'],
  'testing/test-issuer.ts': ['node:crypto'],
};

const MAY_IMPORT_LATER = [
  'process/doors.ts',
  'process/run.ts',
  'settings/table.ts',
  'settings/parts.ts',
  'settings/load-settings.ts',
];

const TOP_LEVEL = [
  '.ci',
  '.dockerignore',
  '.env.example',
  '.github',
  '.gitignore',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'Dockerfile',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'docs',
  'package-lock.json',
  'package.json',
  'src',
  'test',
  'tsconfig.dist.json',
  'tsconfig.json',
];

/** What a build or a run makes, or git ignores. */
const PASSING = ['.git', '.env', 'application.yml', 'coverage', 'dist', 'node_modules'];

const files = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => posix.join(entry.parentPath, entry.name).slice(`${ROOT}src/`.length))
  .sort();

const texts = new Map(files.map((file) => [file, readFileSync(`${ROOT}src/${file}`, 'utf8')]));

const folderOf = (file: string) => file.slice(0, file.lastIndexOf('/') + 1);

/**
 * The files in the order of the plan. In `profiles/`, files of any name stand between the first planned ones
 * and the last.
 */
const order = FLOORS.flatMap(([folder, names]) => {
  const planned = names.map((name) => `${folder}${name}.ts`).filter((file) => texts.has(file));
  if (folder !== 'profiles/') return planned;

  const others = files.filter((file) => folderOf(file) === folder && !planned.includes(file));
  return [...planned.slice(0, -1), ...others, ...planned.slice(-1)];
});

/** The offences of all files, by file. */
const offences = (find: (text: string, file: string) => readonly string[]) =>
  Object.fromEntries(
    [...texts]
      .map(([file, text]) => [file, find(text, file)] as const)
      .filter(([, found]) => found.length > 0),
  );

/** The documents that a text names and the repository lacks. */
const absent = (text: string): readonly string[] =>
  (text.match(/\b[\w./-]+\.md\b/g) ?? []).filter((name) => !existsSync(`${ROOT}${name}`));

function holds(rule: string, found: Readonly<Record<string, readonly string[]>>): void {
  const each = Object.entries(found).flatMap(([file, faults]) => faults.map((fault) => `${file}: ${fault}`));
  assert.ok(each.length === 0, `against the rule of ${rule}\n${each.join('\n')}`);
}

describe('the layout', () => {
  test('has only the files that this test lists, and those in profiles/', () => {
    assert.deepEqual([...order].sort(), files);
  });

  test('lets each file import only files that are listed before it, so that there are no cycles', () => {
    let seen = 0;

    const isEarlier = (target: string, file: string) =>
      order.includes(target) && order.indexOf(target) < order.indexOf(file);

    const found = offences((text, file) => {
      const targets = importsOf(text)
        .filter(({ from }) => from.startsWith('.'))
        .map(({ from }) => posix.join(posix.dirname(file), from));
      seen += targets.length;
      return targets.filter((target) => !isEarlier(target, file));
    });
    assert.ok(seen > 50);
    holds('order', found);
  });

  test('lets only the entry points of parts, and files in options/, settings/, process/ and testing/, import options', () => {
    const found = offences((text, file) =>
      importsOf(text)
        .map(({ from }) => posix.join(posix.dirname(file), from))
        .filter((target) => target.startsWith('options/') && !target.includes('node:'))
        .filter(() => !/^(?:(?:options|settings|process|testing)\/|[^/]+\.ts$)/.test(file)),
    );
    holds('options', found);
  });

  test('lets each file import only the Node modules that are granted to it', () => {
    const isGranted = ({ from, isType }: Import, file: string) => {
      const grants = [...(GRANTS[file] ?? []), ...(GRANTS[folderOf(file)] ?? [])];
      return grants.includes(from) || (isType && grants.includes(`type ${from}`));
    };

    const found = offences((text, file) =>
      importsOf(text)
        .filter((one) => !one.from.startsWith('.') && !isGranted(one, file))
        .map(({ from, names }) => `${from}: ${names.join(', ')}`),
    );
    holds('grants', found);
  });

  test('grants each Node module only to files that import it', () => {
    const isTaken = (granted: string, to: string) =>
      files
        .filter((file) => file === to || folderOf(file) === to)
        .flatMap((file) => importsOf(texts.get(file) ?? ''))
        .some(({ from, isType }) => granted === (isType ? `type ${from}` : from));

    const idle = Object.entries(GRANTS).map(
      ([to, grants]) => [to, grants.filter((granted) => !isTaken(granted, to))] as const,
    );
    holds('idle-grants', Object.fromEntries(idle.filter(([, some]) => some.length > 0)));
  });

  test('lets only process/ and profiles/ import settings, and the main entry point', () => {
    const found = offences((text, file) =>
      importsOf(text)
        .map(({ from }) => posix.join(posix.dirname(file), from))
        .filter((target) => target.startsWith('settings/'))
        .filter(() => !/^(?:(?:settings|process|profiles)\/|gatehouse\.ts$)/.test(file)),
    );
    holds('settings', found);
  });

  test('re-exports, and does nothing else, in the files at the top', () => {
    const found = offences((text, file) =>
      file.includes('/') || file === 'server.ts'
        ? []
        : withoutComments(text)
            .split(/;\n/)
            .filter((statement) => !/^\s*(?:export (?:type )?\{[^}]*\} from '[^']*')?\s*$/.test(statement)),
    );
    holds('entries', found);
  });

  test('has no index file, no dynamic import and no side-effect import', () => {
    assert.deepEqual(
      files.filter((file) => /(^|\/)index\./.test(file)),
      [],
    );
    const effects = /^import\s*'.*|\bimport\s*\(|\brequire\b\s*\(|\bcreateRequire\b|^export \*/gm;
    assert.deepEqual(
      // A process loads a part only if its setting is set, and a parser only if there may be a file.
      offences((text, file) =>
        MAY_IMPORT_LATER.includes(file) ? [] : (withoutComments(text).match(effects) ?? []),
      ),
      {},
    );
    // The tests above have read every import statement.
    const statements = (text: string) => (withoutComments(text).match(/\bfrom '.*';$/gm) ?? []).length;
    assert.deepEqual(
      offences((text) => (statements(text) === importsOf(text).length ? [] : ['an import in another form'])),
      {},
    );
  });

  test('reads the process and the clock only in the granted files', () => {
    const reading =
      /(?<![\w./'-])process\b(?!')|\bDate\.now\b|\bnew Date\(\)|\bDate\(\)|\bperformance\b|\bhrtime\b/g;
    const found = offences((text) => withoutComments(text).match(reading) ?? []);
    const meeting = [
      'options/log.ts',
      'options/metrics/gauges.ts',
      'options/metrics/metrics.ts',
      'process/life.ts',
      'process/probe.ts',
      'process/run.ts',
      'testing/test-issuer.ts',
      'verify/base/clock.ts',
      'verify/base/events.ts',
    ];
    assert.deepEqual(Object.keys(found).sort(), meeting);
  });

  test('opens every file with at most six lines about what it does', () => {
    const opening = /^(?:#!.+\n)?(?:\/\*\n(?: \* .+\n){1,6} \*\/|(?:\/\/ .+\n){0,5}\/\/ .+)\n(?!\/[/*])/;
    assert.deepEqual(
      offences((text) => (opening.test(text) ? [] : [text.slice(0, 60)])),
      {},
    );
  });

  test('has no casts, suppressions, eval or TODO', () => {
    const escape = /(?:[:<|&,(=]|\bas|\bextends)\s*any\b(?!')|\bas unknown\b|\beval\b|\bnew Function\b/g;
    assert.deepEqual(
      offences((text) => withoutComments(text).match(escape) ?? []),
      {},
    );
    assert.deepEqual(
      offences((text) => text.match(/@ts-\w+|\b(?:TODO|FIXME|XXX|HACK)\b|c8 ignore|eslint-/g) ?? []),
      {},
    );
  });

  test('has no stateful regular expression [C11]', () => {
    const stateful = /\/[a-z]*[gy][a-z]*\)?\.(?:test|exec)\(/g;
    assert.deepEqual(
      offences((text) => text.match(stateful) ?? []),
      {},
    );
  });

  test('cites only documents that exist', () => {
    const unnamed = /\bcontract\b|\bspecification\b|\bthe house\b/gi;
    const found = offences((text) => [...absent(text), ...(text.match(unnamed) ?? [])]);
    holds('citations', found);
  });
});

describe('the page', () => {
  const pages = new Map([...texts].map(([file, text]) => [file, readPage(text)]));
  const isProfile = (file: string) => folderOf(file) === 'profiles/';
  const isPlanned = (file: string) => ['profiles/routes.ts', 'profiles/settings.ts'].includes(file);

  /**
   * Without the routes of the profiles: what a team adds there, and what that loads, is for the team to
   * choose.
   */
  const sources = new Map(
    [...readSources()].map(([file, text]) => [file, isProfile(file) && !isPlanned(file) ? '' : text]),
  );

  for (const { name, ...door } of doorsOf(sources)) {
    test(`loads no more source tokens through the entry point ${name} than its limit`, () => {
      const { files, tokens } = closureOf(door, sources);
      const routes = files.some(isProfile) ? TOKENS_OF_ROUTES : 0;
      const most = Math.floor(Math.max(door.bound, OVER[name] ?? 0) * GROWTH) - routes;
      assert.ok(tokens <= most, `${tokens} tokens in ${files.length} files, of ${most}`);
    });
  }

  test('loads no listener, router, settings file or option through the entry point of the gate', () => {
    const [door] = doorsOf(readSources()).filter(({ name }) => name === 'createGate');
    const { files } = closureOf(door!, readSources());
    const more = files.filter((file) => /^(?:service|options|profiles)\/|sources|load-settings/.test(file));
    assert.deepEqual([door!.entries, more], [['gate.ts'], []]);
  });

  test('has no file with more source tokens than the limit', () => {
    const found = offences((_, file) => {
      const { tokens } = pages.get(file)!;
      return tokens > MOST_TOKENS_OF_A_FILE && !isProfile(file) ? [`${tokens} tokens`] : [];
    });
    holds('size', found);
  });

  test('has only a few lines with more than the usual number of source tokens, and none above the limit', () => {
    const linesOver = (most: number, file: string) =>
      [...pages.get(file)!.tokensByLine]
        .filter(([, tokens]) => tokens > most)
        .map(([line, tokens]) => `line ${line}: ${tokens} tokens`);

    const overMost = offences((_, file) => (isProfile(file) ? [] : linesOver(MOST_TOKENS_ON_A_LINE, file)));
    holds('lines', overMost);

    const full = files
      .filter((file) => overMost[file] === undefined && !isProfile(file))
      .flatMap((file) => linesOver(USUAL_TOKENS_ON_A_LINE, file).map((line) => `src/${file}: ${line}`));
    assert.ok(full.length <= MOST_FULL_LINES, full.join('\n'));
  });

  test('breaks no rule of test/support/page.ts for lines, functions and statements', () => {
    const found = offences((_, file) =>
      isProfile(file) ? [] : pages.get(file)!.offences.map(({ line, what }) => `line ${line}: ${what}`),
    );
    holds('layout', found);
  });
});

describe('the tests and the tools', () => {
  const names = filesBelow(`${ROOT}test/`)
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => `test/${name}`);
  const read = (name: string) => readFileSync(ROOT + name, 'utf8');

  test('follow the layout rules of src, except those about size', () => {
    const found = names.map((name) => {
      const offences = readPage(read(name)).offences.filter(({ isSize }) => isSize !== true);
      return [name, offences.map(({ line, what }) => `line ${line}: ${what}`)] as const;
    });
    holds('tests', Object.fromEntries(found.filter(([, offences]) => offences.length > 0)));
  });

  test('cite only documents that exist', () => {
    const unnamed = /\b(?:contract|specification|THREATS) ?§?[A-G\d]/gi;
    const cited = (text: string) => [...absent(text), ...(text.match(unnamed) ?? [])];
    const found = names.map((name) => [name, cited(read(name))] as const);
    holds('tests-citations', Object.fromEntries(found.filter(([, some]) => some.length > 0)));
  });
});

describe('what is installed', () => {
  test('includes no runtime dependency and exactly four development dependencies', () => {
    const { devDependencies, type, engines, ...others } = JSON.parse(
      readFileSync(`${ROOT}package.json`, 'utf8'),
    );
    const atRunTime = ['dependencies', 'peerDependencies', 'optionalDependencies', 'bundledDependencies'];
    assert.deepEqual(
      atRunTime.filter((name) => Object.keys(others[name] ?? {}).length > 0),
      [],
    );
    assert.deepEqual(Object.keys(devDependencies).sort(), ['@types/node', 'c8', 'tsx', 'typescript']);
    assert.deepEqual([type, engines], ['module', { node: '>=20.12' }]);
  });

  test('includes only development packages, as the lock file marks them', () => {
    const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8'));
    assert.deepEqual(
      Object.keys(packages).filter((path) => path !== '' && packages[path].dev !== true),
      [],
    );
  });

  test('the repository has only the expected files at its root', () => {
    const found = readdirSync(ROOT).filter(
      (name) => !PASSING.includes(name) && !/\.(?:log|cpuprofile|tgz|cdx\.json)$/.test(name),
    );
    assert.deepEqual(
      found.filter((name) => !TOP_LEVEL.includes(name)),
      [],
    );
  });
});
