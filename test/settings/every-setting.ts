/* Every setting with its names, default and values, as in docs/settings.md. Shares nothing with src. */
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import type { IssuerSettings } from '../../src/settings/load.ts';
import { loadProfileNow, type LoadedForTest, type TestSettings } from '../support/settings.ts';

export type Name = Exclude<keyof TestSettings, 'issuers'> | keyof IssuerSettings;
/** How a value is written in a file or the environment, and the loaded value. */
export type Spelling = readonly [written: string, value: unknown];

export interface SettingRoute {
  readonly name: Name;
  readonly env?: string;
  readonly yaml?: string;
  /** By profile if they differ; `required` if there is none. */
  readonly byDefault: unknown;
  readonly byDefaultA?: unknown;
  /** Three valid values, different from the default and from each other, if there are so many. */
  readonly good: readonly [Spelling, Spelling, Spelling?];
  /** An invalid value, and its problem. */
  readonly bad?: readonly [written: string, reason: RegExp];
}

const same = (value: string): Spelling => [value, value];

const fixture = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const number = (value: number): Spelling => [String(value), value];

const YES: Spelling = ['true', true];
const NO: Spelling = ['false', false];
const NOT_PORT = ['65536', /whole number from 0 to 65535/] as const;
const NOT_BOOLEAN = ['yes', /must be .*true.*false/i] as const;
const BLANK = ['a b', /white space/] as const;
const SECRETS = ['0123456789abcdefghijklmnopqrstuv', 'x'.repeat(33), 'y'.repeat(64)] as const;

export const SETTINGS: readonly SettingRoute[] = [
  {
    name: 'profile',
    env: 'PROFILE',
    byDefault: 'B',
    good: [
      ['a', 'A'],
      ['b', 'B'],
    ],
    bad: ['C', /(?:^|: )must be one of A, B/],
  },
  {
    name: 'domain',
    env: 'IDP_DOMAIN',
    yaml: 'idp.domain',
    byDefault: 'required',
    good: [same('one.test'), same('two.test:8443'), same('three.test')],
    bad: ['https://one.test', /has a scheme; remove "https:\/\/"/],
  },
  {
    name: 'audience',
    env: 'IDP_AUDIENCE',
    yaml: 'idp.audience',
    byDefault: 'required',
    good: [
      ['https://one.test', ['https://one.test']],
      ['urn:two, bare-id', ['urn:two', 'bare-id']],
      ['bare-id', ['bare-id']],
    ],
    bad: BLANK,
  },
  {
    name: 'port',
    env: 'PORT',
    yaml: 'server.port',
    byDefault: 3001,
    byDefaultA: 8080,
    good: [number(0), number(65535), number(80)],
    bad: NOT_PORT,
  },
  {
    name: 'host',
    env: 'HOST',
    yaml: 'server.host',
    byDefault: undefined,
    good: [same('127.0.0.1'), same('::1'), same('localhost')],
    bad: BLANK,
  },
  {
    name: 'applicationName',
    yaml: 'application.name',
    byDefault: 'gatehouse',
    good: [same('one'), same('two words')],
  },
  {
    name: 'issuer',
    env: 'IDP_ISSUER',
    yaml: 'idp.issuer',
    byDefault: 'https://idp.test/',
    good: [same('https://one.test/x'), same('https://two.test'), same('https://three.test/')],
    bad: ['http://one.test/', /URL that begins with https:\/\/,/],
  },
  {
    name: 'jwksUri',
    env: 'IDP_JWKS_URI',
    yaml: 'idp.jwksUri',
    byDefault: undefined,
    good: [same('https://one.test/x?y=z'), same('https://two.test/jwks'), same('https://three.test/')],
    bad: ['http://one.test/', /URL that begins with https:\/\/,/],
  },
  {
    name: 'dpopMode',
    env: 'IDP_DPOP_MODE',
    yaml: 'idp.dpopMode',
    byDefault: 'DISABLED',
    byDefaultA: 'ALLOWED',
    good: [['Required', 'REQUIRED'], same('ALLOWED'), ['disabled', 'DISABLED']],
    bad: ['OFF', /one of DISABLED, ALLOWED, REQUIRED/],
  },
  {
    name: 'dpopIatOffsetSeconds',
    env: 'IDP_DPOP_IAT_OFFSET_SECONDS',
    yaml: 'idp.dpopIatOffsetSeconds',
    byDefault: 300,
    good: [number(0), number(1e9), number(1)],
    bad: ['1000000001', /whole number from 0 to 1000000000$/],
  },
  {
    name: 'dpopIatLeewaySeconds',
    env: 'IDP_DPOP_IAT_LEEWAY_SECONDS',
    yaml: 'idp.dpopIatLeewaySeconds',
    byDefault: 30,
    good: [number(0), number(1e9), number(1)],
    bad: ['1000000001', /whole number from 0 to 1000000000$/],
  },
  {
    name: 'dpopNonceSecret',
    env: 'IDP_DPOP_NONCE_SECRET',
    yaml: 'idp.dpopNonceSecret',
    byDefault: undefined,
    good: [same(SECRETS[0]), same(SECRETS[1]), same(SECRETS[2])],
    bad: [SECRETS[0].slice(1), /at least 32 characters/],
  },
  {
    name: 'dpopReplayStore',
    env: 'IDP_DPOP_REPLAY_STORE',
    yaml: 'idp.dpopReplayStore',
    byDefault: undefined,
    good: [same('redis://one.test'), same('rediss://u:p%40@two.test:6380/2'), same('redis://[::1]')],
    bad: ['redis://secret@one.test', /must be redis:/],
  },
  {
    name: 'revocationStore',
    env: 'REVOCATION_STORE',
    yaml: 'revocation.store',
    byDefault: undefined,
    good: [same('redis://one.test'), same('rediss://u:p%40@two.test:6380/2')],
    bad: ['redis://secret@one.test', /must be redis:/],
  },
  {
    name: 'tokenCacheEntries',
    env: 'IDP_TOKEN_CACHE_ENTRIES',
    yaml: 'idp.tokenCacheEntries',
    byDefault: 10_000,
    good: [number(0), number(1_000_000), number(1)],
    bad: ['1000001', /whole number from 0 to 1000000/],
  },
  {
    name: 'clockToleranceSeconds',
    env: 'IDP_CLOCK_TOLERANCE_SECONDS',
    yaml: 'idp.clockToleranceSeconds',
    byDefault: 0,
    good: [number(1), number(300), number(2)],
    bad: ['301', /whole number from 0 to 300/],
  },
  {
    name: 'claimNamespace',
    env: 'IDP_CLAIM_NAMESPACE',
    yaml: 'idp.claimNamespace',
    byDefault: '',
    good: [same('https://one.test/'), same('https://two.test/claims#'), same('urn:x:')],
    bad: ['claims/', /beginning of a URL/],
  },
  {
    name: 'scopeClaim',
    env: 'IDP_SCOPE_CLAIM',
    yaml: 'idp.scopeClaim',
    byDefault: 'scope',
    good: [same('scp'), same('permissions'), same('https://one.test/scopes')],
    bad: BLANK,
  },
  {
    name: 'tokenType',
    env: 'IDP_TOKEN_TYPE',
    yaml: 'idp.tokenType',
    byDefault: 'any',
    good: [same('at+jwt'), same('any'), ['AT+JWT', 'at+jwt']],
    bad: ['jwt', /one of any, at\+jwt/],
  },
  {
    name: 'algorithms',
    env: 'IDP_ALGORITHMS',
    yaml: 'idp.algorithms',
    byDefault: ['RS256'],
    good: [
      ['ES256', ['ES256']],
      ['PS256,ES256,EdDSA', ['PS256', 'ES256', 'EdDSA']],
      ['ES512, RS256, ES512', ['ES512', 'RS256']],
    ],
    bad: ['HS256', /(?:^|: )must be one of ES256, ES384, ES512, EdDSA, PS256, RS256/],
  },
  {
    name: 'dpopAlgorithms',
    env: 'IDP_DPOP_ALGORITHMS',
    yaml: 'idp.dpopAlgorithms',
    byDefault: ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'RS256'],
    good: [
      ['ES256', ['ES256']],
      ['PS256,ES256', ['PS256', 'ES256']],
      ['EdDSA', ['EdDSA']],
    ],
    bad: ['es256', /(?:^|: )must be one of ES256, ES384, ES512, EdDSA, PS256, RS256/],
  },
  {
    name: 'requiredClaims',
    env: 'IDP_REQUIRED_CLAIMS',
    yaml: 'idp.requiredClaims',
    byDefault: [],
    good: [
      ['scp', ['scp']],
      ['scp,jti', ['scp', 'jti']],
      ['a, b', ['a', 'b']],
    ],
    bad: ['scp,a b', /white space/],
  },
  {
    name: 'jwksTokenFile',
    env: 'IDP_JWKS_TOKEN_FILE',
    yaml: 'idp.jwksTokenFile',
    byDefault: undefined,
    good: [same(fixture('token-1.txt')), same(fixture('token-2.txt')), same('test/settings/token-1.txt')],
    bad: [fixture('../idp/tls/authority.pem'), /must be a file with a token of 1 to 16,384 letters/],
  },
  {
    name: 'caFile',
    env: 'IDP_CA_FILE',
    yaml: 'idp.caFile',
    byDefault: undefined,
    good: [same(fixture('../idp/tls/authority.pem')), same(fixture('../idp/tls/cluster-authority.pem'))],
    bad: [
      '/nonexistent/authorities.pem',
      /cannot be read \(ENOENT\); set it to a regular file of at most 1 MiB/,
    ],
  },
  {
    name: 'tenantList',
    env: 'IDP_TENANTS',
    yaml: 'idp.tenants',
    byDefault: undefined,
    good: [
      ['one', ['one']],
      ['One, 2.x_y-z, One', ['One', '2.x_y-z']],
      ['*', ['*']],
    ],
    bad: ['one, two/three', /must be a list of 1 to 1,000 tenants, each 1 to 64 letters, digits and \._-/],
  },
  {
    name: 'tenantClaim',
    env: 'IDP_TENANT_CLAIM',
    yaml: 'idp.tenantClaim',
    byDefault: undefined,
    good: [same('tid'), same('org_id'), same('https://one.test/tenant')],
    bad: BLANK,
  },
  {
    name: 'authorizationServer',
    env: 'IDP_AUTHORIZATION_SERVER',
    yaml: 'idp.authorizationServer',
    byDefault: undefined,
    good: [same('https://one.test/common/v2.0'), same('https://two.test')],
    bad: ['http://one.test/', /URL that begins with https:\/\/,/],
  },
  {
    name: 'introspectionTokens',
    env: 'IDP_INTROSPECTION',
    yaml: 'idp.introspection',
    byDefault: undefined,
    good: [
      ['opaque', ['opaque']],
      ['opaque, jwt', ['opaque', 'jwt']],
      ['jwt', ['jwt']],
    ],
    bad: ['opaque tokens', /must be one of opaque, jwt/],
  },
  {
    name: 'introspectionUri',
    env: 'IDP_INTROSPECTION_URI',
    yaml: 'idp.introspectionUri',
    byDefault: undefined,
    good: [same('https://one.test/x?y=z'), same('https://two.test'), same('https://three.test:8443/a')],
    bad: ['http://one.test/', /URL that begins with https:\/\/,/],
  },
  {
    name: 'introspectionClientId',
    env: 'IDP_INTROSPECTION_CLIENT_ID',
    yaml: 'idp.introspectionClientId',
    byDefault: undefined,
    good: [same('orders-api'), same('two words'), same('https://api.test')],
  },
  {
    name: 'introspectionClientSecret',
    env: 'IDP_INTROSPECTION_CLIENT_SECRET',
    yaml: 'idp.introspectionClientSecret',
    byDefault: undefined,
    good: [same('a'), same('b c:d%'), same('ü')],
  },
  {
    name: 'introspectionKeyFile',
    env: 'IDP_INTROSPECTION_KEY_FILE',
    yaml: 'idp.introspectionKeyFile',
    byDefault: undefined,
    good: [same(fixture('../idp/tls/client-key.pem')), same(fixture('../idp/tls/other-client-key.pem'))],
    bad: [fixture('../idp/tls/authority.pem'), /must be a file with one private key in PEM/],
  },
  {
    name: 'introspectionKeyId',
    env: 'IDP_INTROSPECTION_KEY_ID',
    yaml: 'idp.introspectionKeyId',
    byDefault: undefined,
    good: [same('a'), same('b c'), same('key-1')],
  },
  {
    name: 'introspectionAudience',
    env: 'IDP_INTROSPECTION_AUDIENCE',
    yaml: 'idp.introspectionAudience',
    byDefault: undefined,
    good: [same('required'), ['Provider', 'provider']],
    bad: ['none of them', /must be one of required, provider/],
  },
  {
    name: 'introspectionCacheSeconds',
    env: 'IDP_INTROSPECTION_CACHE_SECONDS',
    yaml: 'idp.introspectionCacheSeconds',
    byDefault: undefined,
    good: [number(0), number(300), number(1)],
    bad: ['301', /whole number from 0 to 300$/],
  },
  {
    name: 'proxy',
    env: 'IDP_PROXY',
    yaml: 'idp.proxy',
    byDefault: undefined,
    good: [same('http://one.test'), same('http://u%40:p%2F@two.test:3128/'), same('http://[::1]:8080')],
    bad: ['http://user:sec@ret@one.test', /must be http:\/\/\[user\[:password\]@\]host\[:port\]/],
  },
  {
    name: 'orgId',
    env: 'IDP_ORG_ID',
    yaml: 'idp.orgId',
    byDefault: 'org_123456',
    good: [same('org_1'), same('org 2'), same('org_3')],
  },
  {
    name: 'scopePolicy',
    env: 'SCOPE_POLICY',
    yaml: 'api.scopePolicy',
    byDefault: false,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'errorDetail',
    env: 'ERROR_DETAIL',
    yaml: 'api.errorDetail',
    byDefault: false,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'errorDocsUrl',
    env: 'ERROR_DOCS_URL',
    yaml: 'api.errorDocsUrl',
    byDefault: undefined,
    good: [same('https://one.test'), same('https://two.test/errors'), same('https://three.test/a/b.html')],
    bad: ['https://one.test/?a', /without "\?", "#", a quote or a backslash/],
  },
  {
    name: 'publicUrl',
    env: 'PUBLIC_URL',
    yaml: 'api.publicUrl',
    byDefault: undefined,
    good: [same('https://one.test'), same('http://two.test/v1/'), same('https://three.test//')],
    bad: ['ftp://one.test', /https:\/\/ or http:\/\//],
  },
  {
    name: 'trustProxy',
    env: 'TRUST_PROXY',
    yaml: 'api.trustProxy',
    byDefault: false,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'resourceUrl',
    env: 'RESOURCE_URL',
    yaml: 'resource.url',
    byDefault: undefined,
    good: [same('https://One.test'), same('https://two.test/'), same('http://localhost:81/three/mcp')],
    bad: ['https://one.test/?a=b', /"#" or "\?"/],
  },
  {
    name: 'resourceScopes',
    env: 'RESOURCE_SCOPES',
    yaml: 'resource.scopes',
    byDefault: undefined,
    good: [
      ['read:one', ['read:one']],
      ['read:two, write:two', ['read:two', 'write:two']],
      ['three', ['three']],
    ],
    bad: ['read:one,openid', /neither openid nor offline_access/],
  },
  {
    name: 'resourceName',
    env: 'RESOURCE_NAME',
    yaml: 'resource.name',
    byDefault: undefined,
    good: [same('One'), same('Bücher und mehr'), same('Three')],
  },
  {
    name: 'resourceDocumentation',
    env: 'RESOURCE_DOCUMENTATION',
    yaml: 'resource.documentation',
    byDefault: undefined,
    good: [same('https://one.test/api'), same('https://two.test/x?y#z'), same('https://three.test?a=b@c')],
    bad: ['https://me@one.test/', /URL that begins with https:\/\/, without white space, "\\", or an "@"/],
  },
  {
    name: 'clientCertSource',
    env: 'CLIENT_CERT_SOURCE',
    yaml: 'api.clientCertSource',
    byDefault: undefined,
    good: [same('rfc9440'), same('pem'), same('xfcc')],
    bad: ['PEM', /must be one of tls, rfc9440, pem, base64, xfcc/],
  },
  {
    name: 'clientCertField',
    env: 'CLIENT_CERT_FIELD',
    yaml: 'api.clientCertField',
    byDefault: undefined,
    good: [same('Client-Cert'), same('x-1'), same('X-Forwarded-Cert')],
    bad: ['x-forwarded-FOR', /must be the name of a header field/],
  },
  {
    name: 'clientCertProxies',
    env: 'CLIENT_CERT_PROXIES',
    yaml: 'api.clientCertProxies',
    byDefault: undefined,
    good: [
      ['any', 'any'],
      ['192.0.2.1, 2001:db8::/32', ['192.0.2.1', '2001:db8::/32']],
      ['0.0.0.0/0', ['0.0.0.0/0']],
    ],
    bad: ['192.0.2.1, any', /list of IP addresses and CIDR ranges/],
  },
  {
    name: 'clientCertRequired',
    env: 'CLIENT_CERT_REQUIRED',
    yaml: 'api.clientCertRequired',
    byDefault: undefined,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'corsAllowedOrigins',
    env: 'CORS_ALLOWED_ORIGINS',
    yaml: 'cors.allowedOrigins',
    byDefault: undefined,
    good: [
      ['https://one.test', ['https://one.test']],
      ['http://two.test:81, https://three.test', ['http://two.test:81', 'https://three.test']],
      ['https://*.four.test, app://five', ['https://*.four.test', 'app://five']],
    ],
    bad: ['https://one.test,*', /must be an origin .* no "\*"/],
  },
  {
    name: 'corsAllowCredentials',
    env: 'CORS_ALLOW_CREDENTIALS',
    yaml: 'cors.allowCredentials',
    byDefault: undefined,
    good: [NO, YES],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'corsAllowedMethods',
    env: 'CORS_ALLOWED_METHODS',
    yaml: 'cors.allowedMethods',
    byDefault: ['GET', 'POST', 'PUT', 'DELETE'],
    good: [
      ['GET', ['GET']],
      ['PATCH,GET', ['PATCH', 'GET']],
      ['PUT', ['PUT']],
    ],
    bad: ['GET,post', /upper case/],
  },
  {
    name: 'corsAllowedHeaders',
    env: 'CORS_ALLOWED_HEADERS',
    yaml: 'cors.allowedHeaders',
    byDefault: undefined,
    good: [
      ['X-Request-Id', ['X-Request-Id']],
      ['traceparent, If-Match', ['traceparent', 'If-Match']],
      ['X', ['X']],
    ],
    bad: ['X-Request-Id,*', /name of a header field/],
  },
  {
    name: 'corsExposedHeaders',
    env: 'CORS_EXPOSED_HEADERS',
    yaml: 'cors.exposedHeaders',
    byDefault: undefined,
    good: [
      ['ETag', ['ETag']],
      ['Location, Retry-After', ['Location', 'Retry-After']],
      ['X', ['X']],
    ],
    bad: ['ETag:', /name of a header field/],
  },
  {
    name: 'bodyLimitBytes',
    env: 'BODY_LIMIT_BYTES',
    yaml: 'api.bodyLimitBytes',
    byDefault: 102_400,
    good: [number(1), number(16_777_216), number(1024)],
    bad: ['16777217', /whole number from 1 to 16777216/],
  },
  {
    name: 'handlerTimeoutSeconds',
    env: 'HANDLER_TIMEOUT_SECONDS',
    yaml: 'server.handlerTimeoutSeconds',
    byDefault: 30,
    good: [number(0), number(3600), number(1)],
    bad: ['3601', /whole number from 0 to 3600/],
  },
  {
    name: 'requestTimeoutSeconds',
    env: 'REQUEST_TIMEOUT_SECONDS',
    yaml: 'server.requestTimeoutSeconds',
    byDefault: 15,
    good: [number(1), number(3600), number(60)],
    bad: ['0', /whole number from 1 to 3600/],
  },
  {
    name: 'shutdownDelaySeconds',
    env: 'SHUTDOWN_DELAY_SECONDS',
    yaml: 'server.shutdownDelaySeconds',
    byDefault: 0,
    good: [number(1), number(60), number(2)],
    bad: ['61', /whole number from 0 to 60/],
  },
  {
    name: 'metricsPort',
    env: 'METRICS_PORT',
    yaml: 'metrics.port',
    byDefault: undefined,
    good: [number(0), number(9464), number(65535)],
    bad: NOT_PORT,
  },
  {
    name: 'metricsHost',
    env: 'METRICS_HOST',
    yaml: 'metrics.host',
    byDefault: undefined,
    good: [same('127.0.0.1'), same('::1')],
    bad: BLANK,
  },
  {
    name: 'logLevel',
    env: 'LOG_LEVEL',
    yaml: 'log.level',
    byDefault: 'info',
    good: [same('silent'), ['DEBUG', 'debug'], same('error')],
    bad: ['verbose', /one of silent, error, warn, info, debug/],
  },
  {
    name: 'accessLog',
    env: 'ACCESS_LOG',
    yaml: 'log.access',
    byDefault: false,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
  {
    name: 'errorMessages',
    env: 'LOG_ERROR_MESSAGES',
    yaml: 'log.errorMessages',
    byDefault: false,
    good: [YES, NO],
    bad: NOT_BOOLEAN,
  },
];

export const REQUIRED = { IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'https://api.test' };

export interface Sources {
  readonly environment?: Readonly<Record<string, string>>;
  /** Files for the working directory, by name. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

/** Loads from a directory with only these files, and this environment. */
export function load({ environment = {}, files = {} }: Sources): LoadedForTest {
  return inDirectory(files, (directory) => loadProfileNow(environment, directory));
}

/** Runs an action in a directory with only these files, until it is done. */
export function inDirectory<Result>(files: Sources['files'], action: (directory: string) => Result): Result {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  const remove = () => rmSync(directory, { recursive: true });
  let result: Result | undefined;
  try {
    for (const [name, content] of Object.entries(files ?? {})) writeFileSync(join(directory, name), content);
    result = action(directory);
    return result;
  } finally {
    if (result instanceof Promise) void result.finally(remove);
    else remove();
  }
}

/** Every problem of these sources; none when they load. */
export const problemsOf = (sources: Sources): readonly string[] => problemsIn(() => load(sources));

/** Every problem of an action that loads settings. */
export function problemsIn(action: () => unknown): readonly string[] {
  try {
    action();
    return [];
  } catch (failure) {
    if (!(failure instanceof ConfigurationError)) throw failure;
    return failure.problems;
  }
}

/** `a.b: "text"` as nested YAML. `written` is inserted unchanged. */
export const yamlOf = (path: string, written: string) =>
  path
    .split('.')
    .map(
      (key, depth, keys) => `${'  '.repeat(depth)}${key}:${depth === keys.length - 1 ? ` ${written}` : ''}\n`,
    )
    .join('');

/** The value of a setting; for an issuer's setting, that of the first issuer. */
export const valueOf = (settings: TestSettings, name: Name): unknown =>
  ({ ...settings.issuers.idp!, ...settings })[name];

/** The only problem of the sources. */
export function onlyProblem(sources: Sources): string {
  const problems = problemsOf(sources);
  assert.equal(problems.length, 1, problems.join('\n'));
  return problems[0] ?? '';
}

/** The required settings and this application.yml. */
export const withYaml = (yaml: string): Sources => ({
  environment: REQUIRED,
  files: { 'application.yml': yaml },
});
