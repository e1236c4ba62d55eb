// What a service runs with, for the log line `listening` and the report of `--check`. Promises: no secrets.
import type { Routes } from '../service/routes/route.ts';
import {
  printable,
  printableSetting,
  type FetchErrorReason,
  type Fields,
  type Log,
} from '../verify/base/events.ts';
import { ALGORITHM_NAMES } from '../verify/keys/jwk.ts';
import type { Loaded } from './load-settings.ts';
import { namesFor } from './settings/names.ts';
import { DEFAULT_ALGORITHMS } from './settings/table.ts';

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

/** What is likely wrong, and the fix, with the names of settings for the first issuer. */
const ADVICE: Readonly<Record<FetchErrorReason, string>> = {
  timeout: 'the provider did not respond within five seconds; check the network between it and this machine',
  'connection-failed': 'no connection to the provider; check IDP_DOMAIN, DNS and outbound HTTPS',
  'certificate-refused':
    'the certificate of the provider is not trusted; renew it, or name its authority in NODE_EXTRA_CA_CERTS',
  'proxy-refused': 'the proxy refused the tunnel; check its rules and the user in IDP_PROXY',
  'proxy-failed': 'no connection to the proxy; check IDP_PROXY',
  'status-refused': 'the provider did not respond with 200; check IDP_DOMAIN, IDP_ISSUER and IDP_JWKS_URI',
  'too-large': 'the provider sent more than 512 KiB; check IDP_JWKS_URI',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check IDP_DOMAIN and IDP_JWKS_URI',
  'issuer-mismatch': 'the discovery document names another issuer; set IDP_ISSUER exactly as it does',
  'address-refused': 'the discovery document names no https: URL of a key set; set IDP_JWKS_URI',
  'not-a-key-set': 'the response has no list of keys; check IDP_JWKS_URI',
  'too-many-keys': 'the key set has more than 100 keys; check IDP_JWKS_URI',
  'no-usable-key': 'no key of the set can be used; check IDP_ALGORITHMS and the keys at the provider',
  unforeseen: 'this is a bug of gatehouse; the log of the service shows where',
};

function sentenceFor({ issuer, reason, code }: Fields) {
  if (issuer === undefined) return `${reason}; check address, user and rights in IDP_DPOP_REPLAY_STORE`;

  const detail = code ? `${reason} (${code})` : reason;
  const { env } = namesFor({ env: 'IDP_', yaml: '' }, String(issuer));
  const advice = ADVICE[reason as FetchErrorReason].replaceAll(/IDP_(?!PROXY)/g, env);
  return `issuer ${issuer}, ${detail}; ${advice}`;
}

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
      console.error(`${event}: ${sentenceFor(fields)}`);
      process.exitCode = 1;
    } else if (event !== 'signing keys loaded' && event !== 'replay store ready') return;

    awaited.delete(fields.issuer);
    if (awaited.size > 0) return;

    const report = { profile: name, ...inForce(loaded), options: optionsIn(loaded, routes), events };
    if (process.exitCode === undefined) console.log(JSON.stringify(report, undefined, 2));
    process.exit();
  };
}
