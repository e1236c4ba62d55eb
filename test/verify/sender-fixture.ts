/* The real sender check without a network: bound tokens, proofs for them, and the verdict on both. */
import assert from 'node:assert/strict';
import { ALGORITHM_NAMES } from '../../src/verify/keys/jwk.ts';
import { Refused, type Refusal } from '../../src/verify/base/refusal.ts';
import {
  createSenderCheck,
  type ConfirmCertificate,
  type SenderCheck,
  type SenderOptions,
} from '../../src/verify/caller.ts';
import type { Scheme } from '../../src/verify/request/facts.ts';
import { LocalReplayStore, type ReplayStore } from '../../src/verify/dpop/replay.ts';
import { draftProof, makeProofKey, sealProof, type ProofDraft } from '../support/proof.ts';
import { unlessRefused } from '../support/refused.ts';
import { issue, NOW, openVerifier } from './token/issuer.ts';

export const ORIGIN = 'https://api.test';
export const PATH = '/api/private';
export const URI = ORIGIN + PATH;

/** The key to which `TOKEN` is bound, and another key. */
export const key = makeProofKey();
export const strangersKey = makeProofKey();
export const TOKEN = issue({ cnf: { jkt: key.thumbprint } });

/** A token bound to a key. */
export const boundTo = (thumbprint: string) => issue({ cnf: { jkt: thumbprint } });

export type Verdict = 'accepted' | Refusal['reason'];

/** The part of the replay store that the sender check uses. */
export type Recorder = Pick<ReplayStore, 'record'>;

export interface Circumstances {
  readonly rules?: Partial<SenderOptions>;
  readonly store?: Recorder;
  readonly confirm?: ConfirmCertificate;
}

const RULES: SenderOptions = {
  dpopMode: 'ALLOWED',
  publicUrl: ORIGIN,
  trustProxy: false,
  dpopIatOffsetSeconds: 300,
  dpopIatLeewaySeconds: 30,
  dpopNonceSecret: undefined,
  dpopAlgorithms: ALGORITHM_NAMES,
};

export const openSender = ({
  rules,
  store = new LocalReplayStore(330),
  confirm,
}: Circumstances = {}): SenderCheck => createSenderCheck({ ...RULES, ...rules }, store, undefined, confirm);

const verifyToken = await openVerifier(100);

export interface Presented {
  readonly token?: string;
  /** Default: `DPoP`. */
  readonly scheme?: Scheme;
  /** Further header fields. */
  readonly fields?: readonly string[];
  readonly method?: string;
  readonly nowMillis?: number;
}

/** The verdict on a proof, or on none, with a token. */
export async function verdictOf(
  sender: SenderCheck,
  proof: string | undefined,
  presented: Presented = {},
): Promise<Verdict> {
  const { token = TOKEN, scheme = 'DPoP', fields = [], method = 'GET', nowMillis = NOW * 1000 } = presented;
  const facts = {
    method,
    host: 'inner.test',
    path: PATH,
    rawHeaders: ['Host', 'inner.test', ...fields],
  };
  try {
    const caller = unlessRefused(
      await sender(unlessRefused(await verifyToken(token)), { scheme, token, proof }, facts, nowMillis),
    );
    assert.equal(caller.subject, 'auth0|user');
    return 'accepted';
  } catch (failure) {
    if (failure instanceof Refused) return failure.refusal.reason;
    throw failure;
  }
}

/** A draft of a valid proof for `TOKEN`. */
export const draft = (signer = key, token = TOKEN, nonce?: unknown): ProofDraft =>
  draftProof(signer, { token, uri: URI, nowSeconds: NOW, nonce });

export type Change = (draft: ProofDraft) => void;

/** The verdict on a proof that is valid except for this change: at first, and once its key is cached. */
export async function verdictOn(
  change: Change,
  signer = key,
  circumstances: Circumstances = {},
): Promise<Verdict> {
  const token = boundTo(signer.thumbprint);
  const changed = draft(signer, token);
  change(changed);
  const proof = sealProof(changed);
  const first = await verdictOf(openSender(circumstances), proof, { token });
  const sender = openSender(circumstances);
  await verdictOf(sender, sealProof(draft(signer, token)), { token });
  assert.equal(await verdictOf(sender, proof, { token }), first, 'the verdict changes once the key is known');
  return first;
}

export const inHeader =
  (name: string, value: unknown): Change =>
  ({ header }) =>
    void Object.assign(header, { [name]: value });

export const inClaims =
  (name: string, value: unknown): Change =>
  ({ claims }) =>
    void Object.assign(claims, { [name]: value });

/** A member of the `jwk`. */
export const inKey =
  (name: string, value: unknown): Change =>
  ({ header }) =>
    void Object.assign(header.jwk as object, { [name]: value });
