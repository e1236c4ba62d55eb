/* What the programs of the demo share: a request, a token request, and a response as `curl -i` prints it. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const { CA_FILE, AUDIENCE, CLIENT_ID, CLIENT_SECRET } = process.env;

/** The provider of the demo has a certificate by an authority of its own. */
export async function ask(address, options, body) {
  const isSecure = address.startsWith('https:');
  const request = (isSecure ? https : http).request(address, { agent: false, ...(isSecure && { ca: readFileSync(CA_FILE) }), ...options });
  request.end(body);
  const [response] = await once(request, 'response');
  const chunks = await response.toArray();
  return { response, text: Buffer.concat(chunks).toString() };
}

/** The client's access token, bound to a key when the headers have a proof. */
export async function askForToken(endpoint, headers) {
  const parameters = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, audience: AUDIENCE, grant_type: 'client_credentials' };
  const options = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } };
  const { text } = await ask(endpoint, options, JSON.stringify(parameters));
  const { access_token: token } = JSON.parse(text);
  if (token !== undefined) return token;
  process.stderr.write(`no token: ${text}\n`);
  process.exit(1);
}

export function print({ response, text }) {
  const { statusCode, statusMessage, rawHeaders } = response;
  const fields = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}\r\n`] : []));
  process.stdout.write(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${fields.join('')}\r\n${text}\n`);
}
