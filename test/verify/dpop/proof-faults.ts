/* One fault for each way in which a proof is refused, in the order of the checks (docs/dpop.md, RFC 9449
   §4.3), cheap ones first. */
import type { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { issue, NOW } from '../token/issuer.ts';
import type { ProofDraft } from '../../support/proof.ts';
import { draft, key, strangersKey, TOKEN } from '../sender-fixture.ts';

type ProofReason = keyof typeof REFUSALS.invalid_dpop_proof;

/** A token and its proof before they are presented. */
export interface Whole {
  readonly proof: ProofDraft;
  token: string;
  isSent: boolean;
  /** The verdict of the replay store. */
  record: 'new' | 'seen' | 'full';
}

/** Everything else is valid. */
export const whole = (nonce: unknown): Whole => ({
  proof: draft(key, TOKEN, nonce),
  token: TOKEN,
  isSent: true,
  record: 'new',
});

export interface Fault {
  /** What is refused, and by which clause. */
  readonly what: string;
  readonly apply: (whole: Whole) => void;
  /** The faulty part. Two faults of one part exclude each other. */
  readonly place?: string;
}

const header = (name: string, value: unknown) => ({
  apply: ({ proof }: Whole) => void Object.assign(proof.header, { [name]: value }),
});

const claim = (name: string, value: unknown) => ({
  place: `claim ${name}`,
  apply: ({ proof }: Whole) => void Object.assign(proof.claims, { [name]: value }),
});

/** Other refusals that have a position in the order. */
type Neighbour = 'not-bound' | 'confirmation-refused' | 'proof-nonce' | 'key-mismatch' | 'replay-store-full';

/** A reason without its fault does not compile. */
export const FAULTS: Readonly<Record<Exclude<ProofReason, 'proof-repeated'> | Neighbour, Fault>> = {
  'not-bound': {
    what: 'a token that is not bound [RFC 9449 §7.1]',
    place: 'token',
    apply: (all) => {
      all.token = issue({});
    },
  },
  'confirmation-refused': {
    what: 'a token that is bound to a certificate too [RFC 8705 §3]',
    place: 'token',
    apply: (all) => {
      all.token = issue({ cnf: { jkt: key.thumbprint, 'x5t#S256': 'x' } });
    },
  },
  'proof-missing': {
    what: 'a token without a proof [RFC 9449 §7.1]',
    apply: (all) => {
      all.isSent = false;
    },
  },
  'proof-malformed': {
    what: 'a proof with padding [RFC 9449 §4.3(2)]',
    apply: ({ proof }) => {
      proof.finish = (text) => `${text}=`;
    },
  },
  'proof-type': { what: 'a proof of another type [RFC 9449 §4.3(4)]', ...header('typ', 'JWT') },
  'proof-algorithm': {
    what: 'a proof with a symmetric algorithm [RFC 9449 §4.3(5)]',
    ...header('alg', 'HS256'),
  },
  'proof-critical': { what: 'a proof with critical members [RFC 7515 §4.1.11]', ...header('crit', ['exp']) },
  'proof-jti': { what: 'a proof without jti [RFC 9449 §4.3(3)]', ...claim('jti', undefined) },
  'proof-iat': { what: 'a proof without iat [RFC 9449 §4.3(3)]', ...claim('iat', undefined) },
  'proof-htm': { what: 'a proof for another method [RFC 9449 §4.3(8)]', ...claim('htm', 'POST') },
  'proof-htu': {
    what: 'a proof for another URI [RFC 9449 §4.3(9)]',
    ...claim('htu', 'https://api.test/api/profile'),
  },
  'proof-too-old': { what: 'a proof that is too old [RFC 9449 §4.3(11)]', ...claim('iat', NOW - 301) },
  'proof-too-new': { what: 'a proof from the future [RFC 9449 §4.3(11)]', ...claim('iat', NOW + 31) },
  'proof-ath': { what: 'a proof without ath [RFC 9449 §4.3(12)]', ...claim('ath', undefined) },
  'proof-key': {
    what: 'a proof with a private key [RFC 9449 §4.3(7)]',
    apply: ({ proof }) => {
      proof.header.jwk = { ...(proof.header.jwk as object), d: 'AQ' };
    },
  },
  'proof-signature': {
    what: 'a proof with another signature [RFC 9449 §4.3(6)]',
    apply: ({ proof }) => {
      proof.alter = (signature) =>
        Buffer.from(signature.map((byte, index) => (index === 0 ? byte ^ 1 : byte)));
    },
  },
  'proof-nonce': {
    what: 'a proof without a nonce where nonces are on [RFC 9449 §4.3(10)]',
    ...claim('nonce', undefined),
  },
  'key-mismatch': {
    what: 'a proof by another key than that of the token [RFC 9449 §4.3(12), §7.1]',
    apply: ({ proof }) => {
      proof.header.jwk = strangersKey.jwk;
      proof.signer = strangersKey;
    },
  },
  'proof-replayed': {
    what: 'a proof that has been used [RFC 9449 §11.1]',
    place: 'store',
    apply: (all) => {
      all.record = 'seen';
    },
  },
  'replay-store-full': {
    what: 'a proof that cannot be remembered [RFC 9449 §11.1]',
    place: 'store',
    apply: (all) => {
      all.record = 'full';
    },
  },
};
