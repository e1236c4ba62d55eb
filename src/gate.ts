// The entry point `gatehouse-http/gate`: `createGate`. Loads no listener, router or settings file, and only
// options that are set.
export { ConfigurationError } from './settings/configuration-error.ts';
export { open, optional, authenticated, needs, type Access } from './gate/rules/access.ts';
export { scope, anyScope, claimEquals, claimIncludes, claimCheck, type Guard } from './gate/rules/guards.ts';
export { recentLogin, type LoginDemands } from './gate/rules/recent-login.ts';
export type { Field } from './gate/replies/reply.ts';
export type { Caller } from './verify/caller.ts';
export type { Admission, Authorization, RefusalReply, Verdict } from './gate/foreign/gate.ts';
export type { FetchRequest, GateRequest } from './gate/foreign/request.ts';
export type { CreateOptions } from './process/compose.ts';
export type { GivenSettings, Settings } from './settings/service-settings.ts';
export { createGate, type Gate } from './process/gate.ts';
