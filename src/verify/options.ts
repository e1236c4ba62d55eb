// The options of issuers, and of the checks of tokens and proofs: each with its rule and its default.
import { isJsonObject, isPlain } from './base/encoding.ts';
import type { Surroundings } from './base/events.ts';
import {
  boolean,
  functionOr,
  integer,
  listOf,
  oneOf,
  readOptions,
  someFunction,
  textMatching,
  textWithoutBlanks,
  throwProblem,
  Part,
  type Given,
  type Rule,
  type RulesOf,
} from './base/option.ts';
import type { SenderOptions } from './caller.ts';
import type { CreateReplayStore, IsNewProof } from './dpop/replay.ts';
import type { Connect, FetchKeySet, KeyAccessPart } from './keys/fetch.ts';
import { ALGORITHM_NAMES, type Algorithm } from './keys/jwk.ts';
import type { Introspect, Issuer } from './token/verify.ts';
import { host, httpsUrl, issuerUrl, publicUrl, urlPrefix } from './urls.ts';

/** The options of one issuer, with all defaults. */
export interface IssuerValues {
  /** The host name of the provider, with a port if it is not 443. */
  readonly domain: string;
  /** The identifiers of this API at the provider. A token's `aud` must contain one. */
  readonly audience: readonly string[];
  /** The `iss` of the provider's tokens. Default: `https://<domain>/`. */
  readonly issuer: string;
  /** The URL of the provider's key set. Default: found by discovery. */
  readonly jwksUri: string | undefined;
  /** A guard on `name` reads the claim `<claimNamespace>name` if the token has it, otherwise `name`. */
  readonly claimNamespace: string;
  /** The claim that contains the scopes. Default: `scope`. */
  readonly scopeClaim: string;
  /** With `at+jwt`, only RFC 9068 tokens are accepted. Default: `any`. */
  readonly tokenType: 'any' | 'at+jwt';
  /** The accepted algorithms for token signatures. Default: only RS256. */
  readonly algorithms: readonly Algorithm[];
  /** Claims that every token of this issuer must have. */
  readonly requiredClaims: readonly string[];
  /** The token for fetching keys, and the CAs for the provider's servers, made by `keyAccess`. */
  readonly keyAccess: KeyAccessPart | undefined;
  /** The provider's tenants, made by `tenants`. Replaces `issuer`. */
  readonly tenants: TenantsPart | undefined;
  /** Which tokens to introspect, and how, made by `introspection`. */
  readonly introspection: IntrospectionPart | undefined;
}

/** Fetches the key set at this address, or that of a tenant which has its own. */
export type FetchFrom = (address: string | undefined, tenant?: string) => FetchKeySet;

/** An `iss` for each tenant of a provider. */
export interface Tenants {
  /** Holds `{tenant}`. */
  readonly template: string;
  /** `*` alone: every tenant of the provider. */
  readonly list: readonly string[];
  /** What resource metadata name in place of the template. */
  readonly authorizationServer: string | undefined;
  /** Throws a `TypeError` if the issuer with this name does not fit the others, or all `options`. */
  readonly requireFit: (name: string, issuers: IssuersByName, options: object) => void;
  readonly createIssuer: (
    issuer: Omit<Issuer, 'keys'> & IssuerValues,
    fetchFrom: FetchFrom,
    surroundings: Surroundings,
  ) => Issuer;
}

/** Made by `tenants`, for one gate or service. */
export interface TenantsPart extends Part<'tenants', Tenants> {}

/** The options of each issuer. */
export interface IssuerOptions extends Given<Omit<IssuerValues, 'audience'>> {
  /** The host name of the provider, with a port if it is not 443. */
  readonly domain: string;
  /** One or more identifiers of this API at the provider. A token's `aud` must contain one. */
  readonly audience: string | readonly string[];
}

/**
 * Replaces requests for signing keys. Resolves with a key set (RFC 7517 §5): that of `tenant` if each tenant
 * has its own, otherwise that of the issuer called `name`.
 */
export type FetchKeys = (
  issuer: IssuerValues,
  name: string,
  tenant?: string,
) => Promise<{ readonly keys?: readonly unknown[] }>;

/** Replaces introspection requests. Resolves with a response, `{ active, … }` (RFC 7662 §2.2). */
export type IntrospectToken = (token: string, issuerName: string) => Promise<{ readonly active?: unknown }>;

/** Which tokens of an issuer it is asked about, and as whom. */
export interface Introspection {
  readonly tokens: readonly string[];
  readonly clientId: string;
  /** Of this client at the issuer. */
  readonly authentication: string;
  /** Throws a `TypeError` if it does not fit the issuer. */
  readonly create: (
    issuer: IssuerValues,
    name: string,
    values: IssuersValues,
    surroundings: Surroundings,
  ) => Introspect;
}

/** Made by `introspection`, for one gate or service. */
export interface IntrospectionPart extends Part<'introspection', Introspection> {}

/** Made by `redisReplayStore`, for any number of gates and services. */
export interface ReplayStorePart extends Part<'replayStore', CreateReplayStore> {}

/** Made by `throughProxy`, for one gate or service. */
export interface ConnectPart extends Part<'connect', Connect> {}

/** Of the checks of tokens and proofs, with all defaults. */
interface CheckValues extends SenderOptions {
  /** How many tokens to cache, up to 1,000,000. Default: 10,000. */
  readonly tokenCacheEntries: number;
  /** By how many seconds `exp`, `nbf` and `auth_time` may be off, up to 300. Default: 0. */
  readonly clockToleranceSeconds: number;
  /** Default: a store in this process. */
  readonly replayStore: CreateReplayStore | undefined;
  /** The forward proxy to the provider, made by `throughProxy`. */
  readonly connect: ConnectPart | undefined;
  /** For tests: replaces requests for signing keys. Must resolve within five seconds. */
  readonly fetchKeys: FetchKeys | undefined;
  /** For tests: replaces introspection requests. Must resolve within five seconds. */
  readonly introspect: IntrospectToken | undefined;
}

/** The options for checking tokens and proofs. Those of `IssuerOptions` describe the first issuer. */
export interface VerifyOptions extends IssuerOptions, Given<Omit<CheckValues, 'replayStore'>> {
  /** A shared store, made by `redisReplayStore`, or your own function. Default: a store in this process. */
  readonly replayStore?: ReplayStorePart | IsNewProof | undefined;
  /** Further issuers by name. */
  readonly issuers?: Readonly<Record<string, IssuerOptions>> | undefined;
}

export const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['RS256'];

/** The problem of each option that must be there. */
export const REQUIRED = {
  domain: 'the issuer base URL is required; set this to its host name',
  audience: 'the audience is required; set this to the identifier of this API at the provider',
};

const texts = listOf(textWithoutBlanks);

const textOrTexts: Rule = (value) => (Array.isArray(value) ? texts : textWithoutBlanks)(value);

/** Case-sensitive (RFC 7515 §4.1.1). */
const algorithmNames = listOf(oneOf(...ALGORITHM_NAMES));

export const ISSUER_RULES: RulesOf<IssuerOptions> = {
  domain: host,
  audience: textOrTexts,
  issuer: issuerUrl,
  jwksUri: httpsUrl,
  claimNamespace: urlPrefix,
  scopeClaim: textWithoutBlanks,
  tokenType: oneOf('any', 'at+jwt'),
  algorithms: algorithmNames,
  requiredClaims: listOf(textWithoutBlanks, 0),
  keyAccess: Part.rule('keyAccess', 'keyAccess({ tokenFile, caFile })'),
  tenants: Part.rule('tenants', 'tenants({ issuer, list })'),
  introspection: Part.rule('introspection', 'introspection({ tokens, clientId })'),
};

const NO_ISSUERS = 'must be an object with the options of each issuer under its name';

/** Members of a Map or a prototype would be overlooked, and those that are not enumerable. */
const byName: Rule = (value) =>
  isJsonObject(value) && isPlain(value) && Reflect.ownKeys(value).length === Object.keys(value).length
    ? undefined
    : NO_ISSUERS;

export const VERIFY_RULES: RulesOf<VerifyOptions> = {
  ...ISSUER_RULES,
  issuers: byName,
  dpopMode: oneOf('DISABLED', 'ALLOWED', 'REQUIRED'),
  dpopIatOffsetSeconds: integer(0, 1e9),
  dpopIatLeewaySeconds: integer(0, 1e9),
  dpopAlgorithms: algorithmNames,
  dpopNonceSecret: textMatching(/[^]{32}/, 'must have at least 32 characters'),
  tokenCacheEntries: integer(0, 1_000_000),
  clockToleranceSeconds: integer(0, 300),
  publicUrl,
  trustProxy: boolean,
  replayStore: functionOr(Part.rule('replayStore', 'redisReplayStore(url)')),
  connect: Part.rule('connect', 'throughProxy(url)'),
  fetchKeys: someFunction,
  introspect: someFunction,
};

export const CHECK_DEFAULTS: Partial<CheckValues> = {
  dpopMode: 'ALLOWED',
  dpopIatOffsetSeconds: 300,
  dpopIatLeewaySeconds: 30,
  dpopAlgorithms: ALGORITHM_NAMES,
  tokenCacheEntries: 10_000,
  clockToleranceSeconds: 0,
  trustProxy: false,
};

export const FIRST_ISSUER = 'idp';

export const MAX_ISSUERS = 20;

export const ISSUER_NAME = /^(?!idp$)[a-z][a-z0-9]{0,15}$/;

export const ISSUERS_PROBLEM =
  'must be up to 20 names in lower case, each a letter and up to 15 letters or digits; none may be idp';

/** A token names its issuer by `iss` alone. */
export const SAME_ISSUER = 'is also the issuer (iss) of another; give each its own';

/** Where a provider has no other. */
export const issuerAt = (domain: string): string => `https://${domain}/`;

export type IssuersByName = Readonly<Record<string, IssuerValues>>;

export interface IssuersValues extends CheckValues {
  readonly issuers: IssuersByName;
}

/** All issuers by name, the first one first. `first` has the options of that one, among others. */
export function readIssuers(first: IssuerOptions, others: object = {}): IssuersByName {
  const issuers: Record<string, IssuerValues> = { [FIRST_ISSUER]: issuerOf(first) };
  if (Object.keys(others).length > MAX_ISSUERS) throwProblem('issuers', ISSUERS_PROBLEM);

  for (const [name, given] of Object.entries(others)) {
    if (!ISSUER_NAME.test(name)) throwProblem('issuers', ISSUERS_PROBLEM);

    const owner = `issuers.${name}`;
    const read = issuerOf(readOptions<IssuerOptions>(given, ISSUER_RULES, {}, REQUIRED, owner));
    const isTaken = Object.values(issuers).some(({ issuer }) => issuer === read.issuer);
    if (isTaken) throwProblem(`${owner}: issuer`, SAME_ISSUER);
    issuers[name] = read;
  }
  return issuers;
}

const NO_TENANTS = 'must have no brace without the option tenants; write it as the provider shows it';

/** Throws a `TypeError` for one that does not fit the others, or all `options`. */
export function requireFit(issuers: IssuersByName, options: object) {
  for (const [name, { tenants, jwksUri }] of Object.entries(issuers)) {
    const hasBrace = /[{}]/.test(String(jwksUri));
    if (tenants !== undefined) Part.contentOf(tenants).requireFit(name, issuers, options);
    else if (hasBrace) throwProblem(`${ownerOf(name)}jwksUri`, NO_TENANTS);
  }
}

/** What stands before an option of an issuer in problems. */
export const ownerOf = (name: string): string => (name === FIRST_ISSUER ? '' : `issuers.${name}: `);

/** Those of an issuer, among other options or alone. */
export function issuerOf(given: IssuerOptions): IssuerValues {
  const { domain, tenants } = given;
  return Object.freeze({
    domain,
    audience: Object.freeze([given.audience].flat()),
    issuer: given.issuer ?? Part.contentOf(tenants)?.template ?? issuerAt(domain),
    jwksUri: given.jwksUri,

    claimNamespace: given.claimNamespace ?? '',
    scopeClaim: given.scopeClaim ?? 'scope',
    tokenType: given.tokenType ?? 'any',
    algorithms: given.algorithms ?? DEFAULT_ALGORITHMS,
    requiredClaims: given.requiredClaims ?? [],

    keyAccess: given.keyAccess,
    tenants,
    introspection: given.introspection,
  });
}
