/* Each provider of docs/providers.md has settings there, and they load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnv } from 'node:util';
import { authenticated, createGate } from '../../src/gate.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { makeIssuer } from '../support/issuer.ts';
import { settingsFrom, type Environment } from '../support/settings.ts';
import { read, samplesUnder } from './pages.ts';

const PAGE = 'docs/providers.md';

const sections = [...read(PAGE).matchAll(/^## (?!Any other)(.+)$/gm)].map(([, heading = '']) => heading);

/** The sections that begin with settings of a provider. */
const described = [...read(PAGE).matchAll(/^## (.+)\n\n```sh$/gm)].map(([, heading = '']) => heading);

/** Replaces what stands in angle brackets, which readers fill in. */
const filled = (text: string) => text.replaceAll(/<[^>]+>/g, 'a1');

test('docs/providers.md begins the section of each provider with its settings', () => {
  assert.ok(sections.length >= 15);
  assert.deepEqual(sections, described);
});

for (const heading of described) {
  const [sample = ''] = samplesUnder(PAGE, heading, 'sh');
  const written = parseEnv(sample) as Environment;

  test(`the settings for ${heading} load, with an issuer on the configured domain and the configured algorithms`, () => {
    const { issuers } = settingsFrom(parseEnv(filled(sample)) as Environment);
    const settings = issuers.idp!;
    assert.equal(new URL(settings.issuer).host, settings.domain);
    assert.deepEqual(settings.algorithms, [written.IDP_ALGORITHMS ?? 'RS256']);
  });
}

test('an API at the root of its host accepts tokens for its URL with and without the trailing slash [RFC 7519 §4.1.3]', async () => {
  const [sample = ''] = samplesUnder(PAGE, 'An API at the root of its host', 'sh');
  const { RESOURCE_URL = '', ...settings } = parseEnv(sample) as Environment;
  const issuer = makeIssuer();
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
