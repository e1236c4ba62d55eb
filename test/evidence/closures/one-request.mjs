/* Sends requests through the built code in this process, and prints as JSON which of its functions the fifth of them
   entered, as V8 counts them: the name of each, and where it begins. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { Session } from 'node:inspector';
import { createRequire, SourceMap } from 'node:module';
import { setImmediate as afterTurn } from 'node:timers/promises';
import { promisify } from 'node:util';

const DIST = new URL('../../../dist/', import.meta.url).href;

/** Those before the last warm the code and its caches up. */
const REQUESTS = 5;
/** Until the response has been written, and observed. */
const TURNS = 5;

const inspector = new Session();
inspector.connect();

const ask = promisify(inspector.post.bind(inspector));
await ask('Profiler.enable', {});
await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const load = createRequire(DIST);
const { createGate, createService, needs, scope } = load('./gatehouse.js');
const { createProofKey, createTestIssuer } = load('./testing.js');
const { routesB } = load('./profiles/b.js');

/** The source of a built file, and the line of each place in it. */
function sourceOf(url) {
  const path = new URL(url);
  const map = new SourceMap(JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8')));
  const starts = [0];
  for (const { index } of readFileSync(path, 'utf8').matchAll(/\n/g)) starts.push(index + 1);

  function lineOf(offset) {
    const line = starts.findLastIndex((start) => start <= offset);
    return (map.findEntry(line, offset - starts[line]).originalLine ?? 0) + 1;
  }

  return { file: url.slice(DIST.length).replace(/\.js$/, '.ts'), lineOf };
}

/** What has run since the last time. V8 has a function for the fields of a class, which nobody wrote. */
async function takeEntered() {
  const { result } = await ask('Profiler.takePreciseCoverage', {});
  const ours = result.filter(({ url }) => url.startsWith(DIST));

  return ours.flatMap(({ url, functions }) => {
    const entered = functions.filter(
      ({ functionName, ranges: [whole] }) => whole.count > 0 && !functionName.startsWith('<'),
    );
    if (entered.length === 0) return [];

    const { file, lineOf } = sourceOf(url);
    return entered.map(({ functionName: name, ranges: [{ startOffset, count }] }) => {
      return { file, line: lineOf(startOffset), name, calls: count };
    });
  });
}

/** Makes each request beforehand, since that uses code of the test issuer. */
async function enteredBy(make, send) {
  for (let left = REQUESTS; left > 1; left -= 1) await send(make());
  const last = make();
  for (let left = TURNS; left > 0; left -= 1) await afterTurn();
  await takeEntered();
  await send(last);
  for (let left = TURNS; left > 0; left -= 1) await afterTurn();
  return takeEntered();
}

const issuer = createTestIssuer();
const { log: _, ...options } = issuer.options;
const claims = { scope: 'read:messages' };

async function enteredByService() {
  const service = createService({ routes: routesB('-') }, { ...options, host: '127.0.0.1', port: 0 });
  const url = `${await service.listen()}/api/messages`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = issuer.bearer(claims);

  async function send(field) {
    const sent = request(url, { agent, headers: field });
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`the service responds with ${response.statusCode}`);
  }

  const entered = await enteredBy(() => headers, send);
  agent.destroy();
  await service.stop();
  return entered;
}

async function enteredByGate() {
  const gate = createGate({ ...options, publicUrl: 'https://api.test' });
  const access = needs(scope('read:messages'));
  const url = 'https://api.test/api/messages';
  const key = createProofKey();
  const token = issuer.boundToken(key, claims);

  function make() {
    const proof = issuer.proof(key, { method: 'GET', url }, token);
    return new Request(url, { headers: { authorization: `DPoP ${token}`, dpop: proof } });
  }

  async function send(asked) {
    const { refusal } = await gate.check(asked, access);
    if (refusal !== undefined) throw new Error(`the gate responds with ${refusal.status}: ${refusal.body}`);
  }

  const entered = await enteredBy(make, send);
  gate.close();
  return entered;
}

console.log(JSON.stringify({ GET: await enteredByService(), check: await enteredByGate() }));
