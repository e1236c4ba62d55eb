// The settings of profiles, and defaults that depend on the profile.
import { boolean as trueOrFalse, oneOf, option, text as anyText } from '../verify/base/option.ts';
import type { DpopMode } from '../verify/credentials.ts';
import { SERVICE_SETTINGS } from '../settings/load-settings.ts';
import type { SettingsOf } from '../settings/load.ts';
import { boolean, inUpperCase, text } from '../settings/readers.ts';
import { setting, type Earlier, type ValuesOf } from '../settings/table.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE'];

const NOT_IN_B = 'belongs to profile A; remove it or set PROFILE=A';

const profile = option(oneOf('A', 'B'), 'B');

const usualPort = (earlier: Earlier) => (earlier.profile === 'A' ? 8080 : 3001);

const usualMode = (earlier: Earlier): DpopMode => (earlier.profile === 'A' ? 'ALLOWED' : 'DISABLED');

export const PROFILE_SETTINGS = {
  profile: setting('PROFILE', '', inUpperCase, profile),
  ...SERVICE_SETTINGS,
  port: { ...SERVICE_SETTINGS.port, byDefault: usualPort },
  dpopMode: { ...SERVICE_SETTINGS.dpopMode, byDefault: usualMode },
  corsAllowedMethods: { ...SERVICE_SETTINGS.corsAllowedMethods, byDefault: () => METHODS },
  orgId: setting('IDP_ORG_ID', 'idp.orgId', text, option(anyText, 'org_123456')),
  scopePolicy: setting('SCOPE_POLICY', 'api.scopePolicy', boolean, option(trueOrFalse, false), {
    misfit: (isOn, earlier) => (isOn && earlier.profile === 'B' ? NOT_IN_B : undefined),
  }),
};

export type ProfileValues = ValuesOf<typeof PROFILE_SETTINGS>;

export type ProfileSettings = SettingsOf<ProfileValues>;
