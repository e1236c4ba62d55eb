#!/usr/bin/env node
// The door of the service with one of the two profiles.
import { loadProfileSettings } from './profiles/settings.ts';
import { tableOf } from './profiles/tables.ts';
import { runWith } from './process/run.ts';

runWith((...sources) => {
  const loaded = loadProfileSettings(...sources);
  return { loaded, table: tableOf(loaded.settings), name: loaded.settings.profile };
});
