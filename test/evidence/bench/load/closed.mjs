// As many requests as the server takes on some connections, one at a time on each, until the time or the records are over.
// Reads a job as JSON from its first argument, and writes { requests, seconds }.
import { openAll } from './connections.mjs';
import { requestsOf } from './requests.mjs';

const job = JSON.parse(process.argv[2]);
const requestText = requestsOf(job);
const limit = job.repeats ? Infinity : job.records.count;
let [sent, answered, isOver] = [0, 0, false];
let finish;
const finished = new Promise((resolve) => { finish = resolve; });

const onResponse = (connection) => {
  answered += 1;
  if (!isOver && sent < limit) connection.send(requestText(sent++));
  else if (answered === sent) finish();
};
const connections = await openAll(job.connections, job.port, job.expected, onResponse);
const start = performance.now();
const timer = setTimeout(() => { isOver = true; }, job.seconds * 1000);
for (const connection of connections) if (sent < limit) connection.send(requestText(sent++));
await finished;
const seconds = (performance.now() - start) / 1000;
clearTimeout(timer);
for (const connection of connections) connection.end();
process.stdout.write(JSON.stringify({ requests: answered, seconds }));
