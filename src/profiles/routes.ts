// The routes that the settings choose.
import type { Routes } from '../service/routes/route.ts';
import { policyA, policyRoutesA, routesA } from './a.ts';
import { routesB } from './b.ts';
import type { ProfileSettings } from './settings.ts';

/** Settings that have a problem are absent. */
export function routesOf({ profile = 'B', scopePolicy, orgId = '-' }: ProfileSettings): Routes {
  if (profile === 'B') return { routes: routesB(orgId) };
  if (!scopePolicy) return { routes: routesA };

  return { routes: [...routesA, ...policyRoutesA], rules: policyA };
}
