// Turns values into settings, or lists every problem. names.ts looks the values up. Promises: guesses
// nothing. Knows only `issuer` by name; the tables have the others.
import { problemOf as problemOfOption, valueOf } from '../verify/base/option.ts';
import {
  FIRST_ISSUER,
  ISSUER_NAME,
  ISSUERS_PROBLEM,
  MAX_ISSUERS,
  SAME_ISSUER,
  type IssuersByName,
} from '../verify/options.ts';
import { problemOf, TEMPLATE, throwProblem, SettingProblem, type Entry, type RawValue } from './entry.ts';
import { list } from './readers.ts';
import { ISSUER_SETTINGS, type Earlier, type Names, type Setting, type SettingsTable } from './table.ts';

export interface Lookup {
  readonly problems: string[];
  readonly issuers: Entry;
  /** The value is `null` where nothing is set. */
  readonly find: (setting: Names, issuer: string) => Entry;
  /** Reports entries that no `find` asked for. */
  readonly noteUnknown: () => void;
}

/** The settings of a table, and the trusted issuers by name. `idp` is the first. */
export type SettingsOf<Values> = Values & { readonly issuers: IssuersByName };

export function issuersIn(keys: readonly Entry[]): Entry {
  const own = keys.filter(({ name }) => /^issuers\.[^.]*\./i.test(name));
  const value = own.map(({ name }) => name.split('.')[1] ?? '');
  return { name: 'issuers', value, source: own[0]?.source ?? '' };
}

/** Imports the rule of each setting that is set. */
export async function withRules<Values>(
  table: SettingsTable<Values>,
  lookup: Lookup,
): Promise<SettingsTable<Values>> {
  const loaded: Partial<{ [Name in keyof Values]: Setting<Values[Name]> }> = {};
  for (const key in table) {
    const setting = table[key];
    const isSet = lookup.find(setting, FIRST_ISSUER).value !== null;
    const rule = isSet ? await setting.load?.() : undefined;
    loaded[key] = { ...setting, option: rule ?? setting.option };
  }
  return { ...table, ...loaded };
}

/** Adds problems to those of `lookup`; settings that have one are absent. */
export function readSettings<Values>(table: SettingsTable<Values>, lookup: Lookup): SettingsOf<Values> {
  const { problems } = lookup;
  const usedIssuers: unknown[] = [];

  /** A token names its issuer by `iss` alone. */
  function useIssuer(iss: unknown) {
    if (usedIssuers.includes(iss)) throwProblem(SAME_ISSUER);
    usedIssuers.push(iss);
  }

  function readTable<Part>(part: SettingsTable<Part>, issuer = FIRST_ISSUER) {
    const values: Partial<Part> = {};
    for (const key in part) {
      const setting = part[key];
      const entry = lookup.find(setting, issuer);
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
  return { ...values, issuers: issuers as IssuersByName };
}

function readIssuerNames({ issuers, problems }: Lookup) {
  const names = [...new Set(list()(issuers.value) as readonly string[])];
  const good = names.filter((name, index) => ISSUER_NAME.test(name) && index < MAX_ISSUERS);
  if (good.length < names.length) problems.push(problemOf(issuers, ISSUERS_PROBLEM));
  return good;
}

function readValue<Value>(setting: Setting<Value>, raw: RawValue, earlier: Earlier): Value {
  // An unreplaced `${…}` would become part of a host name or an audience.
  const isTemplate = [raw].flat().some((part) => typeof part === 'string' && part.includes('${'));
  if (isTemplate) throwProblem(TEMPLATE);

  const given = raw === null ? undefined : setting.read(raw);
  if (given === undefined && setting.byDefault !== undefined) return setting.byDefault(earlier);

  const problem = problemOfOption(setting.option, given);
  if (problem !== undefined) throwProblem(problem);

  const value = valueOf(setting.option, given);
  const misfit = given === undefined ? undefined : setting.misfit?.(value, earlier);
  return misfit === undefined ? value : throwProblem(misfit);
}
