/* What the demo shows of profile A, with the scope policy on. */
import { everyone, makeClients } from './clients.ts';
import {
  answered,
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
import { ownToken, rotation, walkTo } from './lines.ts';

const clients = makeClients({
  ...everyone,
  alice: { scopes: ['read:reports', 'admin'], claims: { email: 'alice@example.test' } },
  reader: { scopes: ['read:users'] },
  writer: { scopes: ['write:users'] },
});

const groups: readonly Group<(typeof clients)[number]['id']>[] = [
  openRoutes(
    answered('/api/public', 'open to everyone'),
    answered('/.well-known/oauth-protected-resource', 'names the provider'),
    ...health,
    notFound('/no/such/path', 'nothing is there'),
  ),

  tokenRoutes(
    granted('/api/private', 'visitor', 'the token is valid'),
    withoutToken('/api/private'),
    tokenRefused('/api/private', 'latecomer', 'the token has expired'),
    tokenRefused('/api/private', 'stranger', 'its audience is another API'),
    granted('/api/profile', 'alice', 'the token is valid'),
    withoutTokenToo('/api/profile'),
  ),

  stolenToken('/api/private', 'alice'),

  scopeRoutes(
    granted('/api/admin', 'alice', 'has the scope admin'),
    withoutToken('/api/admin', 'the challenge says where to ask'),
    forbidden('/api/admin', 'reader', 'without the scope admin'),

    granted('/api/users', 'reader', 'has the scope read:users'),
    granted('/api/users', 'writer', 'has the scope write:users'),
    withoutTokenToo('/api/users'),
    forbidden('/api/users', 'visitor', 'has neither of the scopes'),

    withoutTokenToo('/api/admin/no/such/path'),
    forbidden('/api/admin/no/such/path', 'visitor', 'without the scope of the prefix'),
    notFound('/api/admin/no/such/path', 'with it: nothing is there', 'alice'),
  ),
];

export const profileA: Script = {
  clients,
  user: 'alice',
  port: 8080,
  settings: ({ provider, origin }) => ({
    SCOPE_POLICY: 'true',
    RESOURCE_URL: origin,
    IDP_AUDIENCE: `${provider.audience},${origin}`,
  }),
  groups,
  lines: [walkTo('/api/admin'), ownToken, rotation],
};
