/* The image: what it is built from, what it holds, and as whom and how it runs. `npm run evidence image` runs
   what it holds. */
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { commandOf, healthCheckOf, readDockerfile, wordsOf } from './support/dockerfile.ts';

const ROOT = new URL('../', import.meta.url);

const read = (name: string) => readFileSync(new URL(name, ROOT), 'utf8');

const { bases, stages } = readDockerfile();
const [building = [], running = []] = stages;

describe('the image', () => {
  test('is built and run on base images that can be replaced, or pinned by digest', () => {
    const froms = stages.map((stage) => wordsOf(stage, 'FROM')[0]);
    assert.deepEqual(froms, [['${BUILDER}', 'AS', 'builder'], ['${BASE}']]);
    assert.deepEqual(Object.keys(bases), ['BUILDER', 'BASE']);
  });

  test('is built and run on one maintained line of Node, on the same system, and runs without a shell', () => {
    assert.match(bases.BUILDER ?? '', /^node:24-trixie-slim$/);
    // Debian 13 is trixie.
    assert.match(bases.BASE ?? '', /\/distroless\/nodejs24-debian13$/);
  });

  test('is built from files that exist and reach the builder, including all that the build reads', () => {
    const ignored = read('.dockerignore').trim().split('\n');
    const copied = wordsOf(building, 'COPY').flatMap((words) => words.slice(0, -1));
    assert.deepEqual(
      copied.filter((name) => !existsSync(new URL(name, ROOT))),
      [],
    );
    assert.deepEqual(ignored.sort(), ['*', ...copied.map((name) => `!${name}`)].sort());
    const { build } = JSON.parse(read('package.json')).scripts as { build: string };
    const needed = build.match(/\b[\w.-]+\.json\b/g)?.filter((name) => existsSync(new URL(name, ROOT))) ?? [];
    assert.deepEqual(
      needed.filter((name) => !copied.includes(name)),
      [],
    );
  });

  test('holds the build, its package.json, and nothing else of the project', () => {
    assert.deepEqual(wordsOf(running, 'COPY'), [
      ['--from=builder', '/build/package.json', 'package.json'],
      ['--from=builder', '/build/dist', 'dist'],
    ]);
    assert.deepEqual([...wordsOf(running, 'RUN'), ...wordsOf(running, 'ADD')], []);
  });

  test('runs as a numeric user other than root', () => {
    const users = wordsOf(running, 'USER').map((words) => words.join(' '));
    assert.equal(users.length, 1);
    assert.match(users[0] ?? '', /^[1-9]\d*:[1-9]\d*$/);
  });

  test('runs Node as process 1, without a shell between it and its signals, and can run another program', () => {
    assert.deepEqual(wordsOf(running, 'ENTRYPOINT').map(commandOf), [['node']]);
    assert.deepEqual(wordsOf(running, 'CMD').map(commandOf), [['dist/server.js']]);
  });

  test('has a health check that runs the service with --probe, without a shell, for long enough', () => {
    assert.equal(wordsOf(running, 'HEALTHCHECK').length, 1);
    const { options, name, command } = healthCheckOf(running);
    assert.equal(name, 'CMD');
    assert.deepEqual(command, ['node', 'dist/server.js', '--probe']);
    const timeout = options.find((option) => option.startsWith('--timeout='));
    // Five seconds of its own, and the start of Node on a busy machine.
    assert.ok(Number(/=(\d+)s$/.exec(timeout ?? '')?.[1]) > 5, timeout);
  });

  test('finds Node where each of the bases has it', () => {
    const [[path = ''] = []] = wordsOf(running, 'ENV').filter(([setting]) => setting?.startsWith('PATH='));
    for (const folder of ['/nodejs/bin', '/usr/local/bin', '/usr/bin']) {
      assert.ok(path.slice('PATH='.length).split(':').includes(folder), folder);
    }
  });

  test('logs the stack frames of a bug as places in the source', () => {
    assert.ok(wordsOf(running, 'ENV').some(([setting]) => setting === 'NODE_OPTIONS=--enable-source-maps'));
  });
});
