/* The public door: what stands behind each name says what it is, and how it is used, where an editor shows it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read } from './docs/pages.ts';

/** What is exported, with the file that declares it, and whether it is a type alone. */
const NAMES = [...read('src/gatehouse.ts').matchAll(/export (type )?\{([^}]*)\} from '\.\/(.*)';/g)].flatMap(
  ([, isType, names = '', file = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => ({
        file,
        name: name.replace('type ', ''),
        isType: isType !== undefined || name.startsWith('type '),
      })),
);

/** The comment right before a declaration. */
function docOf(file: string, name: string): string {
  const declared = new RegExp(
    `((?:/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?)export (?:async )?(?:const|function|class|interface|type) ${name}\\b`,
  );
  return declared.exec(read(`src/${file}`))?.[1] ?? '';
}

const TESTING = [
  ...read('src/testing.ts').matchAll(/^export (?:async )?(const|function|class|interface|type) (\w+)/gm),
].map(([, kind = '', name = '']) => ({
  file: 'testing.ts',
  name,
  isType: ['interface', 'type'].includes(kind),
}));

test('about forty names are public', () => {
  assert.ok(NAMES.length > 30 && NAMES.length <= 48, `${NAMES.length} names`);
});

for (const { file, name, isType } of [...NAMES, ...TESTING]) {
  test(`${name} says what it is${isType ? '' : ', with a line of use'}`, () => {
    const doc = docOf(file, name);
    assert.match(doc, /\w/);
    if (!isType) assert.match(doc, /@example\s*(?:\*\s*)?\S/);
  });
}
