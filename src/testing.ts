// The entry point `gatehouse-http/testing`: the test issuer, and a check of every route's access.
export {
  createProof,
  createProofKey,
  createTestIssuer,
  type Members,
  type ProofKey,
  type ProofRequest,
  type TestAlgorithm,
  type TestIssuer,
  type TestIssuerOptions,
  type TestOptions,
} from './testing/test-issuer.ts';
export type { LogPart } from './gate/options.ts';
export { assertRouteMatrix, RouteMatrixError } from './testing/route-matrix.ts';
