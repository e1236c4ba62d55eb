/* The clients that the provider knows, and their tokens, which come over HTTPS from its token endpoint
   alone. */
import type { Client, Provider } from '../idp/provider.ts';
import { fetchJson } from '../idp/request.ts';
import { curlLine, type Block, type Example, type Section } from './examples.ts';

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
    // Claims of a client win over the provider's, which would let a token live for one hour.
    get claims() {
      return { exp: Math.floor(Date.now() / 1000) + lifetimeSeconds, ...claims };
    },
  }));
}

/** Clients of both profiles: one without any scope, and two whose tokens are refused. */
export const everyone = {
  visitor: {},
  latecomer: { lifetimeSeconds: -60 },
  stranger: { claims: { aud: 'https://another-api.test' } },
} satisfies Record<string, Grants>;

function tokenRequest(
  { audience }: Provider,
  { id, secret }: Client,
): { path: string; type: string; body: string } {
  const parameters = { client_id: id, client_secret: secret, audience, grant_type: 'client_credentials' };
  return { path: 'oauth/token', type: 'application/json', body: JSON.stringify(parameters) };
}

/** A fresh token of a client. Throws when the provider refuses. */
export async function fetchToken(provider: Provider, client: Client): Promise<string> {
  const { path, type, body } = tokenRequest(provider, client);
  const answer = await fetchJson(provider.issuer + path, {
    method: 'POST',
    headers: { 'Content-Type': type },
    body,
  });
  if (typeof answer.access_token !== 'string') {
    throw new Error(`no token for ${client.id}: ${JSON.stringify(answer)}`);
  }
  return answer.access_token;
}

/** How to get a token without this program. */
export const ownToken: Section = async ({ provider, clients }) =>
  clients
    .filter(({ id }) => id === 'visitor')
    .map((client): Block => {
      const { path, type, body } = tokenRequest(provider, client);
      return {
        route: `POST /${path}`,
        status: 200,
        why: 'a token of your own; for another client write its name twice',
        line: curlLine(
          '--cacert',
          provider.authorityFile,
          '-H',
          `Content-Type: ${type}`,
          '-d',
          body,
          provider.issuer + path,
        ),
        body: '{"access_token":"eyJ',
      };
    });

/** A block for every example, each client's token fetched once. */
export const requests =
  (examples: readonly Example[]): Section =>
  async ({ provider, clients, origin }) => {
    const named = clients.map(async (client) => [client.id, await fetchToken(provider, client)] as const);
    const tokens = new Map(await Promise.all(named));
    return examples.map(({ path, as, status, body, why }): Block => {
      const block = { route: `GET ${path}`, status, body };
      if (as === undefined) return { ...block, why, line: curlLine(origin + path) };
      return {
        ...block,
        why: `${as}: ${why}`,
        line: curlLine('-H', `Authorization: Bearer ${tokens.get(as)}`, origin + path),
      };
    });
  };
