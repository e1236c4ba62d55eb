/* docs/settings.md and the samples in it, held against the reader of settings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../process/settings/every-setting.ts';
import { samplesUnder } from './pages.ts';

test('the sample of application.yml in docs/settings.md loads as it stands', () => {
  const [sample = ''] = samplesUnder('docs/settings.md', 'application.yml', 'yaml');
  const { settings, warnings } = load({ files: { 'application.yml': sample } });
  assert.deepEqual([settings.applicationName, settings.dpopMode, warnings], ['orders-api', 'REQUIRED', []]);
});
