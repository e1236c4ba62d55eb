// The entry point `gatehouse-http/proxy`: the way to the provider through a proxy.
export { throughProxy } from './options/proxy.ts';
export type { ConnectPart } from './verify/options.ts';
