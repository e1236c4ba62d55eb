// Every setting of a service, those of the options included.
import { OPTION_SETTINGS } from './option-settings.ts';
import type { IssuerSettings, readSettings, ValuesOf } from './load.ts';
import { BASIC_SETTINGS } from './table.ts';

export const SERVICE_SETTINGS = { ...BASIC_SETTINGS, ...OPTION_SETTINGS };

/** All values. Names of times and sizes end in the unit. */
export interface Settings extends Readonly<
  ReturnType<typeof readSettings<ValuesOf<typeof SERVICE_SETTINGS>>>
> {}

type Given<Values> = Partial<Omit<Values, 'audience' | 'issuers'>> & {
  domain: string;
  audience: string | readonly string[];
};

/** Settings in code: those of docs/settings.md in camel case without `IDP_`, or loaded ones. */
export type GivenSettings =
  Settings | (Given<Settings & IssuerSettings> & { issuers?: Record<string, Given<IssuerSettings>> });
