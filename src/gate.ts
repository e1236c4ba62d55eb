// The entry point `gatehouse-http/gate`: `createGate`, for a server that you already have.
export {
  open,
  optional,
  authenticated,
  needs,
  type Access,
  type DecidedAccess,
} from './gate/rules/access.ts';
export { scope, anyScope, claimEquals, claimIncludes, claimCheck, type Guard } from './gate/rules/guards.ts';
export type { AnyGuard } from './gate/rules/further.ts';
export { recentLogin, type LoginDemands } from './gate/rules/recent-login.ts';
export type { Field } from './gate/replies/reply.ts';
export type { RequestReason } from './verify/base/events.ts';
export type { Caller } from './verify/caller.ts';
export type { DpopMode } from './verify/request/facts.ts';
export type { IsNewProof } from './verify/dpop/replay.ts';
export type {
  Admission,
  Authorization,
  FetchRequest,
  GateRequest,
  RefusalReply,
  Verdict,
} from './gate/foreign/verdict.ts';
export type { OnError, OnVerdict, VerdictEvent } from './gate/events.ts';
export type { GateOptions } from './gate/options.ts';
export type { FetchKeys, IntrospectToken, IssuerOptions } from './verify/options.ts';
export { createGate, type Gate } from './gate/create-gate.ts';
