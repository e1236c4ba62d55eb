/* What the demo shows of profile A, with the scope policy on. */
import { everyone, makeClients, ownToken, requests } from './clients.ts';
import { discovery } from './discovery.ts';
import { boundCalls } from './dpop.ts';
import {
  answered,
  forbidden,
  granted,
  health,
  notFound,
  tokenRefused,
  withoutToken,
  type Example,
  type Script,
} from './examples.ts';

const clients = makeClients({
  ...everyone,
  alice: { scopes: ['read:reports'], claims: { email: 'alice@example.test' } },
  reader: { scopes: ['read:users'] },
  writer: { scopes: ['write:users'] },
  admin: { scopes: ['admin'] },
});

const examples: readonly Example<(typeof clients)[number]['id']>[] = [
  answered('/api/public', '{"message":"Hello from a public endpoint!"}', 'open to everyone'),

  granted('/api/private', 'alice', '{"message":"Hello from a private endpoint!"', 'the token is good'),
  withoutToken('/api/private'),
  tokenRefused('/api/private', 'latecomer', 'the token has expired'),
  tokenRefused('/api/private', 'stranger', 'the token was issued for another API'),

  granted(
    '/api/profile',
    'alice',
    '{"userId":"alice@clients","email":"alice@example.test"',
    'the token is good',
  ),
  withoutToken('/api/profile'),

  granted('/api/admin', 'admin', '{"message":"Hello from the admin API!"}', 'the token has the scope admin'),
  withoutToken('/api/admin'),
  forbidden('/api/admin', 'reader', 'the token lacks the scope admin'),

  granted(
    '/api/users',
    'reader',
    '{"message":"Hello from the users API!"}',
    'the token has the scope read:users',
  ),
  granted(
    '/api/users',
    'writer',
    '{"message":"Hello from the users API!"}',
    'the token has the scope write:users',
  ),
  withoutToken('/api/users'),
  forbidden('/api/users', 'visitor', 'the token has neither read:users nor write:users'),

  notFound('/no/such/path', 'every other path is open to everyone, and nothing is there'),
  withoutToken('/api/admin/no/such/path'),
  forbidden('/api/admin/no/such/path', 'visitor', 'the policy covers every path under /api/admin'),
  notFound('/api/admin/no/such/path', 'only the right scope gets to see that nothing is there', 'admin'),
  ...health,
];

export const profileA: Script = {
  clients,
  port: 8080,
  settings: (origin) => ({ SCOPE_POLICY: 'true', RESOURCE_URL: origin }),
  sections: [requests(examples), boundCalls, discovery, ownToken],
};
