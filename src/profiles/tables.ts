// The table that the settings choose: profile A with or without its scope policy, or profile B.
import type { Table } from '../service/routes/route.ts';
import { policyA, policyRowsA, rowsA } from './a.ts';
import { rowsB } from './b.ts';
import type { ProfileSettings } from './settings.ts';

/** The rows of the profile that is set, and its rules, if it has any. */
export function tableOf({ profile, scopePolicy, orgId }: ProfileSettings): Table {
  if (profile === 'B') return { rows: rowsB(orgId) };
  if (!scopePolicy) return { rows: rowsA };

  return { rows: [...rowsA, ...policyRowsA], rules: policyA };
}
