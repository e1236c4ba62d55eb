/* `.env.example` has every setting with its key, and values that load. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CERTIFICATE_DEFAULTS } from '../../src/options/certificates/certificates.ts';
import { CORS_DEFAULTS } from '../../src/options/cors.ts';
import { PROFILE_SETTINGS } from '../../src/profiles/settings.ts';
import { namesFor } from '../../src/settings/names.ts';
import { SERVICE_SETTINGS } from '../../src/settings/load-settings.ts';
import { ISSUER_SETTINGS } from '../../src/settings/table.ts';
import { load, SETTINGS } from './every-setting.ts';

const EXAMPLE = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');

/** Every assignment with the comment above it. */
const assignments = [...EXAMPLE.matchAll(/((?:^#.*\n)+?)?^(# )?([A-Z_]+)=(.*)$/gm)].map(
  ([, comment = '', hash = '', name = '', value = '']) => ({ comment, isOff: hash !== '', name, value }),
);

test('.env.example names exactly the existing settings, each once', () => {
  const tables = Object.values({ ...ISSUER_SETTINGS, ...SERVICE_SETTINGS, ...PROFILE_SETTINGS }).flatMap(
    ({ env }) => env || [],
  );
  const partners = Object.values(ISSUER_SETTINGS).map((names) => namesFor(names, 'partner').env);
  const others = ['CONFIG_FILE', 'ISSUERS', ...partners];
  const names = assignments.map(({ name }) => name).sort();
  assert.deepEqual(names, [...tables, ...others].sort());
  assert.deepEqual(names, [...others, ...SETTINGS.flatMap(({ env }) => env ?? [])].sort());
});

test('.env.example comments out all but the required settings', () => {
  assert.deepEqual(
    assignments.filter(({ isOff }) => !isOff).map(({ name }) => name),
    ['IDP_DOMAIN', 'IDP_AUDIENCE'],
  );
});

for (const { name, comment } of assignments) {
  test(`.env.example gives ${name} its key in application.yml, its meaning and its default`, () => {
    const own = SETTINGS.find(({ env }) => env === name.replace('ISSUER_PARTNER', 'IDP'))?.yaml;
    const yaml = name.startsWith('ISSUER_') ? own?.replace('idp', 'issuers.partner') : own;
    if (name === 'ISSUERS') return assert.match(comment, /^# \[issuers\] /);

    assert.equal(/^# \[(.*?)\] /.exec(comment)?.[1], yaml);
    assert.match(comment, /Default: .+\.\n$/);
  });
}

test('.env.example names the key of the application name and its default', () => {
  assert.match(
    EXAMPLE,
    /application\.name \(or spring\.application\.name\) in application\.yml, default gatehouse\./,
  );
});

test('.env.example loads unchanged', () => {
  const { settings, warnings } = load({ files: { '.env': EXAMPLE } });
  assert.deepEqual(
    [settings.issuers.idp?.domain, settings.issuers.idp?.audience, warnings],
    ['your-tenant.example.com', ['https://api.example.com'], []],
  );
});

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** With files that exist. */
const uncommented = EXAMPLE.replace(/^# (?=[A-Z_]+=)/gm, '')
  .replace(/(?<=_TOKEN_FILE=).*/g, file('token-1.txt'))
  .replace(/(?<=_CA_FILE=).*/g, file('../idp/tls/authority.pem'))
  .replace(/(?<=^IDP_ISSUER=).*/m, 'https://idp.test/{tenant}/')
  .replace(/(?<=^ISSUER_PARTNER_ISSUER=).*/m, 'https://partner.test/{tenant}/')
  // A template has no introspection.
  .replace(/^.*_INTROSPECTION.*=.*\n/gm, '');

test('.env.example loads with every setting turned on', () => {
  const { settings } = load({ files: { '.env': uncommented, 'application.yml': '' } });
  assert.equal(settings.host, '127.0.0.1');
  assert.deepEqual(Object.keys(settings.issuers), ['idp', 'partner']);
  assert.deepEqual(settings.corsAllowedOrigins, ['https://app.example.com', 'https://admin.example.com']);
});

test('.env.example shows the default of every setting that has one', () => {
  // Without tenants, their claim is rejected, and so is what belongs to introspection.
  const withDefault = assignments
    .filter(({ comment, name }) => !/Default: none/.test(comment) || name.startsWith('IDP_DOMAIN'))
    .filter(({ name }) => !/_TENANT_CLAIM$|_INTROSPECTION_/.test(name));
  const shown = withDefault.map(({ name, value }) => `${name}=${value}\n`).join('');
  const audience = 'IDP_AUDIENCE=https://api.example.com\n';
  const files = { '.env': audience + shown, 'application.yml': '' };
  const { corsAllowCredentials, clientCertRequired, ...expected } = load({
    files: { '.env': EXAMPLE },
  }).settings;
  assert.deepEqual(load({ files }).settings, {
    ...expected,
    corsAllowCredentials: CORS_DEFAULTS.credentials,
    clientCertRequired: CERTIFICATE_DEFAULTS.required,
  });
  // Their parts have the defaults.
  assert.deepEqual([corsAllowCredentials, clientCertRequired], [undefined, undefined]);
});
