/* A provider that clients find on their own: oidc-provider with registration, resource indicators (RFC 8707)
   and DPoP, over TLS on loopback. Whoever asks to log in is logged in, and grants what is asked for. */
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

/** Its resource servers grant these scopes, and take JWTs. */
const RESOURCE_SCOPES = ['read:messages', 'admin:access'];

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
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: {
      Interaction: 600,
      Session: 600,
      Grant: 600,
      AccessToken: 600,
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

/** The user who logs in and grants everything, without a page in between. */
async function interact(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const login = { accountId: 'alice' };
    return provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
  }

  const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

export async function startRealProvider(): Promise<RealProvider> {
  const server = createServer({ cert: certificate('provider'), key: certificate('provider-key') });
  server.listen(0, 'localhost');
  await once(server, 'listening');

  const domain = `localhost:${(server.address() as AddressInfo).port}`;
  const issuer = `https://${domain}`;
  const provider = new Provider(issuer, configuration());
  const answer = provider.callback();
  server.on('request', (request, response) => {
    const isInteraction = request.url?.startsWith('/interaction/') === true;
    void (isInteraction ? interact(provider, request, response) : answer(request, response));
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
