/* The real oidc-provider, as a server of access tokens that are signed as their resource wants it. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import Provider from 'oidc-provider';
import { draftProof, sealProof, type ProofKey } from '../../support/proof.ts';
import { listen, type Listening } from './tls.ts';

const RESOURCE = 'https://api.example.com/';
const SECRET = 'a-secret-of-the-only-client';

/** The name of an algorithm in the path of the resource says how its tokens are signed. */
export const resourceFor = (algorithm: string) => RESOURCE + algorithm;

export interface OidcProvider extends Listening {
  readonly issuer: string;
  /** An access token of a client that speaks for itself; bound to the key, when there is one. */
  token(algorithm: string, key?: ProofKey): Promise<string>;
  /** An opaque access token of a user. */
  opaqueToken(): Promise<{ readonly token: string; readonly withdraw: () => Promise<void> }>;
}

/** What introspects, as a client of the provider. */
export const API = { id: 'orders api', secret: 'a:secret of the API%' };

/** Of the opaque tokens. */
export const OPAQUE = `${RESOURCE}opaque`;

const jwkOf = ({ privateKey }: { privateKey: KeyObject }, kid: string, more: object = {}) => ({
  ...privateKey.export({ format: 'jwk' }),
  use: 'sig',
  kid,
  ...more,
});

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 });

const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });

/** The key of EdDSA has no `alg`: oidc-provider signs with it under both of its names. */
const signingKeys = () => [
  jwkOf(rsa(), 'rsa-pkcs1', { alg: 'RS256' }),
  jwkOf(rsa(), 'rsa-pss', { alg: 'PS256' }),
  jwkOf(ec('P-256'), 'p-256', { alg: 'ES256' }),
  jwkOf(ec('P-384'), 'p-384', { alg: 'ES384' }),
  jwkOf(ec('P-521'), 'p-521', { alg: 'ES512' }),
  jwkOf(generateKeyPairSync('ed25519'), 'ed25519'),
];

const configuration = () => ({
  jwks: { keys: signingKeys() },
  clients: [
    {
      client_id: 'machine',
      client_secret: SECRET,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
    {
      client_id: API.id,
      client_secret: API.secret,
      grant_types: [],
      redirect_uris: [],
      response_types: [],
    },
  ],
  scopes: ['read:messages'],
  enabledJWA: { dPoPSigningAlgValues: ['ES256', 'PS256', 'EdDSA'] },
  ttl: { ClientCredentials: 600 },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    dPoP: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_: unknown, resource: string) => ({
        scope: 'read:messages',
        audience: resource,
        accessTokenFormat: resource === OPAQUE ? 'opaque' : 'jwt',
        jwt: { sign: { alg: resource.slice(RESOURCE.length) } },
      }),
    },
  },
});

export async function startOidcProvider(): Promise<OidcProvider> {
  let provider: Provider | undefined;
  const listening = await listen((domain) => {
    provider = new Provider(`https://${domain}`, configuration());
    const answer = provider.callback();
    return (request, response) => void answer(request, response);
  });
  const issuer = `https://${listening.domain}`;
  const endpoint = `${issuer}/token`;

  return {
    ...listening,
    issuer,
    opaqueToken: () => mintOpaque(provider!),
    token: async (algorithm, key) => {
      const proof = key && proofFor(key, endpoint);
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`machine:${SECRET}`).toString('base64')}`,
          ...(proof && { dpop: proof }),
        },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          scope: 'read:messages',
          resource: resourceFor(algorithm),
        }),
      });
      const body = (await response.json()) as { access_token?: unknown };
      if (typeof body.access_token !== 'string') throw new Error(JSON.stringify(body));

      return body.access_token;
    },
  };
}

/** As a login of the user would. */
async function mintOpaque(provider: Provider) {
  // Its types lack these classes.
  const { Client, Grant, AccessToken, ResourceServer } = provider as never as Record<string, any>;
  const grant = new Grant({ accountId: 'ada', clientId: 'machine' });
  grant.addResourceScope(OPAQUE, 'read:messages');
  const grantId: string = await grant.save();
  const client: object = await Client.find('machine');
  const of = { client, grantId, gty: 'authorization_code', scope: 'read:messages' };
  const made = new AccessToken({ accountId: 'ada', ...of });
  made.resourceServer = new ResourceServer(OPAQUE, { scope: of.scope, audience: OPAQUE });
  const token: string = await made.save();
  return { token, withdraw: () => made.destroy() };
}

/** A proof for the token endpoint has no `ath` (RFC 9449 §5). */
function proofFor(key: ProofKey, uri: string): string {
  const draft = draftProof(key, {
    token: '',
    uri,
    nowSeconds: Math.floor(Date.now() / 1000),
    method: 'POST',
  });
  return sealProof({ ...draft, claims: { ...draft.claims, ath: undefined } });
}
