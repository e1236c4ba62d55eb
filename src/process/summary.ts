// What a service runs with, for the log line `listening` and the report of `--check`. Promises: no secrets.
import type { Kind } from '../service/create-service.ts';
import type { ServiceOptions, ServiceValues } from '../service/options.ts';
import type { Routes } from '../service/routes/route.ts';
import type { Loaded } from '../settings/load-settings.ts';
import type { IssuerSettings } from '../settings/load.ts';
import { printable, printableSetting } from '../verify/base/events.ts';
import { Part } from '../verify/base/option.ts';
import { ALGORITHM_NAMES } from '../verify/keys/jwk.ts';
import { DEFAULT_ALGORITHMS, type Introspection, type TenantsPart } from '../verify/options.ts';

/** What a process is to run. */
export interface Planned {
  readonly kind: Kind;
  readonly routes: Routes;
  readonly loaded: Loaded;
}

/** The same, with its options. */
export interface Deployment extends Planned {
  readonly options: ServiceOptions;
  readonly values: ServiceValues;
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
    keyAccess: byName(settings.issuers, kindsIn),
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
    tenants: byName(issuers, ({ tenants }) => countOf(tenants)),
    algorithms: otherThan(DEFAULT_ALGORITHMS, algorithms),
  };
}

/** How many, or `*`. */
function countOf(tenants: TenantsPart | undefined) {
  const { list } = Part.contentOf(tenants) ?? {};
  return list?.includes('*') ? printable('*') : list?.length;
}

function storesOf({ replayStore, revocations }: ServiceValues) {
  const kind = Part.contentOf(revocations)?.kind;
  return {
    replayStore: printable(replayStore ? 'shared' : 'process'),
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

/** What the issuers are asked about that are asked. */
export function introspectionOf({ issuers }: ServiceValues, details: Details = () => []) {
  return byName(issuers, ({ introspection }, name) => {
    const content = Part.contentOf(introspection);
    const words = content && [...content.tokens, ...details(name, content)];
    return words?.map(printableSetting);
  });
}

type Details = (issuer: string, part: Introspection) => readonly string[];

function kindsIn({ jwksTokenFile, caFile }: IssuerSettings) {
  const files = Object.entries({ token: jwksTokenFile, authorities: caFile });
  const kinds = files.flatMap(([kind, file]) => {
    return file ? [printable(kind)] : [];
  });
  return kinds.length === 0 ? undefined : kinds;
}

/** Of the issuers that have it. */
function byName<Each, Value>(
  issuers: Readonly<Record<string, Each>>,
  read: (issuer: Each, name: string) => Value | undefined,
) {
  const found: Record<string, Value> = {};
  for (const [name, issuer] of Object.entries(issuers)) {
    const value = read(issuer, name);
    if (value !== undefined) found[name] = value;
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

function otherThan(usual: readonly string[], names: readonly string[]) {
  const distinct = [...new Set(names)];
  return distinct.join() === usual.join() ? undefined : distinct.map(printable);
}
