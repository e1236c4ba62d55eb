// The document that tells clients where to get a token (RFC 9728). Promises: everyone gets the same bytes,
// without a token.
import { printableSetting, type Log } from '../verify/base/events.ts';
import { refuseMethod, type Refusal } from '../verify/base/refusal.ts';
import { NO_CONTENT, type Reply } from '../gate/replies/reply.ts';
import { onceForEach } from '../gate/replies/challenge.ts';
import { turnAway, type Early } from '../gate/record.ts';
import type { NameScopes } from '../gate/replies/refusal-replies.ts';
import type { DpopMode } from '../verify/credentials.ts';
import { isPreflight } from './preflight.ts';

const METHODS = ['GET', 'HEAD'];

/** To pages of every origin. */
const READABLE = { crossOrigin: ['Access-Control-Allow-Origin', '*'] };

export interface ResourceOptions {
  readonly dpopMode: DpopMode;
  readonly dpopAlgorithms: readonly string[];
  readonly issuers: Readonly<Record<string, Readonly<{ issuer: string; audience: readonly string[] }>>>;
  readonly resourceUrl?: string | undefined;
  readonly resourceScopes: readonly string[] | undefined;
  readonly resourceName: string | undefined;
  readonly resourceDocumentation: string | undefined;
}

const METADATA_ROOT = '/.well-known/oauth-protected-resource';

/** RFC 9728 §3.1. Choice: clients that keep a slash at the end, or look at the root, find it too. */
export function metadataPaths(resourceUrl: string): readonly [first: string, ...others: string[]] {
  const first = METADATA_ROOT + new URL(resourceUrl).pathname.replace(/^\/$/, '');
  return [first, `${first}/`, METADATA_ROOT];
}

export const metadataUrlOf = (resourceUrl: string) =>
  new URL(resourceUrl).origin + metadataPaths(resourceUrl)[0];

/** RFC 9728 §3.1 */
export function createResourceMetadata(options: ResourceOptions, log: Log): Early {
  warnOfAudience(options, log);
  const paths = metadataPaths(String(options.resourceUrl));
  const content = JSON.stringify(documentOf(options));
  const document: Reply = {
    status: 200,
    fields: [
      // RFC 9728 §7.10
      ...['cache-control', 'public, max-age=3600'],
      ...['content-type', 'application/json; charset=utf-8'],
      ...['x-content-type-options', 'nosniff'],
      ...['content-length', String(Buffer.byteLength(content))],
    ],
    content,
  };

  const [cacheControl = '', noStore = '', ...nosniff] = NO_CONTENT.fields;
  const allowed = [
    ...['access-control-allow-methods', METHODS.join(', ')],
    ...['access-control-allow-headers', '*, Authorization'],
  ];
  const preflight = { ...NO_CONTENT, fields: [cacheControl, noStore, ...allowed, ...nosniff] };

  return (facts) => {
    if (!paths.includes(facts.path)) return undefined;

    if (isPreflight(facts)) return { ...READABLE, reply: preflight };

    const isRead = METHODS.includes(facts.method);
    return isRead ? { ...READABLE, reply: document } : turnAway(READABLE, refuseMethod(METHODS));
  };
}

/** RFC 9728 §2. JSON leaves out members without a value (§3.2). */
function documentOf({
  dpopMode,
  dpopAlgorithms,
  issuers,
  resourceUrl,
  resourceScopes,
  resourceName,
  resourceDocumentation,
}: ResourceOptions) {
  const isRequired = dpopMode === 'REQUIRED';

  return {
    resource: resourceUrl,
    authorization_servers: Object.values(issuers).map(({ issuer }) => issuer),
    scopes_supported: resourceScopes && [...new Set(resourceScopes)],
    bearer_methods_supported: isRequired ? undefined : ['header'],
    resource_name: resourceName,
    resource_documentation: resourceDocumentation,
    dpop_signing_alg_values_supported: dpopMode === 'DISABLED' ? undefined : dpopAlgorithms,
    dpop_bound_access_tokens_required: isRequired || undefined,
  };
}

/**
 * RFC 8707 §2.2: a token for a resource has it as audience. The metadata names it to clients (RFC 9728 §2).
 */
function warnOfAudience({ resourceUrl = '', issuers }: ResourceOptions, log: Log) {
  const isAudience = Object.values(issuers).some(({ audience }) => audience.includes(resourceUrl));
  if (!isAudience) log('resource is not an audience', { setting: printableSetting(resourceUrl) });
}

const withScope = onceForEach((refusal, scope: string): Refusal => {
  return { ...refusal, demands: { ...refusal.demands, scope } };
});

/**
 * If another token could help, names all scopes of the route and its rules (RFC 6750 §3). Choice: includes
 * scopes of `anyScope` and of guards that passed, or the client's next token would lack them. Equal results
 * are the same object, so that their reply is built once.
 */
export const nameScopes: NameScopes = (refusal, { demands: inForce = [] }) => {
  const { kind, demands } = refusal;
  const isAvoidable = demands !== undefined || kind === 'unauthorized' || kind === 'invalid_token';
  if (!isAvoidable) return refusal;

  const scopes = inForce
    .flatMap(({ guards }) => guards)
    .flatMap(({ refused }) => refused.refusal.scopes ?? []);
  return withScope(refusal, [...new Set(scopes)].join(' '));
};
