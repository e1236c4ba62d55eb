// What a service runs with, for the log line `listening` and the report of `--check`. Promises: no secrets.
import type { Kind } from '../service/create-service.ts';
import type { ServiceOptions, ServiceValues } from '../service/options.ts';
import type { Routes } from '../service/routes/route.ts';
import type { Loaded, Settings } from '../settings/load-settings.ts';
import type { IssuerSettings } from '../settings/load.ts';
import { printable, printableSetting } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import { ALGORITHM_NAMES } from '../verify/keys/jwk.ts';
import {
  DEFAULT_ALGORITHMS,
  type Introspection,
  type IssuersByName,
  type TenantsPart,
} from '../verify/options.ts';

/** What a process runs. */
export interface Deployment {
  readonly kind: Kind;
  readonly routes: Routes;
  readonly options: ServiceOptions;
  readonly values: ServiceValues;
  readonly loaded: Loaded;
}

export function summaryOf({ kind, values, loaded: { settings, files } }: Deployment) {
  return {
    profile: printable(kind.name),
    application: printableSetting(String(settings.applicationName)),
    ...issuersOf(values),
    dpopMode: printable(values.dpopMode),
    dpopAlgorithms: otherThan(ALGORITHM_NAMES, values.dpopAlgorithms),
    ...storesOf(values),
    ...certificatesOf(values),
    keyAccess: keyAccessOf(settings),
    introspection: introspectionOf(values),
    crossOrigin: values.cors !== undefined,
    files: files.map(printableSetting),
  };
}

function issuersOf({ issuers }: ServiceValues) {
  const all = Object.values(issuers);
  const algorithms = all.flatMap((issuer) => issuer.algorithms);

  return {
    issuers: all.map(({ issuer }) => printableSetting(issuer)),
    audiences: all.flatMap(({ audience }) => audience.map(printableSetting)),
    tenants: tenantsOf(issuers),
    algorithms: otherThan(DEFAULT_ALGORITHMS, algorithms),
  };
}

/** How many, or `*`, of the issuers that have some. */
function tenantsOf(issuers: IssuersByName) {
  const counts = Object.entries(issuers).flatMap(([name, { tenants }]) => {
    const count = countOf(tenants);
    return count === undefined ? [] : [[name, count] as const];
  });
  return counts.length === 0 ? undefined : Object.fromEntries(counts);
}

function countOf(tenants: TenantsPart | undefined) {
  const { list } = Part.contentOf(tenants) ?? {};
  return list?.includes('*') ? printable('*') : list?.length;
}

function storesOf({ replayStore, revocations }: ServiceValues) {
  const kind = Part.contentOf(revocations)?.kind;
  return {
    replayStore: printable(replayStore === undefined ? 'process' : 'shared'),
    revocationStore: kind === undefined ? undefined : printable(kind),
  };
}

function certificatesOf({ clientCertificates }: ServiceValues) {
  const content = Part.contentOf(clientCertificates);
  return {
    clientCertificates: content && printableSetting(content.source),
    certificateRequired: content?.isRequired,
  };
}

/** Of the issuers that have it. */
function keyAccessOf({ issuers }: Settings) {
  const used = Object.entries(issuers).filter(([, issuer]) => kindsIn(issuer).length > 0);
  if (used.length === 0) return undefined;

  return Object.fromEntries(used.map(([name, issuer]) => [name, kindsIn(issuer)]));
}

/** What the issuers are asked about that are asked. */
export function introspectionOf({ issuers }: ServiceValues, details: Details = () => []) {
  const used = Object.entries(issuers).flatMap(([name, issuer]) => {
    const content = Part.contentOf(issuer.introspection);
    if (content === undefined) return [];

    const words = [...content.tokens, ...details(name, content)];
    return [[name, words.map(printableSetting)] as const];
  });
  return used.length === 0 ? undefined : Object.fromEntries(used);
}

type Details = (issuer: string, part: Introspection) => readonly string[];

function kindsIn({ jwksTokenFile, caFile }: IssuerSettings) {
  const token = jwksTokenFile === undefined ? [] : [printable('token')];
  return caFile === undefined ? token : [...token, printable('authorities')];
}

function otherThan(usual: readonly string[], names: readonly string[]) {
  const distinct = [...new Set(names)];
  return distinct.join() === usual.join() ? undefined : distinct.map(printable);
}
