/* The tables of routes in words: who may use a row, and the members of what it answers. */
import { tableOf as rowsOfProfile } from '../../src/service/pipeline.ts';
import { policyA } from '../../src/profiles/a.ts';
import type { Row } from '../../src/routes/row.ts';
import { callerWith, clock, settingsWith } from '../support/caller.ts';
import type { Environment } from '../support/service.ts';
import { code, tableOf, withKept, type Cells } from './tables.ts';

const listed = (text: string, word: string) => text.split(' ').map(code).join(` ${word} `);

/** What a guard demands, by its name. */
function inWords(guard: string): string {
  const [, any] = /^any scope of (.+)$/.exec(guard) ?? [];
  if (any !== undefined) return `scope ${listed(any, 'or')}`;

  const [, scopes] = /^scope (.+)$/.exec(guard) ?? [];
  if (scopes !== undefined) return `scope ${listed(scopes, 'and')}`;

  const [, equal = '', value] = /^claim (\S+) equals (.+)$/.exec(guard) ?? [];
  if (value !== undefined) return `claim ${code(equal)} equals ${code(value)}`;

  const [, including = '', values] = /^claim (\S+) includes (.+)$/.exec(guard) ?? [];
  if (values !== undefined) return `claim ${code(including)} includes ${listed(values, 'and')}`;

  return guard.replace(/^claims /, '');
}

const ACCESS: Readonly<Record<string, string>> = {
  open: 'everyone',
  optional: 'everyone; a token that is present must be good',
  authenticated: 'a valid access token',
};

const accessInWords = (name: string) =>
  ACCESS[name] ?? `a valid access token; ${name.split(', ').map(inWords).join('; ')}`;

/** Members of the answer to a caller who holds all that profiles A and B ask for; nothing when the row asks for more. */
async function members({ answer }: Row): Promise<Cells> {
  const caller = callerWith({
    scope: 'read:messages admin:access admin read:users',
    org_id: 'org_123456',
    roles: ['editor', 'viewer'],
    subscription: 'premium',
    verified: true,
  });
  try {
    return Object.keys(await answer(caller, {}, clock.now()));
  } catch {
    return [];
  }
}

/** The rows under some settings, less those under others. */
export const routesTable =
  (environment: Environment, less?: Environment) =>
  async (written: readonly Cells[]): Promise<string> => {
    const others = less === undefined ? [] : rowsOfProfile(settingsWith(less));
    const rows = rowsOfProfile(settingsWith(environment)).filter((row) => !others.includes(row));
    const derived = await Promise.all(
      rows.map(async (row) => {
        const names = await members(row);
        const cells = ['GET', code(row.pattern), accessInWords(row.access.name)];
        return names.length === 0 ? cells : [...cells, names.map(code).join(', ')];
      }),
    );
    return withKept(['method', 'path', 'who', 'members of the answer'], derived, written, 1);
  };

export const policyTable = (): string =>
  tableOf(
    ['paths', 'who'],
    policyA.map(({ prefix, access }) => {
      const path = `/${prefix.join('/')}`;
      return [`${code(path)}, ${code(`${path}/**`)}`, accessInWords(access.name)];
    }),
  );
