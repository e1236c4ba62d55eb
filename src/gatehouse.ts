// The package's one public door.
export {
  loadSettings,
  ConfigurationError,
  type GivenSettings,
  type Loaded,
  type Settings,
} from './settings/load.ts';
export { open, optional, authenticated, needs, type Access } from './routes/access.ts';
export {
  scope,
  anyScope,
  claimEquals,
  claimIncludes,
  claimCheck,
  recentLogin,
  type Guard,
  type LoginDemands,
} from './routes/guards.ts';
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
  type Row,
  type Table,
} from './routes/row.ts';
export { json, query, type BodyTaken, type BodyTakenOptions, type QueryTaken } from './routes/takes.ts';
export { reply, created, noContent, fail, type HandlerReply, type Headers } from './reply/handler-reply.ts';
export type { Field } from './reply/reply.ts';
export type { Schema } from './request/schema.ts';
export type { Caller } from './sender/caller.ts';
export type { Admission, GateRequest, RefusalReply, Verdict } from './service/gate.ts';
export type { CreateOptions } from './service/assemble.ts';
export { createGate, createService, type Gate, type Service } from './service/host.ts';
export { runService } from './service/run.ts';
