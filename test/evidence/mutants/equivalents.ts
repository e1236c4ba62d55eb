/* Mutants that compute the same. Each is identified by its function and change, so it survives other edits
   and new layouts of the text. */
import { namedFunctionsOf } from '../../support/functions.ts';
import type { Mutation } from './mutations.ts';

export type Change = Pick<Mutation, 'start' | 'end' | 'replacement'>;

export interface Equivalent {
  readonly file: string;
  /** The innermost named function around the change; none at the start of a module or class. */
  readonly function?: string;
  /** Occurs once in the function. */
  readonly was: string;
  readonly becomes: string;
  readonly why: string;
}

interface Place {
  readonly name?: string;
  readonly start: number;
  readonly end: number;
}

/** The named functions, and the whole text. */
const placesOf = (source: string): readonly Place[] => [
  ...namedFunctionsOf(source),
  { start: 0, end: source.length },
];

/** The innermost of them around a change. */
function placeOf(places: readonly Place[], { start, end }: Change): Place {
  const around = places.filter((place) => place.start <= start && end <= place.end);
  return around.reduce((inner, place) => (place.end - place.start < inner.end - inner.start ? place : inner));
}

/** The name of the function around a change. */
export const functionAt = (source: string, change: Change) => placeOf(placesOf(source), change).name;

const bare = (text: string) => text.replaceAll(/\s/g, '');

/** Returns a function that says whether a change to the source is that of the equivalent. */
export function matcherOf(source: string) {
  const places = placesOf(source);

  return ({ function: name, was, becomes }: Omit<Equivalent, 'file' | 'why'>, change: Change): boolean => {
    const place = placeOf(places, change);
    const head = source.slice(place.start, change.start);
    const tail = source.slice(change.end, place.end);
    const parts = bare(source.slice(place.start, place.end)).split(bare(was));
    const isOnce = place.name === name && parts.length === 2;
    return isOnce && parts.join(bare(becomes)) === bare(head + change.replacement + tail);
  };
}
