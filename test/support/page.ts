/* The rules of the page, checked on the tokens of formatted text: lines, functions, files, and how statements
   are written. In formatted text an operator has blanks around it; a bracket of types has none. */
import { tokensOf, walk, type Token } from './tokens.ts';

/** A broken rule, by line number. */
export interface Offence {
  readonly line: number;
  readonly what: string;
  /** About amount, not about style. */
  readonly isSize?: true;
}

export interface Page {
  readonly tokens: number;
  /** By line, for lines that have tokens. */
  readonly tokensByLine: ReadonlyMap<number, number>;
  readonly offences: readonly Offence[];
}

export const MOST_TOKENS_OF_A_FUNCTION = 180;
export const MOST_COLUMNS = 110;
/** A function of at most so many lines counts as part of the one around it. */
const INLINE_LINES = 2;
/** More consecutive lines than this without a blank one are several steps. */
const MOST_LINES_OF_A_STEP = 14;

const CONTROL = ['if', 'for', 'while', 'switch', 'try', 'do'];
const ASSIGNMENTS = ['=', '+=', '-=', '*=', '/=', '%=', '**=', '??=', '||=', '&&=', '|=', '&=', '^='];
const DECLARATIONS = ['const', 'let', 'var'];
/** What may precede the name of a method. */
const BEFORE_METHOD = [';', '{', '}', ',', 'async', 'static', 'get', 'set', 'override', '*'];

interface Source {
  readonly text: string;
  readonly tokens: readonly Token[];
  /** The line of each token. */
  readonly lines: readonly number[];
  readonly rows: readonly string[];
  /** The lines, counted from 0, that are only comment, and those that begin inside a template. */
  readonly isComment: ReadonlySet<number>;
  readonly isText: ReadonlySet<number>;
}

/** What functions are found in. */
type Tokens = Pick<Source, 'tokens'>;

const isSign = (token: Token | undefined, ...texts: readonly string[]) =>
  token?.kind === 'sign' && texts.includes(token.text);

const isWord = (token: Token | undefined, ...texts: readonly string[]) =>
  token?.kind === 'word' && texts.includes(token.text);

/** Where the bracket at this index closes. */
const closing = ({ tokens }: Tokens, index: number) => walk(tokens, index + 1, 1, () => false);

/** Where the bracket that closes at this index opens, or the level of this token begins. */
const opening = ({ tokens }: Tokens, index: number) => walk(tokens, index - 1, -1, () => false);

/** A blank before the sign makes it an operator; without one it belongs to a type or name. */
const isSpaced = ({ text }: Source, token: Token) => /\s/.test(text[token.start - 1] ?? ' ');

const isBracketOfTypes = ({ text }: Source, token: Token) => isSign(token, '<') && text[token.end] !== ' ';

function linesOf(text: string, tokens: readonly Token[]): number[] {
  let line = 1;
  let at = 0;
  return tokens.map(({ start }) => {
    for (; at < start; at += 1) {
      if (text[at] === '\n') line += 1;
    }
    return line;
  });
}

/** Where the body of a function begins, whose parameters close at this index; -1 without a body. */
function bodyAfter({ tokens }: Tokens, close: number): number {
  if (isSign(tokens[close + 1], '{')) return close + 1;
  if (!isSign(tokens[close + 1], ':')) return -1;

  const ofTypes = [':', '|', '&', '<', ',', '(', '=>'];
  for (let at = close + 2; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (isSign(token, ';', '=', ')')) return -1;
    if (isSign(token, '{') && !isSign(tokens[at - 1], ...ofTypes)) return at;
    if (isSign(token, '{', '(', '[')) at = walk(tokens, at + 1, 1, () => false);
  }
  return -1;
}

/** The first token of a function's head and the last of its body. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

/** The arrow function with its arrow at this index. */
function arrowAt(source: Tokens, index: number): Range {
  const { tokens } = source;
  const before = tokens[index - 1];
  let first = index - 1;
  if (isSign(before, ')')) first = opening(source, index - 1);
  else {
    // After the parameters comes a return type, or there is one parameter without brackets.
    const colon = walk(tokens, index - 1, -1, (token) => isSign(token, ':', ',', '=', ';'));
    if (isSign(tokens[colon], ':') && isSign(tokens[colon - 1], ')')) first = opening(source, colon - 1);
  }
  if (isSign(tokens[index + 1], '{')) return { first, last: closing(source, index + 1) };

  const end = walk(tokens, index + 1, 1, (token) => isSign(token, ',', ';'));
  return { first, last: (end < 0 ? tokens.length : end) - 1 };
}

export function functionsOf(source: Tokens): Range[] {
  const { tokens } = source;
  return tokens.flatMap((token, index) => {
    if (isSign(token, '=>')) return [arrowAt(source, index)];

    const isNamed = token.kind === 'word' && isSign(tokens[index + 1], '(', '<');
    const isFunction = isWord(tokens[index - 1], 'function') || isWord(token, 'function');
    const isMethod =
      BEFORE_METHOD.includes(tokens[index - 1]?.text ?? '') && !isWord(token, ...CONTROL, 'catch');
    if (!isNamed || !(isFunction || isMethod)) return [];

    const parenthesis = walk(tokens, index + 1, 1, (one) => isSign(one, '(', ';'));
    if (!isSign(tokens[parenthesis], '(')) return [];
    const body = bodyAfter(source, closing(source, parenthesis));
    return body < 0 ? [] : [{ first: index, last: closing(source, body) }];
  });
}

function wideLines({ rows }: Source): Offence[] {
  return rows.flatMap((row, index) =>
    row.length > MOST_COLUMNS
      ? [{ line: index + 1, what: `${row.length} columns`, isSize: true as const }]
      : [],
  );
}

/** Own tokens: without those of inner functions, except short ones. */
function longFunctions(source: Source): Offence[] {
  const { lines } = source;
  const functions = functionsOf(source);

  const isInside = (inner: Range, outer: Range) =>
    inner !== outer && inner.first >= outer.first && inner.last <= outer.last;

  const isInline = ({ first, last }: Range) => lines[last]! - lines[first]! < INLINE_LINES;
  const countOf = ({ first, last }: Range) => last - first + 1;
  return functions.flatMap((outer) => {
    const inner = functions.filter((one) => isInside(one, outer) && !isInline(one));
    const outermost = inner.filter((one) => !inner.some((other) => isInside(one, other)));
    const own = outermost.reduce((rest, one) => rest - countOf(one), countOf(outer));
    if (own <= MOST_TOKENS_OF_A_FUNCTION) return [];
    return [{ line: lines[outer.first]!, what: `a function of ${own} own tokens`, isSize: true }];
  });
}

/** The end of the expression that continues from this token: its comma, semicolon or closing bracket. */
const endOfExpression = ({ tokens }: Source, index: number) =>
  walk(tokens, index, 1, (token) => isSign(token, ',', ';'));

/**
 * Whether the token is in a type declaration, in which no rule about conditionals and assignments applies.
 */
const isOfType = ({ tokens }: Source, index: number) =>
  isWord(tokens[walk(tokens, index, -1, (token) => isSign(token, ';') || isWord(token, 'type'))], 'type');

function nestedConditionals(source: Source): Offence[] {
  const { tokens, lines } = source;
  const isConditional = (token: Token) => isSign(token, '?') && isSpaced(source, token);
  return tokens.flatMap((token, index) => {
    if (!isConditional(token) || isOfType(source, index)) return [];
    const rest = tokens.slice(index + 1, endOfExpression(source, index + 1));
    return rest.some(isConditional)
      ? [{ line: lines[index]!, what: 'a conditional inside a conditional' }]
      : [];
  });
}

/** Whether the brackets that open at this index hold parameters, which may have defaults. */
function holdsParameters(source: Source, open: number): boolean {
  const { tokens } = source;
  const close = closing(source, open);
  if (isSign(tokens[close + 1], '=>', '{')) return !isWord(tokens[open - 1], ...CONTROL);
  if (!isSign(tokens[close + 1], ':')) return false;
  const next = walk(tokens, close + 2, 1, (token) => isSign(token, '=>', ';', ','));
  return isSign(tokens[next], '=>') || bodyAfter(source, close) >= 0;
}

function assignmentsInside(source: Source): Offence[] {
  const { tokens, lines } = source;
  return tokens.flatMap((token, index) => {
    if (isSign(token, '++', '--')) return [{ line: lines[index]!, what: token.text }];
    if (!isSign(token, ...ASSIGNMENTS) || isOfType(source, index)) return [];

    const stops = (one: Token) =>
      isSign(one, ';', ',', '=>', ...ASSIGNMENTS) || isWord(one, 'type', ...DECLARATIONS);

    const before = walk(tokens, index - 1, -1, stops);
    const isChained = isSign(tokens[before], ...ASSIGNMENTS);
    const isInBrackets =
      isSign(tokens[before], '(', '${') ||
      (isSign(tokens[before], ',') && isSign(tokens[opening(source, before)], '('));
    const open = isSign(tokens[before], ',') ? opening(source, before) : before;
    // The head of a loop, or a statement that begins with a bracket.
    const isApart = open === 0 || isWord(tokens[open - 1], 'for') || isSign(tokens[open - 1], ';', '{', '}');
    const isInside = isInBrackets && !isApart && !holdsParameters(source, open);
    return isChained || isInside ? [{ line: lines[index]!, what: 'an assignment inside an expression' }] : [];
  });
}

/** `const [a, b] = [c, d]` and `[a, b] = [b, a]`. */
function listsAsNames(source: Source): Offence[] {
  const { tokens, lines } = source;
  return tokens.flatMap((token, index) => {
    if (!isSign(token, '[')) return [];
    const isStatement = index === 0 || (isSign(tokens[index - 1], ';', '{', '}') && isSpaced(source, token));
    if (!isStatement && !isWord(tokens[index - 1], ...DECLARATIONS)) return [];

    const equals = walk(tokens, closing(source, index) + 1, 1, (one) => isSign(one, '=', ';'));
    const isList = isSign(tokens[equals], '=') && isSign(tokens[equals + 1], '[');
    const isAll = isList && isSign(tokens[closing(source, equals + 1) + 1], ';');
    return isAll ? [{ line: lines[index]!, what: 'a list as a way to name things' }] : [];
  });
}

/** Where the type bracket that opens at this index closes. */
function endOfTypes({ tokens }: Source, index: number): number {
  let depth = 0;
  for (let at = index; at < tokens.length; at += 1) {
    const text = tokens[at]?.text ?? '';
    if (text === '<') depth += 1;
    if (/^>+$/.test(text)) depth -= text.length;
    if (depth <= 0) return at;
  }
  return index;
}

function manyDeclarations(source: Source): Offence[] {
  const { tokens, lines } = source;
  return tokens.flatMap((token, index) => {
    if (!isWord(token, ...DECLARATIONS) || isWord(tokens[index - 1], 'as')) return [];
    for (let at = index + 1; at > 0 && at < tokens.length; at += 1) {
      const one = tokens[at]!;
      if (isSign(one, ';', ')')) return [];
      if (isSign(one, ',')) return [{ line: lines[index]!, what: 'two declarations in a statement' }];
      if (isSign(one, '(', '[', '{', '${')) at = closing(source, at);
      else if (isBracketOfTypes(source, one)) at = endOfTypes(source, at);
    }
    return [];
  });
}

/** What follows `if`, `else`, `for` and `while`: a block, or one plain statement on the same line. */
function bareStatements(source: Source): Offence[] {
  const { tokens, lines } = source;
  return tokens.flatMap((token, index) => {
    const isHead = isWord(token, 'if', 'for', 'while') && !isSign(tokens[index - 1], '.');
    const isElse = isWord(token, 'else');
    if (!isHead && !isElse) return [];

    const open = isWord(tokens[index + 1], 'await') ? index + 2 : index + 1;
    if (isHead && !isSign(tokens[open], '(')) return [];
    const first = isElse ? index + 1 : closing(source, open) + 1;
    if (isSign(tokens[first], '{', ';') || (isElse && isWord(tokens[first], 'if'))) return [];

    const isNested = isWord(tokens[first], ...CONTROL);
    const isElsewhere = lines[first] !== lines[first - 1];
    return isNested || isElsewhere
      ? [{ line: lines[first]!, what: 'a nested statement without braces' }]
      : [];
  });
}

/** The lines inside a template, except its first. */
function textsIn(tokens: readonly Token[], lines: readonly number[]): ReadonlySet<number> {
  const found = new Set<number>();
  for (const [index, { kind, text }] of tokens.entries()) {
    if (kind !== 'chunk') continue;
    for (let more = text.split('\n').length - 1; more > 0; more -= 1) found.add(lines[index]! - 1 + more);
  }
  return found;
}

/** The lines that are only comment. */
function commentsIn(rows: readonly string[]): ReadonlySet<number> {
  const found = new Set<number>();
  let isOpen = false;
  for (const [at, row] of rows.entries()) {
    isOpen ||= /^\s*\/\*/.test(row);
    if (isOpen || /^\s*\/\//.test(row)) found.add(at);
    if (row.includes('*/')) isOpen = false;
  }
  return found;
}

const WIDTH_OF_LEVEL = 2;

const FUNCTION_LINE =
  /^\s*(?:export )?(?:default )?(?:(?:async )?function\b|(?:abstract )?class\b|interface\b|(?:const|let) \w+(?:: [^=]+)? = (?:async )?(?:<[^>]+>)?\([^)]*\)(?:: [^=]+)? =>)/;

const METHOD_LINE = /^ {2}(?:(?:static|async|override|get|set) )*#?\w+(?:<[^>]+>)?\([^;]*(?:\{|\()$/;

/** A statement, or a member of a class, with the comment above it. */
interface Item {
  readonly from: number;
  /** The first line after its comment. */
  readonly head: number;
  readonly to: number;
}

/** The statements on one level of indentation between two lines, numbered from 0. */
function itemsOn({ rows, isText, isComment }: Source, level: number): Item[][] {
  const indent = ' '.repeat(level * WIDTH_OF_LEVEL);
  const blocks: Item[][] = [[]];
  let from: number | undefined;
  for (const [at, row] of rows.entries()) {
    if (isText.has(at) || row === '') continue;
    const depth = row.length - row.trimStart().length;
    const items = blocks.at(-1)!;
    if (depth < indent.length) {
      blocks.push([]);
      from = undefined;
    } else if (isComment.has(at)) {
      if (depth === indent.length) from ??= at;
    } else if (depth === indent.length && !/^[\])}>|&?:.]/.test(row.trim())) {
      items.push({ from: from ?? at, head: at, to: at });
      from = undefined;
    } else if (items.length > 0) {
      items[items.length - 1] = { ...items.at(-1)!, to: at };
    }
  }
  return blocks.filter((items) => items.length > 1);
}

/** Definitions are separated by blank lines; one-line constants and types may be adjacent. */
function crowdedDefinitions(source: Source): Offence[] {
  const { rows } = source;
  const levels = [0, 1, 2, 3];
  return levels.flatMap((level) =>
    itemsOn(source, level).flatMap((items) =>
      items.slice(1).flatMap((item, index) => {
        const before = items[index]!;
        const isApart = rows.slice(before.to + 1, item.from).includes('');
        const isDefinition = ({ head, to }: Item) =>
          (FUNCTION_LINE.test(rows[head]!) && (level === 0 || to > head)) ||
          (level === 1 && METHOD_LINE.test(rows[head]!)) ||
          (level === 0 && to > head);
        const areImports = [before, item].every(({ head }) =>
          /^(?:import|export (?:type )?\{)/.test(rows[head]!),
        );
        if (isApart || areImports || !(isDefinition(before) || isDefinition(item))) return [];
        return [{ line: item.head + 1, what: 'no blank line between definitions' }];
      }),
    ),
  );
}

/** Consecutive lines of code inside functions without a blank line. */
function longSteps(source: Source): Offence[] {
  const { lines, rows, isComment } = source;
  const inside = new Set<number>();
  for (const { first, last } of functionsOf(source)) {
    for (let line = lines[first]! + 1; line < lines[last]!; line += 1) inside.add(line);
  }
  const offences: Offence[] = [];
  let length = 0;
  for (const [index, row] of rows.entries()) {
    const isCode = inside.has(index + 1) && row !== '';
    if (!isCode) length = 0;
    else if (!isComment.has(index)) length += 1;
    if (length === MOST_LINES_OF_A_STEP + 1) {
      offences.push({
        line: index + 1,
        what: `over ${MOST_LINES_OF_A_STEP} lines without a blank one`,
        isSize: true,
      });
    }
  }
  return offences;
}

export function readPage(text: string): Page {
  const tokens = tokensOf(text);
  const lines = linesOf(text, tokens);
  const rows = text.split('\n');
  const source = {
    text,
    tokens,
    lines,
    rows,
    isComment: commentsIn(rows),
    isText: textsIn(tokens, lines),
  };

  const tokensByLine = new Map<number, number>();
  for (const line of lines) tokensByLine.set(line, (tokensByLine.get(line) ?? 0) + 1);

  const rules = [
    wideLines,
    longFunctions,
    longSteps,
    nestedConditionals,
    assignmentsInside,
    listsAsNames,
    manyDeclarations,
    bareStatements,
    crowdedDefinitions,
  ];
  return { tokens: tokens.length, tokensByLine, offences: rules.flatMap((rule) => rule(source)) };
}
