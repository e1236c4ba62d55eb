/*
 * One call with a bound token (RFC 9449): makes a key, gets a token bound to it, makes a proof for the call, and prints the
 * answer as `curl -i` does. Shows how little a client needs; Node.js alone, nothing to install.
 *
 *   node dpop-call.mjs [--replay | --other-key | --bearer] <authority.pem> <token endpoint> <client> <secret> <audience> <URL>
 *
 * With --everywhere and the origins of replicas behind the URL the one proof is used at each of them at once.
 */
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const words = process.argv.slice(2);
const way = words[0]?.startsWith('--') ? words.shift() : '';
const [authority, tokenEndpoint, client, secret, audience, url, ...origins] = words;
if (url === undefined || !['', '--replay', '--other-key', '--bearer', '--everywhere'].includes(way)) {
  process.stderr.write('usage: node dpop-call.mjs [--replay | --other-key | --bearer | --everywhere] <authority.pem> <token endpoint> <client> <secret> <audience> <URL> [<origin> ...]\n');
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

async function ask(address, options, body) {
  const request = (address.startsWith('https:') ? https : http).request(address, { agent: false, ...options });
  request.end(body);
  const [response] = await once(request, 'response');
  const chunks = await response.toArray();
  return { response, text: Buffer.concat(chunks).toString() };
}

const key = makeKey();
const parameters = { client_id: client, client_secret: secret, audience, grant_type: 'client_credentials' };
const granted = await ask(tokenEndpoint, {
  method: 'POST', ca: readFileSync(authority), headers: { 'Content-Type': 'application/json', DPoP: makeProof(key, 'POST', tokenEndpoint) },
}, JSON.stringify(parameters));
const { access_token: token } = JSON.parse(granted.text);
if (token === undefined) {
  process.stderr.write(`no token: ${granted.text}\n`);
  process.exit(1);
}

const bound = { Authorization: `DPoP ${token}`, DPoP: makeProof(way === '--other-key' ? makeKey() : key, 'GET', url.replace(/[?#].*/, ''), token) };
const headers = way === '--bearer' ? { Authorization: `Bearer ${token}` } : bound;
if (way === '--everywhere') {
  const { pathname } = new URL(url);
  const answers = await Promise.all(origins.map((origin) => ask(origin + pathname, { headers })));
  answers.forEach(({ response, text }, index) => process.stdout.write(`# ${response.statusCode} ${origins[index]} ${text}\n`));
  process.exit(0);
}

if (way === '--replay') await ask(url, { headers });
const { response, text } = await ask(url, { headers });
const fields = response.rawHeaders.flatMap((name, index, all) => (index % 2 === 0 ? [`${name}: ${all[index + 1]}\r\n`] : []));
process.stdout.write(`HTTP/1.1 ${response.statusCode} ${response.statusMessage}\r\n${fields.join('')}\r\n${text}`);
