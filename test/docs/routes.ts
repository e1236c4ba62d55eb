/* The tables of routes: what a route requires, and the members of its response. */
import { routesOf as profileOf } from '../../src/profiles/routes.ts';
import { HandlerReply } from '../../src/service/routes/handler-result.ts';
import type { DecidedAccess } from '../../src/gate/rules/access.ts';
import type { AnyGuard } from '../../src/gate/rules/further.ts';
import type { Route } from '../../src/service/routes/route.ts';
import { runRoute } from '../support/route.ts';
import { callerWith, clock, settingsWith } from '../support/caller.ts';
import { claimsForAll } from '../support/demands.ts';
import type { Environment } from '../support/settings.ts';
import { code, withKept, type Cells } from './tables.ts';

const listed = (words: string, conjunction: string) => words.split(' ').map(code).join(` ${conjunction} `);

/** What a guard demands, from its name. */
function inWords({ name }: AnyGuard): string {
  const [, any] = /^any scope of (.+)$/.exec(name) ?? [];
  if (any !== undefined) return `scope ${listed(any, 'or')}`;

  const [, scopes] = /^scope (.+)$/.exec(name) ?? [];
  if (scopes !== undefined) return `scope ${listed(scopes, 'and')}`;

  const [, equal = '', value] = /^claim (\S+) equals (.+)$/.exec(name) ?? [];
  if (value !== undefined) return `claim ${code(equal)} equals ${code(value)}`;

  const [, including = '', values] = /^claim (\S+) includes (.+)$/.exec(name) ?? [];
  if (values !== undefined) return `claim ${code(including)} includes ${listed(values, 'and')}`;

  return name.replace(/^claims /, 'claims: ');
}

const ACCESS: Readonly<Record<string, string>> = {
  open: 'nothing',
  optional: 'nothing, but any token sent must be valid',
  authenticated: 'a valid access token',
};

const accessInWords = ({ name, guards }: DecidedAccess<unknown>) =>
  ACCESS[name] ?? guards.map(inWords).join('; ');

/**
 * The members of a route's response to a caller who passes its guards; none if it needs more than can be
 * derived.
 */
export async function membersOf(route: Route): Promise<Cells> {
  const caller = callerWith(claimsForAll(route.access.guards));
  try {
    const body = bodyOf(await runRoute(route, caller, {}, clock.now()));
    return Array.isArray(body) ? [] : Object.keys(Object(body));
  } catch {
    return [];
  }
}

/** The body of the response; an empty object for a failure or bytes. */
function bodyOf(given: unknown): unknown {
  if (!(given instanceof HandlerReply)) return given;
  const { content } = given.reply;
  return given.turnedAway || typeof content !== 'string' ? {} : JSON.parse(content);
}

/** The table of the routes under these settings, less those that `less` also has. */
export const routesTable =
  (environment: Environment, less?: Environment) =>
  async (written: readonly Cells[]): Promise<string> => {
    const others = less === undefined ? [] : profileOf(settingsWith(less)).routes;
    const routes = profileOf(settingsWith(environment)).routes.filter((route) => !others.includes(route));
    const derived = await Promise.all(
      routes.map(async (route) => {
        const names = await membersOf(route);
        const cells = [route.method, code(route.pattern), accessInWords(route.access)];
        return names.length === 0 ? cells : [...cells, names.map(code).join(', ')];
      }),
    );
    return withKept(['method', 'path', 'requires', 'response properties'], derived, written, 1);
  };
