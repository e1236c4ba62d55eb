/* Figures about the shape of src, beside what it aims at. */
import type { Sources } from '../../support/closures.ts';
import type { Row } from '../../support/figures.ts';
import { namedFunctionsOf } from '../../support/functions.ts';
import { withoutComments } from '../../support/imports.ts';

const MOST_FILES = 80;
const MOST_RETURN_TYPES = 5;
const MOST_PERCENT_INSIDE = 10;

export function figuresOf(sources: Sources): readonly Row[] {
  const texts = [...sources.values()];
  const named = texts.flatMap(namedFunctionsOf);
  const inside = named.filter(({ isInside }) => isInside);
  const returnTypes = texts.flatMap((text) => withoutComments(text).match(/\bReturnType</g) ?? []);
  const percent = Math.round((100 * inside.length) / named.length);

  return [
    { figure: 'files', is: sources.size, 'at most': MOST_FILES },
    { figure: 'ReturnType<', is: returnTypes.length, 'at most': MOST_RETURN_TYPES },
    { figure: 'named functions', is: named.length },
    { figure: 'of them inside another function', is: inside.length },
    { figure: 'in percent', is: percent, 'at most': MOST_PERCENT_INSIDE },
  ];
}
