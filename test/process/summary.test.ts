/* What a process says it runs with. In its log and its report: server.wire.test.ts, check.wire.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { summaryOf } from '../../src/process/summary.ts';
import { OWN_ROUTES } from '../../src/service/create-service.ts';
import { readServiceOptions } from '../../src/service/options.ts';
import { loadFrom, optionsOf, SERVICE_SETTINGS } from '../../src/settings/load-settings.ts';
import { DOWN } from '../support/process.ts';
import type { Environment } from '../support/settings.ts';

/** This folder has no settings files. */
const NO_SETTINGS = fileURLToPath(new URL('.', import.meta.url));

/** Of a service with these settings. */
async function summaryFor(environment: Environment, applicationName = 'orders') {
  const read = await loadFrom(SERVICE_SETTINGS, { ...DOWN, ...environment }, NO_SETTINGS);
  assert.deepEqual(read.problems, []);
  const loaded = { ...read, settings: { ...read.settings, applicationName } };
  const options = await optionsOf(loaded.settings);
  const values = readServiceOptions(options);
  return summaryOf({ kind: OWN_ROUTES, routes: { routes: [] }, loaded, options, values });
}

const PARTNER = { ISSUERS: 'partner', ISSUER_PARTNER_DOMAIN: 'partner.test', ISSUER_PARTNER_AUDIENCE: 'x' };

test('has every audience of every issuer [docs/settings.md]', async () => {
  const { audiences } = await summaryFor({ ...PARTNER, IDP_AUDIENCE: 'https://api.test, y' });
  assert.deepEqual(audiences, ['https://api.test', 'y', 'x']);
});

test('shows names whole up to 256 characters, and none that a terminal obeys [§10]', async () => {
  const long = 'x'.repeat(200);
  const issuer = `https://idp.test/${long}/`;
  const environment = { IDP_ISSUER: issuer, IDP_AUDIENCE: `${long}, ü` };
  const { application, issuers, audiences } = await summaryFor(environment, `\x1b${long}`);
  assert.deepEqual([application, issuers, audiences], [`?${long}`, [issuer], [long, '?']]);
});

test('has algorithms unless they are the defaults, each once, also those of a further issuer alone', async () => {
  const algorithms = await Promise.all(
    [
      { IDP_ALGORITHMS: 'ES256' },
      { ...PARTNER, ISSUER_PARTNER_ALGORITHMS: 'PS256' },
      { ...PARTNER, IDP_ALGORITHMS: 'PS256', ISSUER_PARTNER_ALGORITHMS: 'RS256, PS256' },
      { ...PARTNER, IDP_ALGORITHMS: 'RS256' },
    ].map(async (environment) => (await summaryFor(environment)).algorithms),
  );
  assert.deepEqual(algorithms, [['ES256'], ['RS256', 'PS256'], ['PS256', 'RS256'], undefined]);
});

test('has every form of token that an issuer is asked about, for those issuers that are asked [§22]', async () => {
  const { introspection } = await summaryFor({
    ...PARTNER,
    ISSUER_PARTNER_INTROSPECTION: 'opaque, jwt',
    ISSUER_PARTNER_INTROSPECTION_CLIENT_ID: 'orders-api',
    ISSUER_PARTNER_INTROSPECTION_CLIENT_SECRET: 'sesame',
  });
  assert.deepEqual(introspection, { partner: ['opaque', 'jwt'] });
});
