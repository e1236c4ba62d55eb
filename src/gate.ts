// The entry point `gatehouse-http/gate`: `createGate`. Loads no listener, router or settings file, and only
// options that are set.
export { ConfigurationError } from './gate/configuration-error.ts';
export { open, optional, authenticated, needs, type Access } from './gate/access.ts';
export { scope, anyScope, claimEquals, claimIncludes, claimCheck, type Guard } from './gate/guards.ts';
export { recentLogin, type LoginDemands } from './gate/recent-login.ts';
export type { Field } from './gate/reply.ts';
export type { Caller } from './verify/caller.ts';
export type { Admission, Authorization, RefusalReply, Verdict } from './gate/gate.ts';
export type { FetchRequest, GateRequest } from './gate/gate-request.ts';
export type { CreateOptions } from './process/compose.ts';
export type { GivenSettings, Settings } from './process/service-settings.ts';
export { createGate, type Gate } from './process/gate.ts';
