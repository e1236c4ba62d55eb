// The issuers: which there are beside the first, by the names that ISSUERS or the map `issuers` of YAML gives
// them, and what their settings are called. Does not read their values: load.ts does.
import { problemOf } from './entry.ts';
import { list, text } from './readers.ts';
import { find, type Sources } from './sources.ts';
import type { Names } from './table.ts';

/** The name of the first. */
export const FIRST = 'idp';

const NAME = /^(?!idp$)[a-z][a-z0-9]{0,15}$/;

const FAULT = 'must be up to 20 names, each a letter and up to 15 letters or digits, all small, not idp';

/** What a setting is called for an issuer. */
export function namesFor(issuer: string, names: Names): Names {
  if (issuer === FIRST) return names;

  return {
    env: names.env.replace('IDP', `ISSUER_${issuer.toUpperCase()}`),
    yaml: names.yaml.replace('idp', `issuers.${issuer}`),
  };
}

/** The names of the others: those in ISSUERS, else those in the map. */
export function readNames({ variables, keys, problems }: Sources): readonly string[] {
  const own = keys.filter(({ name }) => /^issuers\.[^.]*\./i.test(name));
  const value = own.map(({ name }) => name.split('.')[1] ?? '');
  const map = { name: 'issuers', value, place: own[0]?.place ?? '' };

  const entry = find(variables, 'ISSUERS') ?? map;
  const names = [...new Set(list(text)(entry.value))];
  const good = names.filter((name, index) => NAME.test(name) && index < 20);
  if (good.length < names.length) problems.push(problemOf(entry, FAULT));
  return good;
}
