/* The image: what it is built from, what it holds, and as whom and how it runs. */
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

const ROOT = new URL('../', import.meta.url);

const read = (name: string) => readFileSync(new URL(name, ROOT), 'utf8');

interface Instruction {
  readonly name: string;
  readonly words: readonly string[];
}

/** The instructions of each stage, from its `FROM` on. */
const stages = read('Dockerfile')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line): Instruction => {
    const [name = '', ...words] = line.split(' ');
    return { name, words };
  })
  .reduce<Instruction[][]>((all, instruction) => {
    if (instruction.name === 'FROM') return [...all, [instruction]];
    return [...all.slice(0, -1), [...(all.at(-1) ?? []), instruction]];
  }, []);

const [building = [], running = []] = stages;

const wordsOf = (stage: readonly Instruction[], name: string) =>
  stage.filter((one) => one.name === name).map(({ words }) => words);

describe('the image', () => {
  test('is built and run on one line of Node that is maintained, on the same system', () => {
    assert.equal(stages.length, 2);
    const [[base = ''] = []] = wordsOf(running, 'FROM');
    assert.equal(wordsOf(building, 'FROM')[0]?.[0], base);
    assert.match(base, /^node:24-/);
  });

  test('is built from files that are there and reach the builder, all that the build reads among them', () => {
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

  test('holds what was built and nothing else of the project', () => {
    const [words, ...others] = wordsOf(running, 'COPY');
    assert.deepEqual([words, others], [['--from=builder', '/build/dist', 'dist'], []]);
    assert.deepEqual([...wordsOf(running, 'RUN'), ...wordsOf(running, 'ADD')], []);
  });

  test('runs as a user that is given by number and is not root', () => {
    const users = wordsOf(running, 'USER').map((words) => words.join(' '));
    assert.equal(users.length, 1);
    assert.match(users[0] ?? '', /^[1-9]\d*:[1-9]\d*$/);
  });

  test('runs Node as process 1, without a shell between it and its signals', () => {
    const commands = running.filter(({ name }) => name === 'CMD' || name === 'ENTRYPOINT');
    assert.deepEqual(
      commands.map(({ words }) => JSON.parse(words.join(' '))),
      [['node', 'dist/server.js']],
    );
  });

  test('asks whether the service is ready by the service itself, without a shell, for as long as that takes', () => {
    const [words = [], ...others] = wordsOf(running, 'HEALTHCHECK');
    assert.deepEqual(others, []);
    const options = words.filter((word) => word.startsWith('--') && word.includes('='));
    const [name, ...command] = words.slice(options.length);
    assert.equal(name, 'CMD');
    assert.deepEqual(JSON.parse(command.join(' ')), ['node', 'dist/server.js', '--probe']);
    const timeout = options.find((option) => option.startsWith('--timeout='));
    // Five seconds of its own, and the start of Node on a busy machine.
    assert.ok(Number(/=(\d+)s$/.exec(timeout ?? '')?.[1]) > 5, timeout);
  });

  test('names places in the source when it logs a bug', () => {
    assert.ok(wordsOf(running, 'ENV').some(([setting]) => setting === 'NODE_OPTIONS=--enable-source-maps'));
  });
});
