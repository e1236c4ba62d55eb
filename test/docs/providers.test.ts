/* The settings that docs/providers.md shows for each provider load, and its table says the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnv } from 'node:util';
import { authenticated, createGate } from '../../src/gate.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { createTestIssuer } from '../../src/testing.ts';
import { settingsFrom, type Environment } from '../support/service.ts';
import { codeIn, samplesUnder, tableUnder } from './pages.ts';

const PAGE = 'docs/providers.md';

/** Heading, issuer, audience, algorithms and other settings of a row; `–` stands for the default. */
const rows = tableUnder(PAGE, 'At a glance').map((cells) => {
  const [provider = '', issuer = '', audience = '', list = '', besides = ''] = cells;
  const [, heading = ''] = /^\[(.+?)\]/.exec(provider) ?? [];
  return { heading, issuer, audience, list, besides };
});

/** They have columns of their own; `IDP_DOMAIN` follows from the issuer. */
const COLUMNS = ['IDP_DOMAIN', 'IDP_ISSUER', 'IDP_AUDIENCE', 'IDP_ALGORITHMS'];

/** Replaces what stands in angle brackets, which readers fill in. */
const filled = (text: string) => text.replaceAll(/<[^>]+>/g, 'a1');

const DASH = '–';

/** Whether a cell shows this value, or a dash where there is none. */
const shows = (cell: string, value: string | undefined) =>
  value === undefined ? cell === DASH : codeIn(cell).includes(value);

test('docs/providers.md has a row and a section for each provider', () => {
  assert.equal(rows.length, 15);
  for (const { heading } of rows) assert.equal(samplesUnder(PAGE, heading, 'sh').length, 1, heading);
});

for (const { heading, issuer, audience, list, besides } of rows) {
  const [sample = ''] = samplesUnder(PAGE, heading, 'sh');
  const written = parseEnv(sample) as Environment;

  test(`the settings for ${heading} load, with an issuer on the configured domain and the configured algorithms`, () => {
    const { issuers } = settingsFrom(parseEnv(filled(sample)) as Environment);
    const settings = issuers.idp!;
    assert.equal(new URL(settings.issuer).host, settings.domain);
    assert.deepEqual(settings.algorithms, [written.IDP_ALGORITHMS ?? 'RS256']);
  });

  test(`the table and the section of ${heading} agree`, () => {
    const host = written.IDP_DOMAIN ?? '';
    const named = written.IDP_ISSUER?.replace(host, host.includes('.example.') ? '<host>' : host);
    const others = Object.entries(written).filter(([name]) => !COLUMNS.includes(name));
    assert.ok(shows(issuer, named), issuer.concat(' ', String(named)));
    assert.ok(shows(list, written.IDP_ALGORITHMS), list);
    assert.ok(audience !== DASH && written.IDP_AUDIENCE !== undefined);
    const shown = codeIn(besides).map((setting) => setting.split('='));
    assert.deepEqual(
      shown.map(([name, value]) => [name, value ?? written[name!]]),
      others,
    );
  });
}

test('an API at the root of its host accepts tokens for its URL with and without the final slash [RFC 7519 §4.1.3]', async () => {
  const [sample = ''] = samplesUnder(PAGE, 'An API at the root of its host', 'sh');
  const { RESOURCE_URL = '', ...settings } = parseEnv(sample) as Environment;
  const issuer = createTestIssuer();
  const audience = settings.IDP_AUDIENCE?.split(',') ?? [];
  assert.deepEqual(audience, [RESOURCE_URL, new URL(RESOURCE_URL).href]);
  const metadata = resourceMetadata({ url: RESOURCE_URL });
  const gate = createGate({ ...issuer.options, audience, metadata });

  const admits = async (aud: string) => {
    const { authorization } = issuer.bearer({ aud });
    const rawHeaders = ['Host', 'api.example.com', 'Authorization', authorization];
    const { caller } = await gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
    return caller !== undefined;
  };

  assert.deepEqual(await Promise.all(audience.map(admits)), [true, true]);
  assert.equal(await admits(`${RESOURCE_URL}//`), false);
});
