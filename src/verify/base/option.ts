// Options: what code may give, checked where its part is made, and parts: what code hands over besides plain
// values, made by the function of a path of its own. Promises: each option is read once, and no text is
// parsed; the first that is wrong throws a TypeError that names it and says how to write it. A part shows
// nothing of what it was made of, cannot be forged, and serves one gate or service unless it is shared. Each
// ring has the rules and defaults of its own options.
import { catching, isJsonObject, isPlain } from './encoding.ts';
import { hideConstructor } from './sealed.ts';

/** What is wrong with a value, and how to write it; `undefined` if it is good. Never shows the value. */
export type Rule = (value: unknown) => string | undefined;

/** By name. */
export type Rules = Readonly<Record<string, Rule>>;

export type RulesOf<Values> = { readonly [Name in keyof Values]-?: Rule };

/** Options as code may give them: what is `undefined` is absent. */
export type Given<Values> = { [Name in keyof Values]?: Values[Name] | undefined };

export function throwProblem(name: string, problem: string): never {
  throw new TypeError(`${name}: ${problem}`);
}

/** For what is given apart from an object. */
export function requireGood(name: string, rule: Rule, value: unknown) {
  const problem = rule(value);
  if (problem !== undefined) throwProblem(name, problem);
}

const NO_OBJECT = 'must be an object with a member for each option';
const NO_PLAIN = 'must be a plain object with a member for each option, not an instance of a class';

/**
 * Reads the options that have rules from an object. `missing` has a problem for each that must be there;
 * `owner` stands before the names in problems.
 */
export function readOptions<Values extends object>(
  given: unknown,
  rules: Rules,
  defaults: object,
  missing: object = {},
  owner = '',
): Values {
  if (!isJsonObject(given)) throwProblem(owner || 'options', NO_OBJECT);

  const prefix = owner && `${owner}: `;
  const values = readMembers(given, rules, prefix);
  for (const [name, problem] of Object.entries(missing)) {
    if (!Object.hasOwn(values, name)) throwProblem(prefix + name, problem);
  }
  return { ...defaults, ...values } as Values;
}

/** Also refuses an instance, such as a schema, whose inherited members would be overlooked. */
export function readPlainOptions<Values extends object>(
  given: unknown,
  rules: Rules,
  defaults: object,
  owner: string,
): Values {
  if (!isJsonObject(given) || !isPlain(given)) throwProblem(owner, NO_PLAIN);

  return readOptions(given, rules, defaults, {}, owner);
}

function readMembers(given: object, rules: object, prefix: string) {
  const values: Record<PropertyKey, unknown> = {};
  const names = new Set([...Reflect.ownKeys(given), ...Object.keys(rules)]);
  for (const name of names) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined) continue;

    const copy = Array.isArray(value) ? Object.freeze([...new Set(value)]) : value;
    requireGood(prefix + String(name), ruleFor(name, rules, given), copy);
    values[name] = copy;
  }
  return values;
}

function ruleFor(name: string | symbol, rules: object, given: object): Rule {
  const rule = Reflect.getOwnPropertyDescriptor(rules, name)?.value;
  // A spread or a copy would lose it.
  const isPlain = Object.prototype.propertyIsEnumerable.call(given, name);
  if (rule !== undefined && isPlain) return rule;

  const lower = String(name).toLowerCase();
  const known = Object.keys(rules).find((each) => each.toLowerCase() === lower);
  const fix = known ? `write ${known}` : 'correct';
  return () => (rule === undefined ? `is no option; ${fix} or remove it` : NOT_PLAIN);
}

const NOT_PLAIN = 'is inherited or not enumerable; write it as a member of the object itself';

/** `isGood` is asked for what matches. */
export const textMatching = (
  pattern: RegExp,
  problem: string,
  isGood: (text: string) => boolean = () => true,
): Rule =>
  function checkText(value) {
    if (typeof value !== 'string') return 'must be text';
    return pattern.test(value) && isGood(value) ? undefined : problem;
  };

export const text = textMatching(/./s, 'is empty; write it or remove it');

export const textWithoutBlanks = textMatching(
  /^[^\s\0]+$/,
  'is empty, or has white space or a NUL; remove it',
);

/** Of a URL with user and password. */
export const isDecodable = (url: string): boolean =>
  URL.canParse(url) && catching('URIError', () => decodeURIComponent(url)) !== undefined;

export const boolean: Rule = (value) => (typeof value === 'boolean' ? undefined : 'must be true or false');

export const integer = (min: number, max: number): Rule =>
  function checkInteger(value) {
    const isGood = Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
    return isGood ? undefined : `must be a whole number from ${min} to ${max}`;
  };

export const oneOf = (...words: readonly string[]): Rule =>
  function checkWord(value) {
    return words.some((word) => word === value) ? undefined : `must be one of ${words.join(', ')}`;
  };

/** Holes are wrong: `Array.from` gives them a value. */
export const listOf = (rule: Rule, least = 1): Rule =>
  function checkList(value) {
    if (!Array.isArray(value) || value.length < least) return `must be a list of ${least} or more texts`;
    return Array.from(value, rule).find((problem) => problem !== undefined);
  };

export const someFunction: Rule = (value) => (typeof value === 'function' ? undefined : 'must be a function');

export const functionOr = (rule: Rule): Rule =>
  function checkEither(value) {
    if (typeof value === 'function') return undefined;

    return rule(value)?.replace('must be ', 'must be a function, or ');
  };

/** The problem of a part that may serve no other. */
export const TAKEN = 'already belongs to a gate or service; make another';

/** Made by one of the functions that the options name. */
export class Part<Option extends string, Content> {
  readonly #option;
  readonly #content;
  readonly #isShared;
  #isUsed = false;

  private constructor(option: Option, content: Content, isShared: boolean) {
    this.#option = option;
    this.#content = content;
    this.#isShared = isShared;
  }

  static make<Option extends string, Content>(option: Option, content: Content, isShared = false) {
    return new Part(option, content, isShared);
  }

  /** That it is for. Declarations omit private members' types; this one tells parts apart. */
  get option() {
    return this.#option;
  }

  static is(value: unknown): value is Part<string, unknown> {
    return #content in Object(value);
  }

  static contentOf<Content, Absent extends undefined = never>(part: Part<string, Content> | Absent) {
    return part && part.#content;
  }

  /** Whether it is a part that serves a gate or service already, and may serve no other. */
  static isTaken(value: unknown) {
    return Part.is(value) && value.#isUsed;
  }

  /** Whether it may be handed over as this option. */
  static rule(option: string, maker: string): Rule {
    return function checkPart(value) {
      if (!Part.is(value) || value.#option !== option) {
        return `must be a part that ${maker} makes, of the same copy of the package`;
      }
      return value.#isUsed ? TAKEN : undefined;
    };
  }

  /** From now on, a part that is not shared serves nothing else. Takes anything. */
  static use(...owners: readonly object[]) {
    for (const value of owners.flatMap(Object.values)) {
      if (Part.is(value)) value.#isUsed = !value.#isShared;
    }
  }
}

hideConstructor(Part);
