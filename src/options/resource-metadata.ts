// The document that tells clients where to get a token (RFC 9728). Promises: everyone gets the same bytes,
// without a token.
import { printableSetting } from '../verify/base/events.ts';
import {
  listOf,
  readOptions,
  text,
  textMatching,
  Part,
  type Given,
  type Rule,
  type RulesOf,
} from '../verify/base/option.ts';
import type { IssuerValues } from '../verify/options.ts';
import { publicUrl } from '../verify/urls.ts';
import { refuseMethod, type Refusal } from '../verify/base/refusal.ts';
import { NO_CONTENT, type Reply } from '../gate/replies/reply.ts';
import { onceForEach, type NameScopes } from '../gate/replies/refusal-replies.ts';
import { turnAway, type Early } from '../gate/decide.ts';
import { WRONG_RESOURCE, type MetadataPart, type Resource } from '../gate/options.ts';
import { isPreflight } from './preflight.ts';

const METHODS = ['GET', 'HEAD'];

/** To pages of every origin. */
const READABLE = { crossOrigin: ['Access-Control-Allow-Origin', '*'] };

interface ResourceValues {
  /** The identifier of the resource, as clients see it. */
  readonly url: string;
  /** Scopes that clients may request if a challenge contains no scope. */
  readonly scopes: readonly string[] | undefined;
  /** The human-readable name of this API. */
  readonly name: string | undefined;
  /** The `https:` URL of a page for client developers. */
  readonly documentation: string | undefined;
}

/** The options of `resourceMetadata` (RFC 9728 §2). */
export interface ResourceOptions extends Given<Omit<ResourceValues, 'url'>>, Pick<ResourceValues, 'url'> {}

/**
 * The identifier of a protected resource (RFC 9728 §1.2). Names under `localhost` are loopback (RFC 6761
 * §6.3). Stricter: no slash at the end of a path (RFC 9728 §3.1): clients differ in what they then request.
 */
const RESOURCE =
  /^(https:\/\/[^/]+|http:\/\/(([\w-]+\.)*localhost|127(\.\d+){3}|\[::1\])(:\d+)?)\/([^=]*[^=/])?$/;

const resourceUrl: Rule = (value) =>
  publicUrl(value) ?? (RESOURCE.test(new URL(String(value)).href) ? undefined : WRONG_RESOURCE);

/** A scope-token (RFC 6749 §3.3), neither `openid` nor `offline_access`. */
const resourceScope = textMatching(
  /^(?!(openid|offline_access)$)[\x21\x23-\x5b\x5d-\x7e]+$/,
  'must be a scope of this API, without white space, \'"\' or "\\"; neither openid nor offline_access',
);

/** Of a page, or of a place in it. */
const pageUrl = textMatching(
  /^https:\/\/[^/?#\s@\\]+([/?#][^\s\\]*)?$/i,
  'must be a URL that begins with https://, without white space, "\\", or an "@" before its path',
  URL.canParse,
);

export const RESOURCE_RULES: RulesOf<ResourceOptions> = {
  url: resourceUrl,
  scopes: listOf(resourceScope),
  name: text,
  documentation: pageUrl,
};

const REQUIRED = { url: 'is missing; write the identifier of the resource' };

/**
 * Serves the document that tells clients where to get a token (RFC 9728): for the option `metadata`. Throws a
 * `TypeError` for an option that is wrong.
 *
 * @example createService({ routes }, { domain, audience, metadata: resourceMetadata({ url: audience }) });
 */
export function resourceMetadata(options: ResourceOptions): MetadataPart {
  const values = readOptions<ResourceValues>(options, RESOURCE_RULES, {}, REQUIRED, 'resourceMetadata');
  const { url } = values;
  const paths = metadataPaths(url);
  const metadataUrl = new URL(url).origin + paths[0];
  const createEarly = (resource: Resource) => createResourceMetadata(values, resource);
  return Part.make('metadata', { url, paths, metadataUrl, nameScopes, createEarly });
}

const METADATA_ROOT = '/.well-known/oauth-protected-resource';

/** RFC 9728 §3.1. Choice: clients that keep a slash at the end, or look at the root, find it too. */
export function metadataPaths(resourceUrl: string): readonly [first: string, ...others: string[]] {
  const first = METADATA_ROOT + new URL(resourceUrl).pathname.replace(/^\/$/, '');
  return [first, `${first}/`, METADATA_ROOT];
}

/** RFC 9728 §3.1 */
function createResourceMetadata(options: ResourceValues, resource: Resource): Early {
  warnOfAudience(options, resource);
  const paths = metadataPaths(options.url);
  const content = JSON.stringify(documentOf(options, resource));
  const fields = [
    // RFC 9728 §7.10
    'cache-control',
    'public, max-age=3600',
    'content-type',
    'application/json; charset=utf-8',
    'x-content-type-options',
    'nosniff',
    'content-length',
    String(Buffer.byteLength(content)),
  ];
  const document: Reply = { status: 200, fields, content };

  const [cacheControl = '', noStore = '', ...nosniff] = NO_CONTENT.fields;
  const allowed = [
    'access-control-allow-methods',
    METHODS.join(', '),
    'access-control-allow-headers',
    '*, Authorization',
  ];
  const preflight = { ...NO_CONTENT, fields: [cacheControl, noStore, ...allowed, ...nosniff] };

  return (facts) => {
    if (!paths.includes(facts.path)) return resource.preflight?.(facts);

    if (isPreflight(facts)) return { ...READABLE, reply: preflight };

    const isRead = METHODS.includes(facts.method);
    return isRead ? { ...READABLE, reply: document } : turnAway(READABLE, refuseMethod(METHODS));
  };
}

/** RFC 9728 §2. JSON leaves out members without a value (§3.2). */
function documentOf(
  { url, scopes, name, documentation }: ResourceValues,
  { dpopMode, dpopAlgorithms, clientCertificates, issuers }: Resource,
) {
  const isRequired = dpopMode === 'REQUIRED';

  return {
    resource: url,
    authorization_servers: [...new Set(Object.values(issuers).map(serverOf))],
    scopes_supported: scopes,
    bearer_methods_supported: isRequired ? undefined : ['header'],
    resource_name: name,
    resource_documentation: documentation,
    tls_client_certificate_bound_access_tokens: clientCertificates && true,
    dpop_signing_alg_values_supported: dpopMode === 'DISABLED' ? undefined : dpopAlgorithms,
    dpop_bound_access_tokens_required: isRequired || undefined,
  };
}

/** No client could use a template. */
const serverOf = ({ issuer, tenants }: IssuerValues) =>
  Part.contentOf(tenants)?.authorizationServer ?? issuer;

/**
 * RFC 8707 §2.2: a token for a resource has it as audience. The metadata names it to clients (RFC 9728 §2).
 */
function warnOfAudience({ url }: ResourceValues, { issuers, log }: Resource) {
  const isAudience = Object.values(issuers).some(({ audience }) => audience.includes(url));
  if (!isAudience) log('resource is not an audience', { setting: printableSetting(url) });
}

const withScope = onceForEach((refusal, scope: string): Refusal => {
  return { ...refusal, demands: { ...refusal.demands, scope } };
});

/**
 * If another token could help, names all scopes of the route and its rules (RFC 6750 §3). Choice: includes
 * scopes of `anyScope` and of guards that passed, or the client's next token would lack them. Equal results
 * are the same object, so that their reply is built once.
 */
const nameScopes: NameScopes = (refusal, { demands: accesses = [] }) => {
  const { kind, demands } = refusal;
  const isAvoidable = demands !== undefined || kind === 'unauthorized' || kind === 'invalid_token';
  if (!isAvoidable) return refusal;

  const scopes = accesses
    .flatMap(({ guards }) => guards)
    .flatMap(({ refused }) => refused.refusal.scopes ?? []);
  return withScope(refusal, [...new Set(scopes)].join(' '));
};
