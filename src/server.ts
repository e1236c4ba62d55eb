#!/usr/bin/env node
// The program: a service with profile A or B.
import { loadProfileSettings } from './profiles/settings.ts';
import { routesOf } from './profiles/routes.ts';
import { runWith } from './process/run.ts';

runWith((...sources) => {
  const loaded = loadProfileSettings(...sources);
  return { loaded, routes: routesOf(loaded.settings), name: loaded.settings.profile };
});
