/* The routes of src/profiles: those that settings choose, and any in files of their own. */
import { readdirSync } from 'node:fs';
import { routesOf } from '../../src/profiles/routes.ts';
import type { Route, Routes } from '../../src/service/routes/route.ts';
import { settingsWith } from './caller.ts';
import type { Environment } from './settings.ts';

export interface NamedRoutes {
  readonly name: string;
  readonly served: Routes;
  readonly environment: Environment;
}

const PROFILES = new URL('../../src/profiles/', import.meta.url);

const ENVIRONMENTS: readonly Environment[] = [
  { PROFILE: 'A' },
  { PROFILE: 'A', SCOPE_POLICY: 'true' },
  { PROFILE: 'B' },
];

const isRoute = (value: unknown): value is Route =>
  typeof value === 'object' && value !== null && 'pattern' in value && 'access' in value;

const isRoutes = (value: unknown): value is readonly Route[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRoute);

const isWithRules = (value: unknown): value is Routes =>
  typeof value === 'object' && value !== null && 'routes' in value && isRoutes(value.routes);

/** The exports of a module that are routes. */
function servedIn(module: Readonly<Record<string, unknown>>): Routes[] {
  return Object.values(module).flatMap((value) => {
    if (isWithRules(value)) return [value];
    return isRoutes(value) ? [{ routes: value }] : [];
  });
}

async function readAll(): Promise<NamedRoutes[]> {
  const chosen = ENVIRONMENTS.map((environment) => ({
    name: JSON.stringify(environment),
    served: routesOf(settingsWith(environment)),
    environment,
  }));
  const seen = new Set(chosen.flatMap(({ served }) => served.routes));
  const others: NamedRoutes[] = [];
  for (const file of readdirSync(PROFILES).sort()) {
    const all = servedIn(await import(new URL(file, PROFILES).href));
    for (const served of all.filter(({ routes }) => !routes.every((route) => seen.has(route)))) {
      others.push({ name: `routes of ${file}`, served, environment: {} });
    }
  }
  return [...chosen, ...others];
}

export const ALL_ROUTES: readonly NamedRoutes[] = await readAll();
