/* Settings files: gatehouse's reading against that of the `yaml` package (YAML 1.2, core schema). */
import { isMap, isScalar, isSeq, parseDocument, type ParsedNode } from 'yaml';
import { SettingProblem } from '../../../src/settings/entry.ts';
import { parseYaml } from '../../../src/settings/yaml.ts';
import { accepted, judgedByOther, refused, spelled, type Outcome, type Verdict } from './outcome.ts';
import type { Random } from './random.ts';
import { ATOMS, FRAGMENTS, KEYS, LINES, SCALARS } from './yaml-pieces.ts';

const spaces = (count: number) => ' '.repeat(Math.max(0, count));

const comment = (random: Random) => random.pick(['', '', '', ' # c', ' ', '#c']);

/** A list below its key, now and then out of line. */
function listLines(random: Random, indent: number): string[] {
  const at = indent + random.pick([0, 0, 1, 2, 2, 2, 3]);
  return Array.from({ length: 1 + random.below(3) }).flatMap(() => {
    const item = random.chance(0.5) ? random.pick(['a', 'b', '1', '"x"']) : random.pick(SCALARS);
    const dash =
      spaces(random.chance(0.95) ? at : at + random.pick([-1, 1])) +
      '-' +
      random.pick([' ', ' ', ' ', '  ', '']);
    return [
      ...(random.chance(0.1) ? [random.pick(['', '# c', ' #c', '      # c'])] : []),
      dash + item + comment(random),
    ];
  });
}

/** Something like a settings file. */
function fileFrom(random: Random): string {
  const lines = random.chance(0.1) ? [random.pick(LINES)] : [];
  let indent = 0;
  const entries = 1 + random.below(6);
  for (let entry = 0; entry < entries; entry += 1) {
    if (random.chance(0.08)) lines.push(random.pick(LINES));
    if (random.chance(0.2)) indent = Math.max(0, indent + random.pick([-2, -1, 0, 0, 1, 2, 2]));
    const key = random.chance(0.6) ? `k${random.below(9)}${entry}` : random.pick(KEYS);
    const colon = random.chance(0.93) ? ':' : random.pick([' :', '', '::', ':\t', ': :']);
    const start = spaces(indent) + key + colon;
    if (random.chance(0.7)) {
      const gap = random.pick([' ', ' ', ' ', ' ', '  ', '']);
      lines.push(
        start + gap + random.pick(SCALARS) + random.pick(['', '', '', ' ', ' # c', '#c', ':', ' x']),
      );
    } else {
      lines.push(start + random.pick(['', '', '', ' ', '  ', ' # c', '#c']));
      if (random.chance(0.5)) lines.push(...listLines(random, indent));
      else indent += random.pick([1, 2, 2, 4]);
    }
  }
  const end = random.pick(['\n', '\n', '', '\n\n', ' ', '\n...', '\n---\n']);
  return (random.chance(0.03) ? '\ufeff' : '') + lines.join(random.chance(0.9) ? '\n' : '\r\n') + end;
}

/** A few pieces in a row. */
function fragmentsFrom(random: Random): string {
  const start = random.chance(0.7)
    ? random.pick(['a: ', 'a:\n  ', 'a:\n  - ', 'a: [', 'a: "', "a: '", '"', '---\n'])
    : '';
  return start + Array.from({ length: 1 + random.below(10) }, () => random.pick(FRAGMENTS)).join('');
}

function mutateYaml(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const lines = text.split('\n');
  const line = random.below(lines.length);
  return random.pick([
    () => text.slice(0, at) + random.pick(ATOMS) + text.slice(at),
    () => text.slice(0, at) + text.slice(at + 1 + random.below(2)),
    () => text.slice(0, at) + random.pick(ATOMS) + text.slice(at + 1),
    () => lines.toSpliced(random.below(lines.length), 0, spaces(random.below(3)) + lines[line]!).join('\n'),
    () => lines.toSpliced(line, 1).join('\n'),
  ])();
}

type Reading = [path: string, value: unknown][];

function scalarOf(item: unknown): unknown {
  if (!isScalar(item)) throw new Error('a list of something else than scalars');
  return item.value;
}

/** The values of a document in the shape that settings need. Throws for any other shape. */
function flatten(node: ParsedNode | null, prefix: string, into: Reading): Reading {
  if (node === null || (isScalar(node) && node.value === null && prefix === '')) return into;
  if (!isMap(node) || (node.flow === true && prefix !== '')) throw new Error('not a map in block style');
  for (const { key, value } of node.items) {
    if (!isScalar(key) || typeof key.value !== 'string') throw new Error('a key that is not text');
    const path = prefix + (/\.|^"/.test(key.value) ? JSON.stringify(key.value) : key.value);
    if (isMap(value)) flatten(value, `${path}.`, into);
    else if (isSeq(value)) into.push([path, value.items.map(scalarOf)]);
    else into.push([path, isScalar(value) ? value.value : null]);
  }
  return into;
}

/** Numbers that JSON cannot write, and the sign of zero, are kept apart. */
function spelledReading(reading: Reading): string {
  return JSON.stringify(reading, (_, value: unknown) => {
    if (Object.is(value, -0)) return 'number -0';

    return typeof value === 'number' || typeof value === 'bigint' ? `number ${Number(value)}` : value;
  });
}

function readByOurs(text: string): Verdict {
  try {
    return accepted(spelledReading(parseYaml(text, 'x.yml').map(({ name, value }) => [name, value])));
  } catch (failure) {
    if (!(failure instanceof SettingProblem)) throw failure;
    const [, line, reason] = /^x\.yml, line (\d+): (.*)$/s.exec(failure.message) ?? [];
    if (reason === undefined || Number(line) < 1 || Number(line) > text.split(/\r\n|\n|\r/).length) {
      throw new Error(`the error names no line of the file: ${spelled(failure.message)}`);
    }
    return refused(reason);
  }
}

const OPTIONS = {
  version: '1.2',
  schema: 'core',
  strict: true,
  uniqueKeys: true,
  prettyErrors: false,
  logLevel: 'silent',
} as const;

function readByYaml(text: string): string {
  // A byte-order mark is no part of the first line (YAML 1.2.2 §5.2, §9.1.1); the package forgets that line's
  // indentation after one.
  const document = parseDocument(text.replace(/^\uFEFF/, ''), OPTIONS);
  if (document.errors.length > 0) throw new Error(document.errors[0]!.code);
  try {
    return spelledReading(flatten(document.contents, '', []));
  } catch (failure) {
    // Valid YAML of a shape that settings never have, and that gatehouse never returns.
    return `another shape: ${String(failure)}`;
  }
}

export async function fuzzYaml(random: Random): Promise<Outcome> {
  let text = random.chance(0.7) ? fileFrom(random) : fragmentsFrom(random);
  for (let changes = random.pick([0, 0, 1, 1, 2, 3]); changes > 0; changes -= 1) {
    text = mutateYaml(random, text);
  }
  return {
    input: text,
    ours: readByOurs(text),
    others: { yaml: await judgedByOther(() => readByYaml(text)) },
  };
}
