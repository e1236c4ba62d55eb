// The issuer of tenants: it finds the issuer of one tenant by an unverified `iss`, and the keys for it.
// Promises: what a token names becomes part of no address; a key that the provider published for one tenant
// verifies no token of another, cached or not. Does not check claims: verify/token/claims.ts does.
import { andThen } from '../../verify/base/clock.ts';
import type { Surroundings } from '../../verify/base/events.ts';
import { refuse, Refused } from '../../verify/base/refusal.ts';
import { withDeadline } from '../../verify/keys/fetch.ts';
import { factsOf, importSigningKey, type ImportKey, type VerificationKey } from '../../verify/keys/jwk.ts';
import { KeySet, type Keys } from '../../verify/keys/key-set.ts';
import type { FetchFrom, Tenants } from '../../verify/options.ts';
import type { Issuer } from '../../verify/token/verify.ts';
import { Slots } from './slots.ts';
import { isTemplate, Template } from './template.ts';
import { TenantKeys, type TenantKeysOptions } from './tenant-keys.ts';

type OwnIssuer = Parameters<Tenants['createIssuer']>[0];

/** One for each gate or service: its tenants share what they may fetch. */
const slotsOf = new WeakMap<Surroundings, Slots>();

/** The issuer that stands for all tenants, and finds that of one. */
export function createIssuer(
  issuer: OwnIssuer,
  template: Template,
  fetchFrom: FetchFrom,
  around: Surroundings,
): Issuer {
  const { name, jwksUri } = issuer;
  const { listed = [] } = template;
  const sets = isTemplate(jwksUri) ? createOwn(issuer, jwksUri, [...listed], fetchFrom, around) : undefined;
  const importKey = importerOf(issuer);
  const keys = sets ?? new KeySet(name, withDeadline(fetchFrom(jwksUri)), around, importKey);

  function findTenant(iss: unknown): Issuer | undefined {
    const tenant = template.tenantIn(iss);
    if (tenant === undefined) return undefined;

    const own = { ...issuer, issuer: template.fill(tenant), tenant };
    return { ...own, keys: { ...keys, find: confirming(keys, sets, own) } };
  }

  return { ...issuer, keys, findTenant, refreshTenants: sets?.refreshAll };
}

/** One set for each. */
function createOwn(
  issuer: OwnIssuer,
  address: string,
  tenantNames: readonly string[],
  fetchFrom: FetchFrom,
  around: Surroundings,
) {
  const addresses = new Template(address, []);
  const slots = slotsOf.get(around) ?? new Slots(around.clock);
  slotsOf.set(around, slots);

  const options: TenantKeysOptions = {
    issuerName: issuer.name,
    importKey: importerOf(issuer),
    createFetch: (tenant) => fetchFrom(addresses.fill(tenant), tenant),
    slots,
  };
  return new TenantKeys(tenantNames, options, around);
}

/** The issuer of a key is text, if it has one. */
const importerOf =
  ({ algorithms }: OwnIssuer): ImportKey =>
  (published) => {
    const key = importSigningKey(published, algorithms);
    if (typeof key === 'string') return key;

    const { issuer } = factsOf(key);
    return issuer === undefined || typeof issuer === 'string' ? key : 'key-issuer';
  };

type OfTenant = Pick<Issuer, 'name' | 'issuer'> & Readonly<{ tenant: string }>;

/**
 * A common set also holds keys that are for one tenant alone (Microsoft identity platform, "Validate the
 * signing key issuer").
 */
function confirm(key: VerificationKey | Refused, { name, issuer: iss, tenant }: OfTenant) {
  if (key instanceof Refused) return key;

  const { issuer = iss, kid } = factsOf(key);
  const isFit = String(issuer).replaceAll(/\{tenant(?:id)?\}/g, tenant) === iss;
  return isFit ? key : refuse('key-issuer-mismatch').with({ kid, issuerName: name });
}

const confirming =
  (keys: Keys, sets: TenantKeys | undefined, own: OfTenant): Keys['find'] =>
  (kid, algorithm) => {
    const ofTenant = sets?.of(own.tenant) ?? keys;
    return andThen(ofTenant.find(kid, algorithm), (key) => confirm(key, own));
  };
