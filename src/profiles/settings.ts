// The settings of profiles, and defaults that depend on the profile.
import { oneOf } from '../verify/base/option.ts';
import { boolean, inUpperCase, text, type Earlier } from '../settings/entry.ts';
import { SERVICE_SETTINGS } from '../settings/load-settings.ts';
import type { WithIssuers } from '../settings/load.ts';
import { setting, type ValuesOf } from '../settings/table.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE'];

const NOT_IN_B = 'belongs to profile A; remove it or set PROFILE=A';

const usualPort = ({ profile }: Earlier) => (profile === 'A' ? 8080 : 3001);

const usualMode = ({ profile }: Earlier) => (profile === 'A' ? 'ALLOWED' : 'DISABLED');

export const PROFILE_SETTINGS = {
  profile: setting('PROFILE', '', inUpperCase, { rule: oneOf('A', 'B'), byDefault: () => 'B' }),
  ...SERVICE_SETTINGS,
  port: { ...SERVICE_SETTINGS.port, byDefault: usualPort },
  dpopMode: { ...SERVICE_SETTINGS.dpopMode, byDefault: usualMode },
  corsAllowedMethods: { ...SERVICE_SETTINGS.corsAllowedMethods, byDefault: () => METHODS },
  orgId: setting('IDP_ORG_ID', 'idp.orgId', text, { byDefault: () => 'org_123456' }),
  scopePolicy: setting('SCOPE_POLICY', 'api.scopePolicy', boolean, {
    byDefault: () => false,
    misfit: (isOn, { profile }) => (isOn && profile === 'B' ? NOT_IN_B : undefined),
  }),
};

export interface ProfileSettings extends ValuesOf<typeof PROFILE_SETTINGS>, WithIssuers {}
