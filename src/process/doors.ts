// The public functions that need settings. They load the settings and the process when they are called, so
// that a program that passes options in code loads neither.
import type { ServiceOptions } from '../service/options.ts';
import type { Routes } from '../service/routes/route.ts';
import type { Environment } from '../settings/sources.ts';
import type { Hooks } from './life.ts';

/**
 * Runs these routes as a whole process: settings, listener, signals, exit codes. If settings, routes or hooks
 * have problems, writes them all to standard error and ends the process. Resolves when it listens.
 *
 * @example runService({ routes: [get('/api/orders', needs(scope('read:orders')), listOrders)] });
 */
export async function runService(routes: Routes, hooks: Hooks = {}): Promise<void> {
  return (await import('./run.ts')).runService(routes, hooks);
}

/**
 * Runs routes as a process that tells a proxy whether a request may pass to the server behind it. Its routes
 * have `upstream` in place of a handler. Only the proxy may reach the port.
 *
 * @example runForwardAuth({ routes: [get('/api/orders', needs(scope('read:orders')), upstream)] });
 */
export async function runForwardAuth(routes: Routes, hooks: Hooks = {}): Promise<void> {
  return (await import('./run.ts')).runForwardAuth(routes, hooks);
}

/**
 * Loads settings as `runService` does, from an environment and the files of a directory: the options for
 * `createService`, with the part of each setting that is set. Writes warnings to the log that it makes.
 * Rejects with a `ConfigurationError`, which has every problem, or with a `TypeError` if either is missing.
 *
 * @example const service = createService({ routes }, await loadSettings(process.env, process.cwd()));
 */
export async function loadSettings(environment: Environment, directory: string): Promise<ServiceOptions> {
  return (await import('../settings/load-settings.ts')).loadSettings(environment, directory);
}
