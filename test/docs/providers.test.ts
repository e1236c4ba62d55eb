/* The settings that docs/providers.md shows for each provider load, and its table says the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnv } from 'node:util';
import { settingsFrom, type Environment } from '../support/service.ts';
import { codeIn, samplesUnder, tableUnder } from './pages.ts';

const PAGE = 'docs/providers.md';

/** Heading, issuer, audience and algorithms of a row; `–` stands for the default. */
const rows = tableUnder(PAGE, 'At a glance').map(([provider = '', issuer = '', audience = '', list = '']) => {
  const [, heading = ''] = /^\[(.+?)\]/.exec(provider) ?? [];
  return { heading, issuer, audience, list };
});

/** Replaces what stands in angle brackets, which readers fill in. */
const filled = (text: string) => text.replaceAll(/<[^>]+>/g, 'a1');

const DASH = '–';

/** Whether a cell shows this value, or a dash where there is none. */
const shows = (cell: string, value: string | undefined) =>
  value === undefined ? cell === DASH : codeIn(cell).includes(value);

test('docs/providers.md has a row and a section for each of nine providers', () => {
  assert.equal(rows.length, 9);
  for (const { heading } of rows) assert.equal(samplesUnder(PAGE, heading, 'sh').length, 1, heading);
});

for (const { heading, issuer, audience, list } of rows) {
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
    assert.ok(shows(issuer, named), issuer.concat(' ', String(named)));
    assert.ok(shows(list, written.IDP_ALGORITHMS), list);
    assert.ok(audience !== DASH && written.IDP_AUDIENCE !== undefined);
  });
}
