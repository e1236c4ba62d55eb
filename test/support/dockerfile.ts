/* The Dockerfile of the repository, by its stages. */
import { readFileSync } from 'node:fs';

export interface Instruction {
  readonly name: string;
  readonly words: readonly string[];
}

export interface Dockerfile {
  /** What `docker build --build-arg` may change, with its default. */
  readonly bases: Readonly<Record<string, string>>;
  /** The instructions of each stage, from its `FROM` on. */
  readonly stages: readonly (readonly Instruction[])[];
}

export function readDockerfile(): Dockerfile {
  const instructions = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line): Instruction => {
      const [name = '', ...words] = line.split(' ');
      return { name, words };
    });

  const first = instructions.findIndex(({ name }) => name === 'FROM');
  const bases = instructions.slice(0, first).flatMap(({ name, words }) => {
    const [key = '', value = ''] = (words[0] ?? '').split('=');
    return name === 'ARG' ? [[key, value] as const] : [];
  });

  const stages = instructions.slice(first).reduce<Instruction[][]>((all, instruction) => {
    if (instruction.name === 'FROM') return [...all, [instruction]];
    return [...all.slice(0, -1), [...(all.at(-1) ?? []), instruction]];
  }, []);
  return { bases: Object.fromEntries(bases), stages };
}

export const wordsOf = (stage: readonly Instruction[], name: string): readonly (readonly string[])[] =>
  stage.filter((one) => one.name === name).map(({ words }) => words);

/** The program and its arguments, which Docker writes as JSON. */
export const commandOf = (words: readonly string[]): readonly string[] =>
  JSON.parse(words.join(' ')) as readonly string[];

/** The health check: its options, and the command. */
export function healthCheckOf(stage: readonly Instruction[]) {
  const [words = []] = wordsOf(stage, 'HEALTHCHECK');
  const options = words.filter((word) => /^--[a-z-]+=/.test(word));
  const [name, ...command] = words.slice(options.length);
  return { options, name, command: commandOf(command) };
}
