// Requests with a new proof each, at a constant rate or as fast as the responses come; every response has to be 200. A latency counts from
// the moment at which its request was due. Sleeps between its turns, since it shares its core with the store. Reads a job as JSON from
// its first argument, and writes figures in milliseconds as JSON.
import { readFileSync } from 'node:fs';
import { openAll } from '../bench/load/connections.mjs';

const { port, file, before, rate, connections: count } = JSON.parse(process.argv[2]);
const proofs = readFileSync(file, 'latin1').trimEnd().split('\n');
const latencies = [];
let sent = 0;
let due = 0;

function sendDue() {
  while (sent < due && idle.length > 0) {
    const connection = idle.shift();
    connection.dueAt = rate === undefined ? performance.now() : start + (sent * 1000) / rate;
    connection.send(`${before}${proofs[sent++]}\r\n\r\n`);
  }
}

const onResponse = (connection) => {
  latencies.push(performance.now() - connection.dueAt);
  idle.push(connection);
  sendDue();
  if (latencies.length === proofs.length) report();
};

function turn() {
  const elapsed = performance.now() - start;
  due = rate === undefined ? proofs.length : Math.min(proofs.length, Math.floor((elapsed * rate) / 1000) + 1);
  sendDue();
  if (due < proofs.length) setTimeout(turn, 1);
}

function report() {
  const seconds = (performance.now() - start) / 1000;
  for (const connection of connections) connection.end();
  latencies.sort((one, other) => one - other);
  const quantile = (share) => latencies[Math.ceil(share * latencies.length) - 1];
  const figures = {
    p50: quantile(0.5),
    p99: quantile(0.99),
    p999: quantile(0.999),
    perSecond: proofs.length / seconds,
  };
  process.stdout.write(JSON.stringify(figures));
}

const idle = await openAll(count, port, { status: 200, sample: '{' }, onResponse);
const connections = [...idle];
const start = performance.now();
turn();
