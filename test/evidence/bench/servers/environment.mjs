// What every server is told, and what every handler answers.
const { PORT, ISSUER, AUDIENCE, JWKS_URI } = process.env;
export const port = Number(PORT);
export const issuer = ISSUER;
export const audience = AUDIENCE;
export const jwksUri = JWKS_URI;
export const host = '127.0.0.1';

const timestamp = () => new Date().toISOString();
export const publicMessage = () => ({ message: 'Hello from a public endpoint!', timestamp: timestamp() });
export const privateMessage = (user) => ({ message: 'Hello from a private endpoint!', user, timestamp: timestamp() });
export const unauthorized = { error: 'unauthorized', message: 'Authentication required' };

/** Sends what gatehouse answers in the case, with the time of now. */
export function send(response, { status, headers, body }) {
  body.timestamp = new Date().toISOString();
  const text = JSON.stringify(body);
  response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]);
  response.socket.cork();
  response.write(text);
  response.socket.uncork();
  response.end();
}

/** The provider's keys as JWKs, fetched once. */
export async function fetchKeys() {
  const response = await fetch(jwksUri);
  return (await response.json()).keys;
}

// An ordinary exit, so that Node writes down which files were loaded.
process.on('SIGTERM', () => process.exit(0));
