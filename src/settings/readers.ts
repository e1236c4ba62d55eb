// Readers of single values: raw → typed, or a fault that says what to change. Promises: a fault never repeats
// the value, which may be a secret in the wrong place. Does not know where a value came from: load.ts does.
import { undefinedOn } from '../base/encoding.ts';
import { normalUri } from '../request/uri.ts';
import { Fault, type RawValue } from './entry.ts';

/** Reads one raw value. Throws `Fault`. */
export type Reader<Value> = (raw: RawValue) => Value;

/** What is wrong with a text, and the fix; `false` when nothing is. */
type TextFault = (value: string) => string | false;

/** Text in which `faultOf` finds nothing wrong. */
export function text(faultOf: TextFault = () => false): Reader<string> {
  return (raw) => {
    if (typeof raw !== 'string') throw new Fault('must be text; quote it');
    const fault = faultOf(raw);
    if (fault !== false) throw new Fault(fault);
    return raw;
  };
}

/** A whole number within bounds. */
export function integer(min: number, max: number): Reader<number> {
  return (raw) => {
    const value = typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : raw;
    const isWhole = typeof value === 'number' && Number.isInteger(value);
    if (isWhole && value >= min && value <= max) return value;
    throw new Fault(`must be a whole number from ${min} to ${max}`);
  };
}

/** `true` or `false`, in either case. */
export const boolean: Reader<boolean> = (raw) =>
  typeof raw === 'boolean' ? raw : wordInEitherCase('true', 'false')(raw) === 'true';

/** One of the words as they stand. */
export function word<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (raw) => {
    const found = words.find((candidate) => candidate === raw);
    if (found === undefined) throw new Fault(`must be one of ${words.join(', ')}`);
    return found;
  };
}

/** One of the words in either case. */
export function wordInEitherCase<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (raw) => {
    const lower = typeof raw === 'string' ? raw.toLowerCase() : undefined;
    const found = words.find((candidate) => candidate.toLowerCase() === lower);
    return word(...words)(found ?? raw);
  };
}

/** A list of at least so many texts, or one text with commas between them. */
export function list(faultOf: TextFault, least = 0): Reader<readonly string[]> {
  return (raw) => {
    const parts = typeof raw === 'string' ? raw.split(',') : undefined;
    // The first counts though it is empty: `,` would silently turn off what the setting asks for.
    const isNamed = (part: string, index: number) => part !== '' || index === 0;
    const members = parts?.map((part) => part.trim()).filter(isNamed) ?? raw;
    const isList = typeof members === 'object' && members !== null;
    if (isList && members.length >= least) return members.map(text(faultOf));
    throw new Fault('must be a list of texts; quote them');
  };
}

/** A host name with an optional port, and nothing else of a URL. */
export const hostFault: TextFault = (value) => {
  const [scheme] = /^[a-z][a-z0-9+.-]*:\/\//i.exec(value) ?? [];
  if (scheme !== undefined) return `has a scheme; remove "${scheme}" and keep the host name`;
  if (/\s/.test(value)) return 'has white space; remove it';
  if (value.includes('@')) return 'has an "@"; remove it and what stands before it';
  if (/[/?#\\]/.test(value)) return 'has a path; remove the "/" and what follows the host name';

  const isSpelled = /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i.test(value);
  const url = `https://${value}/`;
  const host = URL.canParse(url) ? new URL(url).host : undefined;
  // The URL parser knows which of them are addresses, and which ports there are.
  const isHost = isSpelled && host === value.toLowerCase().replace(/:443$/, '');
  return !isHost && 'is not a host name with an optional ":port"; write it as the provider shows it';
};

function unless(pattern: RegExp, fault: string): TextFault {
  return (value) => !pattern.test(value) && fault;
}

export const blankFault = unless(/^[^\s\0]+$/, 'is empty, or has white space or a NUL; remove it');

export const secretFault = unless(/^[^]{32,}$/, 'must have at least 32 characters');

/** A method name (RFC 9110 §9.1). */
export const methodFault = unless(/^[A-Z]+$/, 'must be a method name in upper case');

/** The name of a header field (RFC 9110 §5.1), and no `*`, which would mean all of them. */
export const fieldNameFault = unless(/^[\w!#$%&'+.^`|~-]+$/, 'must be the name of a header field');

export const prefixFault: TextFault = (value) =>
  (!URL.canParse(value) || /\s/.test(value)) && 'must be a URL prefix';

function urlFault(pattern: RegExp, rest: string): TextFault {
  return (value) => {
    const isGood = pattern.test(value) && URL.canParse(value);
    return !isGood && `must be a URL that begins with ${rest}`;
  };
}

/** An absolute URL with neither user information nor fragment. */
export const httpsFault = urlFault(
  /^https:\/\/[^/\s@#\\][^\s@#\\]*$/i,
  'https://, without white space, "@" or "#"',
);

/** The same without a query (OpenID Connect Discovery §2). */
export const issuerFault = urlFault(
  /^https:\/\/[^/?\s@#\\][^?\s@#\\]*$/i,
  'https://, without white space, "@", "#" or "?"',
);

const webFault = urlFault(
  /^https?:\/\/[^/?\s@#\\][^?\s@#\\]*$/i,
  'https:// or http://, without white space, "@", "#" or "?"',
);

function secretFaultOf(pattern: RegExp, form: string): TextFault {
  return (value) => {
    const isSpelled = pattern.test(value) && URL.canParse(value);
    const isGood = isSpelled && undefinedOn(URIError, () => decodeURIComponent(value)) !== undefined;
    return !isGood && `must be ${form}, with special characters as %XX`;
  };
}

/** The address of a replay store. */
export const storeFault = secretFaultOf(
  /^rediss?:\/\/([^\s:@/?#]*:[^\s@/?#]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?(\/\d{0,9})?$/i,
  'redis://[[user]:password@]host[:port][/database], or rediss://',
);

/** The address of a forward proxy. A backslash is a slash to the URL parser here. */
export const proxyFault = secretFaultOf(
  /^http:\/\/([^\s:@/?#\\]+:[^\s@/?#\\]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?\/?$/i,
  'http://[user:password@]host[:port]',
);

/** A public URL in a spelling that proofs can be compared with (RFC 9449 §4.3(9)). */
export const publicUrlFault: TextFault = (value) =>
  webFault(value) ||
  (normalUri(value) === undefined &&
    'must have its host and path as URL gives them; write it in its normal form');

const IS_SECURE = /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$))[^=]*$/i;

/** The identifier of a protected resource (RFC 9728 §1.2). */
export const resourceFault: TextFault = (value) => {
  if (publicUrlFault(value) !== false) return publicUrlFault(value);
  if (!IS_SECURE.test(value)) {
    return 'must begin with https://, but for localhost, 127.0.0.1 and [::1], and have no "="';
  }

  // Stricter: RFC 9728 §3.1 keeps a slash that ends a path; clients differ over what to ask for then.
  return /.\/$/.test(new URL(value).pathname) && 'must not end in "/" after a path; remove it';
};

/** A scope-token (RFC 6749 §3.3) that is the API's own, not one by which a client asks about its user. */
export const resourceScopeFault = unless(
  /^(?!(openid|offline_access)$)[\x21\x23-\x5b\x5d-\x7e]+$/,
  'must be a scope of this API, without white space, quotes or "\\"; neither openid nor offline_access',
);

/** A web origin exactly as browsers send it. */
export const originFault: TextFault = (value) => {
  if (value.includes('*')) return 'must not have a "*"; list every origin';
  const isOrigin = webFault(value) === false && new URL(value).origin === value;
  return (
    !isOrigin &&
    'must be an origin as browsers send it: scheme, host in lower case, port unless default, no trailing "/"'
  );
};
