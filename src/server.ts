#!/usr/bin/env node
// The program: a service with profile A or B.
import { runWith } from './process/run.ts';
import { routesOf } from './profiles/routes.ts';
import { PROFILE_SETTINGS, type ProfileSettings } from './profiles/settings.ts';
import { OWN_ROUTES } from './service/create-service.ts';

void runWith({
  table: PROFILE_SETTINGS,
  routesFor: routesOf,
  kindFor: ({ profile = 'B' }: ProfileSettings) => ({ ...OWN_ROUTES, name: profile }),
  hooks: {},
});
