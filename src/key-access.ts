// The entry point `gatehouse-http/key-access`: what the servers of an issuer are shown, and checked against.
export { keyAccess, type KeyAccessOptions } from './options/key-access.ts';
export type { KeyAccessPart } from './verify/keys/fetch.ts';
