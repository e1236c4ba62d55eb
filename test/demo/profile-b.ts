/* What the demo shows of profile B. */
import { everyone, makeClients } from './clients.ts';
import {
  answered,
  claimRoutes,
  forbidden,
  granted,
  health,
  notFound,
  openRoutes,
  scopeRoutes,
  stolenToken,
  tokenRefused,
  tokenRoutes,
  withoutToken,
  withoutTokenToo,
  type Group,
  type Script,
} from './examples.ts';
import { ownToken, rotation } from './lines.ts';

const clients = makeClients({
  ...everyone,
  reader: { scopes: ['read:messages'] },
  admin: { scopes: ['admin:access'] },
  member: { claims: { org_id: 'org_123456' } },
  outsider: { claims: { org_id: 'org_654321' } },
  editor: { claims: { roles: ['editor', 'viewer'] } },
  viewer: { claims: { roles: ['viewer'] } },
  premium: { claims: { subscription: 'premium', verified: true } },
  unverified: { claims: { subscription: 'premium', verified: false } },
});

const groups: readonly Group<(typeof clients)[number]['id']>[] = [
  openRoutes(
    answered('/api/public', 'open to everyone'),
    answered('/api/feed', 'the token is optional'),
    ...health,
    notFound('/no/such/path', 'nothing is there'),
  ),

  tokenRoutes(
    granted('/api/private', 'visitor', 'the token is valid'),
    withoutToken('/api/private'),
    tokenRefused('/api/private', 'latecomer', 'the token has expired'),
    tokenRefused('/api/private', 'stranger', 'its audience is another API'),
    granted('/api/feed', 'visitor', 'a valid token is used'),
    tokenRefused('/api/feed', 'latecomer', 'a token, if sent, must be valid'),
  ),

  stolenToken('/api/private', 'visitor'),

  scopeRoutes(
    granted('/api/private-scoped', 'reader', 'has the scope read:messages'),
    withoutTokenToo('/api/private-scoped'),
    forbidden('/api/private-scoped', 'visitor', 'without the scope read:messages'),

    granted('/api/messages', 'reader', 'has the scope read:messages'),
    withoutTokenToo('/api/messages'),
    forbidden('/api/messages', 'visitor', 'without the scope read:messages'),

    granted('/api/admin', 'admin', 'has the scope admin:access'),
    withoutTokenToo('/api/admin'),
    forbidden('/api/admin', 'reader', 'without the scope admin:access'),
  ),

  claimRoutes(
    granted('/api/org/org_123456', 'member', 'the claim org_id is as expected'),
    withoutTokenToo('/api/org/org_123456'),
    forbidden('/api/org/org_654321', 'outsider', 'org_id has another value'),

    granted('/api/roles', 'editor', 'roles contains editor and viewer'),
    withoutTokenToo('/api/roles'),
    forbidden('/api/roles', 'viewer', 'roles does not contain editor'),

    granted('/api/premium', 'premium', 'premium, and verified is true'),
    withoutTokenToo('/api/premium'),
    forbidden('/api/premium', 'unverified', 'premium, but verified is false'),
  ),
];

export const profileB: Script = {
  clients,
  user: 'visitor',
  port: 3001,
  // The profile alone takes Bearer tokens only.
  settings: () => ({ IDP_DPOP_MODE: 'ALLOWED' }),
  groups,
  lines: [ownToken, rotation],
};
