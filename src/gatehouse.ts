// The package's one public door.
export {
  loadSettings,
  ConfigurationError,
  type GivenSettings,
  type Loaded,
  type Settings,
} from './process/settings/load.ts';
export { open, optional, authenticated, needs, type Access } from './gate/access.ts';
export {
  scope,
  anyScope,
  claimEquals,
  claimIncludes,
  claimCheck,
  recentLogin,
  type Guard,
  type LoginDemands,
} from './gate/guards.ts';
export {
  get,
  post,
  put,
  patch,
  del,
  under,
  type Handler,
  type Method,
  type PathParameters,
  type PrefixRule,
  type RouteRequest,
  type Route,
  type Routes,
} from './service/routes/route.ts';
export {
  json,
  query,
  type BodyTaken,
  type BodyTakenOptions,
  type QueryTaken,
} from './service/routes/inputs.ts';
export {
  reply,
  created,
  noContent,
  fail,
  type HandlerReply,
  type Headers,
} from './service/routes/handler-reply.ts';
export type { Field } from './gate/reply.ts';
export type { Schema } from './service/routes/schema.ts';
export type { Caller } from './verify/caller.ts';
export type { Admission, GateRequest, RefusalReply, Verdict } from './gate/gate.ts';
export type { CreateOptions } from './process/compose.ts';
export { createGate, createService, type Gate, type Service } from './process/host.ts';
export { runService } from './process/run.ts';
