// The base of the cases with DPoP: the plain server with one ES256 verification, by a key that it has from the start, before each
// answer; with TOKENS, also one RS256 verification of the token.
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { host, port } from './environment.mjs';

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));
const key = createPublicKey({ key: JSON.parse(process.env.PROOF_KEY), format: 'jwk' });

const { TOKENS, TOKEN_KEY } = process.env;
const tokenKey = TOKENS === 'true' ? createPublicKey({ key: JSON.parse(TOKEN_KEY), format: 'jwk' }) : undefined;

function verifyToken(token) {
  const end = token.lastIndexOf('.');
  const signature = Buffer.from(token.slice(end + 1), 'base64url');
  if (!verify('sha256', Buffer.from(token.slice(0, end)), tokenKey, signature)) throw new Error('a bad token');
}

createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  const { authorization, dpop: proof } = request.headers;
  if (tokenKey !== undefined) verifyToken(authorization.slice('DPoP '.length));

  const end = proof.lastIndexOf('.');
  const signature = Buffer.from(proof.slice(end + 1), 'base64url');
  if (!verify('sha256', Buffer.from(proof.slice(0, end)), { key, dsaEncoding: 'ieee-p1363' }, signature)) throw new Error('a bad proof');
  const { status, headers, body } = answers.get(request.url);
  body.timestamp = new Date().toISOString();
  const text = JSON.stringify(body);
  response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]);
  response.end(text);
}).listen(port, host);
