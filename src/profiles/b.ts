// Profile B: public, protected, scope-guarded, claim-guarded and optional-authentication routes.
// The table is the whole truth about access; see the specification, section 4.
import { claimCheck, claimEquals, claimIncludes, scope } from '../routes/guards.ts';
import { authenticated, get, needs, open, optional, type RouteRequest, type Row } from '../routes/row.ts';
import type { Caller } from '../sender/caller.ts';

const hasPremium = claimCheck(
  'subscription is premium and verified is true',
  (claim) => claim('subscription') === 'premium' && claim('verified') === true,
);
/** `orgId` is the one value of the claim `org_id` that the organisation route accepts. */
export const rowsB = (orgId: string): readonly Row[] => [
  get('/api/public', open, readPublic),
  get('/api/private', authenticated, readPrivate),
  get('/api/private-scoped', needs(scope('read:messages')), readScoped),
  get('/api/messages', needs(scope('read:messages')), listMessages),
  get('/api/admin', needs(scope('admin:access')), readAdmin),
  get('/api/org/{orgId}', needs(claimEquals('org_id', orgId)), () => ({
    message: 'Hello, member of the organisation!',
  })),
  get('/api/roles', needs(claimIncludes('roles', ['editor', 'viewer'])), () => ({
    message: 'Hello, editor and viewer!',
  })),
  get('/api/premium', needs(hasPremium), () => ({ message: 'Hello, premium subscriber!' })),
  get('/api/feed', optional, readFeed),
];
function readPublic({ nowMillis }: RouteRequest<undefined>): object {
  return { message: 'Hello from a public endpoint!', timestamp: timestamp(nowMillis) };
}
function readPrivate({ caller, nowMillis }: RouteRequest<Caller>): object {
  return { message: 'Hello from a private endpoint!', user: caller.subject, timestamp: timestamp(nowMillis) };
}
function readScoped({ caller, nowMillis }: RouteRequest<Caller>): object {
  return {
    message: 'Hello from a private endpoint that needs the scope read:messages!',
    user: caller.subject,
    scope: caller.scopeText,
    timestamp: timestamp(nowMillis),
  };
}
function listMessages(): object {
  return {
    messages: [
      { id: 1, text: 'Hello' },
      { id: 2, text: 'World' },
    ],
  };
}
function readAdmin({ caller }: RouteRequest<Caller>): object {
  return { message: 'Hello, administrator!', userId: caller.subject };
}
function readFeed({ caller }: RouteRequest<Caller | undefined>): object {
  return caller === undefined
    ? { message: 'Welcome, guest!', personalizedContent: false }
    : { message: `Welcome back, ${caller.subject}!`, personalizedContent: true };
}
let latest = { millis: NaN, text: '' };
/** ISO 8601, written once for all requests of a millisecond. */
const timestamp = (nowMillis: number): string =>
  (nowMillis === latest.millis
    ? latest
    : (latest = { millis: nowMillis, text: new Date(nowMillis).toISOString() })
  ).text;
