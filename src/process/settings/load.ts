// Turns values into settings, or lists every problem. in-code.ts and names.ts look the values up. Promises:
// guesses nothing. Knows only `issuer` by name; the tables have the others.
import { ConfigurationError } from '../../gate/configuration-error.ts';
import { problemOf, TEMPLATE, throwProblem, SettingProblem, type Entry, type RawValue } from './entry.ts';
import { list, text, type Earlier } from './readers.ts';
import {
  ISSUER_SETTINGS,
  type BASIC_SETTINGS,
  type Names,
  type Setting,
  type SettingsTable,
} from './table.ts';

export type ValuesOf<Table> = Table extends SettingsTable<infer Values> ? Values : never;

/** The settings without those of the options. Names of times and sizes end in the unit. */
export interface BasicSettings extends Readonly<
  ReturnType<typeof readSettings<ValuesOf<typeof BASIC_SETTINGS>>>
> {}

export type IssuerSettings = BasicSettings['issuers'][string];

/** Those that routes and arguments depend on, without invalid ones. */
export type SomeSettings = Readonly<{ resourceUrl?: unknown; port?: unknown }>;

/** `strays` are names in the environment that may be misspelt settings. */
export type ProblemsWith = (settings: SomeSettings, strays?: readonly string[]) => readonly string[];

export interface Lookup {
  readonly problems: string[];
  readonly issuers: Entry;
  /** The value is `null` where nothing is set. `key` is the name in code. */
  readonly find: (setting: Names, issuer: string, key: string) => Entry;
  /** Reports entries that no `find` asked for. */
  readonly noteUnknown: () => void;
}

export const FIRST_ISSUER = 'idp';

const ISSUER_NAME = /^(?!idp$)[a-z][a-z0-9]{0,15}$/;

const ISSUERS_PROBLEM =
  'must be up to 20 names in lower case, each a letter and up to 15 letters or digits; none may be idp';

export function issuersIn(keys: readonly Entry[]): Entry {
  const own = keys.filter(({ name }) => /^issuers\.[^.]*\./i.test(name));
  const value = own.map(({ name }) => name.split('.')[1] ?? '');
  return { name: 'issuers', value, source: own[0]?.source ?? '' };
}

/** Throws `ConfigurationError`. */
export function readSettings<Values extends Record<string, unknown>>(
  table: SettingsTable<Values>,
  lookup: Lookup,
  problemsWith: ProblemsWith = () => [],
) {
  const { problems } = lookup;
  const usedIssuers: unknown[] = [];

  /** A token names its issuer by `iss` alone. */
  function useIssuer(iss: unknown) {
    if (usedIssuers.includes(iss)) throwProblem('is also the issuer (iss) of another; give each its own');
    usedIssuers.push(iss);
  }

  function readTable<Part extends Record<string, unknown>>(part: SettingsTable<Part>, issuer = FIRST_ISSUER) {
    const values: Partial<Part> = {};
    for (const key in part) {
      const setting = part[key];
      const entry = lookup.find(setting, issuer, key);
      try {
        const value = readValue(setting, entry.value, values);
        values[key] = value;
        if (key === 'issuer' && value) useIssuer(value);
      } catch (error) {
        if (!(error instanceof SettingProblem)) throw error;

        // No source: perhaps it is in a file that could not be read.
        if (entry.source) problems.push(problemOf(entry, error.message));
      }
    }

    return values as Part;
  }

  const names = [FIRST_ISSUER, ...readIssuerNames(lookup)];
  const issuers = Object.fromEntries(names.map((name) => [name, readTable(ISSUER_SETTINGS, name)]));
  const values = readTable(table);
  lookup.noteUnknown();
  const all = [...problemsWith(values), ...problems];
  if (all.length > 0) throw new ConfigurationError(all);

  return {
    ...values,
    /** The trusted issuers by name. `idp` is the first. */
    issuers,
  };
}

function readIssuerNames({ issuers, problems }: Lookup) {
  const names = [...new Set(list(text)(issuers.value))];
  const good = names.filter((name, index) => ISSUER_NAME.test(name) && index < 20);
  if (good.length < names.length) problems.push(problemOf(issuers, ISSUERS_PROBLEM));
  return good;
}

function readValue<Value>(setting: Setting<Value>, raw: RawValue, earlier: Earlier): Value {
  if (raw === null) return setting.byDefault(earlier);
  // An unreplaced `${…}` would become part of a host name or an audience.
  const isTemplate = [raw].flat().some((part) => typeof part === 'string' && part.includes('${'));
  if (isTemplate) throwProblem(TEMPLATE);
  return setting.read(raw, earlier);
}
