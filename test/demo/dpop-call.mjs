/*
 * One call with a bound token (RFC 9449): makes a key, gets a token bound to it, makes a proof for the call, and prints the
 * response as `curl -i` does. Shows how little a client needs; Node.js alone, nothing to install.
 *
 *   node dpop-call.mjs [--replay | --other-key | --bearer] <URL>
 *
 * Reads CA_FILE, TOKEN_ENDPOINT, AUDIENCE, CLIENT_ID and CLIENT_SECRET from the environment. With --everywhere and the
 * origins of replicas behind the URL the one proof is used at each of them at once.
 */
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { ask, askForToken, print } from './call.mjs';

const words = process.argv.slice(2);
const way = words[0]?.startsWith('--') ? words.shift() : '';
const [url, ...origins] = words;
const isKnown = ['', '--replay', '--other-key', '--bearer', '--everywhere'].includes(way);
if (url === undefined || !isKnown || origins.length > 0 !== (way === '--everywhere')) {
  process.stderr.write('usage: node dpop-call.mjs [--replay | --other-key | --bearer] <URL>\n       node dpop-call.mjs --everywhere <URL> <origin> ...\n');
  process.exit(1);
}

const makeKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A proof that the holder of the key makes this request now; with `token` it holds for that token alone (RFC 9449 §4.2). */
function makeProof({ publicKey, privateKey }, htm, htu, token) {
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) };
  const ath = token && createHash('sha256').update(token).digest('base64url');
  const input = `${encode(header)}.${encode({ jti: randomUUID(), htm, htu, iat: Math.floor(Date.now() / 1000), ath })}`;
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

const key = makeKey();
const endpoint = process.env.TOKEN_ENDPOINT;
const token = await askForToken(endpoint, { DPoP: makeProof(key, 'POST', endpoint) });

const proof = makeProof(way === '--other-key' ? makeKey() : key, 'GET', url.replace(/[?#].*/, ''), token);
const bound = { Authorization: `DPoP ${token}`, DPoP: proof };
const headers = way === '--bearer' ? { Authorization: `Bearer ${token}` } : bound;
if (way === '--everywhere') {
  const { pathname } = new URL(url);
  const answers = await Promise.all(origins.map((origin) => ask(origin + pathname, { headers })));
  answers.forEach(({ response, text }, index) => process.stdout.write(`# ${response.statusCode} ${origins[index]} ${text}\n`));
} else {
  if (way === '--replay') await ask(url, { headers });
  print(await ask(url, { headers }));
}
