/* A provider that clients find on their own: oidc-provider with registration, resource indicators (RFC 8707)
   and DPoP, over TLS on loopback. Whoever asks to log in is logged in, and grants what is asked for. A client may request every
   scope, unless the provider holds it to the scopes that it has registered with. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export interface RealProvider {
  readonly domain: string;
  readonly issuer: string;
  stop(): void;
}

const certificate = (name: string) => readFileSync(new URL(`../../idp/tls/${name}.pem`, import.meta.url));

export interface ProviderOptions {
  /** Whether a client may request only the scopes of its registration. */
  readonly isStrict?: boolean;
  /** A scope that users never grant. */
  readonly refused?: string;
}

/** Its resource servers grant these scopes, and take JWTs. */
const RESOURCE_SCOPES = ['read:messages', 'write:messages', 'admin:access'];

function signingKey(): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'clients' };
}

function configuration(): object {
  return {
    jwks: { keys: [signingKey()] },
    scopes: ['openid', 'offline_access', ...RESOURCE_SCOPES],
    cookies: { keys: ['clients'] },
    pkce: { required: () => true },
    clientBasedCORS: () => true,
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    issueRefreshToken: (_: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: {
      Interaction: 600,
      Session: 600,
      Grant: 600,
      AccessToken: 600,
      RefreshToken: 600,
      AuthorizationCode: 60,
      IdToken: 600,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: RESOURCE_SCOPES.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}

/** The user who logs in and grants everything else, without a page in between. */
async function interact(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  refused: string,
): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const login = { accountId: 'alice' };
    return provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
  }

  const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  const isGranted = (scope: string) => scope !== refused;
  grant.addOIDCScope(missingOIDCScope.filter(isGranted).join(' '));
  grant.rejectOIDCScope(refused);
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) {
    grant.addResourceScope(resource, scopes.filter(isGranted).join(' '));
    grant.rejectResourceScope(resource, refused);
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** Takes the scopes out of a registration, so that they do not limit the client. */
async function registerForEveryScope(request: IncomingMessage & { body?: unknown }): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { scope: _, ...metadata } = JSON.parse(Buffer.concat(chunks).toString());
  // The provider uses a body that is already parsed.
  request.body = metadata;
}

export async function startRealProvider({
  isStrict = false,
  refused = '',
}: ProviderOptions = {}): Promise<RealProvider> {
  const server = createServer({ cert: certificate('provider'), key: certificate('provider-key') });
  server.listen(0, 'localhost');
  await once(server, 'listening');

  const domain = `localhost:${(server.address() as AddressInfo).port}`;
  const issuer = `https://${domain}`;
  const provider = new Provider(issuer, configuration());
  const answer = provider.callback();
  server.on('request', async (request, response) => {
    const isRegistration = request.method === 'POST' && request.url === '/reg';
    if (isRegistration && !isStrict) await registerForEveryScope(request);
    const isInteraction = request.url?.startsWith('/interaction/') === true;
    void (isInteraction ? interact(provider, request, response, refused) : answer(request, response));
  });
  return {
    domain,
    issuer,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
