// Looks up settings in the environment and in files. Promises: an unknown name that may be a misspelt
// safeguard is a problem; in the environment, which other programs share, a warning.
import { find, noteUnknown, problemOf, squeezed } from './entry.ts';
import { FIRST_ISSUER } from '../verify/options.ts';
import { issuersIn, type Lookup } from './load.ts';
import type { FoundEntries } from './sources.ts';
import type { Names } from './table.ts';

/** Not `ISSUER_` alone: other tools use it too. */
const PREFIXES = /\b(IDP|CORS|RESOURCE|METRICS|CLIENT_CERT|REVOCATION|ISSUER_[^_]+)_/g;

/** Safeguards of other versions: one that is silently ignored would be no safeguard. */
const RESERVED = ['CLIENT_CERT_', 'REVOCATION_'];

const SECTIONS = /^"?(idp|issuers|api|cors|resource|metrics|server|log|profile)(\.|$)/i;

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

function prefixesOf(names: readonly string[]) {
  return [...RESERVED, ...names].join().match(PREFIXES) ?? [];
}

/** Variables win over keys of YAML. */
export function createLookup({ variables, keys, lookedIn, problems, ...found }: FoundEntries): Lookup {
  const { warnings, strays } = found;
  const known: Names[] = [];

  function noteVariables() {
    // Some settings have no variable.
    const names = ['CONFIG_FILE', 'ISSUERS', ...known.map(({ env }) => env)].filter(Boolean);
    const prefixes = prefixesOf(names);
    const spellings = new Set(names.map(squeezed));

    for (const entry of variables) {
      const name = entry.name.toUpperCase();
      const isMeant = spellings.has(squeezed(name)) || prefixes.some((prefix) => name.startsWith(prefix));
      const isWarning = entry.source === 'environment';
      const isTorn = entry.name.includes('\n');
      if (isTorn) problems.push(problemOf({ ...entry, name: 'a name of several lines' }, TORN));
      else if (isMeant) noteUnknown(entry, names, isWarning ? strays : problems);
    }
  }

  function noteKeys() {
    const names = known.map(({ env, yaml }) => yaml || `${env} in the environment only`);
    for (const entry of keys) noteUnknown(entry, names, SECTIONS.test(entry.name) ? problems : warnings);
  }

  return {
    problems,
    issuers: find(variables, 'ISSUERS') ?? issuersIn(keys),

    find(setting, issuer) {
      const names = namesFor(setting, issuer);
      const { env, yaml } = names;
      known.push(names);
      const missing = { name: `${env} or ${yaml}`, value: null, source: lookedIn };
      return find(variables, env) ?? find(keys, yaml) ?? missing;
    },

    noteUnknown() {
      noteVariables();
      noteKeys();
    },
  };
}
