// Certificate-bound tokens (RFC 8705 §3). Trusts the TLS server or the proxy that the client showed
// possession of its certificate in the handshake, and for the authorities that it demands. Promises: no
// binding that a token names is ignored, only the certificate that it names confirms it, and a field counts
// only from a listed proxy. Checks no chain, validity or revocation (RFC 8705 §6.2).
import { decodeBase64url, isBytes } from '../../verify/base/encoding.ts';
import {
  boolean,
  oneOf,
  readOptions,
  textMatching,
  throwProblem,
  Part,
  type Given,
  type Rule,
  type RulesOf,
} from '../../verify/base/option.ts';
import { refuse, Refused } from '../../verify/base/refusal.ts';
import { isConfirmable, type ConfirmCertificate } from '../../verify/caller.ts';
import { fieldValues, type RequestFacts, type DpopMode } from '../../verify/request/facts.ts';
import type { ClientCertificatesPart } from '../../gate/options.ts';
import { createList, rangeOf } from './addresses.ts';
import { FORMS, thumbprintOf } from './fields.ts';

/** Where client certificates come from: the TLS socket of the request, or a header from a proxy. */
export type CertificateSource = 'tls' | keyof typeof FORMS;

interface CertificateValues {
  /** `tls`, or the format of the proxy's header. */
  readonly source: CertificateSource;
  /** The name of the header. Default: the usual one for the format. */
  readonly field: string | undefined;
  /** IP addresses and CIDR ranges of the proxies. Use `any` only if the proxy alone can connect. */
  readonly proxies: 'any' | readonly string[] | undefined;
  /** Whether a Bearer token must be bound to a certificate. Default: `false`. */
  readonly required: boolean;
}

/** The options of `clientCertificates`. */
export interface ClientCertificatesOptions
  extends Given<Omit<CertificateValues, 'source'>>, Pick<CertificateValues, 'source'> {}

/** Names that say something else here. */
const TAKEN = [
  ...['authorization', 'dpop', 'host', 'cookie', 'connection', 'content-length', 'transfer-encoding'],
  ...['method', 'uri', 'proto', 'host', 'for'].map((name) => `x-forwarded-${name}`),
];

const fieldName = textMatching(
  /^[a-z\d-]+$/i,
  'must be the name of a header field, of letters, digits and hyphens, that has no other meaning here',
  (name) => !TAKEN.includes(name.toLowerCase()),
);

const WRONG_PROXIES =
  'must be a list of IP addresses and CIDR ranges, each without a zone, not IPv4-mapped, and without bits ' +
  'beyond its prefix; or the one word any, if only the proxy can connect';

const proxyList: Rule = (value) => {
  const ranges = Array.isArray(value) ? Array.from(value, rangeOf) : [undefined];
  const isList = ranges.length > 0 && !ranges.includes(undefined);
  return isList || value === 'any' ? undefined : WRONG_PROXIES;
};

export const CERTIFICATE_RULES: RulesOf<ClientCertificatesOptions> = {
  source: oneOf('tls', ...Object.keys(FORMS)),
  field: fieldName,
  proxies: proxyList,
  required: boolean,
};

export const CERTIFICATE_DEFAULTS = { required: false };

const REQUIRED = { source: 'is missing; set where certificates come from' };

const OWNER = 'clientCertificates';

const NO_FIELD = 'has no effect with tls, which reads no field; remove it';

const NO_PROXIES = 'is missing; list the addresses of the proxies that send the field';

/**
 * Accepts certificate-bound tokens (RFC 8705), each only with its certificate: for the option
 * `clientCertificates`. Throws a `TypeError` for an option that is wrong.
 *
 * @example createGate({ domain, audience, clientCertificates: clientCertificates({ source: 'tls' }) });
 */
export function clientCertificates(options: ClientCertificatesOptions): ClientCertificatesPart {
  const { source, field, proxies, required } = readOptions<CertificateValues>(
    options,
    CERTIFICATE_RULES,
    CERTIFICATE_DEFAULTS,
    REQUIRED,
    OWNER,
  );
  if (source !== 'tls') return ofField(source, field, proxies, required);

  if (field !== undefined) throwProblem(`${OWNER}: field`, NO_FIELD);
  if (proxies !== undefined) throwProblem(`${OWNER}: proxies`, NO_FIELD);

  const createConfirm = confirming(readSocket, required);
  return Part.make(OWNER, { createConfirm, isRequired: required, source, field, proxies });
}

/** What the listener of a service lets in. */
const MAX_LENGTH = 16_384;

function ofField(
  source: keyof typeof FORMS,
  field: string | undefined,
  proxies: CertificateValues['proxies'],
  isRequired: boolean,
): ClientCertificatesPart {
  if (proxies === undefined) throwProblem(`${OWNER}: proxies`, NO_PROXIES);

  const { usualField, read } = FORMS[source];
  const shown = field ?? usualField;
  const name = shown.toLowerCase();
  const isTrusted = proxies === 'any' ? () => true : createList(proxies);

  const readField: ReadCertificate = ({ rawHeaders, socket }) => {
    const [value = '', ...others] = fieldValues(rawHeaders, name);
    if (value === '' && others.length === 0) return refuse('certificate-missing');

    // RFC 9440 §4: anyone but a trusted proxy may have forged the header.
    const { remoteAddress } = Object(socket);
    if (!isTrusted(remoteAddress)) return refuse('certificate-untrusted');

    const isOne = others.length === 0 && value.length <= MAX_LENGTH;
    const thumbprint = isOne ? read(value, !socket) : undefined;
    return thumbprint ?? refuse('certificate-malformed');
  };

  const createConfirm = confirming(readField, isRequired);
  const about = { source: `${source} ${shown}`, field: name, proxies };
  return Part.make(OWNER, { createConfirm, isRequired, ...about });
}

/** Returns the thumbprint of the client's certificate. */
type ReadCertificate = (facts: RequestFacts) => string | Refused;

/** The table of docs/certificates.md. Under DPoP, the proof is checked later. */
const confirming =
  (read: ReadCertificate, isRequired: boolean) =>
  (dpopMode: DpopMode): ConfirmCertificate =>
    function confirmCertificate(cnf, scheme, facts) {
      const isDpopOff = dpopMode === 'DISABLED';
      const binding = bindingOf(cnf);
      if (binding instanceof Refused) return binding;

      const { jkt, thumbprint } = binding;
      if (scheme === 'Bearer') {
        // RFC 9449 §7.2: Bearer shows no key.
        if (jkt !== undefined) return refuse(isDpopOff ? 'confirmation-refused' : 'bound-token');
        if (thumbprint === undefined) return refuseUnbound(cnf, isDpopOff, isRequired);
      } else if (jkt === undefined || thumbprint === undefined) {
        return undefined;
      }

      const presented = read(facts);
      if (presented instanceof Refused) return presented;

      // RFC 8705 §3
      return presented === thumbprint ? undefined : refuse('certificate-mismatch');
    };

function refuseUnbound(cnf: unknown, isDpopOff: boolean, isRequired: boolean) {
  // RFC 9449 §7.2
  if (cnf !== undefined && !isDpopOff) return refuse('bound-token');

  return isRequired ? refuse('certificate-required') : undefined;
}

/** The thumbprints of key and certificate (RFC 9449 §6.1, RFC 8705 §3.1). */
function bindingOf(cnf: unknown = {}) {
  if (!isConfirmable(cnf)) return refuse('confirmation-refused');

  const { jkt, 'x5t#S256': thumbprint } = cnf;
  const isKey = jkt === undefined || (typeof jkt === 'string' && jkt !== '');
  // SHA-256, in base64url.
  const isHash = typeof thumbprint === 'string' && decodeBase64url(thumbprint)?.length === 32;
  const isCertificate = thumbprint === undefined || isHash;
  return isKey && isCertificate ? { jkt, thumbprint } : refuse('confirmation-refused');
}

/** RFC 8705 §3. A resumed session has the certificate of its first handshake. */
function readSocket({ socket }: RequestFacts) {
  const { getPeerX509Certificate } = Object(socket);
  const isTls = typeof getPeerX509Certificate === 'function';
  const certificate: unknown = isTls ? Reflect.apply(getPeerX509Certificate, socket, []) : undefined;
  const { raw } = Object(certificate);
  return isBytes(raw) && raw.length > 0 ? thumbprintOf(raw) : refuse('certificate-missing');
}
