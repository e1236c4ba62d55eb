/* Every small change that could be a mistake or a sabotage: the mutants that each operator makes of a source
   text. If an operator changes only types, the compiled text stays the same, and the workshop drops the
   mutant. */
import { tokensOf, walk, type Token } from '../../support/tokens.ts';

export interface Mutation {
  readonly operator: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Operators, with blanks around: brackets of types have none. */
const SIGNS: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '??=': ['='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '+=': ['-='],
  '-=': ['+='],
};

const WORDS: Readonly<Record<string, string>> = {
  true: 'false',
  false: 'true',
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
};

/** Objects whose members are claims, header members or members of a key. */
const DOCUMENTS = ['claims', 'header', 'payload', 'document', 'jwk'];

const NOT_STATEMENTS = [
  'const',
  'let',
  'return',
  'throw',
  'if',
  'else',
  'for',
  'while',
  'do',
  'try',
  'catch',
  'finally',
  'switch',
  'case',
  'break',
  'continue',
  'import',
  'export',
  'from',
  'function',
  'class',
  'type',
  'interface',
  'declare',
  'static',
  'abstract',
  'readonly',
  'get',
  'set',
  'async',
  'constructor',
];

type Operator = (
  token: Token,
  index: number,
  tokens: readonly Token[],
  source: string,
) => readonly Omit<Mutation, 'operator'>[];

const replaced = ({ start, end }: { start: number; end: number }, ...texts: string[]) =>
  texts.map((replacement) => ({ start, end, replacement }));

const isSign = (token: Token | undefined, ...texts: string[]) =>
  token?.kind === 'sign' && texts.includes(token.text);

/** A condition of one comparison, which another operator negates. */
const COMPARISON =
  /^(?:![^!&|?]*|(?:(?! [<>=!]=?=? |&&|\|\||\?).)+ (?:===|!==|<|<=|>|>=) (?:(?!&&|\|\||\?).)+)$/;

/** Negated, always, never. */
const condition = (start: number, end: number, source: string) => {
  const text = source.slice(start, end);
  return replaced({ start, end }, ...(COMPARISON.test(text) ? [] : [`!(${text})`]), 'true', 'false');
};

/**
 * Whether the statement is all that this word, with its brackets, controls: removing what `if` controls
 * equals `if (false)`.
 */
const isDecidedBy = (word: string, tokens: readonly Token[], index: number) =>
  isSign(tokens[index - 1], ')') && tokens[walk(tokens, index - 2, -1, () => false) - 1]?.text === word;

/** Where the condition of a ternary begins: after whatever binds less. */
function ternaryStart(tokens: readonly Token[], index: number): number {
  const ends = (token: Token) =>
    isSign(token, ',', ';', '=', '=>', ':', '?', '??=') ||
    (token.kind === 'word' && ['return', 'throw'].includes(token.text));

  return tokens[walk(tokens, index - 1, -1, ends) + 1]!.start;
}

/** From this token to the semicolon that ends its statement; `undefined` if something else ends it. */
function statement(tokens: readonly Token[], index: number): { start: number; end: number } | undefined {
  const opensBlock = (token: Token, at: number) =>
    isSign(token, '{') && (isSign(tokens[at - 1], ')', '>') || tokens[at - 1]?.kind === 'word');

  const end = tokens[walk(tokens, index, 1, (token, at) => isSign(token, ';') || opensBlock(token, at))];
  return isSign(end, ';') ? { start: tokens[index]!.start, end: end!.end } : undefined;
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  sign: (token, _, __, source) => {
    const isSpaced = source[token.start - 1] === ' ' && source[token.end] === ' ';
    return token.kind === 'sign' && isSpaced ? replaced(token, ...(SIGNS[token.text] ?? [])) : [];
  },
  condition: (token, index, tokens, source) => {
    if (token.kind !== 'word' || !['if', 'while'].includes(token.text) || !isSign(tokens[index + 1], '(')) {
      return [];
    }
    const end = walk(tokens, index + 2, 1, () => false);
    return condition(tokens[index + 2]!.start, tokens[end]!.start, source);
  },
  ternary: (token, index, tokens, source) =>
    isSign(token, '?') && source[token.start - 1] === ' '
      ? condition(ternaryStart(tokens, index), token.start - 1, source)
      : [],
  negation: (token) => (isSign(token, '!') ? replaced(token, '') : []),
  refusal: (token, index, tokens) => {
    const range = token.kind === 'word' && token.text === 'throw' ? statement(tokens, index) : undefined;
    if (range === undefined) return [];

    const removed = isDecidedBy('if', tokens, index) ? [] : [';'];
    return replaced(range, ...removed, 'return undefined;');
  },
  result: (token, index, tokens, source) => {
    const range = token.kind === 'word' && token.text === 'return' ? statement(tokens, index) : undefined;
    // In a condition, no value means `false`.
    if (range === undefined || /^return( undefined| false)?;$/.test(source.slice(range.start, range.end))) {
      return [];
    }
    return replaced(range, 'return undefined;');
  },
  effect: (token, index, tokens) => {
    const begins = isSign(tokens[index - 1], ';', '{', '}') || isDecidedBy('for', tokens, index);
    // A class member declared without a value.
    const isDeclared = isSign(tokens[index + 1], ':', '?');
    if (
      !begins ||
      isDeclared ||
      token.kind !== 'word' ||
      NOT_STATEMENTS.includes(token.text) ||
      token.text.startsWith('#')
    ) {
      return [];
    }
    const range = statement(tokens, index);
    return range === undefined ? [] : replaced(range, ';');
  },
  text: (token, index, tokens) => {
    if (tokens[index - 1]?.text === 'from' || !['text', 'chunk'].includes(token.kind)) return [];
    if (token.kind === 'chunk') {
      return token.text === '' ? [] : replaced({ start: token.start, end: token.start }, '~');
    }
    return token.text.length === 2
      ? replaced(token, "'~'")
      : replaced({ start: token.end - 1, end: token.end - 1 }, '~');
  },
  member: (token, index, tokens) => {
    const isRead = isSign(tokens[index - 1], '.', '?.') && DOCUMENTS.includes(tokens[index - 2]?.text ?? '');
    if (isRead && token.kind === 'word') return replaced(token, `${token.text}_`);
    const isNamed =
      token.kind === 'word' &&
      isSign(tokens[index - 1], '{', ',') &&
      isSign(tokens[index + 1], ',', ':', '}', '=');
    if (!isNamed) return [];
    const close = walk(tokens, index, 1, () => false);
    if (!isSign(tokens[close], '}') || !isSign(tokens[close + 1], '=', ':')) return [];
    return replaced(
      token,
      isSign(tokens[index + 1], ':') ? `${token.text}_` : `${token.text}_: ${token.text}`,
    );
  },
  word: (token) =>
    token.kind === 'word' && Object.hasOwn(WORDS, token.text) ? replaced(token, WORDS[token.text]!) : [],
  number: (token) =>
    token.kind === 'number' ? replaced(token, String(Number(token.text.replaceAll('_', '')) + 1)) : [],
  anchor: (token) => {
    if (token.kind !== 'regex') return [];
    const dollar = token.text.lastIndexOf('$/');
    const flags = token.text.lastIndexOf('/');
    return [
      ...(token.text.startsWith('/^') ? replaced({ start: token.start + 1, end: token.start + 2 }, '') : []),
      ...(dollar > 0 && dollar === flags - 1
        ? replaced({ start: token.start + dollar, end: token.start + flags }, '')
        : []),
    ];
  },
};

export function mutationsOf(source: string): readonly Mutation[] {
  const tokens = tokensOf(source);
  return tokens.flatMap((token, index) =>
    Object.entries(OPERATORS).flatMap(([operator, find]) =>
      find(token, index, tokens, source).map((mutation) => ({ operator, ...mutation })),
    ),
  );
}

export const applied = (source: string, { start, end, replacement }: Mutation) =>
  source.slice(0, start) + replacement + source.slice(end);

/** The text of a mutation: the changed lines, before and after, and the number of the first. */
export function describe(source: string, mutation: Mutation): { line: number; was: string; becomes: string } {
  const from = source.lastIndexOf('\n', mutation.start - 1) + 1;
  const newline = source.indexOf('\n', mutation.end);
  const until = newline < 0 ? source.length : newline;

  const tidy = (text: string) =>
    text
      .split('\n')
      .map((line) => line.trim())
      .join(' ')
      .trim();

  return {
    line: source.slice(0, mutation.start).split('\n').length,
    was: tidy(source.slice(from, until)),
    becomes: tidy(
      source.slice(from, mutation.start) + mutation.replacement + source.slice(mutation.end, until),
    ),
  };
}
