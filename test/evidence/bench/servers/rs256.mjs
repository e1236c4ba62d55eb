// What stands beside new tokens: the plain server with one RS256 verification, by a key that it has from the start, before each
// answer.
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { host, port, send } from './environment.mjs';

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));
const key = createPublicKey({ key: JSON.parse(process.env.TOKEN_KEY), format: 'jwk' });

function signedPartsOf({ headers: { authorization } }) {
  const end = authorization.lastIndexOf('.');
  return [Buffer.from(authorization.slice('Bearer '.length, end)), Buffer.from(authorization.slice(end + 1), 'base64url')];
}

createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  const [input, signature] = signedPartsOf(request);
  const isForged = request.url === '/api/invalid';
  if (verify('sha256', input, key, signature) === isForged) throw new Error('a token of another kind');
  send(response, answers.get(request.url));
}).listen(port, host);
