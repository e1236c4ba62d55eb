// The document by which clients find out where to get a token (RFC 9728). Promises: the same bytes for
// everybody, without a token; nothing of a request but its method and path decides what is told. Does not
// decide when it is looked for: front.ts does.
import { refuseMethod } from '../verify/base/refusal.ts';
import { PROOF_ALGORITHMS } from '../verify/keys/jwk.ts';
import { isPreflight } from './cors.ts';
import { HandlerReply, reply } from '../service/routes/handler-reply.ts';
import { metadataPaths } from '../gate/path.ts';
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Settings } from '../process/settings/load.ts';
import type { Learnt } from '../service/http/exchange.ts';

const METHODS = ['GET', 'HEAD'];

/**
 * The document by which clients find out where to get a token (RFC 9728): where it is, and what answers who
 * asks for it, with the same bytes for everybody; nothing without a resource.
 */
export function createResourceMetadata(settings: Settings) {
  if (!settings.resourceUrl) return { describe: () => undefined };

  const paths = metadataPaths(settings.resourceUrl);
  // RFC 9728 §7.10
  const document = early(200, documentOf(settings), { 'Cache-Control': 'public, max-age=3600' });
  const preflight = early(204, undefined, {
    'Access-Control-Allow-Methods': 'GET, HEAD',
    'Access-Control-Allow-Headers': '*, Authorization',
  });

  /** The reply at these paths, or why there is none; nothing at others. */
  function describe(learnt: Learnt, facts: RequestFacts) {
    if (!paths.includes(facts.path)) return undefined;

    // In place of what the settings say.
    learnt.crossOrigin = ['Access-Control-Allow-Origin', '*'];
    if (isPreflight(facts)) return preflight;
    return METHODS.includes(facts.method) ? document : refuseMethod(METHODS);
  }

  return { metadataUrl: new URL(settings.resourceUrl).origin + paths[0], describe };
}

/** It stands where a refusal could, which a reply of a handler's does not. */
const early = (...parts: Parameters<typeof reply>) => new HandlerReply(reply(...parts).reply, true);

/** RFC 9728 §2; what has no value is left out (§3.2). */
function documentOf({
  dpopMode,
  issuers,
  resourceUrl,
  resourceScopes,
  resourceName,
  resourceDocumentation,
}: Settings) {
  const isRequired = dpopMode === 'REQUIRED';

  return {
    resource: resourceUrl,
    authorization_servers: Object.values(issuers).map(({ issuer }) => issuer),
    scopes_supported: resourceScopes && [...new Set(resourceScopes)],
    bearer_methods_supported: isRequired ? undefined : ['header'],
    resource_name: resourceName,
    resource_documentation: resourceDocumentation,
    dpop_signing_alg_values_supported: dpopMode === 'DISABLED' ? undefined : PROOF_ALGORITHMS,
    dpop_bound_access_tokens_required: isRequired || undefined,
  };
}
