/* One fault for each way in which a token is refused, in the order of docs/tokens.md: to be shown alone and in pairs. */
import { sign, type KeyObject } from 'node:crypto';
import type { TokenFlaw } from '../../src/base/refusal.ts';
import type { TokenOptions } from '../../src/token/claims.ts';
import { rawJws } from '../idp/tokens.ts';
import { CLAIMS, foreignKey, HEADER, NOW, signingKey, type Members } from './issuer.ts';

/** A token before it is signed, and how it is presented. */
export interface Draft {
  readonly header: Members;
  readonly claims: Members;
  readonly rules: { -readonly [Name in keyof TokenOptions]?: TokenOptions[Name] };
  /** Instead of the header's or the claims' JSON. */
  headerText?: string;
  payloadText?: string;
  key: KeyObject;
  /** Follows the signature. */
  ending: string;
  /** Stands between the scheme and the token. */
  space: string;
}

export const draft = (): Draft => ({
  header: { ...HEADER },
  claims: { ...CLAIMS },
  rules: {},
  key: signingKey.privateKey,
  ending: '',
  space: ' ',
});

export function seal({ header, claims, headerText, payloadText, key, ending }: Draft): string {
  const [first, second] = [headerText ?? JSON.stringify(header), payloadText ?? JSON.stringify(claims)];
  return rawJws(first, second, (input) => sign('sha256', input, key)) + ending;
}

export interface Fault {
  readonly description: string;
  /** What the fault lies in: two faults of one place exclude each other. */
  readonly place: string;
  /** The scheme under which the sender's rules, not the verifier of tokens, find it. */
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

/** A flaw without its fault does not compile. */
export const FAULTS: Readonly<Record<TokenFlaw, Fault>> = {
  'credentials-malformed': {
    description: 'the scheme is not followed by exactly one space and one token',
    place: 'space',
    sender: 'Bearer',
    apply: (whole) => {
      whole.space = '  ';
    },
  },
  'token-malformed': {
    description: 'the token is not three parts of canonical base64url',
    place: 'ending',
    apply: (whole) => {
      whole.ending = '=';
    },
  },
  'header-malformed': {
    description: 'the token header is not a JSON object in UTF-8',
    place: 'header text',
    apply: (whole) => {
      whole.headerText = '["RS256"]';
    },
  },
  'payload-malformed': {
    description: 'the token payload is not a JSON object in UTF-8',
    place: 'payload text',
    apply: (whole) => {
      whole.payloadText = '["access"]';
    },
  },
  'algorithm-refused': { description: 'the token is not signed with RS256', ...inHeader('alg', 'RS512') },
  'critical-header': {
    description: 'the token header names critical members (crit or b64)',
    ...inHeader('crit', ['exp']),
  },
  'type-refused': {
    description: 'the token header names another type (typ) than an access token',
    ...inHeader('typ', 'id+jwt'),
  },
  'key-id-malformed': {
    description: 'the key identifier (kid) of the token is not text',
    ...inHeader('kid', 7),
  },
  'key-unknown': {
    description: 'the token names no usable signing key of the issuer',
    ...inHeader('kid', 'unknown'),
  },
  'signature-mismatch': {
    description: 'the token signature does not match',
    place: 'key',
    apply: (whole) => {
      whole.key = foreignKey.privateKey;
    },
  },
  'issuer-mismatch': {
    description: 'the token has another issuer (iss)',
    ...inClaims('iss', 'https://other.test/'),
  },
  'audience-mismatch': {
    description: 'the token is not for this audience (aud)',
    ...inClaims('aud', 'https://other.test'),
  },
  'expiry-malformed': {
    description: 'the token has no expiry (exp) that is a number',
    ...inClaims('exp', undefined),
  },
  expired: { description: 'the token has expired', ...inClaims('exp', NOW) },
  'not-before-malformed': {
    description: 'the start of validity (nbf) of the token is not a number',
    ...inClaims('nbf', null),
  },
  'not-yet-valid': { description: 'the token is not valid yet', ...inClaims('nbf', NOW + 1) },
  'issued-at-malformed': {
    description: 'the time of issue (iat) of the token is not a number',
    ...inClaims('iat', null),
  },
  'subject-malformed': {
    description: 'the token has no subject (sub) that is text',
    ...inClaims('sub', undefined),
  },
  'token-use-refused': {
    description: 'the token is for another use (token_use) than access',
    ...inClaims('token_use', 'id'),
  },
  'payload-type-refused': {
    description: 'the token payload names another type (typ) than an access token',
    ...inClaims('typ', 'ID'),
  },
  'event-token': {
    description: 'the token is a security event or logout token (events)',
    ...inClaims('events', {}),
  },
  'id-token': { description: 'the token is an ID token, not an access token', ...inClaims('nonce', 'n') },
  'profile-required': {
    description: 'the token is not of the at+jwt profile with client_id, iat and jti',
    ...inRules({ tokenType: 'at+jwt' }),
  },
  'claim-required': {
    description: 'the token lacks a claim that this service requires',
    ...inRules({ requiredClaims: ['scp'] }),
  },
  'bound-token': {
    description: 'the token is bound to a key and was presented as Bearer',
    ...inClaims('cnf', { jkt: 'thumbprint' }),
    sender: 'Bearer',
  },
  'not-bound': {
    description: 'the token is not bound to a key (cnf.jkt) and was presented as DPoP',
    ...inClaims('cnf', undefined),
    sender: 'DPoP',
  },
  'confirmation-refused': {
    description: 'the token names a confirmation (cnf) that cannot be checked here',
    ...inClaims('cnf', { jkt: 'thumbprint', 'x5t#S256': 'thumbprint' }),
    sender: 'DPoP',
  },
  'key-mismatch': {
    description: 'the token is bound to another key than that of the proof',
    ...inClaims('cnf', { jkt: 'thumbprint' }),
    sender: 'DPoP',
  },
};
