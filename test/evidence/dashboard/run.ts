/* Runs a service under mixed traffic with Prometheus beside it for three minutes, and asks Prometheus for the
   expressions of docs/dashboard.json. Exits with 1 if one of them has no values. `--write` keeps the values in
   results.json, from which `npm run docs` draws the picture of the dashboard.

   Shows: [docs/dashboard.json](docs/dashboard.json) with the values of a real service.
   Takes: 4 min.
   Needs: `prometheus`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startService } from '../../demo/service.ts';
import { panelsDrawn, type Measured, type Series } from '../../docs/dashboard.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { freePort } from '../../support/free-port.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';

const SCRAPE_SECONDS = 1;
const RATE = '10s';
const STEP_SECONDS = 3;
const DRAWN_SECONDS = 180;
/** The first rates need as many seconds of scrapes. */
const WARM_UP_SECONDS = 15;
const TICK_MILLIS = 50;
const RESULTS = new URL('results.json', import.meta.url);

/** The service has no shared replay store, and so none of these values. */
const OF_A_STORE = 'gatehouse_replay_store_up';

/** What the picture shows in place of the ports of this run. */
const INSTANCE = 'api-1:9464';
const ISSUER = 'https://login.example.com/';

interface Target {
  readonly metricsPort: number;
  readonly directory: string;
}

/** JSON is YAML. */
const configuration = (metricsPort: number) =>
  JSON.stringify({
    global: { scrape_interval: `${SCRAPE_SECONDS}s` },
    scrape_configs: [
      {
        job_name: 'api',
        static_configs: [{ targets: [`127.0.0.1:${metricsPort}`], labels: { instance: INSTANCE } }],
        metric_relabel_configs: [
          { source_labels: ['issuer'], regex: '.+', target_label: 'issuer', replacement: ISSUER },
        ],
      },
    ],
  });

interface Prometheus {
  readonly origin: string;
  stop(): Promise<void>;
}

async function startPrometheus({ metricsPort, directory }: Target): Promise<Prometheus> {
  const file = join(directory, 'prometheus.yml');
  writeFileSync(file, configuration(metricsPort));
  const address = `127.0.0.1:${await freePort()}`;
  const words = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=${address}`,
  ];
  const child = spawn('prometheus', words, { stdio: 'ignore' });
  const gone = once(child, 'exit');

  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );

  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended with ${child.exitCode}`);
    await wait(TICK_MILLIS);
  }
  return {
    origin: `http://${address}`,
    stop: async () => {
      child.kill('SIGTERM');
      await gone;
    },
  };
}

interface Call {
  /** Out of a hundred calls. */
  readonly share: number;
  readonly path: string;
  headers(): Readonly<Record<string, string>>;
}

/** The usual calls of a day, and those of a thief. */
function callsTo(provider: Provider, port: number): { usual: readonly Call[]; theft: readonly Call[] } {
  const key = makeProofKey();
  const bound = provider.issue({ cnf: { jkt: key.thumbprint }, scope: 'read:messages' });
  const uri = `http://127.0.0.1:${port}/api/messages`;
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const issue = (claims = {}) => provider.issue({ scope: 'read:messages', ...claims });
  const tokens = Array.from({ length: 40 }, () => issue());
  const proofBy = (signer = key) => makeProof(signer, { token: bound, uri, nowSeconds: nowSeconds() });
  const dpop = (proof: string) => ({ Authorization: `DPoP ${bound}`, DPoP: proof });
  const otherKey = makeProofKey();
  const copied = proofBy();
  let count = 0;

  /** Clients renew their tokens now and then. */
  const usualToken = () => {
    count += 1;
    if (count % 25 === 0) tokens[count % tokens.length] = issue();
    return tokens[(count * 7) % tokens.length]!;
  };

  return {
    usual: [
      { share: 40, path: '/api/messages', headers: () => bearer(usualToken()) },
      { share: 20, path: '/api/private', headers: () => bearer(usualToken()) },
      { share: 20, path: '/api/messages', headers: () => dpop(proofBy()) },
      { share: 10, path: '/api/public', headers: () => ({}) },
      { share: 4, path: '/api/private', headers: () => ({}) },
      { share: 3, path: '/api/private', headers: () => bearer(provider.issue({ exp: nowSeconds() - 60 })) },
      { share: 3, path: '/api/admin', headers: () => bearer(usualToken()) },
    ],
    theft: [
      { share: 40, path: '/api/messages', headers: () => bearer(bound) },
      { share: 35, path: '/api/messages', headers: () => dpop(proofBy(otherKey)) },
      { share: 25, path: '/api/messages', headers: () => dpop(copied) },
    ],
  };
}

/** A call by chance, along the shares. */
function draw(calls: readonly Call[]): Call {
  let left = Math.random() * 100;
  for (const call of calls) {
    left -= call.share;
    if (left < 0) return call;
  }
  return calls[0]!;
}

/** Sends calls at a rate that rises and falls, with a thief in the second minute and a rotation after it. */
async function sendTraffic(provider: Provider, port: number): Promise<void> {
  const { usual, theft } = callsTo(provider, port);

  const send = async ({ path, headers }: Call) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: headers() });
    await response.arrayBuffer();
  };

  const begin = performance.now();
  const endSeconds = WARM_UP_SECONDS + DRAWN_SECONDS;
  let isRotated = false;
  let seconds = 0;
  while (seconds < endSeconds) {
    seconds = (performance.now() - begin) / 1000;
    const elapsed = seconds - WARM_UP_SECONDS;
    const usualCalls = 4 + 2 * Math.sin(elapsed / 20) + Math.random();
    const isTheft = elapsed > 60 && elapsed < 110;
    const thiefCalls = isTheft ? 3 * Math.sin(((elapsed - 60) / 50) * Math.PI) : 0;
    if (elapsed > 130 && !isRotated) {
      provider.rotate();
      isRotated = true;
    }
    const calls = [
      ...Array.from({ length: Math.round(usualCalls) }, () => draw(usual)),
      ...Array.from({ length: Math.round(thiefCalls) }, () => draw(theft)),
    ];
    await Promise.all([...calls.map(send), wait(TICK_MILLIS)]);
  }
}

interface QueryResult {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly values: readonly (readonly [number, string])[];
    }[];
  };
}

const nameOf = (format: string, labels: Readonly<Record<string, string>>) =>
  format.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '');

/** What Prometheus makes of an expression, at each step of the drawn time. */
async function query(
  origin: string,
  expr: string,
  format: string,
  endSeconds: number,
): Promise<readonly Series[]> {
  const beginSeconds = endSeconds - DRAWN_SECONDS;
  const asked = expr
    .replaceAll('$__rate_interval', RATE)
    .replaceAll('$job', '.*')
    .replaceAll('$instance', '.*');
  const parameters = new URLSearchParams({
    query: asked,
    start: String(beginSeconds),
    end: String(endSeconds),
    step: String(STEP_SECONDS),
  });
  const response = await fetch(`${origin}/api/v1/query_range?${parameters}`);
  if (!response.ok) throw new Error(`${expr}: ${await response.text()}`);

  const { data } = (await response.json()) as QueryResult;
  const steps = Array.from({ length: DRAWN_SECONDS / STEP_SECONDS + 1 }, (_, step) => step);
  return data.result.map(({ metric, values }) => {
    const byStep = new Map(
      values.map(([at, text]) => [Math.round((at - beginSeconds) / STEP_SECONDS), Number(text)]),
    );
    const rounded = steps.map((step) => byStep.get(step) ?? NaN).map((one) => Number(one.toPrecision(4)));
    return {
      name: nameOf(format, metric),
      values: rounded.map((one) => (Number.isFinite(one) ? one : null)),
    };
  });
}

async function measure(origin: string): Promise<Measured> {
  const endSeconds = Math.floor(Date.now() / 1000);
  const results: Record<string, readonly Series[]> = {};
  for (const { expr, legendFormat } of panelsDrawn().flatMap(({ targets }) => targets)) {
    results[expr] = await query(origin, expr, legendFormat, endSeconds);
    console.log(`${results[expr].length} series: ${expr}`);
  }
  return { stepSeconds: STEP_SECONDS, results };
}

async function run(): Promise<Measured> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-dashboard-'));
  const ending = new AbortController();
  const provider = await startProvider({ host: '127.0.0.1' });
  const metricsPort = await freePort();
  const environment = {
    PROFILE: 'B',
    IDP_DOMAIN: provider.domain,
    IDP_AUDIENCE: provider.audience,
    IDP_DPOP_MODE: 'ALLOWED',
    NODE_EXTRA_CA_CERTS: provider.authorityFile,
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: String(metricsPort),
  };
  const service = await startService(environment, ending.signal, () => {});
  const prometheus = await startPrometheus({ metricsPort, directory });
  try {
    await sendTraffic(provider, service.port!);
    return await measure(prometheus.origin);
  } finally {
    await prometheus.stop();
    ending.abort();
    await service.exited;
    await provider.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

const taken = await run();

for (const [expr, { length }] of Object.entries(taken.results)) {
  if (length > 0 || expr.startsWith(OF_A_STORE)) continue;

  console.error(`no series: ${expr}`);
  process.exitCode = 1;
}

if (process.argv.includes('--write')) {
  writeFileSync(RESULTS, `${JSON.stringify(taken)}\n`);
  console.log('npm run docs draws the picture');
}
