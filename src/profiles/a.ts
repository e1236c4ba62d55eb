// Profile A: a public and a protected route, the caller's profile, and an optional scope policy.
import { authenticated, needs, open } from '../gate/rules/access.ts';
import { anyScope, scope } from '../gate/rules/guards.ts';
import { get, under, type PrefixRule, type RouteRequest, type Route } from '../service/routes/route.ts';
import type { Caller } from '../verify/caller.ts';

// prettier-ignore
export const routesA: readonly Route[] = [
  get('/api/public',  open,          () => ({ message: 'Hello from a public endpoint!' })),
  get('/api/private', authenticated, readPrivate),
  get('/api/profile', authenticated, readProfile),
];

const admins = needs(scope('admin'));
const users = needs(anyScope('read:users', 'write:users'));

/** Only while the scope policy is on. */
export const policyA: readonly PrefixRule[] = [under('/api/admin', admins), under('/api/users', users)];

/** Only while the scope policy is on. */
// prettier-ignore
export const policyRoutesA: readonly Route[] = [
  get('/api/admin', admins, () => ({ message: 'Hello from the admin API!' })),
  get('/api/users', users,  () => ({ message: 'Hello from the users API!' })),
];

function readPrivate({ caller }: RouteRequest<Caller>) {
  return {
    message: 'Hello from a private endpoint!',
    user: caller.subject,
    scopes: caller.scopes.map((name) => `SCOPE_${name}`),
  };
}

function readProfile({ caller }: RouteRequest<Caller>) {
  const { email, aud = null } = caller.claims;
  const isShown = email !== undefined && typeof email !== 'object';
  return {
    userId: caller.subject,
    email: isShown ? email : null,
    scope: caller.scopeText,
    issuer: caller.issuer,
    audience: aud,
  };
}
