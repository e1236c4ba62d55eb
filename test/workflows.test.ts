/* The workflows: whose code they run, with which rights, and with whose text in their scripts. `npm run
   evidence workflows` has them judged by others. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { NODE_LINES } from './support/node-lines.ts';

const ROOT = new URL('../', import.meta.url);
const FOLDER = new URL('.github/workflows/', ROOT);

const FILES = readdirSync(FOLDER);

const texts = Object.fromEntries(FILES.map((name) => [name, readFileSync(new URL(name, FOLDER), 'utf8')]));

/** What stands below a key, by its indentation: the lines that are further in. */
function below(text: string, key: string, indent: number): string {
  const start = new RegExp(`^ {${indent}}${key}:.*\\n((?: {${indent + 1},}.*\\n|\\n)*)`, 'm');
  return start.exec(text)?.[1] ?? '';
}

const keysOf = (text: string, indent: number) =>
  [...text.matchAll(new RegExp(`^ {${indent}}([\\w-]+):`, 'gm'))].map(([, key = '']) => key);

interface Job {
  readonly file: string;
  readonly name: string;
  readonly text: string;
}

const jobs: readonly Job[] = Object.entries(texts).flatMap(([file, text]) => {
  const all = below(text, 'jobs', 0);
  return keysOf(all, 2).map((name) => ({ file, name, text: below(all, name, 2) }));
});

/** The actions that a text uses: name, commit, version. */
const usesOf = (text: string) =>
  [...text.matchAll(/\buses:(.*)$/gm)].map(([, use = '']) => {
    const [, name, commit, version] = /^ ([\w-]+\/[\w-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$/.exec(use) ?? [];
    return { use, name, commit, version };
  });

/** The commands of a text, whether they stand on the line of `run` or below it. */
const scriptsOf = (text: string): readonly string[] =>
  [...text.matchAll(/\brun: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/g)].map(([, block, line]) => block ?? line ?? '');

test('each workflow has jobs, and each job has steps and a timeout', () => {
  assert.deepEqual(FILES, ['ci.yml', 'release.yml']);
  for (const { file, name, text } of jobs) {
    assert.match(text, /^ {4}steps:$/m, `${file} ${name}`);
    assert.match(text, /^ {4}timeout-minutes: \d+$/m, `${file} ${name}`);
  }
});

test('each action is pinned to a commit, with its version beside it, and everywhere to the same one', () => {
  const uses = Object.values(texts).flatMap(usesOf);
  const commits = new Map<string | undefined, Set<string>>();
  for (const { use, name, commit, version } of uses) {
    assert.ok(name?.startsWith('actions/'), use);
    commits.set(name, (commits.get(name) ?? new Set()).add(`${commit} ${version}`));
  }
  assert.ok(uses.length > 5);
  for (const [name, some] of commits) assert.equal(some.size, 1, name);
});

test('a job has only the rights that it needs', () => {
  for (const [file, text] of Object.entries(texts)) assert.match(text, /^permissions: \{\}$/m, file);

  const rights = jobs.map(({ file, name, text }) => [
    `${file} ${name}`,
    [...below(text, 'permissions', 4).matchAll(/^ {6}([\w-]+: \w+)/gm)].map(([, right]) => right),
  ]);
  assert.deepEqual(Object.fromEntries(rights), {
    'ci.yml node': ['contents: read'],
    'ci.yml runtimes': ['contents: read'],
    'ci.yml package': ['contents: read'],
    'ci.yml image': ['contents: read'],
    'release.yml pack': ['contents: read'],
    'release.yml publish': ['id-token: write'],
    'release.yml attach': ['contents: write'],
  });
});

test('a job that may publish or write runs nothing of the repository, and no checkout keeps its token', () => {
  for (const { name, text } of jobs) {
    if (/^ {6}[\w-]+: write/m.test(text)) {
      assert.doesNotMatch(text, /actions\/checkout|npm (?:ci|i|install|run|test)\b|secrets/, name);
    }
    const checkouts = text.match(/actions\/checkout@/g)?.length ?? 0;
    assert.equal(text.match(/^ {10}persist-credentials: false$/gm)?.length ?? 0, checkouts, name);
  }
});

test('changes of outside contributors run without secrets, and no script contains text that they can choose', () => {
  for (const [file, text] of Object.entries(texts)) {
    assert.doesNotMatch(
      below(text, 'on', 0),
      /pull_request_target|workflow_run|issue|comment|discussion/,
      file,
    );
    assert.doesNotMatch(text, /secrets\./, file);
    const scripts = scriptsOf(text);
    assert.equal(scripts.length, text.match(/\brun:/g)?.length, file);
    assert.deepEqual(
      scripts.filter((script) => script.includes('${{')),
      [],
    );
  }
});

test('every change is tested by .ci/run on each supported line of Node, and the package is used on Deno and Bun', () => {
  const { 'ci.yml': ci = '' } = texts;
  assert.ok(ci.includes(`        node: [${NODE_LINES.join(', ')}]\n`));
  const scripts = scriptsOf(ci);
  assert.ok(scripts.includes('.ci/run'));
  assert.ok(scripts.includes('npm run evidence matrix deno bun'));
});

test('the workflow installs what .ci/run needs, since .ci/run may not install on a runner', () => {
  const installed = (text: string) =>
    /apt-get install -y --no-install-recommends ([\w -]+)/.exec(text)?.[1]?.trim().split(' ');

  const before = installed(texts['ci.yml'] ?? '') ?? [];
  const wanted = installed(readFileSync(new URL('.ci/run', ROOT), 'utf8')) ?? [];
  assert.ok(wanted.length > 3);
  assert.deepEqual(
    wanted.filter((name) => !before.includes(name)),
    [],
  );
});

test('a release is made from a tag, and is tested, packed, compared and published in this order', () => {
  const { 'release.yml': release = '' } = texts;
  assert.equal(below(release, 'on', 0), "  push:\n    tags: ['v*']\n\n");
  const order = [
    'GITHUB_REF_NAME',
    'npm test',
    'npm pack',
    'evidence reproducible',
    'evidence sbom',
    'npm publish',
  ];
  const places = [...order, 'gh release create'].map((words) => release.indexOf(words));
  assert.ok(
    places.every((place, index) => place > (places[index - 1] ?? 0)),
    places.join(),
  );
  assert.match(release, /^ {4}needs: pack$[^]+npm publish --provenance .*--ignore-scripts/m);
  assert.match(release, /^ {4}needs: publish$[^]+gh release create/m);
});

test('the workflows call only scripts and evidence tools that exist', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
  for (const text of Object.values(texts)) {
    for (const [, name = ''] of text.matchAll(/\bnpm run ([\w:-]+)/g)) assert.ok(name in scripts, name);

    for (const [, tool = ''] of text.matchAll(/\bnpm run evidence ([\w-]+)/g)) {
      assert.ok(existsSync(new URL(`test/evidence/${tool}/run.ts`, ROOT)), tool);
    }
  }
});
