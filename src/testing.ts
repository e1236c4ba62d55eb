// What a team tests its own rows with: the test issuer, and a table of which every row is asked in every way.
// No part of the service: nothing of it is loaded but by tests.
import { STATUSES } from './gate/challenge.ts';
import { authenticated, refusalOf, type Access } from './gate/access.ts';
import type { Guard } from './gate/guards.ts';
import { createRouter } from './service/routes/router.ts';
import type { Row, Table } from './service/routes/route.ts';
import { faultsOf } from './process/compose.ts';
import { createGate, createService, type Gate } from './process/host.ts';
import { ConfigurationError } from './process/settings/load.ts';
import { createTestIssuer, type TestIssuer } from './test-issuer.ts';

export {
  createProof,
  createProofKey,
  createTestIssuer,
  type Members,
  type ProofKey,
  type ProofRequest,
  type TestIssuer,
  type TestIssuerOptions,
} from './test-issuer.ts';

/**
 * Rows that do not answer as their access says: which, asked how, and what came, a line each.
 *
 * @example await assert.rejects(assertRouteMatrix({ rows: wrongRows }), RouteMatrixError);
 */
export class RouteMatrixError extends Error {}

/**
 * Asks every row of a table without credentials, with an expired token, with another scheme, with a method
 * that its path does not have, and with tokens that have all scopes, none, and all but those of each guard.
 * None has claims that a guard asks for: what it makes of that decides. Rejects with a `RouteMatrixError`
 * that has every answer which the table does not give, or with a `ConfigurationError` for a table that cannot
 * be served. No handler is run.
 *
 * @example test('every row asks for what it says', () => assertRouteMatrix({ rows }));
 */
export async function assertRouteMatrix(table: Table): Promise<void> {
  const problems = faultsOf(table);
  if (problems.length > 0) throw new ConfigurationError(problems);

  const rows = table.rows.map(withoutHandler);
  const mismatches = await mismatchesOf({ ...table, rows });
  if (mismatches.length > 0) throw new RouteMatrixError(mismatches.join('\n'));
}

async function mismatchesOf(table: Table): Promise<string[]> {
  const issuer = createTestIssuer();
  const settings = { ...issuer.settings, host: '127.0.0.1', port: 0 };
  const service = createService(table, settings, issuer);
  const gate = await createGate(issuer.settings, issuer);
  const findPlace = createRouter([], table.rules);
  const url = await service.listen();

  const asked = table.rows.map(async (row) => {
    const path = row.pattern.replace(/\{\w+\}/g, 'x');
    const rules = findPlace(path)?.rules ?? [];
    const deciding = [...rules, row].map(({ access }) => access);

    const { ask, faults } = asking(row, url + path);
    await askForCredentials(ask, deciding, issuer);
    await askForScopes(ask, deciding, { ...issuer, ...gate });
    return faults;
  });
  try {
    return (await Promise.all(asked)).flat();
  } finally {
    gate.close();
    await service.stop();
  }
}

/** The row with its access, taking nothing and doing nothing. */
const withoutHandler = (row: Row): Row => ({
  ...row,
  query: undefined,
  body: undefined,
  handler: () => ({}),
});

type Deciding = readonly Access<unknown>[];

type Ask = ReturnType<typeof asking>['ask'];

/** What asks a row, and what it has answered otherwise than it should. */
function asking(row: Row, url: string) {
  const faults: string[] = [];

  async function ask(what: string, status: number, headers = {}, method: string = row.method) {
    // Or the service would wait for what else comes on the connection.
    const response = await fetch(url, { method, headers: { ...headers, connection: 'close' } });
    await response.arrayBuffer();
    if (response.status === status) return;

    const asked = `${method} ${row.pattern} (${row.access.name}) with ${what}`;
    faults.push(`${asked}: ${response.status} instead of ${status}`);
  }

  return { ask, faults };
}

async function askForCredentials(ask: Ask, deciding: Deciding, { bearer }: TestIssuer) {
  const credentials = deciding.map((access) => access.credentials);
  const refused = credentials.every((one) => one === 'ignored') ? 200 : 401;
  await ask('no credentials', credentials.includes('required') ? 401 : 200);
  await ask('an expired token', refused, bearer({ exp: 1 }));
  await ask('another scheme', refused, { authorization: 'Basic eA==' });
  // A rule decides before the method does.
  await ask('another method', deciding.length > 1 ? 401 : 405, {}, 'OPTIONS');
}

const scopesOf = ({ refused }: Guard) => refused.refusal.scopes ?? [];

async function askForScopes(ask: Ask, deciding: Deciding, { bearer, check }: TestIssuer & Gate) {
  const guards = deciding.flatMap((access) => access.guards);
  const all = guards.flatMap(scopesOf);

  /** Expects what the first guard says that does not pass: of claims and logins only it knows. */
  async function askWith(what: string, scopes: readonly string[]) {
    const headers = bearer({ scope: scopes.join(' ') });
    const rawHeaders = ['Host', 'localhost', 'Authorization', headers.authorization];
    const verdict = await check({ method: 'GET', url: '/', rawHeaders }, authenticated);
    const parts = deciding.map((access) => ({ access }));
    const refused = 'caller' in verdict && refusalOf(parts, verdict.caller, true);
    await ask(what, refused ? STATUSES[refused.refusal.kind] : 200, headers);
  }

  await askWith('neither scopes nor claims', []);
  await askWith('all scopes', all);
  for (const guard of guards) {
    const others = all.filter((scope) => !scopesOf(guard).includes(scope));
    await askWith(`all scopes but for ${guard.name}`, others);
  }
}
