// Hono with its jwk middleware on its server for Node. The middleware would fetch `jwks_uri` anew for every request, so it is given
// the keys, fetched once at the start.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { jwk } from 'hono/jwk';
import { audience, fetchKeys, host, issuer, port, privateMessage, publicMessage } from './environment.mjs';

const keys = await fetchKeys();
const app = new Hono();
app.get('/api/public', (context) => context.json(publicMessage()));
app.use('/api/private', jwk({ keys, alg: ['RS256'], verification: { iss: issuer, aud: audience } }));
app.get('/api/private', (context) => context.json(privateMessage(context.get('jwtPayload').sub)));
serve({ fetch: app.fetch, port, hostname: host });
