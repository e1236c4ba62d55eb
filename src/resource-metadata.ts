// The entry point `gatehouse-http/resource-metadata`: where clients get a token.
export { resourceMetadata, type ResourceOptions } from './options/resource-metadata.ts';
export type { MetadataPart } from './gate/options.ts';
