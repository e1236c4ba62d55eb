/* The table of settings: names and defaults from the code, meanings from .env.example. */
import { CERTIFICATE_DEFAULTS } from '../../src/options/certificates/certificates.ts';
import { CORS_DEFAULTS } from '../../src/options/cors.ts';
import { INTROSPECTION_DEFAULTS } from '../../src/options/introspection/introspection.ts';
import { LOG_DEFAULTS } from '../../src/options/log.ts';
import { PROFILE_SETTINGS } from '../../src/profiles/settings.ts';
import { TENANTS_DEFAULTS } from '../../src/options/tenants/tenants.ts';
import { SERVICE_DEFAULTS } from '../../src/service/options.ts';
import { ISSUER_SETTINGS, type Setting } from '../../src/settings/table.ts';
import { issuerOf } from '../../src/verify/options.ts';
import { read } from './pages.ts';
import { code, withKept, type Cells } from './tables.ts';

/** The meaning of each setting, by environment name: the comment above its line, without key and default. */
function readMeanings(): ReadonlyMap<string, string> {
  const lines = read('.env.example').matchAll(/((?:^# .*\n)+)^(?:# )?([A-Z_]+)=/gm);
  return new Map(
    [...lines].map(([, comment = '', name = '']) => {
      const text = comment.replace(/^# /gm, '').replaceAll('\n', ' ');
      return [name, text.replace(/^\[.*?\] /, '').replace(/ Default: .*$/, '')];
    }),
  );
}

function shown(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '');
  return text === '' ? '' : code(text);
}

const { profile, ...others } = PROFILE_SETTINGS;

/** The settings of the first issuer, among those of the service. */
const ROWS = { profile, ...ISSUER_SETTINGS, ...others };

/** Defaults that the rows do not repeat: those of options. */
const OF_OPTIONS: Readonly<Record<string, unknown>> = {
  ...issuerOf({ domain: '<domain>', audience: '' }),
  ...SERVICE_DEFAULTS,
  logLevel: LOG_DEFAULTS.level,
  accessLog: LOG_DEFAULTS.access,
  errorMessages: LOG_DEFAULTS.errorMessages,
  tenantClaim: TENANTS_DEFAULTS.claim,
  clientCertRequired: CERTIFICATE_DEFAULTS.required,
  corsAllowCredentials: CORS_DEFAULTS.credentials,
  introspectionAudience: INTROSPECTION_DEFAULTS.audience,
  introspectionCacheSeconds: INTROSPECTION_DEFAULTS.cacheSeconds,
};

const REQUIRED = ['domain', 'audience'];

/** The defaults, in the order of the table. */
function readDefaults(profile: string): readonly string[] {
  const earlier: Record<string, unknown> = { profile, domain: '<domain>' };
  return Object.entries<Setting<any>>(ROWS).map(([name, { byDefault }]) => {
    if (REQUIRED.includes(name)) return 'required';
    const usual = byDefault?.(earlier) ?? OF_OPTIONS[name];
    earlier[name] ??= usual;
    return shown(usual);
  });
}

/** With one's own routes, the default is that of the option; one profile has another. */
const byProfile = (own: string, a: string, b: string) =>
  own === b ? `${own}; ${a} in profile A` : `${own}; ${b} in profile B`;

/** Escapes Markdown. */
const plain = (text: string) => text.replaceAll('<', '&lt;').replaceAll('*', '\\*');

export function settingsTable(written: readonly Cells[]): string {
  const meanings = readMeanings();
  const inA = readDefaults('A');
  const inB = readDefaults('B');
  const derived = Object.entries<Setting<any>>(ROWS).map(([name, row], index) => {
    const names = [row.env, row.yaml].filter((name) => name !== '').map(code);
    const a = inA[index] ?? '';
    const b = inB[index] ?? '';
    const meaning = meanings.get(row.env);
    const isB = a === b || row.env === 'PROFILE';
    const cells = [names.join('<br>'), isB ? b : byProfile(shown(OF_OPTIONS[name]), a, b)];
    return meaning === undefined ? cells : [...cells, plain(meaning)];
  });
  const others = [
    '`ISSUERS`, `ISSUER_<NAME>_…`<br>`issuers.<name>.…`',
    '',
    plain(meanings.get('ISSUERS') ?? ''),
  ];
  return withKept(['setting', 'default', 'meaning'], [...derived, others], written);
}
