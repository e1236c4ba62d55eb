// Routes behind the checks, on a listener of their own. Promises: several services can share a process, and a
// stopped one does not keep it alive. Loads no settings and no part; handles no signals.
import { createChecks, type Checks } from '../gate/checks.ts';
import { open } from '../gate/rules/access.ts';
import { nothing, systemClock, type Clock } from '../verify/base/clock.ts';
import { Part } from '../verify/base/option.ts';
import { unavailable } from '../verify/base/refusal.ts';
import { readFacts } from '../verify/request/facts.ts';
import { listen } from './connection/listen.ts';
import { Listener } from './connection/listener.ts';
import { describeRoutes, mountProblems, withMounts } from './fetch/mounts.ts';
import { readServiceOptions, type ServiceOptions, type ServiceValues } from './options.ts';
import { Pipeline, type Readers } from './request/pipeline.ts';
import { Responder } from './request/responder.ts';
import { tellResponses } from './request/tell-responses.ts';
import { get, type Route, type Routes } from './routes/route.ts';
import { createRouter, isMount, routesProblems } from './routes/router.ts';

/** Made by `createService`. */
export interface Service {
  /** Listens and resolves with the URL. Rejects with Node's error if it cannot, and after `stop`. */
  readonly listen: () => Promise<string>;
  /**
   * Waits for `shutdownDelaySeconds`, then accepts no connections and drains for up to ten seconds. Resolves
   * with `deadline` if requests were cut off, otherwise with `drained`. Later calls return the same promise.
   */
  readonly stop: () => Promise<'drained' | 'deadline'>;
}

/**
 * Creates a service. Throws a `TypeError` for the first option that is wrong, or with a line for each problem
 * of the routes.
 *
 * @example const url = await createService({ routes }, { domain, audience, port: 0 }).listen();
 */
export function createService(routes: Routes, options: ServiceOptions): Service {
  const values = readServiceOptions(options);
  const problems = problemsOf(routes, OWN_ROUTES, Part.contentOf(values.metadata)?.paths);
  if (problems.length > 0) throw new TypeError(problems.join('\n'));

  const service = createListeningService(routes, values, OWN_ROUTES);
  const name = values.host?.replace(/.*:.*/, '[$&]') ?? 'localhost';

  return {
    async listen() {
      const { port } = await service.listen();
      service.fetchKeys();
      // RFC 3986 §3.2.2: brackets around IPv6.
      return `http://${name}:${port}`;
    },

    stop: service.stop,
  };
}

/** How a process differs from a service in code. */
export interface Kind {
  /** For log and metrics. */
  readonly name: string;
  readonly clock: Clock;
  /** Forward-auth reads auth requests, which are about other requests. */
  readonly createReaders: typeof createRouteReaders;
  readonly isPolicy: boolean;
}

export const OWN_ROUTES: Kind = {
  name: 'own table',
  clock: systemClock,
  createReaders: createRouteReaders,
  isPolicy: false,
};

/** The request itself is what is asked about. */
export function createRouteReaders(
  { routes, rules }: Routes,
  ownRoutes: readonly Route[],
  early?: Readers['early'],
  ownPaths?: readonly string[],
): Readers {
  const withoutMounts = routes.filter((route) => !isMount(route));
  const matchRoute = createRouter(withoutMounts, rules, ownRoutes, ownPaths);
  return { readFacts, early, matchRoute };
}

interface Phase {
  /** While `onStart` of a process runs, before anything listens. */
  isStarting?: boolean;
  /** `/readyz` reports it. */
  isStopping: boolean;
}

interface ComposedService extends Checks {
  readonly phase: Phase;
  readonly responder: Responder;
}

/** Does not listen or fetch yet. Trusts that the routes have no problems. */
export function composeService(served: Routes, values: ServiceValues, kind: Kind): ComposedService {
  const phase: Phase = { isStopping: false };
  const ownRoutes = createProbes(phase, () => checks.isReady());
  const routes = describeRoutes(served.routes);
  const checks = createChecks(values, { ...kind, routes, ownRoutes, isService: true });

  const ownPaths = Part.contentOf(values.metadata)?.paths;
  const readers = kind.createReaders(served, ownRoutes, checks.early, ownPaths);
  Part.use(values, ...Object.values(values.issuers));

  return { ...checks, phase, responder: composeResponder(served, readers, checks, values, kind) };
}

function composeResponder(
  served: Routes,
  readers: Readers,
  checks: Checks,
  values: ServiceValues,
  { clock }: Kind,
) {
  const hiddenField = Part.contentOf(values.clientCertificates)?.field;
  const options = { ...checks, ...values, clock, hiddenField };
  const withAll = withMounts(readers, served.routes.filter(isMount), options);
  const observer = tellResponses(checks.observer, values, clock, checks.log);
  return new Responder(new Pipeline(withAll, options), checks.replies, observer, clock);
}

export interface ListeningService extends ComposedService, Pick<Lifetime, 'listen' | 'stop'> {}

export function createListeningService(routes: Routes, values: ServiceValues, kind: Kind): ListeningService {
  const service = composeService(routes, values, kind);
  const { listen, stop } = new Lifetime(service, values, kind.clock);
  return { ...service, listen, stop };
}

/** From when a service listens until it has stopped. */
class Lifetime {
  readonly #service;
  readonly #values;
  readonly #clock;
  readonly #listener;
  readonly #endpoint;
  /** Resolves once it listens, or cannot. */
  #listening: unknown;
  #stopped: Promise<'drained' | 'deadline'> | undefined;

  constructor(service: ComposedService, values: ServiceValues, clock: Clock) {
    this.#service = service;
    this.#values = values;
    this.#clock = clock;
    this.#listener = new Listener(service.responder, clock, values.requestTimeoutSeconds * 1_000);
    this.#endpoint = Part.contentOf(values.metrics)?.endpoint;
  }

  /** Resolves with where it listens. Rejects with Node's error, plus `host` and `port`. */
  readonly listen = () => {
    const bound = this.#listenBoth();
    this.#listening = bound.catch(nothing);
    return bound;
  };

  async #listenBoth() {
    if (this.#service.phase.isStopping) throw new Error('the service has been stopped; create another');

    const { host, port } = this.#values;
    const metricsPort = await this.#endpoint?.listen(host);
    const bound = await listen(this.#listener.server, port, host).catch((error) => {
      this.#endpoint?.close();
      throw error;
    });
    return { port: bound.port, metricsPort, address: bound.address };
  }

  /** Drains once: a second drain would cut off what the first still waits for. */
  readonly stop = () => {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  };

  async #drain() {
    const { phase, close } = this.#service;
    phase.isStopping = true;
    // Neither paused connections nor unref'd timers keep the process alive.
    const awake = setInterval(nothing, 1_000);
    const delayMillis = this.#values.shutdownDelaySeconds * 1_000;
    if (delayMillis > 0) {
      await new Promise<void>((resolve) => this.#clock.after(delayMillis, resolve));
    }
    // A server that begins to listen after `stop` would never close.
    await this.#listening;
    const outcome = await this.#listener.stop();
    this.#endpoint?.close();
    close();
    clearInterval(awake);
    return outcome;
  }
}

const HEALTH_PATH = '/healthz';
const READINESS_PATH = '/readyz';

function createProbes(phase: Phase, isReady: () => boolean) {
  const readiness = () => {
    if (phase.isStopping) throw unavailable('shutting-down');
    if (!isReady()) throw unavailable('keys-unavailable');

    return { status: 'ready' };
  };

  return [get(HEALTH_PATH, open, () => ({ status: 'ok' })), get(READINESS_PATH, open, readiness)];
}

/** The problems of the routes. A proxy may ask about probes of the server behind it. */
export function problemsOf(served: Routes, { isPolicy }: Kind, paths: readonly string[] = []): string[] {
  const probes = isPolicy ? [] : [HEALTH_PATH, READINESS_PATH];
  const ownPaths = [...new Set([...probes, ...paths])];
  const mounts = [Object(served).routes].flat().filter(isMount);
  const ofRoutes = routesProblems(served, ownPaths, isPolicy);
  return [...ofRoutes, ...mountProblems(mounts, ownPaths, isPolicy)];
}
