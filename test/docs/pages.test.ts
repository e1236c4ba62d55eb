/* The files, headings, scripts and settings that the documents name exist. */
import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { filesBelow } from '../support/tree.ts';
import { anchorsOf, linksIn, codeIn, PAGES, read, ROOT, tableUnder } from './pages.ts';
import { UNSAID } from './tables.ts';

const isThere = (name: string) => existsSync(new URL(name, ROOT));

/** Every file in a folder that people read, copy from or run. */
const filesIn = (folder: string): readonly string[] =>
  filesBelow(new URL(folder, ROOT))
    .filter((name) => !name.includes('node_modules'))
    .map((name) => `${folder}${name}`)
    .filter((name) => statSync(new URL(name, ROOT)).isFile());

const FILES = [...new Set([...PAGES, ...filesIn('src/'), ...filesIn('test/'), ...filesIn('docs/')])];

test('no page tells readers to install, run or import the package gatehouse, which belongs to another project', () => {
  const commands =
    /\b(?:npx|bunx|npm (?:exec|x|i|install|add|view)|deno add)\s+(?:-\S+\s+)*(?:npm:)?gatehouse(?![-\w])/g;
  const imports = /\b(?:from|import|require)\b[\s(]*['"]gatehouse['"/]/g;
  const found = FILES.flatMap((name) => {
    const text = read(name);
    return [...text.matchAll(commands), ...text.matchAll(imports)].map(([words]) => `${name}: ${words}`);
  });
  assert.deepEqual(found, []);
});

const TESTS = filesBelow(new URL('test/', ROOT)).filter(
  (name) => name.endsWith('.test.ts') && !name.includes('node_modules'),
);

test('no file names a registry, or a folder of the machine on which it was written', () => {
  const names = /\bregistry[.]npmjs\b|(?<![\w.:/*-])[/](?:home|Users|root|work)[/]\w/g;
  const own = ['package.json', 'package-lock.json', 'test/evidence/package-lock.json', 'Dockerfile'];
  const files = [...own, ...FILES, ...filesIn('.github/'), ...filesIn('.ci/')];
  const found = files.flatMap((name) =>
    [...read(name).matchAll(names)].map(([words]) => `${name}: ${words}`),
  );
  assert.deepEqual(found, []);
});

for (const page of PAGES) {
  test(`${page} links to existing files and headings`, () => {
    const targets = linksIn(page);
    const broken = targets.filter((target) => {
      if (/^https?:/.test(target)) return false;
      const [file = '', heading] = target.split('#');
      const name = file === '' ? page : posix.join(posix.dirname(page), file);
      return !isThere(name) || (heading !== undefined && !anchorsOf(name).includes(heading));
    });
    assert.deepEqual(broken, []);
  });

  test(`${page} has no cell that a person has yet to write`, () => {
    const rows = read(page).match(/^(?:\||- ).*$/gm) ?? [];
    assert.deepEqual(
      rows.filter((row) => row.split(/ \||: /).some((cell) => cell.trim() === UNSAID)),
      [],
    );
  });

  test(`${page} names only existing files`, () => {
    const names = codeIn(read(page)).filter((word) => /^(?:src|test|docs)\/[\w./-]*$/.test(word));
    assert.deepEqual(
      names.filter((name) => !isThere(name)),
      [],
    );
  });

  test(`${page} names only existing scripts and evidence tools`, () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };
    const named = [...read(page).matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = '']) => name);
    assert.deepEqual(
      named.filter((name) => !Object.hasOwn(scripts, name)),
      [],
    );
    const tools = [...read(page).matchAll(/\bnpm run evidence ([a-z-]+)/g)].map(([, name = '']) => name);
    assert.deepEqual(
      tools.filter((name) => !isThere(`test/evidence/${name}/run.ts`)),
      [],
    );
  });

  test(`${page} names only existing tests`, () => {
    const named = [...read(page).matchAll(/\bnpm test ([\w/.-]+)/g)].map(([, name = '']) => name);
    assert.deepEqual(
      named.filter((name) => !name.startsWith('--') && !TESTS.some((file) => file.includes(name))),
      [],
    );
  });

  test(`${page} names only settings that .env.example has`, () => {
    const known = read('.env.example').match(/^(?:# )?[A-Z_]+(?==)/gm) ?? [];
    const settings = known.map((name) => name.replace('# ', ''));
    const elsewhere =
      /^APP_GUARD$|^(?:SANITIZE_SET|APPEND_FORWARD|(?:ALWAYS_)?FORWARD_ONLY)$|^(?:NODE|UV|RES|BENCH|FUZZ|SOAK|PAGE|HTTPS|NO|SSL|CURL)_|_SERVICE_HOST$|=tcp:/;
    const names = codeIn(read(page))
      .filter((word) => !elsewhere.test(word))
      .map((word) => /^([A-Z]+_[A-Z_]+)(?:=|$)/.exec(word)?.[1])
      .filter((name) => name !== undefined);
    assert.deepEqual(
      names.filter((name) => !settings.includes(`${name}`)),
      [],
    );
  });
}

const { files } = JSON.parse(read('package.json')) as { files: readonly string[] };

/** npm packs these whatever `files` says. */
const PACKED = [...files.filter((name) => !name.startsWith('dist')), 'README.md', 'LICENSE'];

const isPacked = (name: string) => PACKED.some((packed) => name === packed || name.startsWith(`${packed}/`));

for (const page of PAGES.filter(isPacked)) {
  test(`${page} links only to files that are packed with it`, () => {
    const targets = linksIn(page).filter((target) => !/^(?:[a-z]+:|#)/.test(target));
    const names = targets.map((target) => posix.join(posix.dirname(page), target.replace(/#.*/, '')));
    assert.deepEqual(
      names.filter((name) => !isPacked(name)),
      [],
    );
  });
}

/** A changelog tells of the past; the pages of tests are about the commands themselves. */
const VERIFIED = PAGES.filter((page) => page !== 'CHANGELOG.md' && !page.startsWith('test/'));

for (const page of VERIFIED) {
  test(`${page} ends with a command that verifies it`, () => {
    const [footer = ''] = read(page).split('\n---\n').slice(-1);
    assert.match(footer, /^(?:Verified|Measured) by `npm (?:test|run evidence)\b[^]{0,200}$/);
  });
}

test('docs/README.md lists every page of docs, and README.md links to it', () => {
  const index = 'docs/README.md';
  const listed = linksIn(index).map((target) => posix.join('docs', target));
  const pages = PAGES.filter((page) => page.startsWith('docs/') && page !== index);
  assert.deepEqual(
    pages.filter((page) => !listed.includes(page)),
    [],
  );
  assert.ok(linksIn('README.md').includes(index));
});

test('docs/profiles.md and docs/settings.md give the same defaults for the profiles', () => {
  const [port = [], mode = []] = tableUnder('docs/profiles.md', 'Sample API');
  const settings = read('docs/settings.md');
  assert.ok(
    settings.includes(`| \`PORT\`<br>\`server.port\` | \`${port[2]}\`; \`${port[1]}\` in profile A |`),
  );
  assert.ok(settings.includes(`| ${mode[0]}<br>\`idp.dpopMode\` | ${mode[1]}; ${mode[2]} in profile B |`));
});
