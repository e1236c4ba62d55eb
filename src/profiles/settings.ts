// The settings of profiles, and defaults that depend on the profile.
import type { DpopMode } from '../verify/credentials.ts';
import { loadFrom } from '../settings/load-settings.ts';
import { SERVICE_SETTINGS } from '../settings/service-settings.ts';
import type { ProblemsWith } from '../settings/load.ts';
import { boolean, fitting, text, word, type Earlier } from '../settings/readers.ts';
import type { Environment } from '../settings/sources.ts';
import { setting } from '../settings/table.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE'];

const scopePolicy = fitting(
  boolean,
  'belongs to profile A; remove it or set PROFILE=A',
  (isOn, { profile }) => !isOn || profile !== 'B',
);

export const PROFILE_SETTINGS = {
  profile: setting('PROFILE', '', word('A', 'B'), 'B'),
  ...SERVICE_SETTINGS,
  port: { ...SERVICE_SETTINGS.port, byDefault: ({ profile }: Earlier) => (profile === 'A' ? 8080 : 3001) },
  dpopMode: {
    ...SERVICE_SETTINGS.dpopMode,
    byDefault: ({ profile }: Earlier): DpopMode => (profile === 'A' ? 'ALLOWED' : 'DISABLED'),
  },
  corsAllowedMethods: { ...SERVICE_SETTINGS.corsAllowedMethods, byDefault: () => METHODS },
  orgId: setting('IDP_ORG_ID', 'idp.orgId', text, 'org_123456'),
  scopePolicy: setting('SCOPE_POLICY', 'api.scopePolicy', scopePolicy, false),
};

export type ProfileSettings = ReturnType<typeof loadProfileSettings>['settings'];

/** Does what `loadSettings` does, for a service with a profile. */
export const loadProfileSettings = (
  environment: Environment,
  directory: string,
  problemsWith?: ProblemsWith,
) => loadFrom(PROFILE_SETTINGS, environment, directory, problemsWith);
