// The field in which a proxy passes on the certificate of its client → thumbprint. Promises: refuses what is
// not exactly of its form. Does not parse the certificate, and does not check who sent the field:
// certificates.ts does.
import { hash } from 'node:crypto';

/**
 * Returns the thumbprint (RFC 8705 §3.1), or `undefined` for a value that is not of its form. With
 * `mayBeJoined`, it may be several fields, joined with a comma and a space, and trimmed.
 */
type ReadValue = (value: string, mayBeJoined: boolean) => string | undefined;

interface Form {
  readonly usualField: string;
  readonly read: ReadValue;
}

export const FORMS = {
  rfc9440: { usualField: 'Client-Cert', read: readByteSequence },
  pem: { usualField: 'X-Client-Cert', read: readPem },
  base64: { usualField: 'X-Forwarded-Tls-Client-Cert', read: readFirstBase64 },
  xfcc: { usualField: 'X-Forwarded-Client-Cert', read: readElement },
} satisfies Readonly<Record<string, Form>>;

/** Of the bytes as they came: a parser of certificates could drop some. */
export const thumbprintOf = (certificate: Uint8Array): string => hash('sha256', certificate, 'base64url');

/** Node skips what is not base64: only canonical text survives the round trip (RFC 4648 §3.5). */
function thumbprintOfBase64(text = '') {
  const bytes = Buffer.from(text, 'base64');
  const isCanonical = bytes.length > 0 && bytes.toString('base64') === text;
  return isCanonical ? thumbprintOf(bytes) : undefined;
}

/** RFC 9440 §2.1, RFC 9651 §3.3.5. Stricter: no parameters. */
function readByteSequence(value: string) {
  return thumbprintOfBase64(/^:(.*):$/s.exec(value)?.[1]);
}

/** Fetch joins repeated fields with a comma, which escapes never leave as it is. */
const NOT_ESCAPED = /[\s,]|%(?![\da-f]{2})/i;

/** RFC 7468 §3, of the first certificate. */
const CERTIFICATE = /^-----BEGIN CERTIFICATE-----\r?\n((?:[\w+/=]*\r?\n)*)-----END CERTIFICATE-----/;

const unescaped = (_: string, hex: string) => String.fromCharCode(parseInt(hex, 16));

/** As nginx writes it; others leave `+`, `/` and `=` as they are. */
function readPem(value: string) {
  if (NOT_ESCAPED.test(value)) return undefined;

  const pem = value.replace(/%(..)/g, unescaped);
  const [, lines = ''] = CERTIFICATE.exec(pem) ?? [];
  return thumbprintOfBase64(lines.replace(/\r?\n/g, ''));
}

/** As Traefik writes a chain: the certificate of the client comes first. */
function readFirstBase64(value: string, mayBeJoined: boolean) {
  // RFC 9110 §5.3: the first of several fields may be the client's own, and a list itself.
  const isJoined = mayBeJoined && /,(?: |$)/.test(value);
  return isJoined ? undefined : thumbprintOfBase64(value.split(',', 1)[0]);
}

/** In a quoted value, a backslash takes the next character with it. */
const PAIR = /([^=,;"\s]+)=("(?:[^"\\]|\\.)*"|(?!\s)[^,;"]*(?<!\s))(?:;(?=.)|$)/gsy;

const isHash = ([, key = '']: RegExpExecArray) => key.toLowerCase() === 'hash';

/** As Envoy writes it. One element: of several, the first may be the client's own. */
function readElement(value: string) {
  const pairs = [...value.matchAll(PAIR)];
  const isElement = pairs.map(([text]) => text).join('') === value;
  const [only, ...others] = pairs.filter(isHash);
  if (!isElement || others.length > 0) return undefined;

  const [, digits] = /^"?([\da-f]{64})"?$/i.exec(only?.[2] ?? '') ?? [];
  return digits === undefined ? undefined : Buffer.from(digits, 'hex').toString('base64url');
}
