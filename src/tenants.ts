// The entry point `gatehouse-http/tenants`: tenants of one provider that have an issuer each.
export { tenants, type TenantsOptions } from './options/tenants/tenants.ts';
export type { TenantsPart } from './verify/options.ts';
