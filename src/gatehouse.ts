// The entry point `gatehouse-http`: services and gates.
export { ConfigurationError } from './settings/configuration-error.ts';
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
export {
  get,
  post,
  put,
  patch,
  del,
  under,
  upstream,
  type Handler,
  type Method,
  type Mounted,
  type PathParameters,
  type PrefixRule,
  type RequestOf,
  type RouteRequest,
  type Route,
  type Routes,
} from './service/routes/route.ts';
export {
  bytes,
  json,
  query,
  type BodyInput,
  type BodyOptions,
  type QueryInput,
} from './service/routes/inputs.ts';
export { mount, type FetchHandler, type MountContext } from './service/fetch/mount.ts';
export { reply, created, noContent, fail, type Headers } from './service/routes/handler-reply.ts';
export type { Authorize } from './service/routes/handler-request.ts';
export type { HandlerReply } from './service/routes/handler-result.ts';
export type { Field } from './gate/replies/reply.ts';
export type { Schema } from './service/routes/schema.ts';
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
export type { OnError, OnResponse, OnVerdict, ResponseEvent, VerdictEvent } from './gate/events.ts';
export type { GateOptions } from './gate/options.ts';
export type { FetchKeys, IntrospectToken, IssuerOptions } from './verify/options.ts';
export type { ServiceOptions } from './service/options.ts';
export { createGate, type Gate } from './gate/create-gate.ts';
export { createService, type Service } from './service/create-service.ts';
export type { Hooks, OnStart, OnStop } from './process/life.ts';
export { loadSettings, runForwardAuth, runService } from './process/doors.ts';
