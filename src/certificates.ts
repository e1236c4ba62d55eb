// The entry point `gatehouse-http/certificates`: tokens that are bound to a client certificate.
export {
  clientCertificates,
  type CertificateSource,
  type ClientCertificatesOptions,
} from './options/certificates/certificates.ts';
export type { ClientCertificatesPart } from './gate/options.ts';
