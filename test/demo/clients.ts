/* The clients that the provider knows, and their tokens, which come over HTTPS from its token endpoint
   alone. */
import type { Client, Provider } from '../idp/provider.ts';
import { fetchWhole, type Response } from '../idp/request.ts';

/** How long the tokens live, so that a demo kept open goes on working. */
export const TOKEN_LIFETIME_HOURS = 12;

const LIFETIME_SECONDS = TOKEN_LIFETIME_HOURS * 3600;

export type NamedClient<Name> = Client & { readonly id: Name };

/** What is special about a client's tokens. */
interface Grants {
  readonly scopes?: readonly string[];
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Seconds from now to `exp`. */
  readonly lifetimeSeconds?: number;
}

/** Clients by their identifier. */
export function makeClients<Name extends string>(
  clients: Readonly<Record<Name, Grants>>,
): readonly NamedClient<Name>[] {
  const entries = Object.entries(clients) as [Name, Grants][];
  return entries.map(([id, { scopes = [], claims, lifetimeSeconds = LIFETIME_SECONDS }]) => ({
    id,
    secret: `${id}-secret`,
    scopes,
    // A client's claims replace the provider's, by which a token would live for one hour.
    get claims() {
      return { exp: Math.floor(Date.now() / 1000) + lifetimeSeconds, ...claims };
    },
  }));
}

/** Clients of both profiles: one without any scope, two whose tokens are refused, and one of another API. */
export const everyone = {
  visitor: {},
  latecomer: { lifetimeSeconds: -60 },
  stranger: { claims: { aud: 'https://another-api.test' } },
  // For the API of docs/your-own-api.md.
  buyer: { scopes: ['read:orders', 'write:orders'] },
} satisfies Record<string, Grants>;

export const tokenEndpointOf = ({ issuer }: Provider) => `${issuer}oauth/token`;

export const TOKEN_REQUEST_TYPE = 'application/json';

/** The body of a token request. */
export const tokenRequest = ({ audience }: Provider, { id, secret }: Client): string =>
  JSON.stringify({ client_id: id, client_secret: secret, audience, grant_type: 'client_credentials' });

/** The provider's response to a client; with a proof its token is bound to the proof's key. */
export const askForToken = (provider: Provider, client: Client, proof?: string): Promise<Response> =>
  fetchWhole(tokenEndpointOf(provider), {
    method: 'POST',
    headers: { 'Content-Type': TOKEN_REQUEST_TYPE, ...(proof === undefined ? {} : { DPoP: proof }) },
    body: tokenRequest(provider, client),
  });

/** A fresh token of a client. Throws when the provider refuses. */
export async function fetchToken(provider: Provider, client: Client): Promise<string> {
  const { status, body } = await askForToken(provider, client);
  if (status !== 200) throw new Error(`no token for ${client.id}: ${body}`);

  return String(JSON.parse(String(body)).access_token);
}

/** A fresh token of each client, by the client's identifier. */
export async function fetchTokens(
  provider: Provider,
  clients: readonly Client[],
): Promise<ReadonlyMap<string, string>> {
  const named = clients.map(async (client) => [client.id, await fetchToken(provider, client)] as const);
  return new Map(await Promise.all(named));
}
