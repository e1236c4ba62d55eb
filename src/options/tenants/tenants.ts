// Tenants by template: a provider whose tenants each have an issuer (iss) of their own. That of a token is
// found by its unverified `iss`, with the keys for it. Promises: no two issuers accept one `iss`;
// unauthenticated clients cause no fetch by naming a tenant; what a token names becomes part of no address; a
// key that the provider published for one tenant verifies no token of another, cached or not. Loads no gate.
// Does not check claims: verify/token/claims.ts does.
import { andThen } from '../../verify/base/clock.ts';
import type { Surroundings } from '../../verify/base/events.ts';
import {
  readOptions,
  requireGood,
  textWithoutBlanks,
  throwProblem,
  Part,
  type Given,
  type Rule,
  type RulesOf,
} from '../../verify/base/option.ts';
import { refuse, Refused } from '../../verify/base/refusal.ts';
import { withDeadline } from '../../verify/keys/fetch.ts';
import { factsOf, importSigningKey, type ImportKey, type VerificationKey } from '../../verify/keys/jwk.ts';
import { KeySet, type Keys } from '../../verify/keys/key-set.ts';
import {
  ISSUER_RULES,
  ownerOf,
  SAME_ISSUER,
  type FetchFrom,
  type IssuersByName,
  type IssuerValues,
  type Tenants,
  type TenantsPart,
} from '../../verify/options.ts';
import type { Issuer } from '../../verify/token/verify.ts';
import { Slots } from './slots.ts';
import { EVERY, isTemplate, isTenant, NOT_BOTH, overlapping, Template, TEMPLATE_RULES } from './template.ts';
import { TenantKeys, type TenantKeysOptions } from './tenant-keys.ts';

interface TenantsValues {
  /** The issuers (`iss`) of the tenants: a URL with `{tenant}` as one segment of its path. */
  readonly issuer: string;
  /** At most 1,000 tenants, or `['*']` for every tenant of the provider. */
  readonly list: readonly string[];
  /** The claim that, if present, must equal the tenant in `iss`. Default: `tid`. */
  readonly claim: string;
  /** The authorization server to list in the metadata document: an `https:` URL without a tenant. */
  readonly authorizationServer: string | undefined;
}

/** The options of `tenants`. */
export interface TenantsOptions
  extends Given<Omit<TenantsValues, 'issuer' | 'list'>>, Pick<TenantsValues, 'issuer' | 'list'> {}

const NO_TEMPLATE =
  'must have {tenant} as one whole segment of its path; for a single issuer, use the option issuer';

const templateUrl: Rule = (value) =>
  TEMPLATE_RULES.issuerOrTemplate(value) ?? (isTemplate(String(value)) ? undefined : NO_TEMPLATE);

const MOST_TENANTS = 1_000;

const NOT_TENANTS =
  'must be a list of 1 to 1,000 tenants, each 1 to 64 letters, digits and ._- that begin with a letter or ' +
  'digit; or * alone, for every tenant of the provider';

const tenantList: Rule = (value) => {
  if (!Array.isArray(value) || value.length < 1 || value.length > MOST_TENANTS) return NOT_TENANTS;

  const isEvery = value.length === 1 && value[0] === EVERY;
  return isEvery || Array.from(value).every(isTenant) ? undefined : NOT_TENANTS;
};

export const TENANTS_RULES: RulesOf<TenantsOptions> = {
  issuer: templateUrl,
  list: tenantList,
  claim: textWithoutBlanks,
  authorizationServer: ISSUER_RULES.issuer,
};

export const TENANTS_DEFAULTS = { claim: 'tid' };

const REQUIRED = {
  issuer: 'is missing; write the issuers (iss) of the tenants, with {tenant} as one segment',
  list: "is missing; list the tenants, or write ['*'] for every tenant of the provider",
};

const OWNER = 'tenants';

const NO_ADDRESS = 'is required by tenants, which turn discovery off; set the URL of their key set';

const NO_STRANGERS =
  'must not contain {tenant} if the list is *: unauthenticated clients could cause key fetches; ' +
  'list the tenants, or name one key set';

const NO_SERVER =
  'is required by the metadata document; set the URL where clients of every tenant get tokens';

/**
 * Accepts tokens of a provider with a separate issuer for each tenant: for the option `tenants` of an issuer.
 * Throws a `TypeError` for an option that is wrong.
 *
 * @example tenants({ issuer: 'https://login.microsoftonline.com/{tenant}/v2.0', list: [tenantId] })
 */
export function tenants(options: TenantsOptions): TenantsPart {
  const read = readOptions<TenantsValues>(options, TENANTS_RULES, TENANTS_DEFAULTS, REQUIRED, OWNER);
  const { issuer, list, claim, authorizationServer } = read;
  const template = new Template(issuer, list);

  return Part.make(OWNER, {
    template: issuer,
    list,
    authorizationServer,

    requireFit(name, issuers, whole) {
      requireFit(ownerOf(name), read, issuers[name], whole);
      requireApart(issuers);
    },

    createIssuer: (own, fetchFrom, surroundings) =>
      createIssuer({ ...own, tenantClaim: claim }, template, fetchFrom, surroundings),
  });
}

/** Within the options of its issuer, and of the gate or service. */
function requireFit(
  owner: string,
  { issuer, list, authorizationServer }: TenantsValues,
  given: IssuerValues | undefined,
  whole: object,
) {
  const { jwksUri } = given ?? {};
  if (given?.issuer !== issuer) throwProblem(`${owner}issuer`, NOT_BOTH);

  const isForTest = 'fetchKeys' in whole;
  if (jwksUri === undefined && !isForTest) throwProblem(`${owner}jwksUri`, NO_ADDRESS);
  if (jwksUri !== undefined) requireGood(`${owner}jwksUri`, TEMPLATE_RULES.addressOrTemplate, jwksUri);
  if (isTemplate(jwksUri) && list.includes(EVERY)) throwProblem(`${owner}jwksUri`, NO_STRANGERS);

  const isNamed = authorizationServer !== undefined || !('metadata' in whole);
  if (!isNamed) throwProblem(`${owner}tenants: authorizationServer`, NO_SERVER);
}

function requireApart(issuers: IssuersByName) {
  const all = Object.entries(issuers).map(([name, values]) => {
    const { issuer } = values;
    const content = Part.contentOf(values.tenants);
    return { name, issuer, template: content && new Template(content.template, content.list) };
  });
  const [name] = overlapping(all);
  if (name !== undefined) throwProblem(`${ownerOf(name)}issuer`, SAME_ISSUER);
}

type OwnIssuer = Parameters<Tenants['createIssuer']>[0];

/** One for each gate or service: its tenants share what they may fetch. */
const slotsOf = new WeakMap<Surroundings, Slots>();

/** The issuer that stands for all tenants, and finds that of one. */
function createIssuer(
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

    const find: Keys['find'] = (kid, algorithm) => {
      const ofTenant = sets?.of(tenant) ?? keys;
      return andThen(ofTenant.find(kid, algorithm), (key) => confirm(key, own));
    };

    return { ...own, keys: { ...keys, find } };
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

/** The settings of an issuer. One that has a problem is absent. */
interface Configured {
  readonly issuer?: string | undefined;
  readonly tenantList?: readonly string[] | undefined;
}

/** The names of issuers that could accept a token of an earlier one. */
export function overlappingSettings(issuers: Readonly<Record<string, Configured>>): readonly string[] {
  const all = Object.entries(issuers).flatMap(([name, { issuer, tenantList }]) => {
    if (issuer === undefined) return [];

    const template = tenantList && new Template(issuer, tenantList);
    return [{ name, issuer, template }];
  });
  return overlapping(all);
}
