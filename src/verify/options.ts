// The options of issuers, and of the checks of tokens and proofs: each with its rule and its default.
import { isPlain, type JsonObject } from './base/encoding.ts';
import {
  asList,
  boolean,
  functionOr,
  integer,
  listOf,
  oneOf,
  option,
  optional,
  readOptions,
  required,
  someFunction,
  textMatching,
  textOrList,
  textWithoutBlanks,
  throwProblem,
  type Rule,
  type TableOf,
  type ValuesOf,
} from './base/option.ts';
import { Part } from './base/part.ts';
import type { DpopMode } from './credentials.ts';
import type { CreateReplayStore, IsNewProof } from './dpop/replay.ts';
import type { Connect } from './keys/fetch.ts';
import { ALGORITHM_NAMES, type Algorithm } from './keys/jwk.ts';
import { normalUri } from './request/uri.ts';

/** Options of each issuer. */
export interface IssuerOptions {
  /** The host name of the provider, with a port if it is not 443. */
  readonly domain: string;
  /** The identifier of this API at the provider. Of several, a token must have one. */
  readonly audience: string | readonly string[];
  /** The issuer (`iss`) of its tokens. Default: `https://<domain>/`. */
  readonly issuer?: string | undefined;
  /** The URL of its key set. Default: found by discovery. */
  readonly jwksUri?: string | undefined;
  /** Guards read `<claimNamespace>name` where a token has it, else `name`. */
  readonly claimNamespace?: string | undefined;
  /** The claim that holds the scopes. Default: `scope`. */
  readonly scopeClaim?: string | undefined;
  /** `at+jwt` accepts only tokens of RFC 9068. Default: `any`. */
  readonly tokenType?: 'any' | 'at+jwt' | undefined;
  /** The algorithms of its tokens. Default: RS256 alone. */
  readonly algorithms?: readonly Algorithm[] | undefined;
  /** Claims that each of its tokens must have. */
  readonly requiredClaims?: readonly string[] | undefined;
}

/** Takes the place of the provider. */
export type FetchKeys = (issuer: IssuerValues, name: string) => Promise<JsonObject>;

/** Made by `redisReplayStore`. */
export type ReplayStorePart = Part<'replayStore', CreateReplayStore>;

/** Made by `throughProxy`. */
export type ConnectPart = Part<'connect', Connect>;

/** Options of the checks of tokens and proofs. Those of an issuer are those of the first. */
export interface VerifyOptions extends IssuerOptions {
  /** Further issuers by name. */
  readonly issuers?: Readonly<Record<string, IssuerOptions>> | undefined;
  /** Whether DPoP proofs are refused, allowed or required. Default: `ALLOWED`. */
  readonly dpopMode?: DpopMode | undefined;
  /** How old a proof may be. Default: 300. */
  readonly dpopIatOffsetSeconds?: number | undefined;
  /** How far in the future a proof may have been issued. Default: 30. */
  readonly dpopIatLeewaySeconds?: number | undefined;
  /** The algorithms of proofs. Default: all six. */
  readonly dpopAlgorithms?: readonly Algorithm[] | undefined;
  /** Turns nonces on: at least 32 characters, shared by the replicas. */
  readonly dpopNonceSecret?: string | undefined;
  /** How many tokens to cache. Default: 10,000. */
  readonly tokenCacheEntries?: number | undefined;
  /** Added to `exp` and subtracted from `nbf`. Default: 0. */
  readonly clockToleranceSeconds?: number | undefined;
  /** The origin, and path prefix, under which clients see the service. */
  readonly publicUrl?: string | undefined;
  /** Whether to read `X-Forwarded-Proto` and `X-Forwarded-Host` in place of `publicUrl`. Default: `false`. */
  readonly trustProxy?: boolean | undefined;
  /** A shared store, made by `redisReplayStore`, or a function that says whether a key is new. */
  readonly replayStore?: ReplayStorePart | IsNewProof | undefined;
  /** How to reach the provider, made by `throughProxy`. */
  readonly connect?: ConnectPart | undefined;
  /** For tests: resolves with an issuer's key set within five seconds, in place of asking the provider. */
  readonly fetchKeys?: FetchKeys | undefined;
}

export const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['RS256'];

const NONE: readonly string[] = [];

const NO_DOMAIN = 'the issuer base URL is required; set this to its host name';
const NO_AUDIENCE = 'the audience is required; set this to the identifier of this API at the provider';

const host: Rule<string> = (value) => {
  if (typeof value !== 'string') return 'must be text';

  const [scheme] = /^(?:https?:|[a-z][a-z0-9+.-]*:\/)\/*/i.exec(value) ?? [];
  if (scheme !== undefined) return `has a scheme; remove "${scheme}" and keep the host name`;
  if (/\s/.test(value)) return 'has white space; remove it';
  if (value.includes('@')) return 'has an "@"; remove it and all before it';
  if (/[/?#\\]/.test(value)) return 'has a path; remove the "/" and what follows the host name';

  return bareHost(value);
};

const bareHost = textMatching(
  /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i,
  'is not a host name with an optional ":port"; write it as the provider shows it',
  (value) => {
    const url = `https://${value}/`;
    return URL.canParse(url) && new URL(url).host === value.toLowerCase().replace(/:443$/, '');
  },
);

const secret = textMatching(/[^]{32}/, 'must have at least 32 characters');

const urlPrefix = textMatching(
  /^\S*$/,
  'must be the beginning of a URL, such as https://api.example.com/, without white space',
  URL.canParse,
);

/** Google's key set has an "@" in its path; before the path, it would end user information. */
export const httpsUrl: Rule<string> = textMatching(
  /^https:\/\/[^/\s@#\\]+(\/[^\s#\\]*)?$/i,
  'must be a URL that begins with https://, without white space, "#", or an "@" before its path',
  URL.canParse,
);

/** An issuer has no query (OpenID Connect Discovery §2). */
const issuerUrl = textMatching(
  /^https:\/\/[^/?\s@#\\][^?\s@#\\]*$/i,
  'must be a URL that begins with https://, without white space, "@", "#" or "?"',
  URL.canParse,
);

/** A public URL that has a normal form, to compare proofs with (RFC 9449 §4.3(9)). */
export const publicUrl: Rule<string> = textMatching(
  /^[^?#]*$/,
  'must be a URL that begins with https:// or http://, without "@", "#" or "?"',
  (value) => normalUri(value) !== undefined,
);

const withoutLastSlash = (url: string): string | undefined => url.replace(/\/$/, '');

/** Case-sensitive (RFC 7515 §4.1.1). */
const algorithms = listOf(oneOf(...ALGORITHM_NAMES));

const distinct = (names: readonly Algorithm[]): readonly Algorithm[] => Object.freeze([...new Set(names)]);

export const ISSUER_OPTIONS = {
  domain: required(option(host, ''), NO_DOMAIN),
  audience: required(option(textOrList(textWithoutBlanks), NONE, asList), NO_AUDIENCE),
  issuer: optional(issuerUrl),
  jwksUri: optional(httpsUrl),
  claimNamespace: option(urlPrefix, ''),
  scopeClaim: option(textWithoutBlanks, 'scope'),
  tokenType: option(oneOf('any', 'at+jwt'), 'any'),
  algorithms: option(algorithms, DEFAULT_ALGORITHMS, distinct),
  requiredClaims: option(listOf(textWithoutBlanks, 0), NONE),
} satisfies TableOf<IssuerOptions>;

/** Of one issuer, with all defaults. */
export interface IssuerValues extends ValuesOf<typeof ISSUER_OPTIONS> {
  readonly issuer: string;
}

export const CHECK_OPTIONS = {
  dpopMode: option(oneOf<DpopMode>('DISABLED', 'ALLOWED', 'REQUIRED'), 'ALLOWED'),
  dpopIatOffsetSeconds: option(integer(0, 1e9), 300),
  dpopAlgorithms: option(algorithms, ALGORITHM_NAMES, distinct),
  dpopIatLeewaySeconds: option(integer(0, 1e9), 30),
  dpopNonceSecret: optional(secret),
  tokenCacheEntries: option(integer(0, 1_000_000), 10_000),
  clockToleranceSeconds: option(integer(0, 300), 0),
  publicUrl: option(publicUrl, undefined, withoutLastSlash),
  trustProxy: option(boolean, false),
};

const NO_ISSUERS = 'must be an object with the options of each issuer under its name';

/** Members of a Map or a prototype would be overlooked. */
const byName: Rule<object> = (value) =>
  typeof value === 'object' && value !== null && isPlain(value) ? undefined : NO_ISSUERS;

const VERIFY_PARTS = {
  issuers: option(byName, {}),
  replayStore: optional(
    functionOr<IsNewProof, ReplayStorePart>(Part.rule('replayStore', 'redisReplayStore(url)')),
  ),
  connect: optional<ConnectPart>(Part.rule('connect', 'throughProxy(url)')),
  fetchKeys: optional(someFunction<FetchKeys>()),
};

export const VERIFY_OPTIONS = {
  ...ISSUER_OPTIONS,
  ...CHECK_OPTIONS,
  ...VERIFY_PARTS,
} satisfies TableOf<VerifyOptions>;

export const FIRST_ISSUER = 'idp';

export const MAX_ISSUERS = 20;

export const ISSUER_NAME = /^(?!idp$)[a-z][a-z0-9]{0,15}$/;

export const ISSUERS_PROBLEM =
  'must be up to 20 names in lower case, each a letter and up to 15 letters or digits; none may be idp';

/** A token names its issuer by `iss` alone. */
export const SAME_ISSUER = 'is also the issuer (iss) of another; give each its own';

/** Where a provider has no other. */
export const issuerAt = (domain: string): string => `https://${domain}/`;

/** All issuers by name, the first one first. */
export function readIssuers(values: ValuesOf<typeof VERIFY_OPTIONS>): IssuersByName {
  const issuers: Record<string, IssuerValues> = { [FIRST_ISSUER]: issuerIn(values) };
  const others = Object.entries<unknown>({ ...values.issuers });
  if (others.length > MAX_ISSUERS) throwProblem('issuers', ISSUERS_PROBLEM);

  for (const [name, given] of others) {
    if (!ISSUER_NAME.test(name)) throwProblem('issuers', ISSUERS_PROBLEM);

    const owner = `issuers.${name}`;
    const read = issuerIn(readOptions(given, ISSUER_OPTIONS, owner));
    const isTaken = Object.values(issuers).some(({ issuer }) => issuer === read.issuer);
    if (isTaken) throwProblem(`${owner}: issuer`, SAME_ISSUER);
    issuers[name] = read;
  }
  return Object.freeze(issuers);
}

export type IssuersByName = Readonly<Record<string, IssuerValues>>;

/** Those of an issuer, among other options or alone. */
function issuerIn({
  domain,
  audience,
  issuer = issuerAt(domain),
  jwksUri,
  claimNamespace,
  scopeClaim,
  tokenType,
  algorithms: names,
  requiredClaims,
}: ValuesOf<typeof ISSUER_OPTIONS>): IssuerValues {
  const kinds = { tokenType, algorithms: names, requiredClaims };
  return Object.freeze({ domain, audience, issuer, jwksUri, claimNamespace, scopeClaim, ...kinds });
}
