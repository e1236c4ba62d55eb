// The settings of parts, and the parts that they make. Promises: a part is imported when its setting is set,
// with the rule of the setting.
import { isSameOrigin, NO_BEARER, NO_PROOFS, WRONG_RESOURCE, type LogPart } from '../gate/options.ts';
import type { CertificateSource } from '../options/certificates/certificates.ts';
import { jsonLog, LOG_RULES, type LogOptions } from '../options/log.ts';
import { NO_TLS, SAME_PORT, type ServiceOptions } from '../service/options.ts';
import { integer as wholeNumber, textWithoutBlanks } from '../verify/base/option.ts';
import {
  anyOrList,
  boolean,
  inLowerCase,
  integer,
  list,
  listOrNone,
  needing,
  text,
  throwProblem,
  type Earlier,
} from './entry.ts';
import { isTemplate, ofPart, setting, type ValuesOf } from './table.ts';

/** The form of an address that both stores have. */
const ofStore = { importRule: async () => (await import('../options/redis/target.ts')).storeUrl };

const importProxy = () => import('../options/proxy.ts');

const importCertificates = () => import('../options/certificates/certificates.ts');

const ofCertificates = ofPart(async () => (await importCertificates()).CERTIFICATE_RULES);

const importCors = () => import('../options/cors.ts');

const ofCors = ofPart(async () => (await importCors()).CORS_RULES);

const importResource = () => import('../options/resource-metadata.ts');

const ofResource = ofPart(async () => (await importResource()).RESOURCE_RULES);

const withoutSource = needing(
  'clientCertSource',
  'has no effect without CLIENT_CERT_SOURCE; set that too, or remove this',
);

const withoutUrl = needing('resourceUrl', 'has no effect without RESOURCE_URL; set that too, or remove this');

export const PART_SETTINGS = {
  logLevel: setting('LOG_LEVEL', 'log.level', inLowerCase, { rule: LOG_RULES.level }),
  accessLog: setting('ACCESS_LOG', 'log.access', boolean),
  errorMessages: setting('LOG_ERROR_MESSAGES', 'log.errorMessages', boolean),
  dpopReplayStore: setting('IDP_DPOP_REPLAY_STORE', 'idp.dpopReplayStore', text, {
    ...ofStore,
    misfit: (_, { dpopMode }) => (dpopMode === 'DISABLED' ? NO_PROOFS : undefined),
  }),
  revocationStore: setting('REVOCATION_STORE', 'revocation.store', text, ofStore),
  proxy: setting('IDP_PROXY', 'idp.proxy', text, {
    importRule: async () => (await importProxy()).proxyUrl,
  }),
  clientCertSource: setting('CLIENT_CERT_SOURCE', 'api.clientCertSource', text, {
    ...ofCertificates('source'),
    misfit: (source) => (source === 'tls' ? NO_TLS : undefined),
  }),
  clientCertField: setting('CLIENT_CERT_FIELD', 'api.clientCertField', text, {
    ...ofCertificates('field'),
    misfit: withoutSource,
  }),
  clientCertProxies: setting('CLIENT_CERT_PROXIES', 'api.clientCertProxies', anyOrList, {
    ...ofCertificates('proxies'),
    byDefault: noProxies,
    misfit: withoutSource,
  }),
  clientCertRequired: setting('CLIENT_CERT_REQUIRED', 'api.clientCertRequired', boolean, {
    misfit: requiredInVain,
  }),
  resourceUrl: setting('RESOURCE_URL', 'resource.url', text, {
    ...ofResource('url'),
    misfit: (url, { publicUrl = url, issuers }) =>
      [URL.canParse(url) && !isSameOrigin(url, String(publicUrl)) && WRONG_RESOURCE, withoutServer(issuers)]
        .filter(Boolean)
        .join('; ') || undefined,
  }),
  resourceScopes: setting('RESOURCE_SCOPES', 'resource.scopes', list(1), {
    ...ofResource('scopes'),
    misfit: withoutUrl,
  }),
  resourceName: setting('RESOURCE_NAME', 'resource.name', text, {
    ...ofResource('name'),
    misfit: withoutUrl,
  }),
  resourceDocumentation: setting('RESOURCE_DOCUMENTATION', 'resource.documentation', text, {
    ...ofResource('documentation'),
    misfit: withoutUrl,
  }),
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', listOrNone, ofCors('origins')),
  corsAllowCredentials: setting('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean),
  corsAllowedMethods: setting('CORS_ALLOWED_METHODS', 'cors.allowedMethods', listOrNone, ofCors('methods')),
  corsAllowedHeaders: setting('CORS_ALLOWED_HEADERS', 'cors.allowedHeaders', listOrNone, ofCors('headers')),
  corsExposedHeaders: setting(
    'CORS_EXPOSED_HEADERS',
    'cors.exposedHeaders',
    listOrNone,
    ofCors('exposedHeaders'),
  ),
  metricsPort: setting('METRICS_PORT', 'metrics.port', integer, {
    rule: wholeNumber(0, 65_535),
    misfit: (port, earlier) => (port !== 0 && port === earlier.port ? SAME_PORT : undefined),
  }),
  metricsHost: setting('METRICS_HOST', 'metrics.host', text, { rule: textWithoutBlanks }),
};

const NO_SERVER =
  'needs the authorization server of each issuer with {tenant}; set IDP_AUTHORIZATION_SERVER, or ' +
  'ISSUER_<NAME>_AUTHORIZATION_SERVER';

/** An issuer lacks those settings that have a problem. */
function withoutServer(issuers: unknown) {
  const isLacking = Object.values<Earlier>(Object(issuers)).some((one) => {
    return isTemplate(one.issuer) && 'authorizationServer' in one && one.authorizationServer === undefined;
  });
  return isLacking ? NO_SERVER : undefined;
}

function requiredInVain(isRequired: boolean, earlier: Earlier) {
  if (!isRequired) return undefined;

  return earlier.dpopMode === 'REQUIRED' ? NO_BEARER : withoutSource(isRequired, earlier);
}

const NO_PROXIES = 'is required by CLIENT_CERT_SOURCE; list the addresses of the proxies that send the field';

function noProxies({ clientCertSource }: Earlier) {
  return clientCertSource === undefined ? undefined : throwProblem(NO_PROXIES);
}

type PartValues = ValuesOf<typeof PART_SETTINGS>;

/** Those that no setting describes are `undefined`. */
export interface Parts extends Partial<ServiceOptions> {
  readonly log: LogPart;
}

/** Makes the part of each setting that is set, and the log. */
export async function createParts(settings: PartValues): Promise<Parts> {
  const { logLevel: level, accessLog: access, errorMessages } = settings;
  const { dpopReplayStore: store, proxy, metricsPort: port, metricsHost: host } = settings;

  return {
    log: jsonLog({ level: level as LogOptions['level'], access, errorMessages }),
    replayStore:
      store === undefined ? undefined : (await import('../options/redis/replay.ts')).redisReplayStore(store),
    connect: proxy === undefined ? undefined : (await importProxy()).throughProxy(proxy),
    clientCertificates: await createCertificates(settings),
    revocations: await createRevocations(settings.revocationStore),
    metadata: await createMetadata(settings),
    cors: await createCors(settings),
    metrics:
      port === undefined
        ? undefined
        : (await import('../options/metrics/metrics-listener.ts')).makeMetrics(port, host),
  };
}

async function createCertificates(settings: PartValues) {
  const { clientCertSource, clientCertField: field, clientCertProxies: proxies } = settings;
  if (clientCertSource === undefined) return undefined;

  const source = clientCertSource as CertificateSource;
  const { clientCertificates } = await importCertificates();
  return clientCertificates({ source, field, proxies, required: settings.clientCertRequired });
}

async function createRevocations(store: string | undefined) {
  return store === undefined
    ? undefined
    : (await import('../options/redis/revocations.ts')).createRevocations({ store });
}

async function createMetadata(settings: PartValues) {
  const { resourceUrl: url, resourceScopes: scopes, resourceName: name } = settings;
  if (url === undefined) return undefined;

  const { resourceMetadata } = await importResource();
  return resourceMetadata({ url, scopes, name, documentation: settings.resourceDocumentation });
}

async function createCors(settings: PartValues) {
  const { corsAllowedOrigins: origins, corsAllowCredentials: credentials } = settings;
  if (origins === undefined) return undefined;

  const { cors } = await importCors();
  return cors({
    origins,
    credentials,
    methods: settings.corsAllowedMethods,
    headers: settings.corsAllowedHeaders,
    exposedHeaders: settings.corsExposedHeaders,
  });
}
