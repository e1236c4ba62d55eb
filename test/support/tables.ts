/* Every table of src/profiles: those that settings choose, and any that stands in a file of its own. */
import { readdirSync } from 'node:fs';
import { tableOf } from '../../src/profiles/tables.ts';
import type { Row, Table } from '../../src/service/routes/route.ts';
import { settingsWith } from './caller.ts';
import type { Environment } from './service.ts';

export interface NamedTable {
  readonly name: string;
  readonly table: Table;
  readonly environment: Environment;
}

const PROFILES = new URL('../../src/profiles/', import.meta.url);

const ENVIRONMENTS: readonly Environment[] = [
  { PROFILE: 'A' },
  { PROFILE: 'A', SCOPE_POLICY: 'true' },
  { PROFILE: 'B' },
];

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && 'pattern' in value && 'access' in value;

const isRows = (value: unknown): value is readonly Row[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRow);

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && 'rows' in value && isRows(value.rows);

/** The tables that a module exports. */
function tablesIn(module: Readonly<Record<string, unknown>>): Table[] {
  return Object.values(module).flatMap((value) => {
    if (isTable(value)) return [value];
    return isRows(value) ? [{ rows: value }] : [];
  });
}

async function readTables(): Promise<NamedTable[]> {
  const chosen = ENVIRONMENTS.map((environment) => ({
    name: JSON.stringify(environment),
    table: tableOf(settingsWith(environment)),
    environment,
  }));
  const seen = new Set(chosen.flatMap(({ table }) => table.rows));
  const others: NamedTable[] = [];
  for (const file of readdirSync(PROFILES).sort()) {
    const tables = tablesIn(await import(new URL(file, PROFILES).href));
    for (const table of tables.filter(({ rows }) => !rows.every((row) => seen.has(row)))) {
      others.push({ name: `a table of ${file}`, table, environment: {} });
    }
  }
  return [...chosen, ...others];
}

export const TABLES: readonly NamedTable[] = await readTables();
