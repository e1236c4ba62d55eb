// The base of the POST: node:http that reads and parses the body, and sends the very answer that gatehouse was seen to send.
import { createServer } from 'node:http';
import { host, port } from './environment.mjs';
import { answerTo } from './orders.mjs';

const { status, headers } = JSON.parse(process.env.ANSWER);

createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const text = JSON.stringify(answerTo(JSON.parse(Buffer.concat(chunks).toString() || '{"lines":[]}')));
    response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]);
    response.end(text);
  });
}).listen(port, host);
