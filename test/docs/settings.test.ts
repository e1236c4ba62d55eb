/* The sample in docs/settings.md loads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROFILE_SETTINGS } from '../../src/profiles/settings.ts';
import { SERVICE_SETTINGS } from '../../src/settings/load-settings.ts';
import { load } from '../settings/every-setting.ts';
import { read, samplesUnder } from './pages.ts';

test('the sample application.yml of docs/settings.md loads', () => {
  const [sample = ''] = samplesUnder('docs/settings.md', 'application.yml', 'yaml');
  const { settings, warnings } = load({ files: { 'application.yml': sample } });
  assert.deepEqual([settings.applicationName, settings.dpopMode, warnings], ['orders-api', 'REQUIRED', []]);
});

test('docs/settings.md names the settings that a service with its own routes does not have', () => {
  const only = Object.entries(PROFILE_SETTINGS).filter(([name]) => !(name in SERVICE_SETTINGS));
  const [sentence = ''] = /^Only the \[sample API\].*$/m.exec(read('docs/settings.md')) ?? [];
  const unnamed = only
    .map(([, { env }]) => env)
    .filter((name) => name !== 'PROFILE' && !sentence.includes(name));
  assert.deepEqual([only.length, unnamed], [3, []]);
});
