// Profile B: routes that are public, protected, guarded by scopes or claims, or open with an optional caller.
import { authenticated, needs, open, optional } from '../gate/rules/access.ts';
import { claimCheck, claimEquals, claimIncludes, scope } from '../gate/rules/guards.ts';
import { get, type RouteRequest, type Route } from '../service/routes/route.ts';
import type { Caller } from '../verify/caller.ts';

const hasPremium = claimCheck(
  'subscription is premium and verified is true',
  (claim) => claim('subscription') === 'premium' && claim('verified') === true,
);

/** `orgId` is the organisation whose members have access. */
// prettier-ignore
export const routesB = (orgId: string): readonly Route[] => [
  get('/api/public',         open,                                                readPublic),
  get('/api/private',        authenticated,                                       readPrivate),
  get('/api/private-scoped', needs(scope('read:messages')),                       readScoped),
  get('/api/messages',       needs(scope('read:messages')),                       listMessages),
  get('/api/admin',          needs(scope('admin:access')),                        readAdmin),
  get('/api/org/{orgId}',    needs(claimEquals('org_id', orgId)),                 greet('member of the organisation')),
  get('/api/roles',          needs(claimIncludes('roles', ['editor', 'viewer'])), greet('editor and viewer')),
  get('/api/premium',        needs(hasPremium),                                   greet('premium subscriber')),
  get('/api/feed',           optional,                                            readFeed),
];

const greet = (whom: string) => () => ({ message: `Hello, ${whom}!` });

/** ISO 8601 */
const timestampOf = (nowMillis: number) => new Date(nowMillis).toISOString();

function readPublic({ nowMillis }: RouteRequest<undefined>) {
  return { message: 'Hello from a public endpoint!', timestamp: timestampOf(nowMillis) };
}

function readPrivate({ caller, nowMillis }: RouteRequest<Caller>) {
  const timestamp = timestampOf(nowMillis);
  return { message: 'Hello from a private endpoint!', user: caller.subject, timestamp };
}

function readScoped({ caller, nowMillis }: RouteRequest<Caller>) {
  return {
    message: 'Hello from a private endpoint that needs the scope read:messages!',
    user: caller.subject,
    scope: caller.scopeText,
    timestamp: timestampOf(nowMillis),
  };
}

function listMessages() {
  const messages = [
    { id: 1, text: 'Hello' },
    { id: 2, text: 'World' },
  ];
  return { messages };
}

function readAdmin({ caller }: RouteRequest<Caller>) {
  return { message: 'Hello, administrator!', userId: caller.subject };
}

function readFeed({ caller }: RouteRequest<Caller | undefined>) {
  if (caller === undefined) return { message: 'Welcome, guest!', personalizedContent: false };

  return { message: `Welcome back, ${caller.subject}!`, personalizedContent: true };
}
