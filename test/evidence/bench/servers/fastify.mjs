// Fastify with @fastify/jwt; the provider's public key is fetched once at the start. CACHE is the number of entries of its memory.
import { createPublicKey } from 'node:crypto';
import jwt from '@fastify/jwt';
import Fastify from 'fastify';
import { audience, fetchKeys, host, issuer, port, privateMessage, publicMessage } from './environment.mjs';
import { answerTo, orderSchema } from './orders.mjs';

const [jwk] = await fetchKeys();
const publicKey = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
const cache = Number(process.env.CACHE);

const app = Fastify();
await app.register(jwt, {
  secret: { public: publicKey },
  verify: { algorithms: ['RS256'], allowedIss: issuer, allowedAud: audience, ...(cache > 0 && { cache }) },
});
const onRequest = (request) => request.jwtVerify();
app.get('/api/public', async () => publicMessage());
app.get('/api/private', { onRequest }, async (request) => privateMessage(request.user.sub));
app.post('/api/orders', { onRequest, schema: { body: orderSchema } }, async ({ body }) => answerTo(body));
await app.listen({ port, host });
