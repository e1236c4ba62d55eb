// Requests at a constant rate, whatever the responses do. A latency counts from the moment at which its request was due, so a server
// that stalls pays for every request that it delayed. Spins instead of sleeping: timers of a millisecond would drown what is measured.
// Reads a job as JSON from its first argument, and writes { p50, p99, requests } in milliseconds.
import { openAll } from './connections.mjs';
import { requestsOf } from './requests.mjs';

const job = JSON.parse(process.argv[2]);
const requestText = requestsOf(job);
const total = Math.round(job.rate * job.seconds);
const latencies = [];
const due = [];
const onResponse = (connection) => {
  latencies.push(performance.now() - connection.dueAt);
  idle.push(connection);
};
const idle = await openAll(job.connections, job.port, job.expected, onResponse);
const connections = [...idle];
const start = performance.now();
let sent = 0;

function turn() {
  const now = performance.now();
  while (sent + due.length < total && start + ((sent + due.length) * 1000) / job.rate <= now) {
    due.push(start + ((sent + due.length) * 1000) / job.rate);
  }
  while (due.length > 0 && idle.length > 0) {
    const connection = idle.shift();
    connection.dueAt = due.shift();
    connection.send(requestText(sent++));
  }
  if (latencies.length < total) setImmediate(turn);
  else report();
}

function report() {
  for (const connection of connections) connection.end();
  latencies.sort((one, other) => one - other);
  const quantile = (share) => latencies[Math.ceil(share * latencies.length) - 1];
  process.stdout.write(JSON.stringify({ p50: quantile(0.5), p99: quantile(0.99), requests: latencies.length }));
}
turn();
