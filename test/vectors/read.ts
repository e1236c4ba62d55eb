/* Reads a vector file and makes sure that it is what its runner was written for: origin and licence stated,
   no field overlooked. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export type Members = Readonly<Record<string, unknown>>;

/** The bytes of a file beside this one. */
export const bytesOf = (name: string): Buffer => readFileSync(new URL(name, import.meta.url));

/** The value as an object that has every one of these members, and none but these and the optional ones. */
export function onlyWith(
  value: unknown,
  names: readonly string[],
  optional: readonly string[] = [],
): Members {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), 'not an object');
  const found = Object.keys(value);
  assert.deepEqual(
    names.filter((name) => !found.includes(name)),
    [],
    'fields that are missing',
  );
  assert.deepEqual(
    found.filter((name) => ![...names, ...optional].includes(name)),
    [],
    'fields that nothing here reads',
  );
  return value as Members;
}

/** The members of a JSON file that states where it comes from, and these besides. */
export function readVectors(name: string, names: readonly string[]): Members {
  const vectors = onlyWith(JSON.parse(bytesOf(name).toString()), ['source', 'version', 'licence', ...names]);
  for (const member of ['source', 'version', 'licence']) assert.match(textOf(vectors[member]), /\w/);
  return vectors;
}

export function textOf(value: unknown): string {
  assert.ok(typeof value === 'string', 'not text');
  return value;
}

export function listOf(value: unknown): readonly unknown[] {
  assert.ok(Array.isArray(value), 'not a list');
  return value;
}
