/* Every table of src/profiles: those that settings choose, and any that stands in a file of its own. */
import { readdirSync } from 'node:fs';
import { routesOf } from '../../src/profiles/routes.ts';
import type { Route, Routes } from '../../src/service/routes/route.ts';
import { settingsWith } from './caller.ts';
import type { Environment } from './service.ts';

export interface NamedTable {
  readonly name: string;
  readonly table: Routes;
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

const isTable = (value: unknown): value is Routes =>
  typeof value === 'object' && value !== null && 'routes' in value && isRoutes(value.routes);

/** The tables that a module exports. */
function tablesIn(module: Readonly<Record<string, unknown>>): Routes[] {
  return Object.values(module).flatMap((value) => {
    if (isTable(value)) return [value];
    return isRoutes(value) ? [{ routes: value }] : [];
  });
}

async function readTables(): Promise<NamedTable[]> {
  const chosen = ENVIRONMENTS.map((environment) => ({
    name: JSON.stringify(environment),
    table: routesOf(settingsWith(environment)),
    environment,
  }));
  const seen = new Set(chosen.flatMap(({ table }) => table.routes));
  const others: NamedTable[] = [];
  for (const file of readdirSync(PROFILES).sort()) {
    const tables = tablesIn(await import(new URL(file, PROFILES).href));
    for (const table of tables.filter(({ routes }) => !routes.every((route) => seen.has(route)))) {
      others.push({ name: `a table of ${file}`, table, environment: {} });
    }
  }
  return [...chosen, ...others];
}

export const TABLES: readonly NamedTable[] = await readTables();
