// The settings of the rings: names in the environment and in YAML, and how text becomes a value. Each has the
// rule and the default of the option that is called the same; profiles/settings.ts has the settings of the
// profiles. Does not know where values come from.
import type { IntrospectionOptions } from '../options/introspection/introspection.ts';
import type { Rule } from '../verify/base/option.ts';
import { issuerAt, REQUIRED } from '../verify/options.ts';
import {
  boolean,
  inLowerCase,
  integer,
  inUpperCase,
  isKnownAbsent,
  list,
  needing,
  text,
  throwProblem,
  type Earlier,
  type RawValue,
  type Reader,
} from './entry.ts';

/** Empty where a setting has no such name. */
export interface Names {
  readonly env: string;
  /** Keys joined by dots. */
  readonly yaml: string;
}

export interface Setting<Value> extends Names {
  readonly read: Reader<Value>;
  /** In place of that of the option. */
  readonly rule?: Rule;
  /** The same for what only a part knows, which is imported if the setting is set. */
  readonly importRule?: (raw: RawValue) => Promise<Rule | undefined>;
  /** In place of that of the option. Throws `SettingProblem` if the setting is required. */
  readonly byDefault?: (earlier: Earlier) => Value | undefined;
  /** What is wrong with a good value beside earlier ones. */
  misfit?(value: Value, earlier: Earlier): string | undefined;
}

/** In reading order: see `Earlier`. */
export type SettingsTable = Readonly<Record<string, Setting<unknown>>>;

/** Settings without value and default, or with a problem, are absent. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]?: Table[Name] extends Setting<infer Value> ? Value | undefined : never;
};

export const setting = <Value>(
  env: string,
  yaml: string,
  read: Reader<Value>,
  more: Omit<Setting<Value>, 'env' | 'yaml' | 'read'> = {},
): Setting<Value> => ({ env, yaml, read, ...more });

/** The rules of the options of a part, which is imported if the setting is set. */
export const ofPart =
  <Name extends string>(importRules: () => Promise<Readonly<Record<Name, Rule>>>) =>
  (name: Name) => ({ importRule: async () => (await importRules())[name] });

export const importKeyAccess = () => import('../options/key-access.ts');

const ofKeyAccess = ofPart(async () => (await importKeyAccess()).KEY_ACCESS_RULES);

export const importTenants = () => import('../options/tenants/tenants.ts');

const ofTenants = ofPart(async () => (await importTenants()).TENANTS_RULES);

/** For a text with a brace, one of the rules of tenants. */
const ofTemplate = (name: 'issuerOrTemplate' | 'addressOrTemplate') => ({
  importRule: async (raw: RawValue) =>
    /[{}]/.test(String(raw))
      ? (await import('../options/tenants/template.ts')).TEMPLATE_RULES[name]
      : undefined,
});

export const isTemplate = (url: unknown): boolean => String(url).includes('{tenant}');

const NO_TEMPLATE = 'has no effect without {tenant} in the issuer; write it there, or remove this';

/** `earlier` lacks the issuer if it has a problem. */
const withoutTemplate = <Value>(_: Value, earlier: Earlier) =>
  'issuer' in earlier && !isTemplate(earlier.issuer) ? NO_TEMPLATE : undefined;

/** For what an issuer with tenants must have. */
const requiredByTemplate = (problem: string) => (earlier: Earlier) =>
  isTemplate(earlier.issuer) ? throwProblem(problem) : undefined;

const NO_ADDRESS =
  'is required by {tenant} in the issuer, which turns discovery off; set the URL of the key set';

const NO_TENANTS =
  'is required by {tenant} in the issuer; list the tenants, or write * for every tenant of the provider';

const NO_STRANGERS =
  'must not be * with {tenant} in the key URL: unauthenticated clients could cause fetches; list the tenants';

const strangersFetch = (list: readonly string[], { jwksUri }: Earlier) =>
  list.includes('*') && isTemplate(jwksUri) ? NO_STRANGERS : undefined;

export const importIntrospection = () => import('../options/introspection/introspection.ts');

const ruleOfIntrospection = ofPart(async () => (await importIntrospection()).INTROSPECTION_RULES);

/** A setting of the part has no effect without that which says what is asked about. */
const ofIntrospection = <Value>(name: keyof IntrospectionOptions, more: Partial<Setting<Value>> = {}) => ({
  ...more,
  ...ruleOfIntrospection(name),
  misfit: (value: Value, earlier: Earlier) =>
    isKnownAbsent('introspectionTokens', earlier) ? NO_INTROSPECTION : more.misfit?.(value, earlier),
});

const NO_INTROSPECTION =
  'has no effect without IDP_INTROSPECTION of the same issuer; set that too, or remove this';

/** With the names for the first issuer; names.ts derives the others. */
export const ISSUER_SETTINGS = {
  domain: setting('IDP_DOMAIN', 'idp.domain', text, { byDefault: () => throwProblem(REQUIRED.domain) }),
  audience: setting('IDP_AUDIENCE', 'idp.audience', list(1), {
    byDefault: () => throwProblem(REQUIRED.audience),
  }),
  issuer: setting('IDP_ISSUER', 'idp.issuer', text, {
    ...ofTemplate('issuerOrTemplate'),
    byDefault: usualIssuer,
  }),
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', text, {
    ...ofTemplate('addressOrTemplate'),
    byDefault: requiredByTemplate(NO_ADDRESS),
    misfit: (url, earlier) => (isTemplate(url) ? withoutTemplate(url, earlier) : undefined),
  }),
  tenantList: setting('IDP_TENANTS', 'idp.tenants', list(1), {
    ...ofTenants('list'),
    byDefault: requiredByTemplate(NO_TENANTS),
    misfit: (tenants, earlier) => withoutTemplate(tenants, earlier) ?? strangersFetch(tenants, earlier),
  }),
  tenantClaim: setting('IDP_TENANT_CLAIM', 'idp.tenantClaim', text, {
    ...ofTenants('claim'),
    misfit: withoutTemplate,
  }),
  authorizationServer: setting('IDP_AUTHORIZATION_SERVER', 'idp.authorizationServer', text, {
    ...ofTenants('authorizationServer'),
    misfit: withoutTemplate,
  }),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', text),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', text),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', inLowerCase),
  algorithms: setting('IDP_ALGORITHMS', 'idp.algorithms', list(1)),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list()),
  jwksTokenFile: setting('IDP_JWKS_TOKEN_FILE', 'idp.jwksTokenFile', text, ofKeyAccess('tokenFile')),
  caFile: setting('IDP_CA_FILE', 'idp.caFile', text, ofKeyAccess('caFile')),
  introspectionTokens: setting('IDP_INTROSPECTION', 'idp.introspection', list(1), {
    ...ruleOfIntrospection('tokens'),
    misfit: introspectionMisfit,
  }),
  introspectionUri: setting('IDP_INTROSPECTION_URI', 'idp.introspectionUri', text, ofIntrospection('uri')),
  introspectionClientId: setting(
    'IDP_INTROSPECTION_CLIENT_ID',
    'idp.introspectionClientId',
    text,
    ofIntrospection('clientId', { byDefault: noClientId }),
  ),
  introspectionClientSecret: setting(
    'IDP_INTROSPECTION_CLIENT_SECRET',
    'idp.introspectionClientSecret',
    text,
    ofIntrospection('clientSecret'),
  ),
  introspectionKeyFile: setting(
    'IDP_INTROSPECTION_KEY_FILE',
    'idp.introspectionKeyFile',
    text,
    ofIntrospection('keyFile', { byDefault: noKeyFile, misfit: keyBesideSecret }),
  ),
  introspectionKeyId: setting(
    'IDP_INTROSPECTION_KEY_ID',
    'idp.introspectionKeyId',
    text,
    ofIntrospection('keyId', {
      misfit: needing(
        'introspectionKeyFile',
        'has no effect without the key file; set that too, or remove this',
      ),
    }),
  ),
  introspectionAudience: setting(
    'IDP_INTROSPECTION_AUDIENCE',
    'idp.introspectionAudience',
    inLowerCase,
    ofIntrospection('audience'),
  ),
  introspectionCacheSeconds: setting(
    'IDP_INTROSPECTION_CACHE_SECONDS',
    'idp.introspectionCacheSeconds',
    integer,
    ofIntrospection('cacheSeconds'),
  ),
};

function introspectionMisfit(tokens: readonly string[], { issuer, tokenType }: Earlier) {
  if (isTemplate(issuer)) return 'is not available for a tenant template; remove it';

  return tokens.includes('opaque') && tokenType === 'at+jwt'
    ? 'must not have opaque beside the token type at+jwt, which only a JWT has; remove one'
    : undefined;
}

function noClientId({ introspectionTokens }: Earlier) {
  return introspectionTokens === undefined
    ? undefined
    : throwProblem('is required by IDP_INTROSPECTION; set the client id of this API at the issuer');
}

function noKeyFile(earlier: Earlier) {
  const isNeeded = isKnownAbsent('introspectionClientSecret', earlier);
  return isNeeded && earlier.introspectionTokens !== undefined
    ? throwProblem('is required by IDP_INTROSPECTION, or else a client secret; set one of the two')
    : undefined;
}

function keyBesideSecret(_: string, { introspectionClientSecret }: Earlier) {
  return introspectionClientSecret === undefined ? undefined : 'is set beside a client secret; remove one';
}

function usualIssuer({ domain }: Earlier) {
  return typeof domain === 'string' ? issuerAt(domain) : undefined;
}

export const RING_SETTINGS = {
  port: setting('PORT', 'server.port', integer),
  host: setting('HOST', 'server.host', text),
  springApplicationName: setting('', 'spring.application.name', text, { byDefault: () => 'gatehouse' }),
  applicationName: setting('', 'application.name', text, {
    byDefault: ({ springApplicationName }) => String(springApplicationName),
  }),
  dpopMode: setting('IDP_DPOP_MODE', 'idp.dpopMode', inUpperCase),
  dpopIatOffsetSeconds: setting('IDP_DPOP_IAT_OFFSET_SECONDS', 'idp.dpopIatOffsetSeconds', integer),
  dpopAlgorithms: setting('IDP_DPOP_ALGORITHMS', 'idp.dpopAlgorithms', list(1)),
  dpopIatLeewaySeconds: setting('IDP_DPOP_IAT_LEEWAY_SECONDS', 'idp.dpopIatLeewaySeconds', integer),
  dpopNonceSecret: setting('IDP_DPOP_NONCE_SECRET', 'idp.dpopNonceSecret', text),
  tokenCacheEntries: setting('IDP_TOKEN_CACHE_ENTRIES', 'idp.tokenCacheEntries', integer),
  clockToleranceSeconds: setting('IDP_CLOCK_TOLERANCE_SECONDS', 'idp.clockToleranceSeconds', integer),
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean),
  errorDocsUrl: setting('ERROR_DOCS_URL', 'api.errorDocsUrl', text),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', text),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean),
  bodyLimitBytes: setting('BODY_LIMIT_BYTES', 'api.bodyLimitBytes', integer),
  handlerTimeoutSeconds: setting('HANDLER_TIMEOUT_SECONDS', 'server.handlerTimeoutSeconds', integer),
  requestTimeoutSeconds: setting('REQUEST_TIMEOUT_SECONDS', 'server.requestTimeoutSeconds', integer),
  shutdownDelaySeconds: setting('SHUTDOWN_DELAY_SECONDS', 'server.shutdownDelaySeconds', integer),
};
