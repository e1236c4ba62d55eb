// What a service runs with, for the log line `listening` and the report of `--check`. Promises: no secrets.
import type { ListeningService } from '../service/create-service.ts';
import type { ServiceValues } from '../service/options.ts';
import { printable, printableSetting, type Fields, type LogEvent } from '../verify/base/events.ts';
import { ALGORITHM_NAMES } from '../verify/keys/jwk.ts';
import { DEFAULT_ALGORITHMS } from '../verify/options.ts';

/** What a process runs, beside its options. */
export interface Deployment {
  /** For log and metrics. */
  readonly name: string;
  readonly isPolicy: boolean;
  readonly applicationName: string;
  /** The files that were read. */
  readonly files: readonly string[];
}

export function inForce(values: ServiceValues, { applicationName, files }: Deployment) {
  const issuers = Object.values(values.issuers);
  const algorithms = issuers.flatMap((issuer) => issuer.algorithms);

  return {
    application: printableSetting(applicationName),
    issuers: issuers.map(({ issuer }) => printableSetting(issuer)),
    audiences: issuers.flatMap(({ audience }) => audience.map(printableSetting)),
    algorithms: otherThan(DEFAULT_ALGORITHMS, algorithms),
    dpopMode: printable(values.dpopMode),
    dpopAlgorithms: otherThan(ALGORITHM_NAMES, values.dpopAlgorithms),
    replayStore: printable(values.replayStore === undefined ? 'process' : 'shared'),
    crossOrigin: values.cors !== undefined,
    files: files.map(printableSetting),
  };
}

function otherThan(usual: readonly string[], names: readonly string[]) {
  const distinct = [...new Set(names)];
  return distinct.join() === usual.join() ? undefined : distinct.map(printable);
}

/** The option of each part → the path that code would import it from. */
const PATHS: Readonly<Record<string, string>> = {
  log: 'gatehouse-http/log',
  connect: 'gatehouse-http/proxy',
  replayStore: 'gatehouse-http/redis',
  metadata: 'gatehouse-http/resource-metadata',
  cors: 'gatehouse-http/cors',
  metrics: 'gatehouse-http/metrics',
};

const importsOf = (values: ServiceValues) =>
  Object.entries(PATHS).flatMap(([name, path]) => (Reflect.get(values, name) === undefined ? [] : path));

/** Why a fetch of keys failed → what to do. */
const ADVICE: Readonly<Record<string, string>> = {
  timeout: 'the provider did not respond within five seconds; check the network between it and this machine',
  'connection-failed': 'no connection to the provider; check the domain, DNS and outbound HTTPS',
  'certificate-refused': 'the provider has an untrusted certificate; see NODE_EXTRA_CA_CERTS',
  'proxy-refused': 'the proxy refused the tunnel; check its rules and the user in IDP_PROXY',
  'proxy-failed': 'no connection to the proxy; check IDP_PROXY',
  'status-refused': 'the provider did not respond with 200; check domain, issuer and key-set URL',
  'too-large': 'the provider sent more than 512 KiB; check the key-set URL',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check the key-set URL',
  'issuer-mismatch': 'the discovery document names another issuer; set the issuer exactly as it does',
  'address-refused': 'the discovery document names no https: key-set URL; set the key-set URL',
  'not-a-key-set': 'the response has no list of keys; check the key-set URL',
  'too-many-keys': 'the key set has more than 100 keys; check the key-set URL',
  'no-usable-key': 'no key of the set fits; check the algorithms that this API accepts',
};

function sentenceFor({ issuer, reason, code }: Fields) {
  if (issuer === undefined) return `${reason}; check address, user and rights in IDP_DPOP_REPLAY_STORE`;

  const detail = code ? `${reason} (${code})` : reason;
  return `issuer ${issuer}, ${detail}; ${ADVICE[String(reason)] ?? 'see the log of the service'}`;
}

/** What `--check` prints: what would run, or what failed. Resolves with whether all is well. */
export async function check(
  service: ListeningService,
  values: ServiceValues,
  deployment: Deployment,
  events: readonly Event[],
): Promise<boolean> {
  // The connection to the store does not keep the process alive.
  const awake = setInterval(() => {}, 1_000);
  const fetched = service.issuers.map(async ({ keys }) => {
    await keys.refresh();
    // No second attempt.
    keys.close();
  });
  await Promise.all([...fetched, service.replayStore.firstOutcome?.()]);
  clearInterval(awake);
  service.close();

  const failures = events.filter(({ event }) => FAILURES.includes(event));
  for (const { event, fields } of failures) console.error(`${event}: ${sentenceFor(fields)}`);
  if (failures.length > 0) return false;

  const imports = importsOf(values);
  const lines = events.map(({ event, fields }) => ({ event, ...fields }));
  const { name: profile, isPolicy } = deployment;
  const report = { profile, isPolicy, ...inForce(values, deployment), imports, events: lines };
  console.log(JSON.stringify(report, undefined, 2));
  return true;
}

/** What the log would have had. */
export interface Event {
  readonly event: LogEvent;
  readonly fields: Fields;
}

const FAILURES: readonly LogEvent[] = ['signing keys could not be fetched', 'replay store lost'];
