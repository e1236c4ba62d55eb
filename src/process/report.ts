// The report of `--check`: what would run, or what failed. Promises: no secrets.
import type { ListeningService } from '../service/create-service.ts';
import type { ServiceOptions, ServiceValues } from '../service/options.ts';
import { Index } from '../service/routes/pattern.ts';
import { literalsOf, type Route, type Routes } from '../service/routes/route.ts';
import { namesFor } from '../settings/names.ts';
import { nothing } from '../verify/base/clock.ts';
import type { FetchErrorReason, Fields, LogEvent } from '../verify/base/events.ts';
import { Part } from '../verify/base/option.ts';
import type { Probed } from '../verify/token/verify.ts';
import { introspectionOf, summaryOf, type Deployment } from './summary.ts';

/** The option of each part → the path that code would import it from. */
const PATHS: Readonly<Record<string, string>> = {
  log: 'gatehouse-http/log',
  connect: 'gatehouse-http/proxy',
  replayStore: 'gatehouse-http/redis',
  revocations: 'gatehouse-http/revocations',
  metadata: 'gatehouse-http/resource-metadata',
  cors: 'gatehouse-http/cors',
  metrics: 'gatehouse-http/metrics',
  clientCertificates: 'gatehouse-http/certificates',
  keyAccess: 'gatehouse-http/key-access',
  tenants: 'gatehouse-http/tenants',
  introspection: 'gatehouse-http/introspection',
};

function importsOf(options: ServiceOptions) {
  const owners = [options, ...Object.values(options.issuers ?? {})];
  const given = owners.flatMap(Object.entries);
  const parts = new Map(given.filter(([, value]) => Part.is(value)));
  return Object.entries(PATHS)
    .filter(([name]) => parts.has(name))
    .map(([, path]) => path);
}

/** What is likely wrong, and the fix, with the names of settings for the first issuer. */
const ADVICE: Readonly<Record<FetchErrorReason, string>> = {
  timeout: 'the provider did not respond within five seconds; check the network between it and this machine',
  'connection-failed':
    'no connection to the provider; check IDP_DOMAIN, IDP_JWKS_URI, DNS and outbound HTTPS',
  'certificate-refused':
    'the certificate is refused; check its dates, names and the clock, or set IDP_CA_FILE to its authority',
  'token-file-refused':
    'the file contains no token, or cannot be read; check IDP_JWKS_TOKEN_FILE and its permissions',
  'ca-file-refused':
    'the file is not a list of certificates, or cannot be read; check IDP_CA_FILE and its permissions',
  'proxy-refused': 'the proxy refused the tunnel; check its rules and the user in IDP_PROXY',
  'proxy-failed': 'no connection to the proxy; check IDP_PROXY',
  'status-refused':
    'the provider did not respond with 200; check IDP_DOMAIN, IDP_ISSUER, IDP_JWKS_URI, IDP_JWKS_TOKEN_FILE',
  'too-large': 'the provider sent more than 512 KiB; check IDP_JWKS_URI',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check IDP_DOMAIN and IDP_JWKS_URI',
  'issuer-mismatch': 'the discovery document has another issuer; set IDP_ISSUER to exactly that',
  'address-refused':
    'the provider gives no https: URL for its keys, or one that must not get the token; set IDP_JWKS_URI',
  'not-a-key-set': 'there is no list of keys; check IDP_JWKS_URI, or your own fetchKeys',
  'too-many-keys': 'the key set has more than 100 keys; check IDP_JWKS_URI',
  'no-usable-key': 'no key of the set can be used; check IDP_ALGORITHMS and the keys at the provider',
  unforeseen: 'correct your own fetchKeys or introspect, or report a bug in gatehouse',
};

/** For introspection requests. */
const INTROSPECTION_ADVICE = {
  ...ADVICE,
  'status-refused': 'the endpoint did not respond with 200; check IDP_INTROSPECTION_URI',
  'too-large': 'the endpoint sent more than 64 KiB; check IDP_INTROSPECTION_URI',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check IDP_INTROSPECTION_URI',
  'address-refused': 'the provider names no https: URL for introspection; set IDP_INTROSPECTION_URI',
  'client-refused':
    'the endpoint refused this client; check IDP_INTROSPECTION_CLIENT_ID and its secret or key',
  'no-verdict':
    'the response does not say true or false (active); check IDP_INTROSPECTION_URI, or your own introspect',
  active: 'the response calls a random token active; check IDP_INTROSPECTION_URI, or your own introspect',
};

function sentenceFor({ event, fields: { issuer, tenant, reason, code, error, frames } }: Failure) {
  const setting =
    event === 'revocation store lost'
      ? 'REVOCATION_STORE'
      : 'IDP_DPOP_REPLAY_STORE, or in the hook replayStore';
  if (issuer === undefined) return `${reason}; check address, user and rights in ${setting}`;

  const more = code || [error, frames ?? []].flat().join(' at ');
  const detail = more ? `${reason} (${more})` : reason;
  const { env } = namesFor({ env: 'IDP_', yaml: '' }, String(issuer));
  const advices = event === 'introspection lost' ? INTROSPECTION_ADVICE : ADVICE;
  const advice = advices[reason as FetchErrorReason];
  const whose = tenant ? `${issuer}, tenant ${tenant}` : issuer;
  return `issuer ${whose}, ${detail}; ${advice.replaceAll(/IDP_(?!PROXY)/g, env)}`;
}

/** What `--check` prints: what would run, or what failed. Resolves with whether all is well. */
export async function check(
  service: ListeningService,
  deployment: Deployment,
  events: readonly Event[],
): Promise<boolean> {
  const probed = await firstOutcomes(service, deployment.values.revocations);
  service.close();

  const logged = events.filter(({ event }) => FAILURES.includes(event));
  const failures: Failure[] = [...logged, ...probed.flatMap(failureIn)];
  for (const failure of failures) {
    console.error(`${failure.event}: ${sentenceFor(failure)}`);
  }
  if (failures.length > 0) return false;

  const report = reportOf(deployment, events, probed);
  console.log(JSON.stringify(report, undefined, 2));
  return true;
}

interface ProbedIssuer extends Probed {
  readonly issuer: string;
}

function failureIn({ issuer, problem }: ProbedIssuer): Failure[] {
  return problem ? [{ event: 'introspection lost', fields: { issuer, ...problem } }] : [];
}

/** Of each key set and of each store. Resolves with those of introspection requests. */
async function firstOutcomes(
  { issuers, replayStore }: ListeningService,
  revocations: ServiceValues['revocations'],
) {
  // The connections to the stores do not keep the process alive.
  const awake = setInterval(nothing, 1_000);

  const fetched = issuers.map(async ({ keys, refreshTenants = keys.refresh }) => {
    await refreshTenants();
    // No second attempt.
    keys.close();
  });
  const asked = issuers.map(async ({ name: issuer, introspect }): Promise<ProbedIssuer> => {
    return { issuer, ...(await introspect?.probe()) };
  });

  const probed = Promise.all(asked);
  await Promise.all([
    ...fetched,
    replayStore.firstOutcome,
    Part.contentOf(revocations)?.firstOutcome,
    probed,
  ]);
  clearInterval(awake);
  return probed;
}

function reportOf(deployment: Deployment, events: readonly Event[], probed: readonly ProbedIssuer[]) {
  const { profile, ...summary } = summaryOf(deployment);
  const { kind, routes, options, values } = deployment;
  const introspection = introspectionOf(values, (name, { clientId, authentication }) => {
    const { endpoint = '' } = probed.find(({ issuer }) => issuer === name) ?? {};
    return [endpoint, clientId, authentication];
  });

  return {
    profile,
    isPolicy: kind.isPolicy,
    ...summary,
    introspection,
    certificateProxies: Part.contentOf(values.clientCertificates)?.proxies,
    imports: importsOf(options),
    takenPaths: takenPaths(routes),
    events: events.map(({ event, fields }) => ({ event, ...fields })),
  };
}

/** Which route takes paths from which other. */
function takenPaths({ routes }: Routes) {
  const index = new Index<Route>();
  for (const route of routes) index.add(literalsOf(route), route);

  return routes.flatMap((route) => {
    // An empty segment, which no pattern has, is one that only parameters match.
    const texts = literalsOf(route)?.map((literal) => literal ?? '') ?? [];
    const [, ...others] = index.find(texts).filter(({ method }) => method === route.method);
    return others.map(({ method, pattern }) => `${method} ${route.pattern} takes paths from ${pattern}`);
  });
}

/** For standard error, not for the log. */
interface Failure {
  readonly event: LogEvent;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What the log would have had. */
export interface Event extends Failure {
  readonly fields: Fields;
}

const FAILURES: readonly LogEvent[] = [
  'signing keys could not be fetched',
  'replay store lost',
  'revocation store lost',
];
