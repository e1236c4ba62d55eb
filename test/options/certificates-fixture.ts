/* Client certificates, the forms in which proxies write them, and what the part makes of a request. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { clientCertificates, type ClientCertificatesOptions } from '../../src/certificates.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { Refusal } from '../../src/verify/base/refusal.ts';
import type { ConfirmCertificate } from '../../src/verify/caller.ts';
import type { DpopMode } from '../../src/verify/request/facts.ts';

export const tlsFile = (name: string) =>
  readFileSync(new URL(`../idp/tls/${name}.pem`, import.meta.url), 'utf8');

export interface ClientCertificate {
  readonly pem: string;
  readonly key: string;
  readonly der: Buffer;
  /** As `x5t#S256` names it. */
  readonly thumbprint: string;
  readonly hex: string;
}

function readClient(name: string): ClientCertificate {
  const pem = tlsFile(name);
  const { raw, fingerprint256 } = new X509Certificate(pem);
  const hex = fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    pem,
    key: tlsFile(`${name}-key`),
    der: raw,
    thumbprint: Buffer.from(hex, 'hex').toString('base64url'),
    hex,
  };
}

export const client = readClient('client');
export const otherClient = readClient('other-client');

export type FieldSource = Exclude<ClientCertificatesOptions['source'], 'tls'>;

export const FIELDS: Readonly<Record<FieldSource, string>> = {
  rfc9440: 'Client-Cert',
  pem: 'X-Client-Cert',
  base64: 'X-Forwarded-Tls-Client-Cert',
  xfcc: 'X-Forwarded-Client-Cert',
};

export const SOURCES = Object.keys(FIELDS) as readonly FieldSource[];

export const pemOf = (der: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;

/** As nginx escapes it: all but letters, digits and `-._~`. */
export const escaped = (text: string) => encodeURIComponent(text);

export const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes);

/** As the proxies of the form write it. */
export function written(source: FieldSource, der: Buffer): string {
  if (source === 'rfc9440') return `:${der.toString('base64')}:`;
  if (source === 'pem') return escaped(pemOf(der));
  if (source === 'base64') return der.toString('base64');
  return `By=spiffe://mesh.test/api;Hash=${sha256(der).digest('hex')};Subject="CN=a,O=b";URI=spiffe://mesh.test/web`;
}

export type Outcome = 'accepted' | Refusal['reason'];

/** What the part makes of a token that names this thumbprint, with these values of the field. */
export function outcomeOf(
  options: ClientCertificatesOptions,
  thumbprint: string | undefined,
  values: readonly string[],
  socket: unknown = { remoteAddress: '192.0.2.1' },
): Outcome {
  const name = options.field ?? FIELDS[options.source as FieldSource] ?? 'Client-Cert';
  return outcomeFrom(confirmOf(options), thumbprint, name, values, socket);
}

export const confirmOf = (
  options: ClientCertificatesOptions,
  mode: DpopMode = 'ALLOWED',
): ConfirmCertificate => Part.contentOf(clientCertificates(options)).createConfirm(mode);

export function outcomeFrom(
  confirm: ConfirmCertificate,
  thumbprint: string | undefined,
  name: string,
  values: readonly string[],
  socket: unknown = undefined,
): Outcome {
  const rawHeaders = ['Host', 'api.test', ...values.flatMap((value) => [name, value])];
  const cnf = thumbprint === undefined ? undefined : { 'x5t#S256': thumbprint };
  const facts = { method: 'GET', host: 'api.test', path: '/', rawHeaders, socket };
  return confirm(cnf, 'Bearer', facts)?.refusal.reason ?? 'accepted';
}
