/* What the demo shows of profile B. */
import { everyone, makeClients, ownToken, requests } from './clients.ts';
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
  reader: { scopes: ['read:messages'] },
  admin: { scopes: ['admin:access'] },
  member: { claims: { org_id: 'org_123456' } },
  outsider: { claims: { org_id: 'org_654321' } },
  editor: { claims: { roles: ['editor', 'viewer'] } },
  viewer: { claims: { roles: ['viewer'] } },
  subscriber: { claims: { subscription: 'premium', verified: true } },
  unverified: { claims: { subscription: 'premium', verified: false } },
});

const examples: readonly Example<(typeof clients)[number]['id']>[] = [
  answered('/api/public', '{"message":"Hello from a public endpoint!"', 'open to everyone'),

  granted('/api/private', 'visitor', '{"message":"Hello from a private endpoint!"', 'the token is good'),
  withoutToken('/api/private'),
  tokenRefused('/api/private', 'latecomer', 'the token has expired'),
  tokenRefused('/api/private', 'stranger', 'the token was issued for another API'),

  granted('/api/private-scoped', 'reader', '{"message":"Hello', 'the token has the scope read:messages'),
  withoutToken('/api/private-scoped'),
  forbidden('/api/private-scoped', 'visitor', 'the token lacks the scope read:messages'),

  granted(
    '/api/messages',
    'reader',
    '{"messages":[{"id":1,"text":"Hello"}',
    'the token has the scope read:messages',
  ),
  withoutToken('/api/messages'),
  forbidden('/api/messages', 'visitor', 'the token lacks the scope read:messages'),

  granted(
    '/api/admin',
    'admin',
    '{"message":"Hello, administrator!"',
    'the token has the scope admin:access',
  ),
  withoutToken('/api/admin'),
  forbidden('/api/admin', 'reader', 'the token lacks the scope admin:access'),

  granted(
    '/api/org/org_123456',
    'member',
    '{"message":"Hello, member',
    'the claim org_id is the expected one',
  ),
  withoutToken('/api/org/org_123456'),
  forbidden('/api/org/org_654321', 'outsider', 'the claim org_id has another value; the path plays no part'),

  granted('/api/roles', 'editor', '{"message":"Hello, editor', 'the claim roles has editor and viewer'),
  withoutToken('/api/roles'),
  forbidden('/api/roles', 'viewer', 'the claim roles lacks editor'),

  granted(
    '/api/premium',
    'subscriber',
    '{"message":"Hello, premium',
    'subscription is premium and verified is true',
  ),
  withoutToken('/api/premium'),
  forbidden('/api/premium', 'unverified', 'the claim verified is false'),

  answered('/api/feed', '{"message":"Welcome, guest!","personalizedContent":false}', 'the token is optional'),
  granted('/api/feed', 'visitor', '{"message":"Welcome back, visitor@clients!"', 'a good token is used'),
  tokenRefused('/api/feed', 'latecomer', 'a token that is present must be good'),

  notFound('/no/such/path', 'nothing is there'),
  ...health,
];

export const profileB: Script = {
  clients,
  port: 3001,
  settings: () => ({}),
  sections: [requests(examples), ownToken],
};
