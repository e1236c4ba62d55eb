// Looks up settings in the environment and in files. Promises: an unknown name that may be a misspelt
// safeguard is rejected; in the environment, which other programs share, it is a warning.
import { FIRST_ISSUER } from '../verify/options.ts';
import { find, problemOf, type Entry } from './entry.ts';
import type { FoundEntries } from './sources.ts';
import type { Names } from './table.ts';

/** Not `ISSUER_` alone: other tools use it too. */
const PREFIXES = /\b(IDP|CORS|RESOURCE|METRICS|CLIENT_CERT|REVOCATION|ISSUER_[^_]+)_/g;

/** Groups 2 and 3 are those of a section: `profile` is a key by itself. */
const SECTIONS = /^"?(profile(?:\.|$)|(idp|issuers|api|cors|resource|metrics|revocation|server|log)(\.|$))/i;

// With --env-file, Node 20 may join lines, secrets too, into one name (CWE-532).
const TORN = 'is not a setting; correct the lines above it, which became a part of its name';

/** For `partner`, `IDP_DOMAIN` is `ISSUER_PARTNER_DOMAIN`, and `idp.domain` is `issuers.partner.domain`. */
export function namesFor({ env, yaml }: Names, issuer: string): Names {
  if (issuer === FIRST_ISSUER) return { env, yaml };

  return {
    env: env.replace('IDP_', `ISSUER_${issuer.toUpperCase()}_`),
    yaml: yaml.replace('idp.', `issuers.${issuer}.`),
  };
}

/** Variables win over keys of YAML. The value is `null` where nothing is set. */
export function findSetting({ variables, keys, lookedIn }: FoundEntries, { env, yaml }: Names): Entry {
  const missing = { name: `${env} or ${yaml}`, value: null, source: lookedIn };
  return find(variables, env) ?? find(keys, yaml) ?? missing;
}

/** Names that differ only in case or underscores are the same. */
const squeezed = (name: string) => name.toLowerCase().replaceAll('_', '');

/** Reports variables that have none of the known names. */
export function reportVariables({ variables, problems, strays }: FoundEntries, known: readonly Names[]) {
  // Some settings have no variable.
  const names = ['CONFIG_FILE', 'ISSUERS', ...known.map(({ env }) => env)].filter(Boolean);
  const prefixes = names.join().match(PREFIXES);
  const spellings = names.map(squeezed);

  for (const entry of variables) {
    const name = entry.name.toUpperCase();
    const isOurs = spellings.includes(squeezed(name)) || prefixes?.some((one) => name.startsWith(one));
    const isTorn = entry.name.includes('\n');
    if (isTorn) problems.push(problemOf({ ...entry, name: 'a name of several lines' }, TORN));
    else if (isOurs) reportName(entry, names, entry.source === 'environment' ? strays : problems);
  }
}

/** Reports YAML keys that have none of the known names. */
export function reportKeys({ keys, problems, warnings }: FoundEntries, known: readonly Names[]) {
  const paths = known.map(({ env, yaml }) => yaml || `${env} in the environment only`);
  for (const entry of keys) {
    reportName(entry, paths, SECTIONS.test(entry.name) ? problems : warnings);
  }
}

/** A known name may be followed by a space and advice. */
function reportName(entry: Entry, known: readonly string[], reports: string[]) {
  const { name, value } = entry;
  const isEmptySection = value === null && /^(?!profile$)[^.A-Z]*$/.test(name);
  if (known.includes(name) || isEmptySection) return;

  const written = squeezed(name);
  const isSection = SECTIONS.exec(name)?.[3] === '' && name !== written;
  const setting = known.find((one) => squeezed(one).replace(/ .*/, '') === written);
  const right = setting ?? (isSection && written);
  const usual = /^issuers\..*\./.test(name)
    ? 'if ISSUERS does not list its issuer, add the issuer; otherwise correct'
    : 'correct';
  const spelling = right ? `write ${right}` : usual;
  const fix = /(^|\.)"/.test(name) ? 'nest the keys that its dots separate,' : spelling;
  reports.push(problemOf(entry, `is not a setting; ${fix} or remove it`));
}
