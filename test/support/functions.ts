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
 * Whether an arrow is of a type: that of a declaration, of a parameter, or of a member of an interface or class, which
 * ends with a semicolon.
 */
function isOfType(tokens: readonly Token[], { first, last }: Range): boolean {
  if (tokens[first - 1]?.text !== ':') return tokens[first - 3]?.text === 'type';

  const open = walk(tokens, first - 1, -1, () => false);
  return tokens[open]?.text === '(' || tokens[last + 1]?.text === ';';
}

export function namedFunctionsOf(source: string): NamedFunction[] {
  const tokens = tokensOf(source);

  const all = functionsOf({ tokens }).map((range) => {
    const head = tokens[range.first]!;
    const isNamed = head.kind === 'word' && tokens[range.first + 1]?.text !== '=>';
    const nameOfArrow = isOfType(tokens, range)
      ? undefined
      : NAME_OF_ARROW.exec(source.slice(0, head.start))?.[1];
    return { name: isNamed ? head.text : nameOfArrow, start: head.start, end: tokens[range.last]!.end };
  });

  return all.flatMap(({ name, start, end }) => {
    if (name === undefined) return [];

    const isInside = all.some((other) => other.start < start && end <= other.end);
    return [{ name, start, end, isInside }];
  });
}
