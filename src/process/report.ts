// What a service runs with, for the log line `listening` and the report of `--check`. Promises: no secrets.
import type { Routes } from '../service/routes/route.ts';
import { printable, printableSetting, type Log } from '../verify/base/events.ts';
import { ALGORITHM_NAMES } from '../verify/keys/jwk.ts';
import type { Loaded } from '../settings/load-settings.ts';
import { DEFAULT_ALGORITHMS } from '../settings/table.ts';

export function inForce({ settings, files }: Loaded) {
  const issuers = Object.values(settings.issuers);
  const algorithms = issuers.flatMap((issuer) => issuer.algorithms);

  return {
    application: printableSetting(settings.applicationName),
    issuers: issuers.map(({ issuer }) => printableSetting(issuer)),
    audiences: issuers.flatMap(({ audience }) => audience.map(printableSetting)),
    algorithms: otherThan(DEFAULT_ALGORITHMS, algorithms),
    dpopMode: printable(settings.dpopMode),
    dpopAlgorithms: otherThan(ALGORITHM_NAMES, settings.dpopAlgorithms),
    replayStore: printable(settings.dpopReplayStore === undefined ? 'process' : 'shared'),
    crossOrigin: settings.corsAllowedOrigins.length > 0,
    files: files.map(printableSetting),
  };
}

function otherThan(usual: readonly string[], names: readonly string[]) {
  const distinct = [...new Set(names)];
  return distinct.join() === usual.join() ? undefined : distinct.map(printable);
}

/** What a process runs. `name` is for log and metrics. */
export interface Deployment {
  readonly loaded: Loaded;
  readonly routes: Routes;
  readonly name: string;
}

/** The files of options/ in use, except dot-env and yaml, which `files` shows. */
const optionsIn = ({ settings }: Loaded, { isPolicy }: Routes) =>
  Object.entries({
    'proxy-tunnel': settings.proxy,
    'redis-replay': settings.dpopReplayStore,
    'resource-metadata': settings.resourceUrl,
    cors: settings.corsAllowedOrigins.length,
    metrics: settings.metricsPort !== undefined,
    'forward-auth': isPolicy,
  }).flatMap(([name, isUsed]) => (isUsed ? name : []));

/**
 * The log of `--check`. Once all issuers and the store have an outcome, prints the report and exits; if one
 * failed, exits with 1 and no report.
 */
export function createReport({ loaded, routes, name }: Deployment): Log {
  const events: object[] = [];
  const { issuers, dpopReplayStore } = loaded.settings;
  /** Names of issuers; `undefined` is the store. */
  const awaited = new Set<unknown>(Object.keys(issuers));
  if (dpopReplayStore !== undefined) awaited.add(undefined);
  // The connection to the store does not keep the process alive.
  setInterval(() => {}, 1_000);

  return (event, fields) => {
    events.push({ event, ...fields });
    if (event === 'signing keys could not be fetched' || event === 'replay store lost') {
      console.error(`${event}: ${JSON.stringify(fields)}`);
      process.exitCode = 1;
    } else if (event !== 'signing keys loaded' && event !== 'replay store ready') return;

    awaited.delete(fields.issuer);
    if (awaited.size > 0) return;

    const report = { profile: name, ...inForce(loaded), options: optionsIn(loaded, routes), events };
    if (process.exitCode === undefined) console.log(JSON.stringify(report, undefined, 2));
    process.exit();
  };
}
