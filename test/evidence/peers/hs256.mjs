// The peer that PEER names, set up for tokens that a shared SECRET signs (HS256), as its documentation shows.
import { createServer } from 'node:http';
import fastifyJwt from '@fastify/jwt';
import express from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import Fastify from 'fastify';
import { jwtVerify } from 'jose';

const { PEER, PORT, SECRET, ISSUER: issuer, AUDIENCE: audience } = process.env;

const servers = {
  'express-oauth2-jwt-bearer'() {
    const app = express();
    app.use(auth({ secret: SECRET, issuer, audience, tokenSigningAlg: 'HS256' }));
    app.get('/api/private', (_, response) => response.json({}));
    app.listen(Number(PORT), '127.0.0.1');
  },

  async '@fastify/jwt'() {
    const fastify = Fastify();
    const verify = { allowedIss: issuer, allowedAud: audience, algorithms: ['HS256'] };
    await fastify.register(fastifyJwt, { secret: SECRET, verify });
    fastify.addHook('onRequest', (request) => request.jwtVerify());
    fastify.get('/api/private', async () => ({}));
    await fastify.listen({ port: Number(PORT), host: '127.0.0.1' });
  },

  jose() {
    const secret = new TextEncoder().encode(SECRET);
    const verify = (token) => jwtVerify(token, secret, { issuer, audience, algorithms: ['HS256'] });
    createServer((request, response) => {
      const [, token = ''] = (request.headers.authorization ?? '').split(' ');
      verify(token).then(
        () => response.end('{}'),
        () => response.writeHead(401).end(),
      );
    }).listen(Number(PORT), '127.0.0.1');
  },
};

await servers[PEER]();
