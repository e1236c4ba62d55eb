/* The routes that the settings choose. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routesOf } from '../../src/profiles/routes.ts';
import type { ProfileSettings } from '../../src/profiles/settings.ts';

const pathsOf = (settings: Partial<ProfileSettings>) =>
  routesOf(settings as ProfileSettings).routes.map(({ pattern }) => pattern);

test('are those of profile B while the settings that choose them have problems, which are reported with those of the routes', () => {
  const ofB = pathsOf({ profile: 'B', orgId: 'org_1' });
  assert.ok(ofB.includes('/api/roles'));
  assert.deepEqual(pathsOf({}), ofB);
  assert.deepEqual(pathsOf({ profile: 'B' }), ofB);
});
