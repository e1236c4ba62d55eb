/* The public door: each name has a description and an example where editors show them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read } from './docs/pages.ts';

/** The exports of an entry point, with the file that declares each, and whether it is only a type. */
const namesOf = (door: string) =>
  [...read(`src/${door}`).matchAll(/export (type )?\{([^}]*)\} from '\.\/(.*)';/g)].flatMap(
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

const NAMES = namesOf('gatehouse.ts');

const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, object> };

/** Of the other entry points. */
const FURTHER = Object.keys(exports)
  .filter((path) => path !== '.')
  .flatMap((path) => namesOf(`${path}.ts`))
  .filter(({ name }) => !NAMES.some((one) => one.name === name));

/** The comment before a declaration, and before each signature that an editor shows. */
function docsOf(file: string, name: string): string[] {
  const declared = new RegExp(
    `((?:/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?)export (?:async )?(?:const|function|class|interface|type) ${name}\\b`,
    'g',
  );
  const docs = [...read(`src/${file}`).matchAll(declared)].map(([, doc = '']) => doc);
  // The last of several signatures is the implementation, which is not shown.
  return docs.length > 1 ? docs.slice(0, -1) : docs;
}

test('at most 31 functions and 50 types are public', () => {
  const types = NAMES.filter(({ isType }) => isType);
  const values = NAMES.length - types.length;
  assert.ok(values > 20 && values <= 31 && types.length <= 50, `${values} names, ${types.length} types`);
});

assert.ok(FURTHER.length > 40);

for (const { file, name, isType } of [...NAMES, ...FURTHER]) {
  test(`${name} has a description${isType ? '' : ' and an example'}`, () => {
    const docs = docsOf(file, name);
    assert.notEqual(docs.length, 0);
    for (const doc of docs) {
      assert.match(doc, /\w/);
      if (!isType) assert.match(doc, /@example\s*(?:\*\s*)?\S/);
    }
  });
}

test('the entry point of the gate exports every guard and access that the package exports', async () => {
  const [door, all, guards, access] = await Promise.all([
    import('../src/gate.ts'),
    import('../src/gatehouse.ts'),
    import('../src/gate/rules/guards.ts'),
    import('../src/gate/rules/access.ts'),
  ]);
  const names = Object.keys(all).filter((name) => name in guards || name in access);
  assert.ok(names.includes('claimEquals') && names.includes('open'));
  assert.deepEqual(
    names.filter((name) => !(name in door)),
    [],
  );
});

test('the entry point of the gate exports only what the package exports, by the same names', () => {
  const statements = (door: string): readonly string[] => read(door).match(/\bfrom '\.\/.*';/g) ?? [];
  const all = statements('src/gatehouse.ts');
  assert.deepEqual(
    statements('src/gate.ts').filter((statement) => !all.includes(statement)),
    [],
  );
});
