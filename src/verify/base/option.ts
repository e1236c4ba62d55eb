// Options: what code may give, checked where its part is made. Promises: each option is read once, and no
// text is parsed; the first that is wrong throws a TypeError that names it and says how to write it. Each
// ring owns the table of its own options.
import { undefinedOn } from './encoding.ts';

/** What is wrong with a value, and how to write it; `undefined` if it is good. Never shows the value. */
export interface Rule<Given> {
  (value: unknown): string | undefined;
  /** For the compiler alone. */
  readonly accepts?: Given;
}

export interface Option<Value> {
  readonly rule: Rule<unknown>;
  readonly byDefault: Value | undefined;
  /** The problem if it is not given; without one, it may be absent. */
  readonly missing?: string | undefined;
  readonly normalize: (given: unknown) => Value;
}

export type OptionTable<Values> = { readonly [Name in keyof Values]: Option<Values[Name]> };

export type ValuesOf<Table> = Table extends OptionTable<infer Values> ? Readonly<Values> : never;

const asGiven = <Value>(given: unknown) => given as Value;

/** `satisfies TableOf<Options>` shows that a table has the names of the options that it is for. */
export type TableOf<Options> = Readonly<Record<keyof Options, Option<unknown>>>;

interface MakeOption {
  <Given>(rule: Rule<Given>, byDefault: Given): Option<Given>;
  <Given, Value>(rule: Rule<Given>, byDefault: Value, normalize: (given: Given) => Value): Option<Value>;
}

/** `normalize` gives several ways to write a value one form. */
export const option: MakeOption = <Given, Value>(
  rule: Rule<Given>,
  byDefault: Value,
  normalize: (given: Given) => Value = asGiven,
): Option<Value> => ({ rule, byDefault, normalize: (given) => normalize(asGiven(given)) });

export const optional = <Given>(rule: Rule<Given>): Option<Given | undefined> =>
  option<Given | undefined>(rule, undefined);

export const required = <Value>(from: Option<Value>, missing: string): Option<Value> => ({
  ...from,
  missing,
});

export const problemOf = <Value>({ rule, missing }: Option<Value>, given: unknown): string | undefined =>
  given === undefined ? missing : rule(given);

/** Of a value without problem. */
export const valueOf = <Value>({ byDefault, normalize }: Option<Value>, given: unknown): Value =>
  given === undefined ? asGiven(byDefault) : normalize(given);

/** For what is given apart from an object. */
export function requireGood<Given>(name: string, rule: Rule<Given>, given: unknown) {
  const problem = rule(given);
  if (problem !== undefined) throwProblem(name, problem);
}

export function throwProblem(name: string, problem: string): never {
  throw new TypeError(`${name}: ${problem}`);
}

/**
 * Reads the options of a table from an object. `owner` stands before their names in problems; `elsewhere` has
 * the problems of names that belong to another table.
 */
export function readOptions<Values>(
  given: unknown,
  table: OptionTable<Values>,
  owner: string,
  elsewhere: Readonly<Record<string, string>> = {},
): Readonly<Values> {
  if (typeof given !== 'object' || given === null) {
    throwProblem(owner || 'options', 'must be an object with a member for each option');
  }

  const prefix = owner && `${owner}: `;
  const members = membersOf(given, table, prefix, elsewhere);
  const values: Partial<Values> = {};
  for (const name in table) {
    const value = members.get(name);
    const problem = problemOf(table[name], value);
    if (problem !== undefined) throwProblem(prefix + name, problem);

    values[name] = valueOf(table[name], value);
  }
  return Object.freeze(values as Values);
}

/** What is `undefined` is absent. */
function membersOf(
  given: object,
  table: object,
  prefix: string,
  elsewhere: Readonly<Record<string, string>>,
) {
  const members = new Map<PropertyKey, unknown>();
  for (const name of new Set([...Reflect.ownKeys(given), ...Object.keys(table)])) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined) continue;

    const problem = placeProblem(given, table, name, elsewhere);
    if (problem !== undefined) throwProblem(prefix + String(name), problem);

    members.set(name, Array.isArray(value) ? Object.freeze([...value]) : value);
  }
  return members;
}

function placeProblem(
  given: object,
  table: object,
  name: string | symbol,
  elsewhere: Readonly<Record<string, string>>,
) {
  if (!Object.hasOwn(table, name)) return elsewhereProblem(table, String(name), elsewhere);

  // A spread or a copy would lose it.
  const isPlain = Object.prototype.propertyIsEnumerable.call(given, name);
  return isPlain ? undefined : 'is inherited or not enumerable; write it as a member of the object itself';
}

function elsewhereProblem(table: object, name: string, elsewhere: Readonly<Record<string, string>>) {
  if (Object.hasOwn(elsewhere, name)) return elsewhere[name];

  const lower = name.toLowerCase();
  const known = Object.keys(table).find((each) => each.toLowerCase() === lower);
  return `is no option; ${known === undefined ? 'correct' : `write ${known}`} or remove it`;
}

const NO_TEXT = 'must be text';

/** `isGood` is asked for what matches. */
export const textMatching = (
  pattern: RegExp,
  problem: string,
  isGood: (text: string) => boolean = () => true,
): Rule<string> =>
  function checkText(value) {
    if (typeof value !== 'string') return NO_TEXT;
    return pattern.test(value) && isGood(value) ? undefined : problem;
  };

export const text = textMatching(/./s, 'is empty; write it or remove it');

export const textWithoutBlanks = textMatching(
  /^[^\s\0]+$/,
  'is empty, or has white space or a NUL; remove it',
);

/** Of a URL with user and password. */
export const isDecodable = (url: string): boolean =>
  URL.canParse(url) && undefinedOn('URIError', () => decodeURIComponent(url)) !== undefined;

export const boolean: Rule<boolean> = (value) =>
  typeof value === 'boolean' ? undefined : 'must be true or false';

export const integer = (min: number, max: number): Rule<number> =>
  function checkInteger(value) {
    const isGood = Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
    return isGood ? undefined : `must be a whole number from ${min} to ${max}`;
  };

export const oneOf = <Word extends string>(...words: readonly Word[]): Rule<Word> =>
  function checkWord(value) {
    return words.some((word) => word === value) ? undefined : `must be one of ${words.join(', ')}`;
  };

/** Holes are wrong: `Array.from` gives them a value. */
export const listOf = <Member>(rule: Rule<Member>, least = 1): Rule<readonly Member[]> =>
  function checkList(value) {
    if (!Array.isArray(value) || value.length < least) return `must be a list of ${least} or more texts`;
    return Array.from(value, rule).find((problem) => problem !== undefined);
  };

export const textOrList = (rule: Rule<string>): Rule<string | readonly string[]> =>
  function checkTexts(value) {
    return Array.isArray(value) ? listOf(rule)(value) : rule(value);
  };

export const asList = (given: string | readonly string[]): readonly string[] =>
  typeof given === 'string' ? Object.freeze([given]) : given;

const isFunction = (value: unknown) => typeof value === 'function';

export const someFunction = <Signature>(): Rule<Signature> =>
  function checkFunction(value) {
    return isFunction(value) ? undefined : 'must be a function';
  };

export const functionOr = <Signature, Other>(rule: Rule<Other>): Rule<Signature | Other> =>
  function checkEither(value) {
    return isFunction(value) ? undefined : rule(value);
  };
