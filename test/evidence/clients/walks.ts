/* The ways of real clients from a bare 401 to a 200. Each is told nothing but the URL. */
import * as mcp2 from '@modelcontextprotocol/client';
import * as mcp1 from '@modelcontextprotocol/sdk/client/auth.js';
import { withOAuth } from '@modelcontextprotocol/sdk/client/middleware.js';
import * as oauth from 'oauth4webapi';
import { authorize, REDIRECT } from './user-agent.ts';

/** What a client has seen and said on its way. */
export interface Walk {
  readonly status: number;
  /** How the token was presented at last. */
  readonly scheme: string;
  /** As the client asked the provider. */
  readonly scope: string | null;
  readonly resource: string | null;
  readonly tokenType: string;
}

const CLIENT = {
  client_name: 'walk',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};

/** Everything that an MCP client wants kept, in memory. */
export class Keeper {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata: typeof CLIENT = CLIENT;
  #client: any;
  #tokens: any;
  #discovery: any;
  #verifier = '';
  /** Where the user was sent, each time. */
  readonly journeys: URL[] = [];

  /** Where the user was sent last. */
  get sentTo(): URL | undefined {
    return this.journeys.at(-1);
  }

  clientInformation() {
    return this.#client;
  }

  saveClientInformation(client: unknown) {
    this.#client = client;
  }

  forgetClient() {
    this.#client = undefined;
  }

  tokens() {
    return this.#tokens;
  }

  saveTokens(tokens: unknown) {
    this.#tokens = tokens;
  }

  saveDiscoveryState(state: any) {
    this.#discovery = state;
  }

  discoveryState() {
    return this.#discovery;
  }

  redirectToAuthorization(url: URL) {
    this.journeys.push(url);
  }

  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }

  codeVerifier() {
    return this.#verifier;
  }
}

/** With the proofs of the SDK's own session. */
export class ProvingKeeper extends Keeper {
  readonly #session = mcp2.DpopSession.create();

  dpop() {
    return this.#session;
  }
}

/** With refresh tokens, for which it registers. */
export class RefreshingKeeper extends Keeper {
  override readonly clientMetadata = { ...CLIENT, grant_types: ['authorization_code', 'refresh_token'] };
}

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** A `fetch` that remembers the authorization scheme of each call. */
function watchedFetch(): { readonly fetch: Fetch; readonly schemes: string[] } {
  const schemes: string[] = [];

  const watched: Fetch = (url, init) => {
    const [scheme = ''] = (new Headers(init?.headers).get('authorization') ?? '').split(' ');
    schemes.push(scheme);
    return fetch(url, init);
  };

  return { fetch: watched, schemes };
}

/** The first request sends the user away; with the code that comes back the second is answered. */
async function walkMcp(
  keeper: Keeper,
  url: string,
  call: Fetch,
  schemes: readonly string[],
  finish: (code: URL) => Promise<unknown>,
): Promise<Walk> {
  await call(url).then(
    () => Promise.reject(new Error('the first request was answered')),
    (failure: Error) => {
      if (keeper.sentTo === undefined) throw failure;
    },
  );

  const { searchParams } = keeper.sentTo ?? new URL(url);
  await finish(await authorize(keeper.sentTo ?? new URL(url)));
  const { status } = await call(url);
  return {
    status,
    scheme: schemes.at(-1) ?? '',
    scope: searchParams.get('scope'),
    resource: searchParams.get('resource'),
    tokenType: String(keeper.tokens()?.token_type),
  };
}

const codeIn = (url: URL) => url.searchParams.get('code') ?? '';

/** @modelcontextprotocol/sdk 1.x */
export function walkSdk1(url: string, keeper = new Keeper()): Promise<Walk> {
  const { fetch: watched, schemes } = watchedFetch();
  const call = withOAuth(keeper, url)(watched) as Fetch;
  return walkMcp(keeper, url, call, schemes, (back) =>
    mcp1.auth(keeper, { serverUrl: url, authorizationCode: codeIn(back) }),
  );
}

/** @modelcontextprotocol/client 2.x, with its DPoP session or without. */
export async function walkClient2(url: string, proves: boolean): Promise<Walk> {
  const keeper = proves ? new ProvingKeeper() : new Keeper();
  const { fetch: watched, schemes } = watchedFetch();
  const call = mcp2.withOAuth(keeper, url)(watched) as Fetch;
  return walkMcp(keeper, url, call, schemes, (back) =>
    mcp2.auth(keeper, {
      serverUrl: url,
      authorizationCode: codeIn(back),
      iss: back.searchParams.get('iss') ?? undefined,
    } as Parameters<typeof mcp2.auth>[1]),
  );
}

/** Allows plain HTTP, which is used only on loopback here. */
const INSECURE = { [oauth.allowInsecureRequests]: true };

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** What the challenges of a bare request say. */
async function readChallenge(url: URL): Promise<Readonly<Record<string, string | undefined>>> {
  const refused = await oauth
    .protectedResourceRequest('none', 'GET', url, undefined, undefined, {
      ...INSECURE,
      // No credentials at all.
      [oauth.customFetch]: (to, init) => {
        const { authorization: _, ...headers } = init.headers;
        return fetch(to, { ...init, headers } as RequestInit);
      },
    })
    .catch((failure: unknown) => failure);
  if (!(refused instanceof oauth.WWWAuthenticateChallengeError)) {
    throw new Error('no challenge was understood');
  }

  return Object.assign({}, ...refused.cause.map(({ parameters }) => parameters).reverse());
}

/** oauth4webapi, with DPoP or without. */
export async function walkOauth4webapi(url: string, proves: boolean): Promise<Walk> {
  const api = new URL(url);
  const { resource_metadata: metadata = '', scope = '' } = await readChallenge(api);
  // RFC 9728 §3.3: the resource is the metadata URL without its well-known path.
  const resource = new URL(metadata.replace(WELL_KNOWN, ''));
  const found = await oauth.resourceDiscoveryRequest(resource, INSECURE);
  const { authorization_servers: [server = ''] = [], resource: indicator } =
    await oauth.processResourceDiscoveryResponse(resource, found);

  const issuer = new URL(server);
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer));
  const registration = await oauth.dynamicClientRegistrationRequest(as, CLIENT);
  const registered = await oauth.processDynamicClientRegistrationResponse(registration);
  const client: oauth.Client = { client_id: registered.client_id };
  const keys = await oauth.generateKeyPair('ES256');
  const proof = proves ? { DPoP: oauth.DPoP(client, keys) } : {};

  const verifier = oauth.generateRandomCodeVerifier();
  const question = new URL(as.authorization_endpoint ?? '');
  question.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope,
    resource: indicator,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString();
  const back = oauth.validateAuthResponse(as, client, await authorize(question));
  const granted = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    oauth.None(),
    back,
    REDIRECT,
    verifier,
    {
      ...proof,
      additionalParameters: { resource: indicator },
    },
  );
  const { access_token: token, token_type: tokenType } = await oauth.processAuthorizationCodeResponse(
    as,
    client,
    granted,
  );

  const call = () =>
    oauth.protectedResourceRequest(token, 'GET', api, undefined, undefined, { ...INSECURE, ...proof });

  const answer = await call().catch((failure: unknown) => {
    if (oauth.isDPoPNonceError(failure)) return call();
    throw failure;
  });
  const asked = question.searchParams;
  return {
    status: answer.status,
    scheme: proves ? 'DPoP' : 'Bearer',
    scope: asked.get('scope'),
    resource: asked.get('resource'),
    tokenType,
  };
}

/** A Bearer token for this API, for the page in a browser. */
export async function tokenFor(url: string): Promise<string> {
  const keeper = new Keeper();
  await walkSdk1(url, keeper);
  return keeper.tokens().access_token;
}
