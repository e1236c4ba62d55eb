// The entry point `gatehouse-http/log`: the log as JSON lines.
export { jsonLog, type LogOptions } from './options/log.ts';
export type { LogPart } from './gate/options.ts';
