// The base of every ratio: node:http and nothing else. It sends, by path, the very answers that gatehouse was seen to send
// (status, header fields, body), with a fresh timestamp where the body has one, and reads no token.
import { createServer } from 'node:http';
import { host, port } from './environment.mjs';

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));

// Kept alive as long as gatehouse does, since the time is a header field too.
createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  const { status, headers, body } = answers.get(request.url);
  if (body.timestamp !== undefined) body.timestamp = new Date().toISOString();
  const text = JSON.stringify(body);
  response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]);
  response.end(text);
}).listen(port, host);
