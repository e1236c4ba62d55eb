/* Source text as tokens, with just enough of the language to count what a reader reads and to find mutants:
   no comments, one token for a text or a regular expression, and a template as its chunks and the tokens
   between them. */

export type Kind = 'word' | 'number' | 'text' | 'chunk' | 'regex' | 'sign';

export interface Token {
  readonly kind: Kind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const SIGNS = [
  '>>>=',
  '...',
  '===',
  '!==',
  '**=',
  '<<=',
  '>>=',
  '>>>',
  '&&=',
  '||=',
  '??=',
  '=>',
  '==',
  '!=',
  '<=',
  '>=',
  '&&',
  '||',
  '??',
  '?.',
  '++',
  '--',
  '+=',
  '-=',
  '*=',
  '/=',
  '%=',
  '&=',
  '|=',
  '^=',
  '**',
  '<<',
  '>>',
  '${',
];

const BLANK = /(?:\s|\/\/.*|\/\*[^]*?\*\/)+/y;
const WORD = /[#@\w$\p{L}]+/uy;
const NUMBER = /(?:0x[\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)n?/iy;
const TEXT = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const CHUNK = /(?:[^`\\$]|\\[^]|\$(?!\{))*/y;
/** Words after which a slash begins a regular expression. */
const BEFORE_VALUE = ['return', 'typeof', 'case', 'in', 'of', 'void', 'throw', 'await', 'yield'];

/** Throws if a character fits no token: the text then uses syntax that is not known here. */
export function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  /** For every open brace, whether it is that of a template. */
  const braces: boolean[] = [];
  let at = 0;

  const add = (kind: Kind, length: number) => {
    tokens.push({ kind, text: source.slice(at, at + length), start: at, end: at + length });
    at += length;
  };

  const lengthOf = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0].length ?? 0;
  };

  const addChunk = () => {
    add('chunk', lengthOf(CHUNK));
    if (source[at] === '`') at += 1;
    else {
      braces.push(true);
      add('sign', 2);
    }
  };

  const beginsValue = () => {
    const before = tokens.at(-1);
    if (before?.kind === 'sign') return ![')', ']', '}'].includes(before.text);
    return before === undefined || (before.kind === 'word' && BEFORE_VALUE.includes(before.text));
  };

  const addSign = () => {
    const sign = SIGNS.find((one) => source.startsWith(one, at)) ?? source[at] ?? '';
    if (!/^[-${}()[\];:.,<>=!?+*/%&|^~]+$/.test(sign)) {
      throw new Error(`unknown text at ${at}: ${source.slice(at, at + 20)}`);
    }
    const endsHole = sign === '}' && braces.pop() === true;
    if (sign === '{') braces.push(false);
    add('sign', sign.length);
    if (endsHole) addChunk();
  };

  for (;;) {
    at += lengthOf(BLANK);
    if (at >= source.length) return tokens;
    const found = (
      [
        ['number', NUMBER],
        ['word', WORD],
        ['text', TEXT],
      ] as const
    ).find(([, pattern]) => lengthOf(pattern) > 0);
    if (found !== undefined) add(found[0], lengthOf(found[1]));
    else if (source[at] === '`') {
      at += 1;
      addChunk();
    } else if (source[at] === '/' && beginsValue()) add('regex', lengthOf(REGEX));
    else addSign();
  }
}

const OPENING = ['(', '[', '{', '${'];
const CLOSING = [')', ']', '}'];

/**
 * Steps from the token at `index` until `stops` holds on the same level of brackets; -1 at the end of the
 * level.
 */
export function walk(
  tokens: readonly Token[],
  index: number,
  step: 1 | -1,
  stops: (token: Token, index: number) => boolean,
): number {
  const [deeper, higher] = step === 1 ? [OPENING, CLOSING] : [CLOSING, OPENING];
  let depth = 0;
  for (let at = index; at >= 0 && at < tokens.length; at += step) {
    const token = tokens[at]!;
    const isSign = token.kind === 'sign';
    if (depth === 0 && (stops(token, at) || (isSign && higher.includes(token.text)))) return at;
    if (isSign && deeper.includes(token.text)) depth += 1;
    if (isSign && higher.includes(token.text)) depth -= 1;
  }
  return -1;
}
