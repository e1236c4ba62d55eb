// The base of every ratio: node:http and nothing else. It sends, by path, the very answers that gatehouse was seen to send
// (status, header fields, body), with a fresh timestamp where the body has one, and reads no token. With FETCHES, it first fetches
// the keys.
import { createServer } from 'node:http';
import { host, jwksUri, port } from './environment.mjs';

async function fetchKeys() {
  const { get } = await import('node:https');
  await new Promise((resolve, reject) => {
    get(jwksUri, { agent: false }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}

// As a start with keys must.
if (process.env.FETCHES === 'true') await fetchKeys();

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));

// Kept alive as long as gatehouse does, since the time is a header field too.
createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  const { status, headers, body } = answers.get(request.url);
  if (body.timestamp !== undefined) body.timestamp = new Date().toISOString();
  const text = JSON.stringify(body);
  response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]);
  response.end(text);
}).listen(port, host);
