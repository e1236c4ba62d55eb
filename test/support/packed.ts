/* The package as other projects get it: packed, and installed into an unrelated folder. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Packed {
  /** The path of the tarball. */
  readonly filename: string;
  /** In bytes. */
  readonly size: number;
  /** What it holds. */
  readonly files: readonly string[];
}

export const npm = (directory: string, ...words: readonly string[]) =>
  execFileSync('npm', [...words, '--silent', '--no-audit', '--no-fund'], {
    cwd: directory,
    encoding: 'utf8',
  });

/** Packs the build. */
export function packInto(directory: string): Packed {
  const flags = ['--json', '--ignore-scripts', '--pack-destination', directory];
  const [{ filename, size, files }] = JSON.parse(npm(ROOT, 'pack', ...flags)) as [
    { filename: string; size: number; files: { path: string }[] },
  ];
  return { filename, size, files: files.map(({ path }) => path) };
}

/** Unexpected files in the tarball. */
export const straysOf = ({ files }: Packed): readonly string[] =>
  files.filter(
    (path) =>
      !/^dist\/[\w./-]+\.(?:js|d\.ts)$/.test(path) &&
      !/^docs\/[\w-]+\.(?:md|ya?ml|json|conf|caddyfile|service)$/.test(path) &&
      !/^docs\/pictures\/[\w-]+\.(?:svg|png)$/.test(path) &&
      !/^(?:dist\/package\.json|package\.json|(?:README|CHANGELOG|SECURITY)\.md|LICENSE)$/.test(path),
  );

/** Makes a project with nothing but the package. Needs no network. */
export function installInto(directory: string, { filename }: Packed): void {
  writeFileSync(join(directory, 'package.json'), '{"name":"orders","private":true,"type":"module"}');
  npm(directory, 'install', '--offline', `./${filename}`);
}

/** Copies the types of Node into the project. */
export function addNodeTypes(directory: string): void {
  symlinkSync(join(ROOT, 'node_modules/@types'), join(directory, 'node_modules/@types'));
}

/** Copies the example into the project. */
export function addExample(directory: string): void {
  const example = join(ROOT, 'test/example');
  for (const name of ['src', 'tsconfig.json']) {
    cpSync(join(example, name), join(directory, name), { recursive: true });
  }
  addNodeTypes(directory);
}

/** What a project with declarations can export without annotations. */
export const EXPORTED = `
import { bytes, createGate, createService, created, get, json, loadSettings, mount, needs, open, optional, post, query, reply, scope, under,
  type Caller, type GateRequest, type GateOptions, type Hooks, type IssuerOptions, type MountContext, type PathParameters, type RequestOf, type ResponseEvent,
  type RouteRequest, type Schema, type ServiceOptions, type VerdictEvent } from 'gatehouse-http';
import { actor, claims, decision } from 'gatehouse-http/decisions';
import { clientCertificates } from 'gatehouse-http/certificates';
import { cors } from 'gatehouse-http/cors';
import { introspection } from 'gatehouse-http/introspection';
import { keyAccess } from 'gatehouse-http/key-access';
import { jsonLog } from 'gatehouse-http/log';
import { createMetrics } from 'gatehouse-http/metrics';
import { openApi } from 'gatehouse-http/openapi';
import { throughProxy } from 'gatehouse-http/proxy';
import { redisReplayStore } from 'gatehouse-http/redis';
import { resourceMetadata } from 'gatehouse-http/resource-metadata';
import { createRevocations } from 'gatehouse-http/revocations';
import { tenants } from 'gatehouse-http/tenants';
import { createProofKey, createTestIssuer } from 'gatehouse-http/testing';

declare const order: Schema<{ readonly item: string }>;
declare const settings: GateOptions;

export const body = json();
export const order1 = json(order, { limitBytes: 5 });
export const page = query(order);
export const inputs = { body, page };
export const wrapped = <Output>(schema: Schema<Output>) => [query(schema), json(schema)] as const;
export const checked = [page.check(new URLSearchParams()), order1.check({})] as const;

export const routes = [get('/a', open, () => ({}))];
export const one = post('/a/{id}', optional, page, order1, ({ body, query }) => created('/a', { body, query }));
export const all = [...routes, one] as const;
export const served = { routes: [...routes, one], rules: [under('/', needs(scope('a')))] };
export const [{ method, handler }] = [one];
export const narrowed = routes.map((route) => ({ ...route, access: needs(scope('b')) }));
export const index = routes.map(({ method, pattern, access }) => ({ method, pattern, guards: access.guards }));
export const at = <Pattern extends string>(pattern: Pattern) => get(pattern, open, ({ parameters }) => ({ parameters }));
export const show = ({ parameters }: RouteRequest<Caller, PathParameters<'/a/{id}'>>) => reply(200, { id: parameters.id });
const mayRead = needs(scope('a'));
export const list = ({ query }: RequestOf<'/a/{id}', typeof mayRead, typeof page>) => reply(200, { query });
export const change = async (request: RequestOf<'/a/{id}', typeof mayRead, typeof page, typeof order1>) => ({ ...request.body, id: request.parameters.id });
export const take = (request: RequestOf<'/a', typeof optional, typeof body>) => request;
export const more = [get('/c/{id}', mayRead, page, list), post('/c/{id}', mayRead, page, order1, change), post('/a', optional, body, take)];
export const makers = { get, post, json, query, reply };
export const files = mount('/files', mayRead, (request) => new Response(request.body));
export const upload = post('/upload', mayRead, bytes(), ({ body }) => ({ length: body.length }));
export const form = post('/form', mayRead, bytes(), async ({ body }) => ({ size: (await new Response(body).blob()).size }));
export const mayDecide = needs(decision('owner', async () => true), claims(order));
export const decided = get('/d', mayDecide, ({ caller }) => ({ item: caller.claims.item }));
export default one;

export const gate = createGate(settings);
export const { check, admit } = gate;
export const later = createGate(settings);
export const checkRequest = (request: GateRequest) => gate.check(request, optional);
export const verdict = await gate.check({ method: 'GET', url: '/', rawHeaders: [] }, optional);
export const refusal = verdict.refusal;
export const headers = 'headers' in verdict ? verdict.headers : undefined;
export class Server {
  gate = createGate(settings);
  service = createService(served, settings);
  own = get('/b', open, () => []);
}
export const parts = {
  clientCertificates: clientCertificates({ source: 'tls' }),
  connect: throughProxy('http://localhost:3128'),
  cors: cors({ origins: ['https://app.example'] }),
  log: jsonLog(),
  metadata: resourceMetadata({ url: 'https://api.example' }),
  metrics: createMetrics(),
  replayStore: redisReplayStore('rediss://localhost'),
  revocations: createRevocations({ store: 'rediss://localhost' }),
};
export const ofIssuer = {
  introspection: introspection({ tokens: ['opaque'], clientId: 'api', clientSecret: 'secret' }),
  keyAccess: keyAccess({ caFile: '/ca.pem' }),
  tenants: tenants({ issuer: 'https://login.example/{tenant}', list: ['acme'] }),
};
export const whole = { ...settings, ...parts, ...ofIssuer };
export const fromParts = createGate(whole);
export const contextOf = ({ caller, authorize }: MountContext<Caller>) => ({ caller, authorize });
export const rowOf = ({ reason, status }: ResponseEvent) => ({ reason, status });
export const reasonOf = ({ reason }: VerdictEvent) => reason;
export const described = openApi(served, { title: 'Orders', version: '1' });
export const loaded = (environment: NodeJS.ProcessEnv) => loadSettings(environment, '.');
export const ofService = (options: ServiceOptions) => ({ ...options, ...parts, port: 0 });
export const ofIssuers = (options: IssuerOptions) => ({ ...options, ...ofIssuer });
export const ownHooks = (hooks: Hooks) => ({ ...hooks });
export const ofGate = (options: GateOptions) => ({ ...options });
export const copied = (options: ServiceOptions) => ({ ...options });
export const issuer = createTestIssuer();
export const key = createProofKey();
`;

/** The same for projects that import one path alone. */
export const EXPORTED_ALONE = [
  `import { actor, decision, notDelegated } from 'gatehouse-http/decisions';
export const bot = actor('assistant');
export const none = notDelegated;
export const owner = decision('owner', async () => true);
`,
  `import { createProofKey, createTestIssuer } from 'gatehouse-http/testing';
export const options = { ...createTestIssuer().options, port: 0 };
export const key = createProofKey();
`,
  `import { createGate, needs, optional, scope } from 'gatehouse-http/gate';
export const gate = createGate({ domain: 'idp.example', audience: 'api' });
export const mayRead = needs(scope('a'));
export const verdict = await gate.check(new Request('http://localhost/'), optional);
`,
];

/** Compiles the project with the compiler of this repository. Throws its messages. */
export function compile(directory: string, compiler: string, ...flags: readonly string[]): void {
  const { status, stdout } = spawnSync(process.execPath, [join(compiler, 'bin/tsc'), ...flags], {
    cwd: directory,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stdout);
}
