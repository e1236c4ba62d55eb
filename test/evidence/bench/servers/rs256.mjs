// What stands beside new tokens: the plain server with one RS256 verification, by a key that it has from the start, before each
// answer. The requests of one turn wait for each other, so that first all signatures are verified, then all answers written.
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { host, port, send } from './environment.mjs';

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));
const key = createPublicKey({ key: JSON.parse(process.env.TOKEN_KEY), format: 'jwk' });

function signedPartsOf({ headers: { authorization } }) {
  const end = authorization.lastIndexOf('.');
  return [Buffer.from(authorization.slice('Bearer '.length, end)), Buffer.from(authorization.slice(end + 1), 'base64url')];
}

const answer = ([request, response]) => send(response, answers.get(request.url));

const queue = [];
function drain() {
  const batch = queue.splice(0);
  for (const [request] of batch) {
    const [input, signature] = signedPartsOf(request);
    const isForged = request.url === '/api/invalid';
    if (verify('sha256', input, key, signature) === isForged) throw new Error('a token of another kind');
  }
  batch.forEach(answer);
}

createServer({ keepAliveTimeout: 72_000 }, (...exchange) => {
  if (queue.push(exchange) === 1) setImmediate(drain);
}).listen(port, host);
