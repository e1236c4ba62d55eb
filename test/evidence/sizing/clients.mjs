// Connections to the port of the first argument, as many as the second says. For each line that it reads, a number and a request
// target, it sends so many requests over each, and prints how many responses have come whenever each connection has one.
import { createInterface } from 'node:readline';
import { connect } from 'node:net';

const [port, count] = process.argv.slice(2).map(Number);
let responses = 0;

const sockets = Array.from({ length: count }, () =>
  connect(port, '127.0.0.1').on('data', (bytes) => {
    responses += bytes.toString('latin1').split('HTTP/1.1 ').length - 1;
    if (responses === count) console.log(responses);
  }),
);

createInterface({ input: process.stdin }).on('line', (line) => {
  const [times, target] = line.split(' ');
  responses = 0;
  for (const socket of sockets) socket.write(`GET ${target} HTTP/1.1\r\nHost:a\r\n\r\n`.repeat(Number(times)));
});
