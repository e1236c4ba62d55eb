// Services and gates in a process that is somebody's own: with its clock and its standard output, without its
// signals, files and environment. Promises: several live side by side, and nothing of one that was stopped
// keeps the process alive.
import type { AddressInfo } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { createLog, type Log, type LogLevel } from '../base/events.ts';
import { createCors } from '../reply/cors.ts';
import type { Table } from '../routes/row.ts';
import { checkSettings, type GivenSettings } from '../settings/load.ts';
import { assembleChecks, assembleResponder, type Surroundings } from './assemble.ts';
import { createGateChecks } from './gate.ts';
import { createListener } from './listener.ts';
import { createMetricsListener, listenBoth } from './metrics-listener.ts';
import { createMetrics } from './metrics.ts';

function after(millis: number, action: () => void): () => void {
  const timer = setTimeout(action, millis).unref();
  return () => clearTimeout(timer);
}

export const clock: Clock = { now: Date.now, monotonic: () => performance.now(), after };

/** The lines of a turn, of all services in this process: written one by one each would cost a system call. */
let unwritten = '';

function writeLines(): void {
  if (unwritten !== '') process.stdout.write(unwritten);
  unwritten = '';
}

function writeLater(line: string): void {
  if (unwritten === '') setImmediate(writeLines);
  unwritten += line;
}

/** Lines on standard output, up to a bound of what nobody has read. */
export function openLog(leastLevel: LogLevel): Log {
  const { stdout } = process;
  // A reader that goes away takes the log with it, not the service.
  if (stdout.listenerCount('error') === 0) stdout.on('error', () => {});
  if (!process.listeners('exit').includes(writeLines)) process.on('exit', writeLines);
  return createLog(leastLevel, writeLater, clock.now, () => stdout.writableLength + unwritten.length);
}

/** What a service or a gate is given beside its settings; a test issuer will do. */
export type CreateOptions = Pick<Surroundings, 'fetchKeys'>;

/** A service that `createService` has made. */
export interface Service {
  /** Listens, and gives the URL. Rejects when the address or port cannot be had. */
  listen(): Promise<string>;
  /** Takes no new connections, and resolves when the last is gone, at the latest after ten seconds. */
  stop(): Promise<'drained' | 'deadline'>;
  /** What was counted since it was made, as text for Prometheus (its format 0.0.4). */
  metricsText(): string;
}

/**
 * A service without process, signals and files: for tests and for embedding. Several may live in one process.
 * Throws `ConfigurationError` with every problem of the settings or of the table.
 *
 * @example const url = await createService({ rows }, { domain, audience, port: 0 }).listen();
 */
export function createService(table: Table, settings: GivenSettings, options: CreateOptions = {}): Service {
  const metrics = createMetrics();
  const { checked, checks } = embed(settings, { ...options, metrics });
  let isStopping = false;
  const responder = assembleResponder(table, checked, checks, () => isStopping);
  const { server, stop } = createListener(responder, clock);
  const metricsText = () => checks.metricsText('own table');
  const collected = createMetricsListener(metricsText, clock);

  return {
    listen: async () => {
      await listenBoth(checked, server, collected);
      checks.fetchKeys();
      // RFC 3986 §3.2.2: an address of IPv6 stands in brackets.
      const name = checked.host?.replace(/.*:.*/, '[$&]') ?? 'localhost';
      return `http://${name}:${(server.address() as AddressInfo).port}`;
    },

    stop: async () => {
      isStopping = true;
      const outcome = await stop();
      collected.close();
      collected.closeAllConnections();
      checks.close();
      return outcome;
    },

    metricsText,
  };
}

/** A gate that `createGate` has made. */
export interface Gate extends ReturnType<typeof createGateChecks> {
  /** Whether keys are held to judge tokens with. */
  isReady(): boolean;
  /** Ends what it has under way. */
  close(): void;
}

/**
 * The checks alone, for a server that exists. Keys are fetched from now on; `isReady` tells whether they are
 * there. Rejects with `ConfigurationError`.
 *
 * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
 */
export async function createGate(settings: GivenSettings, options: CreateOptions = {}): Promise<Gate> {
  const { checked, checks } = embed({ ...settings, accessLog: false }, options);
  checks.fetchKeys();
  return {
    ...createGateChecks(checks.front, createCors(checked)),
    isReady: checks.isReady,
    close: checks.close,
  };
}

function embed(settings: GivenSettings, { fetchKeys, metrics }: Pick<Surroundings, 'fetchKeys' | 'metrics'>) {
  const checked = checkSettings(settings);
  const log = openLog(checked.logLevel);
  if (fetchKeys !== undefined) log('signing keys not from the provider', {});
  const surroundings = { clock, log, fetchKeys, metrics };
  return { checked, checks: assembleChecks(checked, surroundings) };
}
