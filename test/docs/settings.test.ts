/* The sample in docs/settings.md loads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../settings/every-setting.ts';
import { samplesUnder } from './pages.ts';

test('the sample application.yml of docs/settings.md loads', () => {
  const [sample = ''] = samplesUnder('docs/settings.md', 'application.yml', 'yaml');
  const { settings, warnings } = load({ files: { 'application.yml': sample } });
  assert.deepEqual([settings.applicationName, settings.dpopMode, warnings], ['orders-api', 'REQUIRED', []]);
});
