/* One fault for each way in which a token is refused, in the order of docs/how-a-request-is-checked.md, for tests of one fault
   and of pairs. */
import { sign, type KeyObject } from 'node:crypto';
import type { REFUSALS } from '../../../src/verify/base/refusal.ts';
import type { TokenOptions } from '../../../src/verify/token/claims.ts';
import { rawJws } from '../../idp/tokens.ts';
import { CLAIMS, foreignKey, HEADER, NOW, signingKey, type Members } from './issuer.ts';

/** What parts find has tests of its own (options/redis/, options/tenants/, options/introspection/). */
type OfParts = 'revoked' | 'key-issuer-mismatch' | 'tenant-mismatch' | 'token-inactive';

export type TokenReason = Exclude<keyof typeof REFUSALS.invalid_token, OfParts>;

/** A token before it is signed, and how it is presented. */
export interface Draft {
  readonly header: Members;
  readonly claims: Members;
  readonly rules: { -readonly [Name in keyof TokenOptions]?: TokenOptions[Name] };
  /** Replaces the JSON of header or claims. */
  headerText?: string;
  payloadText?: string;
  key: KeyObject;
  /** Follows the signature. */
  ending: string;
  /** Stands between the scheme and the token. */
  space: string;
  /** Settings of the service, and further header fields. */
  readonly environment: Record<string, string>;
  readonly fields: Record<string, string>;
}

export const draft = (): Draft => ({
  header: { ...HEADER },
  claims: { ...CLAIMS },
  rules: {},
  key: signingKey.privateKey,
  ending: '',
  space: ' ',
  environment: {},
  fields: {},
});

export function seal({ header, claims, headerText, payloadText, key, ending }: Draft): string {
  const first = headerText ?? JSON.stringify(header);
  const second = payloadText ?? JSON.stringify(claims);
  return rawJws(first, second, (input) => sign('sha256', input, key)) + ending;
}

export interface Fault {
  /** The faulty part. Two faults of one part exclude each other. */
  readonly place: string;
  /** The scheme with which the sender check, not the token verifier, finds the fault. */
  readonly sender?: 'Bearer' | 'DPoP';
  readonly apply: (draft: Draft) => void;
}

const inHeader = (name: string, value: unknown) => ({
  place: `header ${name}`,
  apply: ({ header }: Draft) => void Object.assign(header, { [name]: value }),
});

const inClaims = (name: string, value: unknown) => ({
  place: `claim ${name}`,
  apply: ({ claims }: Draft) => void Object.assign(claims, { [name]: value }),
});

const inRules = (rules: Partial<TokenOptions>) => ({
  place: `rules ${Object.keys(rules)}`,
  apply: (whole: Draft) => void Object.assign(whole.rules, rules),
});

const THUMBPRINT = 'A'.repeat(43);

/** A token that names this confirmation, with this field from a proxy. */
const withCertificate = (cnf: unknown, value: string, environment: Draft['environment'] = {}): Fault => ({
  place: 'claim cnf',
  sender: 'Bearer',

  apply(whole) {
    whole.claims.cnf = cnf;
    Object.assign(whole.environment, { CLIENT_CERT_SOURCE: 'rfc9440', CLIENT_CERT_PROXIES: 'any' });
    Object.assign(whole.environment, environment);
    if (value !== '') whole.fields['Client-Cert'] = value;
  },
});

const ONLY_WITH_CERTIFICATE = { CLIENT_CERT_REQUIRED: 'true' };

/** A reason without its fault does not compile. */
export const FAULTS: Readonly<Record<TokenReason, Fault>> = {
  'credentials-malformed': {
    place: 'space',
    sender: 'Bearer',
    apply: (whole) => {
      whole.space = '  ';
    },
  },
  'token-malformed': {
    place: 'ending',
    apply: (whole) => {
      whole.ending = '=';
    },
  },
  'header-malformed': {
    place: 'header text',
    apply: (whole) => {
      whole.headerText = '["RS256"]';
    },
  },
  'payload-malformed': {
    place: 'payload text',
    apply: (whole) => {
      whole.payloadText = '["access"]';
    },
  },
  'algorithm-refused': { ...inHeader('alg', 'RS512') },
  'critical-header': {
    ...inHeader('crit', ['exp']),
  },
  'type-refused': {
    ...inHeader('typ', 'id+jwt'),
  },
  'key-id-malformed': {
    ...inHeader('kid', 7),
  },
  'key-unknown': {
    ...inHeader('kid', 'unknown'),
  },
  'signature-mismatch': {
    place: 'key',
    apply: (whole) => {
      whole.key = foreignKey.privateKey;
    },
  },
  'issuer-mismatch': {
    ...inClaims('iss', 'https://other.test/'),
  },
  'audience-mismatch': {
    ...inClaims('aud', 'https://other.test'),
  },
  'expiry-malformed': {
    ...inClaims('exp', undefined),
  },
  expired: { ...inClaims('exp', NOW) },
  'not-before-malformed': {
    ...inClaims('nbf', null),
  },
  'not-yet-valid': { ...inClaims('nbf', NOW + 1) },
  'issued-at-malformed': {
    ...inClaims('iat', null),
  },
  'subject-malformed': {
    ...inClaims('sub', undefined),
  },
  'token-use-refused': {
    ...inClaims('token_use', 'id'),
  },
  'payload-type-refused': {
    ...inClaims('typ', 'ID'),
  },
  'event-token': {
    ...inClaims('events', {}),
  },
  'id-token': { ...inClaims('nonce', 'n') },
  'profile-required': {
    ...inRules({ tokenType: 'at+jwt' }),
  },
  'claim-required': {
    ...inRules({ requiredClaims: ['scp'] }),
  },
  'bound-token': {
    ...inClaims('cnf', { jkt: 'thumbprint' }),
    sender: 'Bearer',
  },
  'not-bound': {
    ...inClaims('cnf', undefined),
    sender: 'DPoP',
  },
  'confirmation-refused': {
    ...inClaims('cnf', { jkt: 'thumbprint', 'x5t#S256': 'thumbprint' }),
    sender: 'DPoP',
  },
  'key-mismatch': {
    ...inClaims('cnf', { jkt: 'thumbprint' }),
    sender: 'DPoP',
  },
  'certificate-untrusted': withCertificate({ 'x5t#S256': THUMBPRINT }, ':Y2VydA==:', {
    CLIENT_CERT_PROXIES: '192.0.2.1',
  }),
  'certificate-malformed': withCertificate({ 'x5t#S256': THUMBPRINT }, 'Y2VydA=='),
  'certificate-missing': withCertificate({ 'x5t#S256': THUMBPRINT }, ''),
  'certificate-mismatch': withCertificate({ 'x5t#S256': THUMBPRINT }, ':Y2VydA==:'),
  'certificate-required': withCertificate(undefined, ':Y2VydA==:', ONLY_WITH_CERTIFICATE),
};
