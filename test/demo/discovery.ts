/* The way of a client that is told nothing but a URL, as lines for the shell: from the refusal to the document
   (RFC 9728), from there to the provider, and back with its token. Each line takes its address from the answer
   before it. */
import { curlLine, QUIET_CURL, shellLine, type Block, type Section } from './examples.ts';

/** What a pattern's group holds in the first line of an answer that has it. */
const found = (answer: string, pattern: string) => `$(${answer} | sed -n 's/.*${pattern}.*/\\1/p' | head -1)`;

const METADATA = 'resource_metadata="\\([^"]*\\)"';
const SERVER = '"authorization_servers":\\["\\([^"]*\\)"';
const ENDPOINT = '"token_endpoint":"\\([^"]*\\)"';
const TOKEN = '"access_token":"\\([^"]*\\)"';

export const discovery: Section = async ({ provider, clients, origin }) => {
  const { authorityFile, audience } = provider;
  const url = `${origin}/api/admin`;
  const { id, secret } = clients.find((client) => client.id === 'admin') ?? { id: '', secret: '' };
  const asked = { client_id: id, client_secret: secret, audience, grant_type: 'client_credentials' };

  const metadata = found(`${QUIET_CURL} -i ${url}`, METADATA);
  const server = found(`${QUIET_CURL} "${metadata}"`, SERVER);
  const trusted = shellLine('--cacert', authorityFile);
  const configuration = `"${server}.well-known/openid-configuration"`;
  const endpoint = found(`${QUIET_CURL} ${trusted} ${configuration}`, ENDPOINT);
  const form = shellLine('-H', 'Content-Type: application/json', '-d', JSON.stringify(asked));
  const token = found(`${QUIET_CURL} ${trusted} ${form} "${endpoint}"`, TOKEN);

  const block = (route: string, status: number, body: string, why: string, line: string): Block => ({
    route,
    status,
    body,
    why,
    line: `${curlLine()}${line}`,
  });

  return [
    block(
      'GET /api/admin',
      401,
      '{"error":"unauthorized"',
      'the challenge says which scope, and where to ask',
      url,
    ),
    block(
      'GET /.well-known/oauth-protected-resource',
      200,
      `{"resource":"${origin}"`,
      'the document that the challenge names',
      `"${metadata}"`,
    ),
    block(
      'GET /.well-known/openid-configuration',
      200,
      '{"issuer":',
      'the provider that the document names',
      `${trusted} ${configuration}`,
    ),
    block(
      'POST /oauth/token',
      200,
      '{"access_token":"eyJ',
      'a token from there',
      `${trusted} ${form} "${endpoint}"`,
    ),
    block(
      'GET /api/admin',
      200,
      '{"message":"Hello from the admin API!"}',
      'the whole way at once: told nothing but this URL',
      `-H "Authorization: Bearer ${token}" ${url}`,
    ),
  ];
};
