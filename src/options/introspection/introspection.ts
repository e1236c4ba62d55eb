// The part for tokens that their issuer is asked about (RFC 7662): its options, and which issuers it fits.
// Promises: the secret and the key appear in no message.
import { printable, type Surroundings } from '../../verify/base/events.ts';
import {
  integer,
  listOf,
  oneOf,
  readOptions,
  text,
  throwProblem,
  Part,
  type Given,
  type RulesOf,
} from '../../verify/base/option.ts';
import {
  ownerOf,
  type Introspection,
  type IntrospectionPart,
  type IssuersValues,
  type IssuerValues,
} from '../../verify/options.ts';
import { httpsUrl } from '../../verify/urls.ts';
import { fileOf, NOT_READABLE, readNow } from '../key-access.ts';
import { createAssertion, createBasic, signingKeyIn, type SigningKey } from './client.ts';
import { IntrospectionEndpoint, type Asker } from './endpoint.ts';
import { Introspector } from './introspect.ts';
import { Questions } from './questions.ts';

interface IntrospectionValues {
  /** The kinds of tokens to introspect. */
  readonly tokens: readonly ('opaque' | 'jwt')[];
  /** The endpoint's URL. Default: the `introspection_endpoint` of the discovery document. */
  readonly uri: string | undefined;
  /** The client ID of this API at the issuer. */
  readonly clientId: string;
  /** The client secret, sent as HTTP Basic. Set either this or `keyFile`. */
  readonly clientSecret: string | undefined;
  /** A PEM file with the private key (PKCS #8) that signs client assertions (`private_key_jwt`). */
  readonly keyFile: string | undefined;
  /** The `kid` of client assertions. */
  readonly keyId: string | undefined;
  /**
   * Whether opaque tokens must have `aud`. With `provider`, they need not: safe only if the endpoint reports
   * just this API's tokens as active. Default: `required`.
   */
  readonly audience: 'required' | 'provider';
  /** How long to cache a response, 0 to 300; 0 turns caching off. Default: 10. */
  readonly cacheSeconds: number;
}

/** The options of `introspection`. */
export interface IntrospectionOptions
  extends
    Given<Omit<IntrospectionValues, 'tokens' | 'clientId'>>,
    Pick<IntrospectionValues, 'tokens' | 'clientId'> {}

const WRONG_KEY_FILE =
  `must be a file with one private key in PEM (BEGIN PRIVATE KEY) without passphrase: RSA from 2048 bits, ` +
  `P-256, P-384 or Ed25519; ${NOT_READABLE}`;

export const INTROSPECTION_RULES: RulesOf<IntrospectionOptions> = {
  tokens: listOf(oneOf('opaque', 'jwt')),
  uri: httpsUrl,
  clientId: text,
  clientSecret: text,
  keyFile: fileOf(signingKeyIn, WRONG_KEY_FILE),
  keyId: text,
  audience: oneOf('required', 'provider'),
  cacheSeconds: integer(0, 300),
};

export const INTROSPECTION_DEFAULTS = { audience: 'required', cacheSeconds: 10 };

const REQUIRED = {
  tokens: 'is missing; list opaque, jwt, or opaque and jwt',
  clientId: 'is missing; set the client id of this API at the issuer',
};

const OWNER = 'introspection';

const NOT_ONE = 'needs exactly one of clientSecret and keyFile';

const NO_KEY = 'has no effect without keyFile; remove it, or set keyFile';

/**
 * Asks an issuer about its tokens (RFC 7662): for the option `introspection` of an issuer. Reads the key file
 * now. Throws a `TypeError` for an option that is wrong.
 *
 * @example introspection({ tokens: ['opaque'], clientId: 'orders-api', clientSecret });
 */
export function introspection(options: IntrospectionOptions): IntrospectionPart {
  const values = readOptions<IntrospectionValues>(
    options,
    INTROSPECTION_RULES,
    INTROSPECTION_DEFAULTS,
    REQUIRED,
    OWNER,
  );
  const { tokens, clientId, clientSecret, keyFile, keyId } = values;
  if (keyId !== undefined && keyFile === undefined) throwProblem(`${OWNER}: keyId`, NO_KEY);
  if ((clientSecret === undefined) === (keyFile === undefined)) throwProblem(OWNER, NOT_ONE);

  const key = keyFile ? readKey(keyFile) : undefined;

  const content: Introspection = {
    tokens,
    clientId,
    authentication: key ? 'private_key_jwt' : 'client_secret_basic',

    create(issuer, name, all, surroundings) {
      requireFit(issuer, name, tokens, all);
      const { introspect } = all;
      const asker = introspect
        ? { ask: (token: string) => introspect(token, name) }
        : createAsker(values, key, issuer, all, surroundings);
      if (introspect) surroundings.log('introspection not from the provider', { issuer: printable(name) });
      const questions = new Questions(name, asker, surroundings);
      return new Introspector({ ...all, ...values }, questions, surroundings);
    },
  };
  return Part.make(OWNER, content);
}

const readKey = (path: string): SigningKey =>
  readNow(path, signingKeyIn) ?? throwProblem(`${OWNER}: keyFile`, WRONG_KEY_FILE);

function createAsker(
  { uri, clientId, clientSecret = '', keyId }: IntrospectionValues,
  key: SigningKey | undefined,
  source: IssuerValues,
  { connect }: IssuersValues,
  { clock }: Surroundings,
): Asker {
  const { issuer } = source;
  const authenticate = key
    ? createAssertion({ clientId, issuer, keyId }, key, clock)
    : createBasic(clientId, clientSecret);
  return new IntrospectionEndpoint(source, uri, authenticate, Part.contentOf(connect));
}

const NO_PROFILE = 'must not have opaque beside the token type at+jwt, which only a JWT has; remove one';

const NO_TEMPLATE = 'is not available for a tenant template; remove it';

const ONE_OPAQUE =
  'must not have opaque for a second issuer: an opaque token does not say whose it is; remove one';

/** Throws a `TypeError`. */
function requireFit(
  { issuer, tokenType }: IssuerValues,
  name: string,
  tokens: readonly string[],
  { issuers }: IssuersValues,
) {
  const owner = ownerOf(name) + OWNER;
  if (issuer.includes('{tenant}')) throwProblem(owner, NO_TEMPLATE);
  if (!tokens.includes('opaque')) return;

  if (tokenType === 'at+jwt') throwProblem(`${owner}: tokens`, NO_PROFILE);

  const opaque = Object.values(issuers).filter(({ introspection: part }) =>
    Part.contentOf(part)?.tokens.includes('opaque'),
  );
  if (opaque.length > 1) throwProblem(`${owner}: tokens`, ONE_OPAQUE);
}
