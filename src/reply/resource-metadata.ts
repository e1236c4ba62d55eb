// The document by which clients find out where to get a token (RFC 9728), at its paths. Trusts nothing of a
// request but its method and fields. Promises: the same bytes for everybody, which a page of any origin may
// read. Does not say what a row needs: challenge.ts does.
import { refuseMethod } from '../base/refusal.ts';
import { PROOF_ALGORITHMS } from '../keys/jwk.ts';
import type { Presentation } from '../request/uri.ts';
import type { DpopMode } from '../sender/credentials.ts';
import { isPreflight } from './cors.ts';
import { reply } from './handler-reply.ts';

/** Settings; without a URL all of this is off. */
interface ResourceOptions {
  readonly resourceUrl: string | undefined;
  readonly resourceScopes: readonly string[] | undefined;
  readonly resourceName: string | undefined;
  readonly resourceDocumentation: string | undefined;
  /** By name, the first one first. */
  readonly issuers: Readonly<Record<string, { readonly issuer: string }>>;
  readonly dpopMode: DpopMode;
}

const ROOT = '/.well-known/oauth-protected-resource';
const METHODS = ['GET', 'HEAD'];

/** Where the document is, and what replies to who asks for it. */
export function createResourceMetadata(options: ResourceOptions) {
  if (options.resourceUrl === undefined) return { describe: () => undefined };

  const { origin, pathname } = new URL(options.resourceUrl);
  // RFC 9728 §3.1
  const first = ROOT + pathname.replace(/^\/$/, '');
  // Choice: clients that keep a slash at the end of their URL find it too, and those that know but a part of
  // the API, at the root.
  const paths = [first, `${first}/`, ROOT];
  // RFC 9728 §7.10
  const document = reply(200, documentOf(options), { 'Cache-Control': 'public, max-age=3600' });
  const preflight = reply(204, undefined, {
    'Access-Control-Allow-Methods': 'GET, HEAD',
    'Access-Control-Allow-Headers': '*, Authorization',
  });

  /**
   * `undefined` at other paths. Sets the fields that say who may read the reply, in place of those of the
   * settings. Throws `Refused`.
   */
  function describe(learnt: { crossOrigin?: readonly string[] }, presentation: Presentation) {
    if (!paths.includes(presentation.path)) return undefined;

    learnt.crossOrigin = ['Access-Control-Allow-Origin', '*'];
    if (isPreflight(presentation)) return preflight.reply;
    if (!METHODS.includes(presentation.method)) throw refuseMethod(METHODS);

    return document.reply;
  }

  return { metadataUrl: origin + first, describe };
}

/** RFC 9728 §2; what has no value is left out (§3.2). */
function documentOf({ dpopMode, ...options }: ResourceOptions): object {
  const isRequired = dpopMode === 'REQUIRED';
  return {
    resource: options.resourceUrl,
    authorization_servers: Object.values(options.issuers).map(({ issuer }) => issuer),
    scopes_supported: options.resourceScopes,
    bearer_methods_supported: isRequired ? undefined : ['header'],
    resource_name: options.resourceName,
    resource_documentation: options.resourceDocumentation,
    dpop_signing_alg_values_supported: dpopMode === 'DISABLED' ? undefined : PROOF_ALGORITHMS,
    dpop_bound_access_tokens_required: isRequired || undefined,
  };
}
