// Connections to the port of the first argument, as many as the second says: for each line that it reads it sends the line, as a
// request target, as often as the third says over each. Prints how many responses have come, whenever that is all of them.
import { createInterface } from 'node:readline';
import { connect } from 'node:net';

const [port, count, times] = process.argv.slice(2).map(Number);
let responses = 0;

const sockets = Array.from({ length: count }, () =>
  connect(port, '127.0.0.1').on('data', () => {
    responses += 1;
    if (responses === count) console.log(responses);
  }),
);

createInterface({ input: process.stdin }).on('line', (target) => {
  responses = 0;
  for (const socket of sockets) socket.write(`GET ${target} HTTP/1.1\r\nHost:a\r\n\r\n`.repeat(times));
});
