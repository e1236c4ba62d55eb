// The entry point `gatehouse-http/revocations`: tokens that are revoked before they expire.
export type { Restoration, Revocation } from './options/redis/revocation.ts';
export {
  createRevocations,
  type RevocationsOptions,
  type RevocationsWithWriters,
} from './options/redis/revocations.ts';
export type { RevocationsPart } from './gate/options.ts';
