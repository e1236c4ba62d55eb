// The entry point `gatehouse-http/cors`: which other origins may read responses.
export { cors, type CorsOptions } from './options/cors.ts';
export type { CorsPart } from './gate/options.ts';
