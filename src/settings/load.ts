// Turns values into settings, or lists every problem. Promises: guesses nothing. Knows only `issuer` by name;
// the tables have the others.
import type { Rule, Rules } from '../verify/base/option.ts';
import {
  FIRST_ISSUER,
  ISSUER_NAME,
  ISSUERS_PROBLEM,
  MAX_ISSUERS,
  SAME_ISSUER,
  type IssuerOptions,
} from '../verify/options.ts';
import { SERVICE_DEFAULTS, SERVICE_RULES } from '../service/options.ts';
import {
  find,
  list,
  problemOf,
  SettingProblem,
  TEMPLATE,
  throwProblem,
  type Earlier,
  type Entry,
  type RawValue,
} from './entry.ts';
import { findSetting, namesFor, reportKeys, reportVariables } from './names.ts';
import type { FoundEntries } from './sources.ts';
import { ISSUER_SETTINGS, type Names, type Setting, type SettingsTable, type ValuesOf } from './table.ts';

/** The trusted issuers by name, beside the settings of a table. `idp` is the first. */
export interface WithIssuers {
  readonly issuers: Readonly<Record<string, IssuerSettings>>;
}

/** Options of an issuer, and the settings of its parts. */
export interface IssuerSettings
  extends IssuerOptions, Omit<ValuesOf<typeof ISSUER_SETTINGS>, keyof IssuerOptions> {}

/** Such a token does not say whose it is. */
const ONE_OPAQUE = 'must not have opaque for a second issuer; remove it from one';

/** Kubernetes and Docker set such values, for a service that is named like a setting. */
const OF_A_SERVICE =
  'begins with tcp://, like the variable of another service; correct it, or rename that service';

type Row = readonly [key: string, setting: Setting<unknown>];

/** All rules, those of parts only if their settings are set. */
export async function importRules(table: SettingsTable, found: FoundEntries): Promise<Rules> {
  const rules: Record<string, Rule> = { ...SERVICE_RULES };
  const { good } = issuerNamesIn(found);
  const ofIssuers = [FIRST_ISSUER, ...good].flatMap(rowsOf);
  for (const [key, setting] of [...ofIssuers, ...Object.entries(table)]) {
    const { value } = findSetting(found, setting);
    const rule = value === null ? undefined : await setting.importRule?.(value);
    if (rule !== undefined) rules[key] = rule;
  }
  return rules;
}

/** The settings of an issuer, under its own names. */
const rowsOf = (issuer: string): readonly Row[] =>
  Object.entries<Setting<unknown>>(ISSUER_SETTINGS).map(([key, row]) => [
    key,
    { ...row, ...namesFor(row, issuer) },
  ]);

/**
 * Adds problems to those that were found. Settings that have one are absent, and so are those that may be in
 * a file that could not be read.
 */
export function readSettings(table: SettingsTable, found: FoundEntries, rules: Rules): WithIssuers {
  const reader = new TableReader(found, rules);
  const names = [FIRST_ISSUER, ...readIssuerNames(found)];
  const tables = names.map((name) => [name, reader.readTable(rowsOf(name))]);
  const issuers = Object.fromEntries(tables);
  const values = reader.readTable(Object.entries(table), { issuers });
  reportVariables(found, reader.known);
  reportKeys(found, reader.known);
  return { ...values, issuers: issuers as WithIssuers['issuers'] };
}

class TableReader {
  readonly #found;
  readonly #rules;
  /** The settings that were looked for. */
  readonly known: Names[] = [];
  /** What may stand only once. */
  readonly #used: unknown[] = [];

  constructor(found: FoundEntries, rules: Rules) {
    this.#found = found;
    this.#rules = rules;
  }

  /** A token names its issuer by `iss` alone, and an opaque one by nothing. */
  #useOnce(what: unknown, problem: string) {
    if (this.#used.includes(what)) throwProblem(problem);
    this.#used.push(what);
  }

  readTable(rows: readonly Row[], values: Record<string, unknown> = {}) {
    for (const [key, row] of rows) {
      const entry = findSetting(this.#found, row);
      this.known.push(row);
      // It may be in the file that could not be read.
      if (!entry.source) continue;
      try {
        const value = this.#readValue(key, row, entry.value, values);
        if (key === 'issuer' && value) this.#useOnce(value, SAME_ISSUER);
        if (key === 'introspectionTokens' && [value].flat().includes('opaque')) {
          this.#useOnce('opaque', ONE_OPAQUE);
        }
        values[key] = value;
      } catch (error) {
        if (!(error instanceof SettingProblem)) throw error;

        this.#found.problems.push(problemOf(entry, error.message));
      }
    }
    return values;
  }

  #readValue(key: string, setting: Setting<unknown>, raw: RawValue, earlier: Earlier) {
    // An unreplaced `${…}` would become part of a host name or an audience.
    const text = String(raw);
    if (text.includes('${')) throwProblem(TEMPLATE);

    const value = raw === null ? undefined : setting.read(raw);
    if (value === undefined) return setting.byDefault?.(earlier) ?? Reflect.get(SERVICE_DEFAULTS, key);

    const { rule = this.#rules[key] } = setting;
    const wrong = rule?.(value) ?? (text.startsWith('tcp://') ? OF_A_SERVICE : undefined);
    const problems = both(wrong, setting.misfit?.(value, earlier));
    return problems === '' ? value : throwProblem(problems);
  }
}

/** Joins a value's own problem and its conflict with other values. Empty if it has neither. */
function both(wrong = '', unfit = wrong) {
  return unfit.startsWith(wrong) ? unfit : `${wrong}; ${unfit}`;
}

function readIssuerNames(found: FoundEntries) {
  const { issuers, names, good } = issuerNamesIn(found);
  const problem = String(names).includes('${') ? TEMPLATE : ISSUERS_PROBLEM;
  if (good.length < names.length) found.problems.push(problemOf(issuers, problem));
  return good;
}

function issuerNamesIn({ variables, keys }: FoundEntries) {
  const issuers = find(variables, 'ISSUERS') ?? issuersIn(keys);
  const names = list()(issuers.value);
  const good = names.filter((name, index) => ISSUER_NAME.test(name) && index < MAX_ISSUERS);
  return { issuers, names, good };
}

function issuersIn(keys: readonly Entry[]): Entry {
  const own = keys.filter(({ name }) => /^issuers\.[^.]*\./i.test(name));
  const value = own.map(({ name }) => name.split('.')[1] ?? '');
  return { name: 'issuers', value, source: own[0]?.source ?? '' };
}
