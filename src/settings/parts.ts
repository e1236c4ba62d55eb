// The settings of parts, and the parts that they make. Promises: a part is imported when its setting is set,
// with the rule of the setting.
import { isSameOrigin, NO_PROOFS, WRONG_RESOURCE, type LogPart } from '../gate/options.ts';
import { jsonLog, LOG_OPTIONS } from '../options/log.ts';
import { SAME_PORT, type ServiceOptions } from '../service/options.ts';
import { integer as wholeNumber, optional, textWithoutBlanks, type Option } from '../verify/base/option.ts';
import { throwProblem } from './entry.ts';
import { boolean, inLowerCase, integer, list, listOrNone, text, type Reader } from './readers.ts';
import { setting, type Earlier, type Setting, type ValuesOf } from './table.ts';

/** Its rule is imported; until then, every value is good. */
const imported = <Value>(
  env: string,
  yaml: string,
  read: Reader,
  load: () => Promise<Option<Value | undefined>>,
  more: Pick<Setting<Value | undefined>, 'byDefault' | 'misfit'> = {},
): Setting<Value | undefined> => {
  const anything = optional<Value>(() => undefined);

  // What is absent has no part, or the default of its part.
  const loadRule = async () => ({ ...(await load()), byDefault: undefined, missing: undefined });

  return { ...setting(env, yaml, read, anything, more), load: loadRule };
};

const importRedis = () => import('../options/redis.ts');

const importProxy = () => import('../options/proxy.ts');

const importCors = () => import('../options/cors.ts');

const importResource = () => import('../options/resource-metadata.ts');

const storeUrl = async () => optional((await importRedis()).storeUrl);

const proxyUrl = async () => optional((await importProxy()).proxyUrl);

const ofCors = async () => (await importCors()).CORS_OPTIONS;

const ofResource = async () => (await importResource()).RESOURCE_OPTIONS;

const resourceUrl = async () => (await ofResource()).url;

const scopes = async () => (await ofResource()).scopes;

const resourceName = async () => (await ofResource()).name;

const documentation = async () => (await ofResource()).documentation;

const origins = async () => (await ofCors()).origins;

const credentials = async () => (await ofCors()).credentials;

const methods = async () => (await ofCors()).methods;

const headers = async () => (await ofCors()).headers;

const exposedHeaders = async () => (await ofCors()).exposedHeaders;

export const PART_SETTINGS = {
  logLevel: setting('LOG_LEVEL', 'log.level', inLowerCase, LOG_OPTIONS.level),
  accessLog: setting('ACCESS_LOG', 'log.access', boolean, LOG_OPTIONS.access),
  dpopReplayStore: imported('IDP_DPOP_REPLAY_STORE', 'idp.dpopReplayStore', text, storeUrl, {
    misfit: (_, { dpopMode }) => (dpopMode === 'DISABLED' ? NO_PROOFS : undefined),
  }),
  proxy: imported('IDP_PROXY', 'idp.proxy', text, proxyUrl),
  resourceScopes: imported('RESOURCE_SCOPES', 'resource.scopes', list(1), scopes),
  resourceName: imported('RESOURCE_NAME', 'resource.name', text, resourceName),
  resourceDocumentation: imported('RESOURCE_DOCUMENTATION', 'resource.documentation', text, documentation),
  resourceUrl: imported('RESOURCE_URL', 'resource.url', text, resourceUrl, {
    byDefault: noResourceUrl,
    misfit: (url = '', { publicUrl = url }) =>
      isSameOrigin(url, String(publicUrl)) ? undefined : WRONG_RESOURCE,
  }),
  corsAllowedOrigins: imported('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', listOrNone, origins),
  corsAllowCredentials: imported('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean, credentials),
  corsAllowedMethods: imported('CORS_ALLOWED_METHODS', 'cors.allowedMethods', listOrNone, methods),
  corsAllowedHeaders: imported('CORS_ALLOWED_HEADERS', 'cors.allowedHeaders', listOrNone, headers),
  corsExposedHeaders: imported('CORS_EXPOSED_HEADERS', 'cors.exposedHeaders', listOrNone, exposedHeaders),
  metricsPort: setting('METRICS_PORT', 'metrics.port', integer, optional(wholeNumber(0, 65_535)), {
    misfit: (port, earlier) => (port !== 0 && port === earlier.port ? SAME_PORT : undefined),
  }),
  metricsHost: setting('METRICS_HOST', 'metrics.host', text, optional(textWithoutBlanks)),
};

/** The other settings of a resource need its URL. `earlier` lacks those with a problem. */
function noResourceUrl(earlier: Earlier) {
  const more = ['resourceScopes', 'resourceName', 'resourceDocumentation'];
  return more.every((name) => name in earlier && earlier[name] === undefined)
    ? undefined
    : throwProblem('is required by the scopes, name and documentation of a resource; set it or remove those');
}

export type PartValues = ValuesOf<typeof PART_SETTINGS>;

type Parts = Pick<ServiceOptions, 'replayStore' | 'connect' | 'metadata' | 'cors' | 'metrics'>;

export interface PartsWithLog extends Parts {
  readonly log: LogPart;
}

/** Makes the part of each setting that is set, and the log. */
export async function createParts(values: PartValues): Promise<PartsWithLog> {
  const { dpopReplayStore: store, proxy, metricsPort: port, metricsHost } = values;

  return {
    log: jsonLog({ level: values.logLevel, access: values.accessLog }),
    ...(store !== undefined && { replayStore: (await importRedis()).redisReplayStore(store) }),
    ...(proxy !== undefined && { connect: (await importProxy()).throughProxy(proxy) }),
    ...(await createMetadata(values)),
    ...(await createCors(values)),
    ...(port !== undefined && { metrics: await createMetrics(port, metricsHost) }),
  };
}

async function createMetadata(values: PartValues): Promise<Parts> {
  const { resourceUrl: url, resourceScopes, resourceName: name, resourceDocumentation } = values;
  if (url === undefined) return {};

  const { resourceMetadata } = await importResource();
  const about = { scopes: resourceScopes, documentation: resourceDocumentation };
  return { metadata: resourceMetadata({ url, name, ...about }) };
}

async function createCors(values: PartValues): Promise<Parts> {
  const { corsAllowedOrigins, corsAllowCredentials, corsAllowedMethods } = values;
  if (corsAllowedOrigins === undefined) return {};

  const { cors } = await importCors();
  const made = cors({
    origins: corsAllowedOrigins,
    credentials: corsAllowCredentials,
    methods: corsAllowedMethods,
    headers: values.corsAllowedHeaders,
    exposedHeaders: values.corsExposedHeaders,
  });
  return { cors: made };
}

async function createMetrics(port: number, host: string | undefined) {
  const { makeMetrics } = await import('../options/metrics/metrics-listener.ts');
  return makeMetrics(port, host);
}
