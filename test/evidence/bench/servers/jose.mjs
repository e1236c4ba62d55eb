// node:http with jose, as its documentation puts them together.
import { createServer } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { audience, host, issuer, jwksUri, port, privateMessage, publicMessage, unauthorized } from './environment.mjs';

const keys = createRemoteJWKSet(new URL(jwksUri));
const rules = { issuer, audience, algorithms: ['RS256'] };

async function subjectOf({ headers: { authorization = '' } }) {
  const [scheme, token] = authorization.split(' ');
  if (scheme !== 'Bearer' || token === undefined) return undefined;
  try {
    return (await jwtVerify(token, keys, rules)).payload.sub;
  } catch {
    return undefined;
  }
}

function send(response, status, body, headers = {}) {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

createServer(async (request, response) => {
  if (request.url === '/api/public') return send(response, 200, publicMessage());
  const subject = await subjectOf(request);
  if (subject === undefined) return send(response, 401, unauthorized, { 'WWW-Authenticate': 'Bearer' });
  send(response, 200, privateMessage(subject));
}).listen(port, host);
