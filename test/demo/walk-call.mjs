/*
 * One call by a client that is told nothing but a URL: it reads in the 401 where the metadata document is (RFC 9728), in
 * that which provider to ask, gets a token there, and calls again. Prints each step, and the last response as `curl -i` does.
 *
 *   node walk-call.mjs <URL>
 *
 * Reads CA_FILE, AUDIENCE, CLIENT_ID and CLIENT_SECRET from the environment: what a client gets when it is registered.
 */
import { ask, askForToken, print } from './call.mjs';

const [url, ...others] = process.argv.slice(2);
if (url === undefined || others.length > 0) {
  process.stderr.write('usage: node walk-call.mjs <URL>\n');
  process.exit(1);
}

async function step(address, what) {
  const { response, text } = await ask(address);
  process.stdout.write(`# ${response.statusCode} ${address} (${what})\n`);
  return { challenge: response.headers['www-authenticate'], text };
}

const { challenge } = await step(url, 'the challenge names the document');
const [, metadata] = /resource_metadata="([^"]+)"/.exec(challenge);
const { authorization_servers: [issuer] } = JSON.parse((await step(metadata, 'the document names the provider')).text);
const configuration = await step(`${issuer}.well-known/openid-configuration`, 'the provider names its token endpoint');
const { token_endpoint: endpoint } = JSON.parse(configuration.text);

const token = await askForToken(endpoint);
process.stdout.write(`# 200 ${endpoint} (a token)\n`);
print(await ask(url, { headers: { Authorization: `Bearer ${token}` } }));
