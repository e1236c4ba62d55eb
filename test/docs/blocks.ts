/* The generated blocks of the documents, by name: mostly tables of lists in src. Each receives the current
   rows of the document. */
import { readFileSync } from 'node:fs';
import { ALGORITHM_NAMES } from '../../src/verify/keys/jwk.ts';
import { FETCH_ERROR_REASONS, EVENTS, type KeyReason } from '../../src/verify/base/events.ts';
import {
  refuse,
  refuseMethod,
  REFUSALS,
  unavailable,
  type Kind,
  type Refused,
} from '../../src/verify/base/refusal.ts';
import { createRefusalReplies } from '../../src/gate/replies/refusal-replies.ts';
import { anyScope, claimCheck, claimEquals, claimIncludes, scope } from '../../src/gate/rules/guards.ts';
import { actor, claims, decision, notDelegated } from '../../src/decisions.ts';
import { GOALS, START } from '../evidence/bench/plan.ts';
import type { Results, Runs } from '../evidence/bench/results.ts';
import { differencesIn, PROGRAMS as ORDERS, readResults, sizeOf } from '../evidence/orders/results.ts';
import { RESULTS, ROWS, type Results as PeerResults } from '../evidence/peers/results.ts';
import { AS_NEEDED, closureOf, readSources, type Sources } from '../support/closures.ts';
import { readTools } from '../support/evidence.ts';
import { FLOORS } from '../support/floors.ts';
import { read } from './pages.ts';
import { demoBlock, pictureBlock } from './pictures.ts';
import { routesTable } from './routes.ts';
import { settingsTable } from './settings.ts';
import { shortcuts } from './shortcuts.ts';
import { manyRoutes, sizing } from './sizing.ts';
import { code, listOf, listWithKept, tableOf, withKept, type Cells } from './tables.ts';

type Block = (written: readonly Cells[]) => string | Promise<string>;

/** `ERROR_DOCS_URL` may point to each. */
const named = (reason: string) => `<a id="${reason}"></a>${code(reason)}`;

/** What people write about each refusal. */
const TO_DO = ['client', 'operator'];
const CAUSE_AND_TO_DO = ['likely cause', ...TO_DO];

/** Sentences with their reasons, and what to do about each. */
const sentenceTable =
  (first: string, sentences: Readonly<Record<string, string>>, kept = CAUSE_AND_TO_DO): Block =>
  (written) => {
    const derived = Object.entries(sentences).map(([reason, sentence]) => [
      `${named(reason)}<br>${sentence}`,
    ]);
    return withKept([`reason and ${first}`, ...kept], derived, written);
  };

/** Reasons alone, and what they mean. */
const reasonList =
  (reasons: readonly string[]): Block =>
  (written) =>
    listWithKept(reasons.map(code), written);

const guarded = { description: '<error_description>' };

/** Which of two rows for one kind applies. */
const CASES: Readonly<Record<string, string>> = {
  'scope-missing': ', a scope is missing',
  'claim-missing': ', other cases',
};

/** One refusal for each row of the table of statuses. A missing kind does not compile. */
const KINDS: Readonly<Record<Kind, readonly Refused[]>> = {
  invalid_body: [refuse('body-malformed')],
  invalid_query: [refuse('query-refused', { issues: [] })],
  content_too_large: [refuse('body-too-large')],
  unsupported_media_type: [refuse('media-type-refused')],
  unprocessable_content: [refuse('body-refused', { issues: [] })],
  method_not_allowed: [refuseMethod(['GET', 'HEAD'])],
  not_found: [refuse('not_found')],
  request_timeout: [refuse('request_timeout')],
  expectation_failed: [refuse('expectation_failed')],
  header_fields_too_large: [refuse('header_fields_too_large')],
  invalid_request: [refuse('host-refused')],
  unauthorized: [refuse('no-credentials')],
  invalid_token: [refuse('expired')],
  invalid_dpop_proof: [refuse('proof-htm')],
  use_dpop_nonce: [refuse('proof-nonce')],
  insufficient_user_authentication: [refuse('login-insufficient')],
  insufficient_scope: [
    refuse('scope-missing', { ...guarded, scopes: ['<scope>'], demands: { scope: '<scope>' } }),
    refuse('claim-missing', guarded),
  ],
  temporarily_unavailable: [unavailable('keys-unavailable', 1)],
};

/** Without `Map.groupBy`, which Node 20 does not have. */
function grouped<T>(values: readonly T[], keyOf: (value: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, readonly T[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

const statuses: Block = () => {
  const refusals = Object.values(KINDS).flat();
  const derived = refusals.map(({ refusal }) => {
    const [plain, detailed] = [false, true].map((errorDetail) =>
      createRefusalReplies({ dpopMode: 'ALLOWED', dpopAlgorithms: ALGORITHM_NAMES, errorDetail })(
        refusal,
        'Bearer',
      ),
    );
    const body = plain?.content === detailed?.content ? '' : code(String(detailed?.content));
    return {
      status: plain?.status ?? 0,
      error: code(refusal.kind),
      which: CASES[refusal.reason] ?? '',
      body,
    };
  });
  derived.push({ status: 500, error: code('server_error'), which: '', body: '' });
  derived.sort((one, other) => one.status - other.status);

  const errors = grouped(derived, ({ status }) => String(status));
  const listed = [...errors].map(([status, rows]) => {
    return `- ${status}: ${[...new Set(rows.map(({ error }) => error))].join(', ')}\n`;
  });
  const detailed = derived.filter(({ body }) => body !== '');
  const bodies = tableOf(
    ['`error`', 'body with `ERROR_DETAIL=true`'],
    detailed.map(({ error, which, body }) => [error + which, body]),
  );
  return `${listed.join('')}\n${bodies}`;
};

/** A missing one does not compile. */
const KEY_REASONS: Readonly<Record<KeyReason, true>> = {
  'not-an-object': true,
  'key-type': true,
  'private-member': true,
  'key-id': true,
  'key-issuer': true,
  use: true,
  'key-operations': true,
  algorithm: true,
  encoding: true,
  size: true,
  exponent: true,
  'not-importable': true,
};

const CONTENT_REASONS = {
  ...REFUSALS.invalid_body,
  ...REFUSALS.unsupported_media_type,
  ...REFUSALS.content_too_large,
  ...REFUSALS.unprocessable_content,
  ...REFUSALS.invalid_query,
};

const HTTP_REASONS = {
  ...REFUSALS.not_found,
  ...REFUSALS.method_not_allowed,
  ...REFUSALS.request_timeout,
  ...REFUSALS.expectation_failed,
  ...REFUSALS.header_fields_too_large,
};

/**
 * What a reviewer of a program reads: what these files load, without the files of the first rows, `beside` of
 * which the reviewer reads too.
 */
const PROGRAMS: readonly Readonly<{ when: string; entries: readonly string[]; beside: number }>[] = [
  { when: '`createGate`', entries: ['gate.ts'], beside: 0 },
  { when: '`createService`', entries: ['gatehouse.ts'], beside: 1 },
  {
    when: '`runService` or `loadSettings`',
    entries: ['process/run.ts', 'settings/load-settings.ts', ...AS_NEEDED],
    beside: 2,
  },
  { when: '`server.js`', entries: ['server.ts'], beside: 3 },
  { when: '`runForwardAuth`', entries: ['options/forward-auth.ts'], beside: 3 },
];

/** The parts, which a gate can have without a service. */
const PARTS: readonly (readonly [when: string, entry: string])[] = [
  ['`gatehouse-http/log`, `runService`, `loadSettings`, `server.js` or `runForwardAuth`', 'log.ts'],
  ['`gatehouse-http/redis` or `IDP_DPOP_REPLAY_STORE`', 'redis.ts'],
  ['`gatehouse-http/revocations` or `REVOCATION_STORE`', 'revocations.ts'],
  ['`gatehouse-http/proxy` or `IDP_PROXY`', 'proxy.ts'],
  ['`gatehouse-http/certificates` or `CLIENT_CERT_SOURCE`', 'certificates.ts'],
  ['`gatehouse-http/key-access`, `IDP_JWKS_TOKEN_FILE` or `IDP_CA_FILE`', 'key-access.ts'],
  ['`gatehouse-http/tenants` or `IDP_TENANTS`', 'tenants.ts'],
  ['`gatehouse-http/introspection` or `IDP_INTROSPECTION`', 'introspection.ts'],
  ['`gatehouse-http/resource-metadata` or `RESOURCE_URL`', 'resource-metadata.ts'],
  ['`gatehouse-http/cors` or `CORS_ALLOWED_ORIGINS`', 'cors.ts'],
  ['`gatehouse-http/metrics` or `METRICS_PORT`', 'metrics.ts'],
  ['`gatehouse-http/decisions`', 'decisions.ts'],
  ['`gatehouse-http/openapi`', 'openapi.ts'],
];

const whatToRead: Block = () => {
  const sources = readSources();
  const parts = PARTS.map(([when, entry]) => ({
    when,
    entries: [entry],
    beside: 1,
    hasOptions: true as const,
  }));
  const closures = [...PROGRAMS, ...parts].map((row) => ({ ...row, ...closureOf(row, sources) }));
  const rows = closures.map(({ when, beside, files }) => {
    const known = new Set(closures.slice(0, beside).flatMap((other) => other.files));
    const added = files.filter((file) => !known.has(file));
    return [when, namesOf(added, [...sources.keys()]).join(', '), linesIn(added, sources)];
  });
  return tableOf(['for', 'read', 'lines (at most)'], rows);
};

/** Rounded up, which stays true for a while. */
function linesIn(files: readonly string[], sources: Sources): string {
  const lines = files.reduce((sum, file) => sum + (sources.get(file) ?? '').split('\n').length - 1, 0);
  return (Math.ceil(lines / 10) * 10).toLocaleString('en');
}

/** The files by name. A folder stands for its files, except for the others in it, if these are few. */
function namesOf(added: readonly string[], all: readonly string[]): string[] {
  const missingIn = (folder: string) =>
    all.filter((file) => file.startsWith(folder) && !added.includes(file));

  const isMostly = (folder: string) => {
    const present = added.filter((file) => file.startsWith(folder));
    return missingIn(folder).length * 2 <= present.length;
  };

  const names = added.map((file) => {
    const folders = [...file.matchAll(/\//g)].map(({ index }) => file.slice(0, index + 1));
    const folder = folders.find(isMostly);
    if (folder === undefined) return pathOf(file);

    const missing = missingIn(folder).map(pathOf);
    return missing.length === 0 ? code(folder) : `${code(folder)} (except ${missing.join(', ')})`;
  });
  return [...new Set(names)];
}

const pathOf = (file: string) => code(file.replace(/\.ts$/, ''));

const guards: Block = (written) => {
  const samples = {
    'scope(…)': scope('x'),
    'anyScope(…)': anyScope('x'),
    'claimEquals(name, value)': claimEquals('<name>', 'x'),
    'claimIncludes(name, values)': claimIncludes('<name>', ['x']),
    'claimCheck(what, check)': claimCheck('<what>', () => true),
    'decision(what, decide)': decision('<what>', () => true),
    'actor(…)': actor('x'),
    notDelegated,
    'claims(schema)': claims({ '~standard': { version: 1, validate: (value) => ({ value }) } }),
  };
  const derived = Object.entries(samples).map(([name, { refused }]) => {
    return [refused.refusal.description.replace(/<\w+>/, code), code(name)];
  });
  return withKept(['`error_description`', 'guard', 'passes when'], derived, written, 1);
};

const events: Block = (written) => {
  const derived = Object.entries(EVENTS).map(([message, level]) => [`${code(message)}<br>${level}`]);
  return withKept(['message and level', 'fields', 'when'], derived, written);
};

/** From the last full run of the benchmark, like the chart. */
const lastRun = () => JSON.parse(read('test/evidence/bench/results.json')) as Results;

const review: Block = () => {
  const rows = lastRun().review.map(({ server, packages, files, tokens }) => [
    server,
    ...[packages, files, tokens].map((figure) => figure.toLocaleString('en')),
  ]);
  return tableOf(['server', 'packages', 'files', 'tokens'], rows);
};

/** One more digit if there is only one before the point. */
const rounded = (value: number) => (value < 10 ? value.toPrecision(2) : value.toFixed(0));

type Measured = Results['sections'][number]['rows'][number];

const isOurs = ({ server }: Measured) => server.startsWith('gatehouse');

/** The lowest ratio of a peer, if there is one. `verifier` is the bound. */
function bestOf(servers: readonly Measured[]): number | undefined {
  const notPeers = ['plain', 'plain-fetch', 'rs256', 'es256', 'rs256-es256', 'verifier'];
  const peers = servers.filter((row) => !isOurs(row) && !notPeers.includes(row.server));
  return leastOf(peers);
}

const leastOf = (some: readonly Measured[]) =>
  some.length === 0 ? undefined : Math.min(...some.map(({ ratio }) => ratio));

/** The cost of each case, and its ratios to the best peer and to the least that a verifier needs. */
const run: Block = () => {
  const measured = lastRun().sections.filter(({ unit }) => unit !== 'requests/s');

  const rows = measured.map(({ title, unit, goal, rows: servers }) => {
    const { value, ratio } = servers.findLast(isOurs)!;
    const bound = servers.find(({ server }) => server === 'verifier')?.ratio;
    const ratios = [ratio, bestOf(servers), bound, goal].map((one) => one?.toFixed(2) ?? '');
    return [title, `${rounded(value)} ${unit}`, ...ratios];
  });
  return tableOf(['case', 'gatehouse', 'ratio', 'best peer', 'bound', 'goal'], rows);
};

/** The goals, and how near the last short run on each line of Node came to them. */
const goals: Block = () => {
  const runs = Object.values(JSON.parse(read('test/evidence/bench/lines.json')) as Runs);

  const rowsIn = ({ sections }: Results, name: string) =>
    sections.find(
      (section) => [name, `${name}-micros`].includes(section.name) && section.unit !== 'requests/s',
    );

  const ratioIn = (run: Results, name: string) => {
    const section = rowsIn(run, name);
    const ours = section?.rows.find(isOurs);
    return ours === undefined ? '' : `${ours.ratio.toFixed(2)} (${rounded(ours.value)} ${section?.unit})`;
  };

  const rows = [...GOALS, START].map(({ name, title, goal }) => {
    const servers = runs.map((run) => rowsIn(run, name)?.rows ?? []);
    const bound = leastOf(servers.flat().filter(({ server }) => server === 'verifier'));
    const others = [goal, bound, bestOf(servers.flat())].map((one) => one?.toFixed(2) ?? '');
    return [title, ...others, ...runs.map((run) => ratioIn(run, name))];
  });
  const lines = runs.map(({ machine }) => `Node ${String(machine.node).slice(1)}`);
  return tableOf(['case', 'goal', 'bound', 'best peer', ...lines], rows);
};

/** The committed results of other verifiers for the same requests. */
const peers: Block = () => {
  const results = Object.entries(JSON.parse(readFileSync(RESULTS, 'utf8')) as PeerResults);
  const rows = Object.entries(ROWS).map(([row, what]) => [what, ...results.map(([, one]) => one[row] ?? '')]);
  return tableOf(['sent', ...results.map(([name]) => name)], rows);
};

/** What the author of the same API writes and decides, with each framework. */
const ordersSizes: Block = () => {
  const results = readResults();
  const rows = ORDERS.map((program) => {
    const { lines, tokens, decisions } = sizeOf(program);
    const counts = [lines, tokens, decisions.length].map((count) => count.toLocaleString('en'));
    return [results[program.name]?.with ?? '', ...counts];
  });
  return tableOf(['made with', 'lines', 'JavaScript tokens', 'safeguards'], rows);
};

/** Whether one program does what another refuses, or they differ in what is no status. */
function isGrave(outcomes: readonly string[]): boolean {
  const isDone = outcomes.map((outcome) => /^[12]\d\d/.test(outcome));
  return new Set(isDone).size > 1 || outcomes.some((outcome) => !/^\d/.test(outcome));
}

const ordersOutcomes: Block = () => {
  const results = readResults();
  const outcomesOf = (name: string) => Object.values(results).map(({ outcomes }) => outcomes[name] ?? '');

  const grave = differencesIn(results).filter((name) => isGrave(outcomesOf(name)));
  const alike = grouped(grave, (name) => outcomesOf(name).join(' | '));
  const rows = [...alike].map(([outcomes, names]) => [names.join('<br>'), outcomes]);
  return tableOf(['sent', ...Object.keys(results)], rows);
};

/** The folders in the order in which files may import each other. */
const readingOrder: Block = (written) => {
  const folders = new Set(FLOORS.map(([folder]) => folder));
  const names = [...folders].map((folder) => (folder === '' ? 'other files' : code(folder)));
  return listWithKept(names, written);
};

/** The evidence tools, by the comments that open them. */
const evidence: Block = () => {
  const rows = readTools().map(({ name, shows }) => {
    // Their links start at the root, and those of the page in its folder. Arguments are left to the command.
    const text = shows.replaceAll('](docs/', '](').replaceAll(/ \([^()]+\)/g, '');
    return [code(name), text];
  });
  return listOf(rows);
};

export const BLOCKS: Readonly<Record<string, Block>> = {
  statuses,
  guards,
  'what-to-read': whatToRead,
  events,
  evidence,
  'orders-sizes': ordersSizes,
  'orders-outcomes': ordersOutcomes,
  peers,
  where: () => pictureBlock('where'),
  shapes: () => pictureBlock('shapes'),
  sequence: () => pictureBlock('sequence'),
  dashboard: () => pictureBlock('dashboard', 'pictures'),
  demo: demoBlock,
  review,
  run,
  goals,
  shortcuts,
  sizing,
  'many-routes': manyRoutes,
  settings: settingsTable,
  'reading-order': readingOrder,
  'token-reasons': sentenceTable('`error_description`', REFUSALS.invalid_token),
  'proof-reasons': sentenceTable('`error_description`', {
    ...REFUSALS.invalid_dpop_proof,
    ...REFUSALS.use_dpop_nonce,
  }),
  'request-reasons': sentenceTable('`error_description`', REFUSALS.invalid_request),
  'content-reasons': sentenceTable('message', CONTENT_REASONS, TO_DO),
  'other-refusals': sentenceTable('message', { ...REFUSALS.temporarily_unavailable, ...HTTP_REASONS }),
  'fetch-reasons': reasonList(FETCH_ERROR_REASONS),
  'key-reasons': reasonList(Object.keys(KEY_REASONS)),
  'routes-a': routesTable({ PROFILE: 'A' }),
  'routes-policy': routesTable({ PROFILE: 'A', SCOPE_POLICY: 'true' }, { PROFILE: 'A' }),
  'routes-b': routesTable({ PROFILE: 'B' }),
};
