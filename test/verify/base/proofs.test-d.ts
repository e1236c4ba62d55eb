/* Sealed values cannot be made by hand or used out of order. The compiler is the test: each marked line must
   be an error, or the type check fails. What the compiler cannot see, such as a clone, fails at run time:
   unforgeable.test.ts. */
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import type { Exchange } from '../../../src/service/request/exchange.ts';
import { HandlerRequest, type HandlerOptions } from '../../../src/service/routes/handler-request.ts';
import type { Asked } from '../../../src/gate/decide.ts';
import type { RequestFacts, Credentials } from '../../../src/verify/request/facts.ts';
import { factsOf, type VerificationKey } from '../../../src/verify/keys/jwk.ts';
import { authenticated } from '../../../src/gate/rules/access.ts';
import { type Route } from '../../../src/service/routes/route.ts';
import type { Caller, SenderOptions, SenderCheck } from '../../../src/verify/caller.ts';
import { checkClaims, type TokenOptions } from '../../../src/verify/token/claims.ts';
import {
  payloadOf,
  verifySignature,
  type SignedPayload,
  type UnverifiedJws,
} from '../../../src/verify/jws/jws.ts';
import { verifiedOf, type VerifiedToken } from '../../../src/verify/token/verify.ts';

/** What an attacker, or a hurried developer, has at hand. */
interface AtHand {
  readonly jws: UnverifiedJws;
  readonly claims: JsonObject;
  readonly token: VerifiedToken;
  readonly key: VerificationKey;
  readonly signed: SignedPayload;
  readonly caller: Caller;
}

export const makeKeys = ({ signed, token, caller }: AtHand): readonly VerificationKey[] => [
  // @ts-expect-error an empty object
  {},
  // @ts-expect-error what a key holds
  { digest: 'sha256', input: { key: 'pem' }, thumbprint: 'x', kid: 'x' },
  // @ts-expect-error a JWK
  { kty: 'RSA', n: 'x', e: 'AQAB' },
  // @ts-expect-error text
  'pem',
  // @ts-expect-error nothing
  undefined,
  // @ts-expect-error null
  null,
  // @ts-expect-error a signed payload
  signed,
  // @ts-expect-error a verified token
  token,
  // @ts-expect-error a caller
  caller,
];

export const makeSignedPayloads = ({ jws, claims, key, token, caller }: AtHand): readonly SignedPayload[] => [
  // @ts-expect-error an empty object
  {},
  // @ts-expect-error claims
  { iss: 'https://idp.test/', sub: 'x', aud: 'x', exp: 1 },
  // @ts-expect-error parsed claims
  claims,
  // @ts-expect-error an unverified JWS
  jws,
  // @ts-expect-error the payload of an unverified JWS
  jws.payload,
  // @ts-expect-error a signature that may not match
  verifySignature(jws, key),
  // @ts-expect-error text
  'x.y.z',
  // @ts-expect-error nothing
  undefined,
  // @ts-expect-error a key
  key,
  // @ts-expect-error a verified token
  token,
  // @ts-expect-error a caller
  caller,
];

export const makeTokens = ({ jws, claims, key, signed, caller }: AtHand): readonly VerifiedToken[] => [
  // @ts-expect-error an empty object
  {},
  // @ts-expect-error what a verified token holds
  { claims, kid: 'x', key },
  // @ts-expect-error parsed claims
  claims,
  // @ts-expect-error an unverified JWS
  jws,
  // @ts-expect-error text
  'x.y.z',
  // @ts-expect-error nothing
  undefined,
  // @ts-expect-error a signed payload, whose claims nobody has checked
  signed,
  // @ts-expect-error a key
  key,
  // @ts-expect-error a caller
  caller,
];

export const makeCallers = ({ claims, key, signed, token, caller }: AtHand): readonly Caller[] => [
  // @ts-expect-error an empty object
  {},
  // @ts-expect-error what a caller shows
  { claims, subject: 'x', scopes: ['admin'], scopeText: 'admin', claim: () => true },
  // @ts-expect-error a spread copy
  { ...caller },
  // @ts-expect-error a spread copy with what it lacks
  { ...caller, subject: 'x', scopes: ['admin'], scopeText: 'admin', claim: () => true },
  // @ts-expect-error parsed claims
  claims,
  // @ts-expect-error text
  'auth0|user',
  // @ts-expect-error nothing
  undefined,
  // @ts-expect-error a verified token that nobody has presented
  token,
  // @ts-expect-error a signed payload
  signed,
  // @ts-expect-error a key
  key,
];

export const construct = (token: VerifiedToken, caller: Caller, rules: SenderOptions) => [
  // @ts-expect-error a type is no class
  () => new VerificationKey(),
  // @ts-expect-error a type is no class
  () => new SignedPayload(),
  // @ts-expect-error a type is no class
  () => new VerifiedToken(),
  // @ts-expect-error a type is no class
  () => new Caller(token, rules),
  // @ts-expect-error a type is no class
  () => class extends Caller {},
  // @ts-expect-error what it keeps to itself nobody else can have
  () => class implements Caller {},
  // @ts-expect-error what made it does not show
  () => new caller.constructor(token, rules),
  // @ts-expect-error what made it does not show
  () => new token.constructor({}),
];

// The functions that seal stay in their files.
// @ts-expect-error not exported
export type SealKey = typeof import('../../../src/verify/keys/jwk.ts').seal;
// @ts-expect-error not exported
export type SealPayload = typeof import('../../../src/verify/jws/jws.ts').seal;
// @ts-expect-error not exported
export type SealToken = typeof import('../../../src/verify/token/verify.ts').seal;
// @ts-expect-error not exported
export type AdmitCaller = typeof import('../../../src/verify/caller.ts').CheckedCaller;

interface Stages extends AtHand {
  readonly rules: TokenOptions;
  readonly sender: SenderCheck;
  readonly credentials: Credentials;
  readonly facts: RequestFacts;
  readonly route: Route;
  readonly exchange: Exchange;
  readonly asked: Asked;
  readonly options: HandlerOptions;
}

export const outOfTurn = ({
  jws,
  claims,
  signed,
  token,
  key,
  caller,
  rules,
  sender,
  credentials,
  facts,
  route,
  exchange,
  asked,
  options,
}: Stages) => [
  // @ts-expect-error a JWK verifies nothing
  () => verifySignature(jws, { kty: 'RSA' }),
  // @ts-expect-error no payload before the signature
  () => payloadOf(jws),
  // @ts-expect-error no claim rules before the signature
  () => checkClaims(jws.payload, jws.header, rules, 1),
  // @ts-expect-error no claims before the claim rules
  () => verifiedOf(signed).claims,
  // @ts-expect-error no sender before the claim rules
  () => sender(signed, credentials, facts),
  // @ts-expect-error no sender for claims
  () => sender(claims, credentials, facts),
  // @ts-expect-error no guard before the sender
  () => authenticated.admit(token),
  // @ts-expect-error no handler before the sender
  () => route.handler(new HandlerRequest(exchange, asked, {}, 1, token, options)),
  // @ts-expect-error a token is no key
  () => factsOf(token),
  () => {
    // @ts-expect-error a caller is not changed
    caller.claims = claims;
  },
  () => {
    // @ts-expect-error nor are its claims
    caller.claims.scope = 'admin';
  },
  () => {
    // @ts-expect-error nor is what a key knows
    factsOf(key).digest = null;
  },
];
