// The entry point `gatehouse-http/introspection`: tokens that their issuer is asked about.
export { introspection, type IntrospectionOptions } from './options/introspection/introspection.ts';
export type { IntrospectionPart } from './verify/options.ts';
