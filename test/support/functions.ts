/* The functions of a source text that have a name: declarations, methods, and arrow functions that are the value of a
   constant or a member. */
import { functionsOf, type Range } from './page.ts';
import { tokensOf, walk, type Token } from './tokens.ts';

export interface NamedFunction {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Whether another function is around it, with or without a name. */
  readonly isInside: boolean;
}

/** Before the parameters of an arrow function: a constant or a member with it as its value. */
const NAME_OF_ARROW = /([#\w$]+)(?:(?:: [^\n]*)? =|:) (?:async )?(?:<[^\n]*>)?$/;

/**
 * Whether an arrow is of a type: that of a declaration, of a parameter, of a list of types, of what a function returns,
 * between the brackets of a type, or of a member of an interface or class, which ends with a semicolon.
 */
function isOfType(tokens: readonly Token[], range: Range): boolean {
  const { first, last } = range;
  if (closesTypes(tokens, range)) return true;
  if (tokens[first - 1]?.text !== ':') return tokens[first - 3]?.text === 'type';

  const open = walk(tokens, first - 1, -1, () => false);
  return ['(', '['].includes(tokens[open]?.text ?? '') || tokens[last + 1]?.text === ';';
}

/** Whether a bracket of types, which has no blank before it, closes in a range that does not open it. */
function closesTypes(tokens: readonly Token[], { first, last }: Range): boolean {
  let open = 0;
  for (let at = first; at <= last; at += 1) {
    const { text, start, end } = tokens[at]!;
    if (text === '<' && end === tokens[at + 1]?.start) open += 1;
    if (/^>+$/.test(text) && start === tokens[at - 1]?.end) open -= text.length;
    if (open < 0) return true;
  }
  return false;
}

export function namedFunctionsOf(source: string): NamedFunction[] {
  const tokens = tokensOf(source);

  const functions = functionsOf({ tokens }).filter((range) => !isOfType(tokens, range));

  const all = functions.map((range) => {
    const head = tokens[range.first]!;
    const isNamed = head.kind === 'word' && tokens[range.first + 1]?.text !== '=>';
    const nameOfArrow = NAME_OF_ARROW.exec(source.slice(0, head.start))?.[1];
    return { name: isNamed ? head.text : nameOfArrow, start: head.start, end: tokens[range.last]!.end };
  });

  return all.flatMap(({ name, start, end }) => {
    if (name === undefined) return [];

    const isInside = all.some((other) => other.start < start && end <= other.end);
    return [{ name, start, end, isInside }];
  });
}
