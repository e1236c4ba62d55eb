// Owns the process of a service: arguments, environment, working directory. Exit codes: 0 after a signal, 1
// for a wrong configuration, a failed hook, check or probe, or a second signal, 2 if it cannot listen.
// Promises: once it listens, only a signal ends the process, whatever a handler throws.
import { catching } from '../verify/base/encoding.ts';
import { describeBug, printable, printableSetting, type Log } from '../verify/base/events.ts';
import { systemClock as clock } from '../verify/base/clock.ts';
import { Part } from '../verify/base/option.ts';
import { VERSION } from '../verify/base/version.ts';
import {
  createListeningService,
  OWN_ROUTES,
  problemsOf,
  type Kind,
  type ListeningService,
} from '../service/create-service.ts';
import type { LogPart } from '../gate/options.ts';
import { readServiceOptions } from '../service/options.ts';
import type { Routes } from '../service/routes/route.ts';
import { ConfigurationError } from '../settings/configuration-error.ts';
import {
  loadFrom,
  optionsOf,
  reportWarnings,
  SERVICE_SETTINGS,
  type Loaded,
  type Settings,
} from '../settings/load-settings.ts';
import { isTemplate, type SettingsTable } from '../settings/table.ts';
import { endOnSignal, exit, hookProblems, readHooks, start, type Hooks } from './life.ts';
import type { Event } from './report.ts';
import { summaryOf, type Deployment, type Planned } from './summary.ts';

const WRONG_ARGUMENTS = 'arguments: must be none, or one of --check, --probe, --help and --version';

const HELP = `gatehouse ${VERSION}: a token-protected API service

Settings come from the environment, .env and application.yml: see docs/settings.md.

  (no argument)  run the service
  --check        read the settings, fetch the keys, print what would run, and exit with 0, or 1 for a problem
  --probe        ask the running service whether it is ready, and exit with 0 or 1
  --help         print this text
  --version      print the version`;

const LISTEN_ADVICE = 'set another HOST, PORT or METRICS_PORT, or end the process that uses the port';

/** Arguments that need no settings. */
const TEXTS = new Map([
  ['--help', HELP],
  ['--version', VERSION],
]);

export const runService = (routes: Routes, hooks: Hooks, kind = OWN_ROUTES): Promise<void> =>
  runWith({ table: SERVICE_SETTINGS, routesFor: () => routes, kindFor: () => kind, hooks });

export async function runForwardAuth(routes: Routes, hooks: Hooks): Promise<void> {
  const { createQuestionReaders: createReaders } = await import('../options/forward-auth.ts');

  return runService(routes, hooks, { ...OWN_ROUTES, createReaders, isPolicy: true });
}

/** What a process runs. Settings that have a problem are absent. */
export interface Plan {
  readonly table: SettingsTable;
  routesFor(settings: Settings): Routes;
  kindFor(settings: Settings): Kind;
  readonly hooks: Hooks;
}

export async function runWith(plan: Plan): Promise<void> {
  const words = process.argv.slice(2);
  const text = TEXTS.get(words.join(' '));
  if (text) return console.log(text);

  const loaded = await loadHere(plan.table);
  const { settings } = loaded;
  const planned = { kind: plan.kindFor(settings), routes: plan.routesFor(settings), loaded };
  const ofPlan = await planProblems(planned, plan.hooks);
  await endIfAny([...argumentProblems(words, loaded), ...ofPlan, ...loaded.problems], words);
  prepareLookups(settings);
  if (words.includes('--probe')) return (await import('./probe.ts')).probe(settings);

  return run(planned, plan.hooks, words.includes('--check'));
}

async function loadHere(table: SettingsTable) {
  // `cwd` throws if it is gone.
  const directory = catching('Error', process.cwd);
  return directory ? loadFrom(table, process.env, directory) : NOTHING;
}

async function planProblems({ kind, routes, loaded: { settings } }: Planned, hooks: Hooks) {
  const { resourceUrl: url } = settings;
  const ownPaths = url ? (await import('../options/resource-metadata.ts')).metadataPaths(url) : [];
  const ofRoutes = problemsOf(routes, kind, ownPaths);
  return [...ofRoutes, ...hookProblems(hooks, settings)];
}

/** Runs it, or tells what would run. */
async function run(planned: Planned, hooks: Hooks, isCheck: boolean) {
  const { onStart, onStop, ...others } = readHooks(hooks);
  const options = { ...(await optionsOf(planned.loaded.settings)), ...others };
  const events: Event[] = [];

  const values = readServiceOptions(isCheck ? { ...options, log: recorderOf(events) } : options);
  const service = createListeningService(planned.routes, values, planned.kind);
  reportWarnings(planned.loaded, service.log);
  const deployment = { ...planned, options, values };
  if (isCheck) return endWithReport(service, deployment, events);

  endOnSignal(service, onStop, clock);
  if (onStart !== undefined) await start(service, onStart, options);
  return serve(service, deployment);
}

async function endWithReport(service: ListeningService, deployment: Deployment, events: readonly Event[]) {
  const { check } = await import('./report.ts');
  return exit((await check(service, deployment, events)) ? 0 : 1);
}

/**
 * Only half of libuv's threads resolve names, and a lookup that hangs blocks one. Each issuer gets a thread,
 * and another where it is asked about tokens; so do the proxy, each store, its further hosts, and each fetch
 * of the keys of a tenant.
 */
function prepareLookups({ issuers, dpopReplayStore, revocationStore }: Settings) {
  const all = Object.values(issuers);
  const asked = all.filter(({ introspectionTokens }) => introspectionTokens);
  // A comma stands between hosts. One in a password costs two threads more.
  const ofStoresAndProxy =
    `${dpopReplayStore}${revocationStore}`.split(',').length + (revocationStore ? 2 : 1);
  // As many are fetched at a time.
  const ofTenants = all.some(({ jwksUri }) => isTemplate(jwksUri)) ? 20 : 0;
  process.env.UV_THREADPOOL_SIZE ??= String(2 * (all.length + asked.length + ofStoresAndProxy + ofTenants));
  // `process.exit` waits for lookups, and those of glibc may take 10 s for each name server.
  process.env.RES_OPTIONS ??= 'timeout:1 attempts:2';
}

/** A log that keeps its events. At `debug`, those about keys name the tenant. */
function recorderOf(events: Event[]): LogPart {
  const log: Log = (event, fields) => void events.push({ event, fields });
  return Part.make('log', { log, level: 'debug', isAccessLogged: false });
}

/** Writes all problems, and ends the process. A reader of a check, such as `less`, may take its time. */
async function endIfAny(problems: readonly string[], words: readonly string[]) {
  if (problems.length === 0) return;

  for (const line of new ConfigurationError(problems).problems) console.error(`configuration: ${line}`);
  await exit(1, words.includes('--check') ? undefined : clock);
}

const NOTHING: Loaded = {
  settings: { issuers: {} },
  files: [],
  problems: ['working directory: is gone; start in another'],
  warnings: [],
  strays: [],
};

function argumentProblems([word, ...others]: readonly string[], { settings, strays }: Loaded) {
  const isKnown = [undefined, '--check', '--probe'].includes(word) && others.length === 0;
  if (!isKnown) return [WRONG_ARGUMENTS];

  // A deployment's own check must find `IDP_DPOP_MOD=REQUIRED`, which the service only warns of.
  if (word === '--check') return strays;

  const isPortless = word === '--probe' && settings.port === 0;
  return isPortless ? ['PORT or server.port: must not be 0 for --probe; set one, or use --check'] : [];
}

async function serve(service: ListeningService, deployment: Deployment) {
  const { log } = service;
  const { address, ...ports } = await service.listen().catch((error) => endWithoutPort(error, log));

  log('listening', { ...ports, address: printable(address), ...summaryOf(deployment) });
  // Choice: one unhandled rejection of a handler must not end every request.
  process.on('uncaughtException', (error) => log('unforeseen error', describeBug(error), error));
  // Loading TLS blocks the process: first respond to requests.
  clock.after(20, service.fetchKeys);
}

interface PortError {
  readonly host?: string;
  readonly port?: number;
  readonly code?: unknown;
}

/** For an error of Node, which has a code, with the `port` that it could not have. Throws any other. */
function endWithoutPort(error: PortError, log: Log): never {
  const { host = 'all addresses', port, code } = error;
  if (port === undefined || code === undefined) throw error;

  const address = printableSetting(host);
  log('cannot listen', { address, port, code: printable(String(code)) });
  console.error(`cannot listen: ${address}, port ${port} (${code}); ${LISTEN_ADVICE}`);
  return process.exit(2);
}
