/* The rules of the page: each finds its offences and nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedFunctionsOf } from './support/functions.ts';
import { MOST_TOKENS_OF_A_FUNCTION, readPage } from './support/page.ts';

const found = (text: string) => readPage(text).offences.map(({ line, what }) => `${line}: ${what}`);

const calls = (count: number) => '  f();\n'.repeat(count);

const BROKEN: Readonly<Record<string, readonly string[]>> = {
  '1: a conditional inside a conditional': [
    'const a = b ? c : d ? e : f;\n',
    'const a = b ? (c ? d : e) : f;\n',
    'const a = b ? c : f(d ? e : g);\n',
    'const a = b ? `${c ? d : e}` : f;\n',
  ],
  '1: an assignment inside an expression': [
    'const a = (b = c);\n',
    'a = b = c;\n',
    'if ((a += b) > c) d();\n',
    'const f = () => (a = b);\n',
    'f((a = b));\n',
  ],
  '1: ++': ['a[b++] = c;\n'],
  '1: a list as a way to name things': [
    'const [a, b] = [1, 2];\n',
    'let [a, b]: [number, string] = [1, c];\n',
    '[a, b] = [b, a];\n',
  ],
  '1: two declarations in a statement': [
    'let a, b;\n',
    'const a = f(1, 2), b = 3;\n',
    'for (let a = 0, b = 1; a < b; a += 1) f();\n',
    'const a: Map<B, C> = d, e = f;\n',
  ],
  '1: a nested statement without braces': [
    'for (const a of b) if (a) c();\n',
    'if (a) for (const b of c) d();\n',
  ],
  '2: a nested statement without braces': ['if (a)\n  b();\n', 'if (a) b();\nelse for (const c of d) e();\n'],
  '2: no blank line between definitions': [
    'const f = () => 1;\nconst g = () => 2;\n',
    'const a = 1;\nfunction f() {}\n',
    'type A = B;\ninterface C {\n  a: A;\n}\n',
    "import { a } from './a.ts';\nconst b = {\n  a,\n};\n",
  ],
  '4: no blank line between definitions': ['class A {\n  f() {\n  }\n  g() {\n  }\n}\n'],
  '16: over 14 lines without a blank one': [`function f() {\n${calls(15)}}\n`],
  '1: 111 columns': [`// ${'x'.repeat(108)}\n`],
};

for (const [offence, texts] of Object.entries(BROKEN)) {
  for (const text of texts) {
    test(`reports "${offence.slice(offence.indexOf(':') + 2)}" in ${JSON.stringify(text).slice(0, 60)}`, () =>
      assert.deepEqual(found(text), [offence]));
  }
}

for (const text of [
  'const a = b ? c : d;\nconst e = f ? g : h;\n',
  'const f = (a?: B, c = d ? e : g) => a ?? c;\n',
  'a.b = c;\na += 1;\n',
  'interface A<B = C> {}\n\ntype D = E;\nconst f = g;\n',
  'type A<B = C> = B extends D ? E : B extends F ? G : H;\n',
  "export {\n  a,\n} from './a.ts';\nexport { b } from './b.ts';\n",
  'function f(a = 1, { b = 2 } = {}): C {\n  return a;\n}\n',
  'const f = ({ a = 1 }: { a?: number } = {}): string => a;\n',
  'for (let a = 0; a < b; a += 1) f();\n',
  'const f: (a: B) => C = g;\n',
  '({ a } = b);\n',
  'const [a, b] = f();\nconst [c = d] = e;\n',
  'const a = { [b]: c };\nf({ [d]: e });\n',
  '[a, b] = f();\nconst [c, d] = [e, f].map(g);\n',
  'const a: Map<B, C> = new Map<D, E>();\n',
  'const f = <A, B>(a: A, b: B): A => a;\n',
  'const a = [b as const, c] as const;\n',
  'if (a) return;\nelse if (b) throw c;\nelse d();\n',
  'if (a) {\n  b();\n} else {\n  c();\n}\n',
  'const a = 1;\n/** Said of it. */\nconst b = 2;\ntype C = D;\n',
  'const a = 1;\n\nfunction f() {}\n\n/** Said of it. */\nfunction g() {}\n',
  `function f() {\n${calls(14)}\n${calls(14)}}\n`,
  'const a = `\nif (b) for (c) d = e = f;\n`;\n',
]) {
  test(`reports nothing in ${JSON.stringify(text).slice(0, 80)}`, () => assert.deepEqual(found(text), []));
}

test("counts a function's own tokens, including those of inner functions of one or two lines", () => {
  // The name and four signs; four tokens for each call.
  const tokensOf = (count: number) => 5 + 4 * count;
  const most = Math.floor((MOST_TOKENS_OF_A_FUNCTION - 5) / 4);
  const spaced = (count: number) => calls(count).replaceAll(';\n', ';\n\n');
  assert.deepEqual(found(`function f() {\n${spaced(most)}}\n`), []);
  assert.deepEqual(found(`function f() {\n${spaced(most + 1)}}\n`), [
    `1: a function of ${tokensOf(most + 1)} own tokens`,
  ]);
  const inner = (body: string) => `function f() {\n${spaced(most - 1)}  const g = () => {\n${body}  };\n}\n`;
  assert.deepEqual(found(inner(spaced(4))), []);
  const inline = `function f() {\n${spaced(most - 1)}  const g = () => h(1, 2, 3, 4);\n}\n`;
  assert.equal(found(inline).length, 1);
});

/** Only the first has a function inside another. */
const INSIDE: Readonly<Record<string, readonly string[]>> = {
  'function f() {\n  const g = () => 1;\n  return g;\n}\n': ['g'],
  'const A: Record<B, (c: D) => E> = {\n  f: () => 1,\n};\n': [],
  'function f(): (a: B) => C {\n  return d;\n}\n\nconst g = () => 1;\n': [],
  'type A = (b: B) => [...c: C, handler: (d: D) => E];\n': [],
};

for (const [text, names] of Object.entries(INSIDE)) {
  test(`finds the functions inside others, but no types, in ${JSON.stringify(text)}`, () => {
    const inside = namedFunctionsOf(text).filter(({ isInside }) => isInside);
    assert.deepEqual(
      inside.map(({ name }) => name),
      names,
    );
  });
}
